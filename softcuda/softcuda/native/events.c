/* Events: markers in streams, and the time at which they were passed (Driver API, Event
 * Management). */
#include "captures.h"
#include "contexts.h"
#include "lock.h"
#include "queue.h"
#include "running.h"

API CUresult cuEventCreate(CUevent *made, unsigned flags) {
  ENTER;
  CUcontext context = sc_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  unsigned allowed = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!made || flags & ~allowed) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS) {
    /* "must be specified along with CU_EVENT_DISABLE_TIMING" */
    return flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  }
  sc_lock();
  CUevent event = sc_object_new(SC_EVENT, sizeof *event, context);
  event->flags = flags;
  sc_unlock();
  *made = event;
  return CUDA_SUCCESS;
}

/* "An event may be destroyed before it is complete [...] the call does not block". Handles are
 * given back after an error too. */
API CUresult cuEventDestroy(CUevent event) {
  CUresult sticky = sc_enter(__func__);
  if (sticky == CUDA_ERROR_NOT_INITIALIZED || sticky == CUDA_ERROR_NOT_PERMITTED) return sticky;
  sc_lock();
  CUresult error = sc_object_end(event, SC_EVENT, __func__);
  sc_unlock();
  return error ? error : sticky;
}

/* With CU_EVENT_RECORD_EXTERNAL a capture gets a node that records; otherwise it only remembers
 * what the event stands for (Guide, "Cross-stream Dependencies and Events"). */
static CUresult record(CUevent event, CUstream handle, unsigned flags, const char *call) {
  if (!sc_object_ok(event, SC_EVENT, call)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream;
  CUresult error = sc_stream_of(handle, call, &stream);
  if (error) return error;
  /* "hEvent and hStream must be from the same context otherwise CUDA_ERROR_INVALID_HANDLE" */
  if (event->object.context != stream->object.context) return CUDA_ERROR_INVALID_HANDLE;
  sc_lock();
  if (stream->capture == SC_CAPTURING && !flags) {
    error = sc_capture_record(stream, event);
  } else if (!stream->capture && flags) {
    error = CUDA_ERROR_INVALID_VALUE; /* "This flag is invalid outside of stream capture" */
  } else {
    error = sc_queue(stream, &(sc_work){.kind = SC_WORK_RECORD, .event = event});
    if (!error && !stream->capture) event->captured_count = event->capture_id = 0;
  }
  sc_unlock();
  return error;
}

API CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER;
  return record(event, stream, CU_EVENT_RECORD_DEFAULT, __func__);
}

API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  ENTER;
  return record(event, stream, flags, __func__);
}

/* "hEvent may be from a different context or device than hStream." */
API CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  ENTER;
  if (!sc_object_ok(event, SC_EVENT, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  CUstream stream;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  if (error) return error;
  sc_lock();
  if (flags && !stream->capture) {
    error = CUDA_ERROR_INVALID_VALUE; /* "This flag is invalid outside of stream capture" */
  } else if (!flags && (stream->capture == SC_CAPTURING || sc_event_captured(event))) {
    error = sc_capture_wait(stream, event);
  } else if (flags || event->queued) { /* an event never recorded is "an empty set of work" */
    error = sc_queue(stream, &(sc_work){.kind = SC_WORK_WAIT_EVENT, .event = event});
  }
  sc_unlock();
  return error;
}

/* Guide, "Prohibited and Unhandled Operations": a captured event cannot be synchronised or queried,
 * which invalidates its capture. */
static CUresult check_outside_capture(CUevent event, const char *call) {
  if (!sc_object_ok(event, SC_EVENT, call)) return CUDA_ERROR_INVALID_HANDLE;
  if (sc_event_captured(event)) return CUDA_ERROR_CAPTURED_EVENT;
  return sc_refuse_while_capturing();
}

/* The last record has run; "Before the first call to cuEventRecord(), an event represents an empty
 * set of work". */
static bool complete(CUevent event) { return event->done >= event->queued; }

API CUresult cuEventQuery(CUevent event) {
  ENTER;
  sc_lock();
  CUresult error = check_outside_capture(event, __func__);
  if (!error) error = event->object.context->sticky;
  if (!error && !complete(event)) error = CUDA_ERROR_NOT_READY;
  sc_unlock();
  return error;
}

/* CU_EVENT_BLOCKING_SYNC makes no difference: waiting never spins here. */
API CUresult cuEventSynchronize(CUevent event) {
  ENTER;
  sc_lock();
  CUresult error = check_outside_capture(event, __func__);
  if (!error) {
    CUcontext context = event->object.context;
    uint64_t upto = event->queued;
    bool hears = event->done < upto && sc_hear_interrupts();
    while (event->done < upto && !context->sticky) sc_wait_for_work(hears, context);
    sc_end_hearing(hears);
    error = context->sticky;
  }
  sc_unlock();
  return error;
}

/* The time of the host's clock between two records: it grows, and it is no time of a device. */
static CUresult elapsed(float *milliseconds, CUevent start, CUevent end, const char *call) {
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(start, SC_EVENT, call) || !sc_object_ok(end, SC_EVENT, call))
    return CUDA_ERROR_INVALID_HANDLE;
  if (sc_event_captured(start) || sc_event_captured(end)) return CUDA_ERROR_CAPTURED_EVENT;
  /* Guide, "Stream and Event Behavior": "cudaEventElapsedTime() will fail if the two input events
   * are associated to different devices." */
  if (start->object.context != end->object.context) return CUDA_ERROR_INVALID_HANDLE;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->queued || !end->queued)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!complete(start) || !complete(end)) return CUDA_ERROR_NOT_READY;
  *milliseconds = (float)((end->at - start->at) * 1e3);
  return CUDA_SUCCESS;
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  ENTER;
  sc_lock();
  CUresult error = elapsed(milliseconds, start, end, __func__);
  sc_unlock();
  return error;
}
