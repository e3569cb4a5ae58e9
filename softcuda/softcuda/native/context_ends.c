/* Waiting for all work of a context, and the end of contexts and of the process. */
#include "contexts.h"
#include "handles.h"
#include "lock.h"
#include "memory.h"
#include "modules.h"
#include "options.h"
#include "queue.h"
#include "reports.h"

static void report_leaks(CUcontext context) {
  sc_report_leaks(context);
  sc_report_memory_leaks(context);
}

/* Driver API, cuCtxDestroy: "Destroys and cleans up all resources associated with the context";
 * work that has not begun is dropped. A thread to which it is current gets
 * CUDA_ERROR_CONTEXT_IS_DESTROYED from then on. */
static void end(CUcontext context) {
  sc_lock();
  if (sc_option.leaks) report_leaks(context);
  context->alive = false;
  context->sticky = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  sc_context_work_end(context);
  sc_context_modules_end(context);
  sc_objects_end(context);
  sc_memory_end(context);
  sc_unlock();
}

/* Driver API, cuDevicePrimaryCtxRelease: "automatically reset once the last reference to it is
 * released"; one that is not retained fails with CUDA_ERROR_INVALID_CONTEXT, except after a reset
 * (cuDevicePrimaryCtxReset: "it is safe for other modules to call cuDevicePrimaryCtxRelease() even
 * after resetting the device"). */
API CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  ENTER_ANYWAY;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = sc_primary(device);
  sc_lock();
  bool retained = context->retained > 0;
  bool last = retained && --context->retained == 0;
  sc_unlock();
  if (!retained) return context->was_reset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  if (last && context->alive) end(context);
  return CUDA_SUCCESS;
}

/* Driver API, cuDevicePrimaryCtxReset: "Resetting the primary context does not release it". */
API CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  ENTER_ANYWAY;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = sc_primary(device);
  if (context->alive) end(context);
  context->was_reset = true;
  return CUDA_SUCCESS;
}

/* Driver API, cuCtxDestroy: "If ctx is current to the calling thread then ctx will also be
 * popped". A primary context ends by cuDevicePrimaryCtxRelease. */
API CUresult cuCtxDestroy(CUcontext context) {
  ENTER_ANYWAY;
  CUresult wrong = sc_context_usable(context);
  if (wrong) return wrong;
  if (context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  end(context);
  sc_leave_context(context);
  return CUDA_SUCCESS;
}

/* ---- waiting ------------------------------------------------------------------------------- */

API CUresult cuCtxSynchronize(void) {
  ENTER;
  CUresult wrong = sc_context_usable(sc_current());
  if (wrong) return wrong;
  UNCAPTURED;
  return sc_drain_context(sc_current());
}

API CUresult cuCtxSynchronize_v2(CUcontext context) {
  ENTER;
  CUresult wrong = sc_context_usable(context ? context : sc_current());
  if (wrong) return wrong;
  UNCAPTURED;
  return sc_drain_context(context ? context : sc_current());
}

/* ---- the end of the process ---------------------------------------------------------------- */

static void report_leaks_of_living(CUcontext context) {
  if (context->alive) report_leaks(context);
}

/* What is alive at the end (SOFTCUDA_LEAKS=1), and what was when its context ended, where nobody
 * has read the reports. */
__attribute__((destructor)) static void print_leaks(void) {
  if (!sc_option.leaks) return;
  sc_contexts_each(report_leaks_of_living);
  sc_report_memory_leaks(NULL);
  sc_reports_print("leak");
}
