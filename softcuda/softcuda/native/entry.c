/* The way from names to functions, and what stands where softcuda has none. */
#include "contexts.h"
#include "entry.h"
#include "lock.h"
#include "options.h"
#include "reports.h"
#include "streams.h"

#include <dlfcn.h>

/* Driver API, Version Management: works before cuInit. */
API CUresult cuDriverGetVersion(int *version) {
  sc_log("call %s", __func__);
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = sc_option.driver_version;
  return CUDA_SUCCESS;
}

/* Tables of functions that NVIDIA does not document. */
API CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  sc_log("call %s", __func__);
  (void)id;
  if (!table) return CUDA_ERROR_INVALID_VALUE;
  *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}

/* Driver API, Profiler Control: nothing is profiled, and that is no error. */
API CUresult cuProfilerStart(void) {
  ENTER;
  return CUDA_SUCCESS;
}

API CUresult cuProfilerStop(void) {
  ENTER;
  return CUDA_SUCCESS;
}

/* ---- functions by their names ---------------------------------------------------------------- */

/* Functions whose parameters changed: from which version on which one is meant (the numbers are
 * those of cudaTypedefs.h). NULL: one that we do not have. All others keep their parameters, and
 * the newest that we have serves every version. */
static const struct {
  const char *symbol;
  int from;
  const char *name;
} versions[] = {
  {"cuCtxCreate", 2000, "cuCtxCreate_v2"},
  {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
  {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
  {"cuCtxGetDevice", 2000, "cuCtxGetDevice"},
  {"cuCtxGetDevice", 13000, "cuCtxGetDevice_v2"},
  {"cuCtxSynchronize", 2000, "cuCtxSynchronize"},
  {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
  {"cuGraphAddDependencies", 10000, NULL},
  {"cuGraphAddDependencies", 12030, "cuGraphAddDependencies_v2"},
  {"cuGraphAddKernelNode", 10000, NULL},
  {"cuGraphAddKernelNode", 12000, "cuGraphAddKernelNode_v2"},
  {"cuGraphAddNode", 12020, NULL},
  {"cuGraphAddNode", 12030, "cuGraphAddNode_v2"},
  {"cuGraphAddNode", 13040, "cuGraphAddNode_v3"},
  {"cuGraphExecKernelNodeSetParams", 10010, NULL},
  {"cuGraphExecKernelNodeSetParams", 12000, "cuGraphExecKernelNodeSetParams_v2"},
  {"cuGraphExecUpdate", 10020, NULL},
  {"cuGraphExecUpdate", 12000, "cuGraphExecUpdate_v2"},
  {"cuGraphGetEdges", 10000, NULL},
  {"cuGraphGetEdges", 12030, "cuGraphGetEdges_v2"},
  {"cuGraphInstantiate", 10000, NULL},
  {"cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"},
  {"cuGraphKernelNodeGetParams", 10000, NULL},
  {"cuGraphKernelNodeGetParams", 12000, "cuGraphKernelNodeGetParams_v2"},
  {"cuGraphKernelNodeSetParams", 10000, NULL},
  {"cuGraphKernelNodeSetParams", 12000, "cuGraphKernelNodeSetParams_v2"},
  {"cuGraphNodeGetDependencies", 10000, NULL},
  {"cuGraphNodeGetDependencies", 12030, "cuGraphNodeGetDependencies_v2"},
  {"cuGraphNodeGetDependentNodes", 10000, NULL},
  {"cuGraphNodeGetDependentNodes", 12030, "cuGraphNodeGetDependentNodes_v2"},
  {"cuGraphRemoveDependencies", 10000, NULL},
  {"cuGraphRemoveDependencies", 12030, "cuGraphRemoveDependencies_v2"},
  {"cuLaunchHostFunc", 10000, "cuLaunchHostFunc"},
  {"cuLaunchHostFunc", 13010, "cuLaunchHostFunc_v2"},
  {"cuMemAdvise", 8000, NULL},
  {"cuMemAdvise", 12020, "cuMemAdvise_v2"},
  {"cuMemPrefetchAsync", 8000, NULL},
  {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2"},
  {"cuMemcpyBatchAsync", 12080, NULL},
  {"cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2"},
  {"cuMemcpy3DBatchAsync", 12080, NULL},
  {"cuMemcpy3DBatchAsync", 13000, "cuMemcpy3DBatchAsync_v2"},
  {"cuStreamBeginCapture", 10000, NULL},
  {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2"},
  {"cuStreamGetCaptureInfo", 10010, "cuStreamGetCaptureInfo"},
  {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
  {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
  {"cuStreamGetCtx", 9020, "cuStreamGetCtx"},
  {"cuStreamGetCtx", 12050, "cuStreamGetCtx_v2"},
  {"cuStreamUpdateCaptureDependencies", 11030, NULL},
  {"cuStreamUpdateCaptureDependencies", 12030, "cuStreamUpdateCaptureDependencies_v2"},
};

/* This library, wherever it was loaded from. */
static void *own_library(void) {
  static _Atomic(void *) opened;
  Dl_info here;
  if (!opened && dladdr((void *)cuInit, &here))
    opened = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return opened;
}

static void *find_function(const char *symbol, int version) {
  bool listed = false;
  const char *name = NULL;
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
    if (!strcmp(versions[i].symbol, symbol)) {
      listed = true;
      if (version >= versions[i].from) name = versions[i].name;
    }
  if (listed) return name ? dlsym(own_library(), name) : NULL;
  static const char *const endings[] = {"_v3", "_v2", ""};
  for (int i = 0; i < 3; i++) {
    char full[200];
    snprintf(full, sizeof full, "%s%s", symbol, endings[i]);
    void *function = dlsym(own_library(), full);
    if (function) return function;
  }
  return NULL;
}

/* Functions that softcuda lacks still have an address, so that a program that never calls them
 * runs, and one that does learns the name. Each needs code of its own to know which it is. */
enum { MISSING_LIMIT = 0x300 };
static char *missing[MISSING_LIMIT];
static bool missing_said[MISSING_LIMIT];
static int missing_count;

static CUresult call_missing(int index) {
  sc_log("missing %s", missing[index]);
  sc_lock();
  bool said = missing_said[index];
  missing_said[index] = true;
  sc_unlock();
  if (!said) fprintf(stderr, "softcuda: %s is not implemented\n", missing[index]);
  return CUDA_ERROR_NOT_SUPPORTED;
}

#define ONE(n) static CUresult missing_##n(void) { return call_missing(0x##n); }
#define ROW(h)                                                                                     \
  ONE(h##0) ONE(h##1) ONE(h##2) ONE(h##3) ONE(h##4) ONE(h##5) ONE(h##6) ONE(h##7)                  \
  ONE(h##8) ONE(h##9) ONE(h##a) ONE(h##b) ONE(h##c) ONE(h##d) ONE(h##e) ONE(h##f)
#define PAGE(h)                                                                                    \
  ROW(h##0) ROW(h##1) ROW(h##2) ROW(h##3) ROW(h##4) ROW(h##5) ROW(h##6) ROW(h##7)                  \
  ROW(h##8) ROW(h##9) ROW(h##a) ROW(h##b) ROW(h##c) ROW(h##d) ROW(h##e) ROW(h##f)
PAGE(0) PAGE(1) PAGE(2)
#undef ONE
#define ONE(n) (void *)missing_##n,
static void *const missing_functions[MISSING_LIMIT] = {PAGE(0) PAGE(1) PAGE(2)};
#undef ONE

static int missing_index(const char *symbol) {
  sc_lock();
  int index = 0;
  while (index < missing_count && strcmp(missing[index], symbol)) index++;
  if (index == missing_count && index < MISSING_LIMIT) missing[missing_count++] = strdup(symbol);
  sc_unlock();
  return index;
}

static void *missing_function(const char *symbol) {
  int index = missing_index(symbol);
  return index < MISSING_LIMIT ? missing_functions[index] : NULL;
}

/* For those that are linked by name (refused.c). */
int sc_refuse(const char *symbol) {
  int index = missing_index(symbol);
  return (int)(index < MISSING_LIMIT ? call_missing(index) : CUDA_ERROR_NOT_SUPPORTED);
}

/* Driver API, Driver Entry Point Access. Works before cuInit. Callers ask for a function with the
 * version in which its parameters took their form, so that an older driver (SOFTCUDA_VERSION) has
 * none that is asked for with a newer one. */
static CUresult look_up(const char *symbol, void **function, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *status) {
  if (!symbol || !function || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  /* With this flag the functions whose names end in _ptsz are meant, where NULL is the default
   * stream of the thread. A program asks for all of them in the same way. */
  if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) sc_use_per_thread_streams();
  *function = NULL;
  if (version <= sc_option.driver_version && !strncmp(symbol, "cu", 2)) {
    *function = find_function(symbol, version);
    if (!*function) *function = missing_function(symbol);
  }
  if (status)
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                 cuuint64_t flags, CUdriverProcAddressQueryResult *status) {
  return look_up(symbol, function, version, flags, status);
}

#undef cuGetProcAddress
API CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags);
API CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
  return look_up(symbol, function, version, flags, NULL);
}
