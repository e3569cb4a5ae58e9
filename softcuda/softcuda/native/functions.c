/* What can be asked of a function, and set for it (Driver API, Execution Control; of kernels:
 * Library Management). */
#include "contexts.h"
#include "lock.h"
#include "modules.h"
#include "options.h"

/* A software device has no registers. Programs divide by the number and choose blocks by it, so it
 * is one that a plain kernel might have. */
enum { REGISTERS = 32 };

static int shared_limit(int device) {
  return sc_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
}

uint32_t sc_dynamic_limit(const sc_function *function) {
  if (function->dynamic_limit) return function->dynamic_limit;
  uint32_t used = function->library->module->shared_bytes;
  return sc_option.shared_limit > used ? (uint32_t)sc_option.shared_limit - used : 0;
}

uint32_t sc_thread_limit(const sc_function *function) {
  uint32_t limit = (uint32_t)sc_option.block_limit, own = function->kernel->max_threads;
  return own && own < limit ? own : limit;
}

static int constant_bytes(const sc_module *module) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < module->global_count; i++)
    if (module->globals[i].constant) bytes += module->globals[i].bytes;
  return (int)bytes;
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute,
                              const sc_function *function, const char *call) {
  if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  const sc_library *library = function->library;
  switch ((int)attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = (int)sc_thread_limit(function); break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)library->module->shared_bytes; break;
  case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = constant_bytes(library->module); break;
  case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)function->kernel->local_bytes; break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = REGISTERS; break;
  /* "The PTX virtual architecture version for which the function was compiled" */
  case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = library->target; break;
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = sc_option.capability; break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = (int)sc_dynamic_limit(function);
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    *value = CU_SHAREDMEM_CARVEOUT_DEFAULT;
    break;
  default: *value = 0; /* no cluster, no cache */
  }
  return CUDA_SUCCESS;
}

static CUresult set_attribute(sc_function *function, CUfunction_attribute attribute, int value,
                              int device, const char *call) {
  if (!sc_object_ok(function, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  switch ((int)attribute) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
    /* "The sum of this value and [...] SHARED_SIZE_BYTES cannot exceed the device attribute
     * CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN." */
    int64_t sum = (int64_t)value + function->library->module->shared_bytes;
    if (value < 0 || sum > shared_limit(device)) return CUDA_ERROR_INVALID_VALUE;
    function->dynamic_limit = (uint32_t)value;
    return CUDA_SUCCESS;
  }
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: /* "only a hint" */
    return value >= -1 && value <= 100 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
  case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: /* no clusters but those of one block */
    return value == 0 || value == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE; /* "a read-only attribute" */
  }
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  ENTER;
  return get_attribute(value, attribute, (sc_function *)function, __func__);
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ENTER;
  CUcontext context = sc_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  return set_attribute((sc_function *)function, attribute, value, context->device, __func__);
}

static bool is_device(CUdevice device) { return device >= 0 && device < sc_option.devices; }

API CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                                  CUdevice device) {
  ENTER;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return get_attribute(value, attribute, (sc_function *)kernel, __func__);
}

/* Set for one device in the API; here for all of them, which are alike. Functions that the kernel
 * already has in contexts follow. */
API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                  CUdevice device) {
  ENTER;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  sc_function *function = (sc_function *)kernel;
  sc_lock();
  CUresult error = set_attribute(function, attribute, value, device, __func__);
  if (!error) {
    const sc_library *library = function->library;
    for (sc_library *copy = library->copies; copy; copy = copy->next)
      copy->functions[function->kernel - library->module->kernels]->dynamic_limit =
          function->dynamic_limit;
  }
  sc_unlock();
  return error;
}

/* For cuLaunch and its like alone, which are refused: a launch of today brings its block. PyCUDA
 * sets it all the same. */
API CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  ENTER;
  if (!sc_object_ok(function, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return x > 0 && y > 0 && z > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* "This setting does nothing on devices where the size of the L1 cache and shared memory are
 * fixed." */
API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  ENTER;
  if (!sc_object_ok(function, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  ENTER;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!sc_object_ok(kernel, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuFuncGetModule(CUmodule *out, CUfunction function) {
  ENTER;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  sc_function *own;
  CUresult error = sc_function_in(function, sc_current(), __func__, &own);
  if (!error) *out = (CUmodule)own->library;
  return error;
}

/* "If either **name or hfunc is NULL, CUDA_ERROR_INVALID_VALUE is returned." */
static CUresult get_name(const char **name, const sc_function *function, const char *call) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->kernel->name;
  return CUDA_SUCCESS;
}

API CUresult cuFuncGetName(const char **name, CUfunction function) {
  ENTER;
  return get_name(name, (sc_function *)function, __func__);
}

API CUresult cuKernelGetName(const char **name, CUkernel kernel) {
  ENTER;
  return get_name(name, (sc_function *)kernel, __func__);
}

/* "paramIndex must be less than the number of parameters that kernel takes" */
static CUresult get_parameter(const sc_function *function, size_t index, size_t *offset,
                              size_t *bytes, const char *call) {
  if (!offset || !function) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= function->kernel->parameters) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->kernel->offsets[index];
  if (bytes) *bytes = function->kernel->sizes[index];
  return CUDA_SUCCESS;
}

API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes) {
  ENTER;
  return get_parameter((sc_function *)function, index, offset, bytes, __func__);
}

API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes) {
  ENTER;
  return get_parameter((sc_function *)kernel, index, offset, bytes, __func__);
}

static CUresult count_parameters(const sc_function *function, size_t *count, const char *call) {
  if (!count || !function) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  *count = function->kernel->parameters;
  return CUDA_SUCCESS;
}

API CUresult cuFuncGetParamCount(CUfunction function, size_t *count) {
  ENTER;
  return count_parameters((sc_function *)function, count, __func__);
}

API CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count) {
  ENTER;
  return count_parameters((sc_function *)kernel, count, __func__);
}

API CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
  ENTER;
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

API CUresult cuFuncLoad(CUfunction function) {
  ENTER;
  return sc_object_ok(function, SC_KERNEL, __func__) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- occupancy (Driver API, Occupancy) ------------------------------------------------------- */

/* How many blocks fit on a multiprocessor, by the limits that the device tells (Guide, "Technical
 * Specifications per Compute Capability"). From compute capability 8.0 on the system takes 1 KiB of
 * shared memory for each block. */
static int blocks_at_once(const sc_function *function, uint64_t threads, uint64_t dynamic) {
  if (!threads || threads > sc_thread_limit(function) || dynamic > sc_dynamic_limit(function))
    return 0;
  uint64_t warps = (threads + SC_WARP - 1) / SC_WARP * SC_WARP;
  uint64_t reserved = sc_option.capability >= 80 ? 1024 : 0;
  uint64_t shared = function->library->module->shared_bytes + dynamic + reserved;
#define LIMIT(name) (uint64_t)sc_attribute(CU_DEVICE_ATTRIBUTE_##name, 0) /* devices are alike */
  uint64_t blocks = LIMIT(MAX_BLOCKS_PER_MULTIPROCESSOR);
  uint64_t limits[] = {
    LIMIT(MAX_THREADS_PER_MULTIPROCESSOR) / warps,
    LIMIT(MAX_REGISTERS_PER_MULTIPROCESSOR) / (warps * REGISTERS),
    shared ? LIMIT(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared : blocks,
  };
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (limits[i] < blocks) blocks = limits[i];
  return (int)blocks;
}

uint64_t sc_resident_blocks(const sc_function *function, uint64_t threads, uint32_t shared) {
  return (uint64_t)blocks_at_once(function, threads, shared) * (uint64_t)sc_option.multiprocessors;
}

static CUresult active_blocks(int *count, CUfunction function, int threads, size_t dynamic,
                              const char *call) {
  if (!sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!count || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  *count = blocks_at_once((sc_function *)function, (uint64_t)threads, dynamic);
  return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function,
                                                         int threads, size_t dynamic) {
  ENTER;
  return active_blocks(count, function, threads, dynamic, __func__);
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function,
                                                                  int threads, size_t dynamic,
                                                                  unsigned flags) {
  ENTER;
  if (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return active_blocks(count, function, threads, dynamic, __func__);
}

/* "the maximum number of active warps with the fewest blocks per multiprocessor" */
static CUresult best_block(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize dynamic_of,
                           size_t dynamic, int limit, const char *call) {
  if (!sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!grid || !block || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(handle, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  const sc_function *function = (sc_function *)handle;
  int most = (int)sc_thread_limit(function), best = 0;
  if (limit && limit < most) most = limit;
  *grid = *block = 0;
  for (int threads = most; threads > 0; threads = (threads - 1) / SC_WARP * SC_WARP) {
    size_t bytes = dynamic_of ? dynamic_of(threads) : dynamic;
    int blocks = blocks_at_once(function, (uint64_t)threads, bytes);
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * sc_option.multiprocessors;
  }
  return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                              CUoccupancyB2DSize dynamic_of, size_t dynamic,
                                              int limit) {
  ENTER;
  return best_block(grid, block, function, dynamic_of, dynamic, limit, __func__);
}

API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                       CUoccupancyB2DSize dynamic_of,
                                                       size_t dynamic, int limit,
                                                       unsigned flags) {
  ENTER;
  if (flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return best_block(grid, block, function, dynamic_of, dynamic, limit, __func__);
}

API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks,
                                                     int threads) {
  ENTER;
  if (!sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!bytes || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(handle, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  const sc_function *function = (sc_function *)handle;
  if (blocks > blocks_at_once(function, (uint64_t)threads, 0)) return CUDA_ERROR_INVALID_VALUE;
  int64_t reserved = sc_option.capability >= 80 ? 1024 : 0;
  int64_t each = (int64_t)LIMIT(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / blocks - reserved -
                 function->library->module->shared_bytes;
  int64_t most = sc_dynamic_limit(function);
  *bytes = (size_t)(each < 0 ? 0 : each < most ? each : most);
  return CUDA_SUCCESS;
}

/* Clusters have one block here. */
API CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                                const CUlaunchConfig *config) {
  ENTER;
  if (!size || !config) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  *size = 1;
  return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function,
                                          const CUlaunchConfig *config) {
  ENTER;
  if (!count || !config) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(function, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
  *count = (int)sc_resident_blocks((sc_function *)function, threads, config->sharedMemBytes);
  return CUDA_SUCCESS;
}
