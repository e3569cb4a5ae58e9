/* What every file of the driver begins with.
 *
 * One lock guards all of the driver's own data (lock.h); kernels run without it. "Driver API" in
 * comments is NVIDIA's "CUDA Driver API" reference, "Guide" the "CUDA C++ Programming Guide".
 */
#pragma once
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an older cuda.h does not name yet, with the values of NVIDIA's. */
#if CUDA_VERSION < 13020
#define CU_MEMPOOL_ATTR_ALLOCATION_TYPE 9
#define CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES 10
#define CU_MEMPOOL_ATTR_LOCATION_ID 11
#define CU_MEMPOOL_ATTR_LOCATION_TYPE 12
#define CU_MEMPOOL_ATTR_MAX_POOL_SIZE 13
#endif
#if CUDA_VERSION < 13050
#define CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE 160
#endif

/* Symbols that are looked up by name; all others stay inside the library. */
#define API __attribute__((visibility("default")))

enum { SC_MAX_DEVICES = 16 };
