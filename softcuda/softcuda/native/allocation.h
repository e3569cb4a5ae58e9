/* What an allocation is, and the pool that it may come from. */
#pragma once
#include "handles.h"

enum sc_memory { SC_DEVICE_MEMORY = 1, SC_HOST_MEMORY, SC_MANAGED_MEMORY, SC_REGISTERED_MEMORY,
                 SC_MODULE_MEMORY, SC_HEAP_MEMORY };

/* Memory that kernels may touch. Lists of them are replaced, never changed, so that a kernel reads
 * one without the lock. */
typedef struct sc_allocation {
  uint64_t at, size;
  uint64_t mapped_at, mapped_size; /* with the guard pages around it */
  enum sc_memory kind;
  CUcontext context;
  int device;
  bool freed;        /* kept, without access, so that its use is seen */
  bool constant;
  unsigned flags;    /* of cuMemHostAlloc, cuMemHostRegister and cuMemAllocManaged */
  bool synchronous;  /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
  bool freeing;      /* cuMemFreeAsync was called, and has not run */
  struct CUmemPoolHandle_st *pool; /* that it came from; NULL: none */
  uint64_t number;   /* the nth allocation, from 1 */
  char name[64];     /* as given by softcuda_name; else "allocation 7" is said */
  struct sc_shadow *shadow; /* the sanitizer's; NULL until it needs one */
} sc_allocation;

/* A pool that memory comes from. */
struct CUmemPoolHandle_st {
  sc_object object;
  int device;
  bool is_default;            /* of its device: it is never destroyed */
  uint64_t limit;             /* CUmemPoolProps.maxSize; 0: the device's memory */
  uint64_t used, used_high;   /* bytes */
  uint64_t release_threshold;
  int reuse[3];               /* CU_MEMPOOL_ATTR_REUSE_... */
  uint32_t reachable;         /* bit n: device n may read and write it */
};
