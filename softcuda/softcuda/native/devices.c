/* Devices: how many, and what each says of itself (Driver API, "Device Management"). Clocks and
 * widths of buses are 0: a device in software has none, and no figure should look like one. */
#include "contexts.h"
#include "device.h"
#include "options.h"
#include "reports.h"
#include "parse.h"

enum { PCI_VENDOR_NVIDIA = 0x10DE };

/* Guide, "Technical Specifications per Compute Capability". */
static const struct generation {
  int capability;              /* from this one on */
  int threads, blocks;         /* resident on a multiprocessor */
  int shared, shared_opt_in;   /* KiB of a multiprocessor, and of a block that opts in */
} generations[] = {
    {121, 1536, 24, 100, 99},  {120, 1536, 24, 100, 99},  {110, 1536, 24, 228, 227},
    {100, 2048, 32, 228, 227}, {90, 2048, 32, 228, 227},  {89, 1536, 24, 100, 99},
    {87, 1536, 16, 164, 163},  {86, 1536, 16, 100, 99},   {80, 2048, 32, 164, 163},
    {75, 1024, 16, 64, 64},    {70, 2048, 32, 96, 96},    {0, 2048, 32, 64, 48},
};

static const struct generation *generation_now(void) {
  const struct generation *generation = generations;
  while (sc_option.capability < generation->capability) generation++;
  return generation;
}

static int at_least(int a, uint64_t b) { return b > (uint64_t)a ? (int)b : a; }

int sc_attribute(CUdevice_attribute attribute, int device) {
  const struct generation *generation = generation_now();
  int capability = sc_option.capability;
  switch ((int)attribute) {
#define IS(NAME, VALUE) case CU_DEVICE_ATTRIBUTE_##NAME: return VALUE
    IS(MAX_THREADS_PER_BLOCK, sc_option.block_limit);
    IS(MAX_BLOCK_DIM_X, sc_option.block_limit);
    IS(MAX_BLOCK_DIM_Y, sc_option.block_limit);
    IS(MAX_BLOCK_DIM_Z, sc_option.block_limit < 64 ? sc_option.block_limit : 64);
    IS(MAX_GRID_DIM_X, INT32_MAX);
    IS(MAX_GRID_DIM_Y, 65535);
    IS(MAX_GRID_DIM_Z, 65535);
    IS(MAX_SHARED_MEMORY_PER_BLOCK, (int)sc_option.shared_limit);
    IS(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       sc_option.shared_limit < 48 << 10
           ? (int)sc_option.shared_limit /* a smaller device was asked for */
           : at_least(generation->shared_opt_in << 10, sc_option.shared_limit));
    IS(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       at_least(generation->shared << 10, sc_option.shared_limit));
    IS(RESERVED_SHARED_MEMORY_PER_BLOCK, capability >= 80 ? 1024 : 0);
    IS(TOTAL_CONSTANT_MEMORY, 65536);
    IS(WARP_SIZE, SC_WARP);
    IS(MAX_PITCH, INT32_MAX);
    IS(MAX_REGISTERS_PER_BLOCK, 65536);
    IS(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536);
    IS(MAX_THREADS_PER_MULTIPROCESSOR, generation->threads);
    IS(MAX_BLOCKS_PER_MULTIPROCESSOR, generation->blocks);
    IS(MULTIPROCESSOR_COUNT, sc_option.multiprocessors);
    IS(COMPUTE_CAPABILITY_MAJOR, capability / 10);
    IS(COMPUTE_CAPABILITY_MINOR, capability % 10);
    IS(COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT);
    IS(PCI_BUS_ID, SC_PCI_BUS + sc_option.physical[device]);
    IS(PCI_DEVICE_ID, 0);
    IS(PCI_DOMAIN_ID, 0);
    IS(GPU_PCI_DEVICE_ID, PCI_VENDOR_NVIDIA);
    IS(TEXTURE_ALIGNMENT, 512);
    IS(TEXTURE_PITCH_ALIGNMENT, 32);
    IS(SURFACE_ALIGNMENT, 512);
    IS(GPU_OVERLAP, 1);
    IS(ASYNC_ENGINE_COUNT, 2);
    IS(CONCURRENT_KERNELS, 1);
    IS(STREAM_PRIORITIES_SUPPORTED, 1);
    IS(UNIFIED_ADDRESSING, 1);
    IS(CAN_MAP_HOST_MEMORY, 1);
    IS(HOST_REGISTER_SUPPORTED, 1);
    IS(READ_ONLY_HOST_REGISTER_SUPPORTED, 1);
    IS(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1);
    IS(MANAGED_MEMORY, 1);
    IS(CONCURRENT_MANAGED_ACCESS, 1);
    IS(HOST_NATIVE_ATOMIC_SUPPORTED, 1);
    IS(MEMORY_POOLS_SUPPORTED, 1);
    IS(COOPERATIVE_LAUNCH, capability >= 60);
    IS(COMPUTE_PREEMPTION_SUPPORTED, 1);
    IS(CAN_USE_64_BIT_STREAM_MEM_OPS, 1);
    IS(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1);
    IS(CAN_USE_STREAM_MEM_OPS_V1, 1);
    IS(CAN_USE_STREAM_WAIT_VALUE_NOR, 1);
    IS(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1);
    IS(GLOBAL_L1_CACHE_SUPPORTED, 1);
    IS(LOCAL_L1_CACHE_SUPPORTED, 1);
    IS(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2);
    IS(UNIFIED_FUNCTION_POINTERS, 0);
    IS(KERNEL_EXEC_TIMEOUT, sc_option.kernel_timeout > 0);
    IS(NUMA_ID, -1);
    IS(HOST_NUMA_ID, -1);
    IS(TENSOR_MAP_LARGE_TENSOR_MIN_SIZE, INT32_MAX);
#undef IS
  default: return 0; /* textures, clocks, caches, sharing between processes: there are none */
  }
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  ENTER_ANYWAY;
  if (!value || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *value = sc_attribute(attribute, device);
  sc_log("  attribute %d = %d", attribute, *value);
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count) {
  ENTER_ANYWAY;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = sc_option.devices;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER_ANYWAY;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
  ENTER_ANYWAY;
  if (!name || room <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, (size_t)room, "softcuda");
  return CUDA_SUCCESS;
}

/* The same that NVML tells (sc_uuid_text). */
API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  ENTER_ANYWAY;
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  memset(uuid->bytes, SC_UUID_FIRST + sc_option.physical[device], sizeof uuid->bytes);
  return CUDA_SUCCESS;
}

