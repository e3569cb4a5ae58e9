/* What every call asks first: whether the driver is initialised, and who calls. */
#include "contexts.h"
#include "lock.h"
#include "options.h"
#include "reports.h"

#include <stdatomic.h>

static atomic_bool initialised;
static bool forked;
static __thread bool calling_host;

/* The lock is taken around a fork, so that the child finds all data whole. A CUDA context does not
 * survive a fork: in the child of a process that has called cuInit every call, cuInit too, answers
 * CUDA_ERROR_NOT_INITIALIZED (Driver API, cuInit: "in the current process"; observed of NVIDIA's
 * driver and stated in NVIDIA's Multi-Process Service guide, 2.3.4: fork before cuInit only). */
static void before_fork(void) { sc_lock(); }
static void after_fork_in_parent(void) { sc_unlock(); }

static void after_fork_in_child(void) {
  sc_lock_after_fork();
  forked = initialised;
}

__attribute__((constructor)) static void begin(void) {
  sc_options_read();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void sc_set_calling_host(bool calling) { calling_host = calling; }

CUresult sc_begin_call(const char *name) {
  if (forked) return CUDA_ERROR_NOT_INITIALIZED; /* and the log may stay locked */
  sc_log("call %s", name);
  if (!initialised) return CUDA_ERROR_NOT_INITIALIZED;
  /* Driver API, cuStreamAddCallback: "Attempting to use a CUDA API will result in
   * CUDA_ERROR_NOT_PERMITTED"; of cuLaunchHostFunc: "may result". */
  return calling_host ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

API CUresult cuInit(unsigned flags) {
  if (forked) return CUDA_ERROR_NOT_INITIALIZED;
  sc_log("call %s", __func__);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (sc_option.complaint[0]) {
    fprintf(stderr, "softcuda: %s\n", sc_option.complaint);
    return CUDA_ERROR_INVALID_VALUE;
  }
  initialised = sc_option.devices > 0;
  return initialised ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
