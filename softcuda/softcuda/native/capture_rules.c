/* What a capture forbids while it lasts, to its streams and to all calls (Driver API,
 * cuThreadExchangeStreamCaptureMode; Guide, "Creating a Graph Using Stream Capture").
 */
#include "contexts.h"
#include "lock.h"
#include "streams.h"

/* cuThreadExchangeStreamCaptureMode: "This is the default mode." */
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- the streams of a capture ---------------------------------------------------------------- */

/* A walk over the streams of one capture, or over those that began one (id 0). */
typedef struct walk {
  uint64_t id;
  void (*visit)(CUstream, void *);
  void *data;
} walk;

static void visit_if_captured(CUstream stream, void *data) {
  walk *w = data;
  if (stream->capture && (w->id ? stream->capture_id == w->id : stream->origin == stream))
    w->visit(stream, w->data);
}

void sc_capture_each(uint64_t id, void (*visit)(CUstream, void *), void *data) {
  sc_streams_each(visit_if_captured, &(walk){.id = id, .visit = visit, .data = data});
}

static void invalidate(CUstream stream, void *ignored) {
  (void)ignored;
  stream->capture = SC_INVALIDATED;
}

/* Guide, "Invalidation": "When an invalid operation is attempted during stream capture, any
 * associated capture graphs are invalidated." */
void sc_invalidate_capture(CUstream stream) {
  sc_capture_each(stream->capture_id, invalidate, NULL);
}

/* ---- what a capture forbids ------------------------------------------------------------------ */

static bool forbids(CUstream origin) {
  bool local = pthread_equal(origin->captured_by, pthread_self());
  switch (thread_mode) {
  case CU_STREAM_CAPTURE_MODE_GLOBAL:
    return local ? origin->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                 : origin->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  case CU_STREAM_CAPTURE_MODE_THREAD_LOCAL:
    return local && origin->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
  default: return false;
  }
}

static void refuse_if_forbidden(CUstream origin, void *data) {
  CUresult *error = data;
  if (!forbids(origin)) return;
  if (!*error)
    *error = origin->capture == SC_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  sc_invalidate_capture(origin);
}

CUresult sc_refuse_while_capturing(void) {
  CUresult error = CUDA_SUCCESS;
  sc_lock();
  sc_capture_each(0, refuse_if_forbidden, &error);
  sc_unlock();
  return error;
}

/* One that waits for the legacy stream and is captured. */
typedef struct search {
  CUcontext context;
  CUstream found;
} search;

static void find_blocking(CUstream stream, void *data) {
  search *s = data;
  if (stream->capture && stream->object.context == s->context &&
      !(stream->flags & CU_STREAM_NON_BLOCKING))
    s->found = stream;
}

CUstream sc_captured_blocking_stream(CUcontext context) {
  search s = {.context = context};
  sc_streams_each(find_blocking, &s);
  return s.found;
}

/* CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: "a disallowed implicit dependency on a current capture
 * sequence from cudaStreamLegacy". */
CUresult sc_refuse_implicit(CUstream legacy) {
  CUstream captured = sc_captured_blocking_stream(legacy->object.context);
  if (!captured) return CUDA_SUCCESS;
  sc_invalidate_capture(captured);
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* ---- the mode of a thread -------------------------------------------------------------------- */

API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER;
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUstreamCaptureMode former = thread_mode;
  thread_mode = *mode;
  *mode = former;
  return CUDA_SUCCESS;
}
