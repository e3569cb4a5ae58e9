/* Launches of kernels: what is checked when they are queued, and the faults on command when they
 * run (Driver API, Execution Control). */
#include "blocks.h"
#include "contexts.h"
#include "counts.h"
#include "launches.h"
#include "lock.h"
#include "options.h"
#include "reports.h"

/* ---- making a launch ------------------------------------------------------------------------- */

/* Guide, "Technical Specifications per Compute Capability": the extents of grids and of blocks. A
 * kernel's own limit (.maxntid, __launch_bounds__) counts as those of the device do. */
static CUresult check_extent(const sc_launch *launch, const CUDA_KERNEL_NODE_PARAMS *what) {
  const sc_function *function = launch->function;
  uint64_t threads = 1;
  static const uint32_t grid_limit[] = {INT32_MAX, 65535, 65535}, block_limit[] = {1024, 1024, 64};
  for (int i = 0; i < 3; i++) {
    if (!launch->grid[i] || launch->grid[i] > grid_limit[i]) return CUDA_ERROR_INVALID_VALUE;
    if (!launch->block[i] || launch->block[i] > block_limit[i]) return CUDA_ERROR_INVALID_VALUE;
    threads *= launch->block[i];
  }
  if (threads > sc_thread_limit(function)) return CUDA_ERROR_INVALID_VALUE;
  if (what->sharedMemBytes > sc_dynamic_limit(function)) return CUDA_ERROR_INVALID_VALUE;
  if (!launch->cooperative) return CUDA_SUCCESS;
  if (!sc_attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, launch->context->device))
    return CUDA_ERROR_NOT_SUPPORTED;
  /* cuLaunchCooperativeKernel: "cannot exceed the maximum number of blocks per multiprocessor [...]
   * times the number of multiprocessors" */
  uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  return blocks > sc_resident_blocks(function, threads, what->sharedMemBytes)
             ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
             : CUDA_SUCCESS;
}