/* Driver API, cuDeviceGetLuid: of Windows only. */
API CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice device) {
  ENTER_ANYWAY;
  if (!luid || !mask) return CUDA_ERROR_INVALID_VALUE;
  return sc_is_device(device) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  ENTER_ANYWAY;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = sc_option.memory;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice device) {
  ENTER_ANYWAY;
  if (!id || room < 13) return CUDA_ERROR_INVALID_VALUE; /* "large enough to store 13 characters" */
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(id, (size_t)room, "0000:%02X:00.0", SC_PCI_BUS + sc_option.physical[device]);
  return CUDA_SUCCESS;
}

/* Driver API, cuDeviceGetByPCIBusId: "[domain]:[bus]:[device].[function]",
 * "[domain]:[bus]:[device]" or "[bus]:[device].[function]", in hexadecimal. */
API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id) {
  ENTER_ANYWAY;
  if (!device || !id) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus, slot, function = 0;
  if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
    domain = 0;
    if (sscanf(id, "%x:%x.%x", &bus, &slot, &function) != 3) return CUDA_ERROR_INVALID_VALUE;
  }
  for (int i = 0; i < sc_option.devices && !domain && !slot && !function; i++) {
    if ((int)bus != SC_PCI_BUS + sc_option.physical[i]) continue;
    *device = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  ENTER_ANYWAY;
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *major = sc_option.capability / 10;
  *minor = sc_option.capability % 10;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type,
                                            CUdevice device) {
  ENTER_ANYWAY;
  if (!supported || type >= CU_EXEC_AFFINITY_TYPE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *supported = 0;
  return CUDA_SUCCESS;
}

/* ---- peers --------------------------------------------------------------------------------- */

/* Driver API, cuDeviceCanAccessPeer: of two devices; a device is no peer of its own. */
API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENTER_ANYWAY;
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device) || !sc_is_device(peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer;
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from,
                                     CUdevice to) {
  ENTER_ANYWAY;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(from) || !sc_is_device(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
  case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = 0; return CUDA_SUCCESS;
  case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
  case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; return CUDA_SUCCESS;
  case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 0; return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}