/* The packed block of parameters in `extra`: names and values up to CU_LAUNCH_PARAM_END. */
static CUresult copy_packed(sc_launch *launch, void **extra) {
  const void *buffer = NULL;
  const size_t *bytes = NULL;
  for (; *extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = extra[1];
    else return CUDA_ERROR_INVALID_VALUE;
  }
  const sc_kernel *kernel = launch->function->kernel;
  if (kernel->parameters && (!buffer || !bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!kernel->parameters) return CUDA_SUCCESS;
  /* CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: "equivalent to passing arguments of the wrong size" */
  if (*bytes < kernel->parameter_bytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  memcpy(launch->parameters, buffer, kernel->parameter_bytes);
  return CUDA_SUCCESS;
}

/* "cuLaunchKernel [...] CUDA_ERROR_INVALID_VALUE will be returned if kernel parameters are
 * specified with both kernelParams and extra". They are copied now; the caller may change them
 * at once. */
static CUresult copy_parameters(sc_launch *launch, void **parameters, void **extra) {
  const sc_kernel *kernel = launch->function->kernel;
  if (parameters && extra) return CUDA_ERROR_INVALID_VALUE;
  launch->parameters = calloc(1, kernel->parameter_bytes + 16);
  if (extra) return copy_packed(launch, extra);
  if (kernel->parameters && !parameters) return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < kernel->parameters; i++) {
    if (!parameters[i]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(launch->parameters + kernel->offsets[i], parameters[i], kernel->sizes[i]);
  }
  return CUDA_SUCCESS;
}

CUresult sc_launch_new(const CUDA_KERNEL_NODE_PARAMS *what, CUcontext context, bool cooperative,
                       const char *call, sc_launch **made) {
  sc_function *function;
  CUfunction handle = what->func ? what->func : (CUfunction)what->kern;
  CUresult error = sc_function_in(handle, context, call, &function);
  if (error) return error;
  sc_launch *launch = calloc(1, sizeof *launch);
  *launch = (sc_launch){
    .function = function,
    .context = context,
    .grid = {what->gridDimX, what->gridDimY, what->gridDimZ},
    .block = {what->blockDimX, what->blockDimY, what->blockDimZ},
    .dynamic_shared = what->sharedMemBytes,
    .cooperative = cooperative,
  };
  sc_lock();
  sc_library_use(function->library);
  error = check_extent(launch, what);
  if (!error) error = copy_parameters(launch, what->kernelParams, what->extra);
  if (error) sc_launch_free(launch);
  else *made = launch;
  sc_unlock();
  return error;
}

sc_launch *sc_launch_copy(const sc_launch *launch) {
  size_t bytes = launch->function->kernel->parameter_bytes + 16;
  sc_launch *copy = malloc(sizeof *copy);
  *copy = *launch;
  copy->parameters = malloc(bytes);
  memcpy(copy->parameters, launch->parameters, bytes);
  sc_library_use(copy->function->library);
  return copy;
}

void sc_launch_free(sc_launch *launch) {
  sc_library_leave(launch->function->library);
  free(launch->parameters);
  free(launch);
}

/* ---- running one ----------------------------------------------------------------------------- */

static void report(const char *kind, const sc_launch *launch, const char *text) {
  sc_report said = {.kind = kind, .kernel = launch->function->kernel->name};
  snprintf(said.text, sizeof said.text, "%s", text);
  sc_report_add(&said);
}

/* A kernel that never ends: until the time-out, an error of the context, or the process ends. */
static CUresult hang(const sc_launch *launch, const bool *abandoned) {
  double until = sc_now() + sc_option.kernel_timeout;
  sc_lock();
  while (!*abandoned && !launch->context->sticky) {
    if (!sc_option.kernel_timeout) {
      sc_wait();
      continue;
    }
    double left = until - sc_now();
    if (left <= 0) break;
    sc_wait_at_most(left);
  }
  bool late = !*abandoned && !launch->context->sticky;
  sc_unlock();
  if (late) report("time-out", launch, "the kernel hangs, on command, and was ended");
  return late ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_SUCCESS;
}

/* A device that falls off the bus (Xid 79) ends what runs as CUDA_ERROR_LAUNCH_FAILED ("An
 * exception occurred on the device while executing a kernel"). From then on it gives no new
 * context: CUDA_ERROR_DEVICE_UNAVAILABLE, which sc_set_sticky remembers for the device. */
static void lose_device(const sc_launch *launch) {
  report("lost device", launch, "the device was lost, on command, while the kernel ran");
  sc_set_sticky(launch->context, CUDA_ERROR_LAUNCH_FAILED);
  sc_set_sticky(launch->context, CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* Threads of kernels whose threads wait for each other, each with a stack, that run at once in all
 * streams: two or three mappings each, of some 65,000 that a process may have. A GPU has a most of
 * resident threads too; work that finds no room waits for other work to end. */
static const uint64_t MAX_WAITING_THREADS = 16384;
static uint64_t waiting_threads;

static uint64_t count_waiting_threads(const sc_launch *launch) {
  const uint32_t *block = launch->block, *grid = launch->grid;
  if (!launch->function->kernel->waits) return 0;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  return launch->cooperative ? threads * grid[0] * grid[1] * grid[2] : threads;
}

/* Runs a kernel as soon as there is room for its threads. */
static CUresult execute(const sc_launch *launch, const bool *abandoned) {
  uint64_t threads = count_waiting_threads(launch);
  if (!threads) return sc_execute(launch);
  sc_lock();
  while (waiting_threads && waiting_threads + threads > MAX_WAITING_THREADS &&
         !*abandoned && !launch->context->sticky)
    sc_wait();
  bool dropped = *abandoned || launch->context->sticky;
  if (!dropped) waiting_threads += threads;
  sc_unlock();
  if (dropped) return CUDA_SUCCESS;
  CUresult error = sc_execute(launch);
  sc_lock();
  waiting_threads -= threads;
  sc_changed();
  sc_unlock();
  return error;
}

void sc_run_launch(const sc_launch *launch, const bool *abandoned) {
  const char *name = launch->function->kernel->name;
  CUresult error = CUDA_SUCCESS;
  if (sc_commanded(SC_HANG, name, 0)) {
    error = hang(launch, abandoned);
  } else if (sc_commanded(SC_LOST, name, 0)) {
    sc_counts_missing(launch, CUDA_ERROR_LAUNCH_FAILED); /* before a program may ask */
    lose_device(launch);
  } else if (sc_commanded(SC_ILLEGAL, name, 0)) {
    report("out of bounds", launch, "an illegal address was used, on command");
    error = CUDA_ERROR_ILLEGAL_ADDRESS;
  } else {
    error = execute(launch, abandoned);
  }
  if (!error) return;
  sc_counts_missing(launch, error);
  sc_set_sticky(launch->context, error);
}
