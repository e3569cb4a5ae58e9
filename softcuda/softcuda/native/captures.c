/* Stream capture: work that becomes a graph instead of running (Driver API, Stream Management;
 * Guide, "Creating a Graph Using Stream Capture"). */
#include "captures.h"
#include "contexts.h"
#include "lock.h"

static uint64_t captures;
/* ---- the streams of a capture ---------------------------------------------------------------- */

static void set_tips(CUstream stream, CUgraphNode const *nodes, int count) {
  CUgraphNode *tips = NULL;
  int made = 0;
  for (int i = 0; i < count; i++) sc_add_node(&tips, &made, nodes[i]);
  free(stream->tips);
  stream->tips = tips;
  stream->tip_count = made;
}

static void join_capture(CUstream stream, CUstream origin) {
  stream->capture = SC_CAPTURING;
  stream->origin = origin;
  stream->mode = origin->mode;
  stream->captured_by = origin->captured_by;
  stream->graph = origin->graph;
  stream->capture_id = origin->capture_id;
}

static void leave_capture(CUstream stream, void *ignored) {
  (void)ignored;
  stream->capture = SC_NOT_CAPTURING;
  stream->origin = NULL;
  stream->graph = NULL;
  stream->capture_id = 0;
  set_tips(stream, NULL, 0);
}

/* ---- what is captured ------------------------------------------------------------------------ */

CUresult sc_capture_work(CUstream stream, const sc_work *work) {
  if (work->kind == SC_WORK_NOTHING) return CUDA_SUCCESS;
  CUgraphNode node;
  CUgraphNodeType type = sc_node_type(work);
  if (work->plan) { /* the launch of a graph becomes a child graph */
    node = sc_node_new(stream->graph, type, NULL, stream->tips, (size_t)stream->tip_count);
    sc_node_set_child(node, sc_graph_clone(work->plan->graph, true));
    sc_plan_leave(work->plan);
  } else {
    sc_work *own = malloc(sizeof *own);
    *own = *work;
    node = sc_node_new(stream->graph, type, own, stream->tips, (size_t)stream->tip_count);
  }
  set_tips(stream, &node, 1);
  return CUDA_SUCCESS;
}

CUresult sc_capture_record(CUstream stream, CUevent event) {
  free(event->captured);
  event->captured = NULL;
  event->captured_count = 0;
  for (int i = 0; i < stream->tip_count; i++)
    sc_add_node(&event->captured, &event->captured_count, stream->tips[i]);
  event->capture_id = stream->capture_id;
  return CUDA_SUCCESS;
}

/* cuThreadExchangeStreamCaptureMode: "an event that was last recorded inside a capture
 * sequence". */
bool sc_event_captured(CUevent event) { return event->capture_id != 0; }

static void find_any(CUstream stream, void *data) { *(CUstream *)data = stream; }

CUresult sc_capture_wait(CUstream stream, CUevent event) {
  CUstream other = NULL;
  if (event->capture_id) sc_capture_each(event->capture_id, find_any, &other);
  if (stream->capture == SC_INVALIDATED || (other && other->capture == SC_INVALIDATED))
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!event->capture_id) {
    if (!event->queued) return CUDA_SUCCESS; /* "an empty set of work" */
    /* "Only implicit in-stream ordering dependencies are allowed to cross the boundary." */
    sc_invalidate_capture(stream);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (!other) { /* that capture has ended */
    if (stream->capture) sc_invalidate_capture(stream);
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (stream->capture && stream->capture_id != event->capture_id) {
    sc_invalidate_capture(stream);
    sc_invalidate_capture(other);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream == stream->object.context->legacy) {
    sc_invalidate_capture(other);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (!stream->capture) join_capture(stream, other->origin);
  for (int i = 0; i < event->captured_count; i++)
    sc_add_node(&stream->tips, &stream->tip_count, event->captured[i]);
  return CUDA_SUCCESS;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static CUresult begin(CUstream handle, CUstreamCaptureMode mode, CUgraph graph,
                      const CUgraphNode *from, size_t count, const char *call) {
  CUstream stream;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sc_stream_of(handle, call, &stream);
  if (error) return error;
  /* "Capture may not be initiated if stream is CU_STREAM_LEGACY" */
  if (stream == stream->object.context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  sc_lock();
  if (stream->capture) {
    error = CUDA_ERROR_ILLEGAL_STATE;
  } else {
    stream->capture_id = ++captures;
    stream->capture = SC_CAPTURING;
    stream->mode = mode;
    stream->captured_by = pthread_self();
    stream->origin = stream;
    stream->graph = graph ? graph : sc_graph_new(true);
    stream->graph->capturing = true;
    stream->graph->given = graph != NULL;
    set_tips(stream, from, (int)count);
  }
  sc_unlock();
  return error;
}

API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  ENTER;
  return begin(stream, mode, NULL, NULL, 0, __func__);
}

API CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *from,
                                         const CUgraphEdgeData *data, size_t count,
                                         CUstreamCaptureMode mode) {
  ENTER;
  (void)data;
  if (!sc_object_ok(graph, SC_GRAPH, __func__) || graph->capturing || (count && !from))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (!sc_object_ok(from[i], SC_NODE, __func__) || from[i]->graph != graph)
      return CUDA_ERROR_INVALID_VALUE;
  return begin(stream, mode, graph, from, count, __func__);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void mark_before(CUgraphNode node, bool *before) {
  if (before[node->place]) return;
  before[node->place] = true;
  for (int i = 0; i < node->from_count; i++) mark_before(node->from[i], before);
}

typedef struct join_check {
  CUstream origin;
  bool *joined; /* by the place of a node: whether the origin comes after it */
  bool unjoined;
} join_check;

static void check_joined(CUstream stream, void *data) {
  join_check *check = data;
  for (int i = 0; i < stream->tip_count; i++)
    if (!check->joined[stream->tips[i]->place]) check->unjoined = true;
}

/* CUDA_ERROR_STREAM_CAPTURE_UNJOINED: "The capture sequence contains a fork that was not joined to
 * the primary stream." */
static bool has_unjoined(CUstream origin) {
  join_check check = {.origin = origin,
                      .joined = calloc((size_t)origin->graph->count + 1, sizeof(bool))};
  for (int i = 0; i < origin->tip_count; i++) mark_before(origin->tips[i], check.joined);
  sc_capture_each(origin->capture_id, check_joined, &check);
  free(check.joined);
  return check.unjoined;
}

static CUresult end(CUstream stream, CUgraph *out) {
  if (!stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->origin != stream) {
    sc_invalidate_capture(stream);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  /* "If mode is not CU_STREAM_CAPTURE_MODE_RELAXED, cuStreamEndCapture must be called on this
   * stream from the same thread." */
  if (stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      !pthread_equal(stream->captured_by, pthread_self()))
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult error = stream->capture == SC_INVALIDATED ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                   : has_unjoined(stream)            ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                     : CUDA_SUCCESS;
  CUgraph graph = stream->graph;
  sc_capture_each(stream->capture_id, leave_capture, NULL);
  graph->capturing = false;
  /* "If capture was invalidated [...] then a NULL graph will be returned." */
  if (error && !graph->given) sc_graph_free(graph);
  *out = error ? NULL : graph;
  return error;
}

void sc_drop_capture(CUstream stream) {
  if (!stream->capture || stream->origin != stream) return;
  CUgraph graph = stream->graph;
  sc_capture_each(stream->capture_id, leave_capture, NULL);
  graph->capturing = false;
  if (!graph->given) sc_graph_free(graph);
}

API CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
  ENTER;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  CUstream stream;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  if (error) return error;
  sc_lock();
  error = end(stream, out);
  sc_unlock();
  return error;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* "if this is called on CU_STREAM_LEGACY [...] while a blocking stream in the same context is
 * capturing, it will return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT [...]. The blocking stream
 * capture is not invalidated." */
static CUresult get_status(CUstream handle, const char *call, CUstream *stream,
                           CUstreamCaptureStatus *status) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sc_stream_of(handle, call, stream);
  if (error) return error;
  CUcontext context = (*stream)->object.context;
  if (*stream == context->legacy && sc_captured_blocking_stream(context))
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = (*stream)->capture == SC_CAPTURING     ? CU_STREAM_CAPTURE_STATUS_ACTIVE
            : (*stream)->capture == SC_INVALIDATED ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                                   : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

API CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  ENTER;
  CUstream stream;
  return get_status(handle, __func__, &stream, status);
}

static CUresult get_info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id,
                         CUgraph *graph, const CUgraphNode **from, size_t *count,
                         const char *call) {
  CUstream stream;
  sc_lock();
  CUresult error = get_status(handle, call, &stream, status);
  if (!error && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (id) *id = stream->capture_id;
    if (graph) *graph = stream->graph;
    if (from) *from = stream->tips;
    if (count) *count = (size_t)stream->tip_count;
  }
  sc_unlock();
  return error;
}

/* Edges without data, as many as any stream has tips. */
static const CUgraphEdgeData *empty_edges(size_t count) {
  static CUgraphEdgeData *edges;
  static size_t room;
  sc_lock();
  if (count > room) { /* the former array stays: a program may still read it */
    edges = calloc(2 * count, sizeof *edges);
    room = 2 * count;
  }
  sc_unlock();
  return edges;
}

API CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **from,
                                       const CUgraphEdgeData **data, size_t *count) {
  ENTER;
  if (data && !from) return CUDA_ERROR_INVALID_VALUE;
  size_t tips = 0;
  CUresult error = get_info(stream, status, id, graph, from, &tips, __func__);
  if (error) return error;
  if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE && count) *count = tips;
  if (data) *data = empty_edges(tips);
  return CUDA_SUCCESS;
}

API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **from,
                                       size_t *count);
API CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **from,
                                       size_t *count) {
  ENTER;
  return get_info(stream, status, id, graph, from, count, __func__);
}

#undef cuStreamGetCaptureInfo
API CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                    cuuint64_t *id);
API CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status,
                                    cuuint64_t *id) {
  ENTER;
  return get_info(stream, status, id, NULL, NULL, NULL, __func__);
}

API CUresult cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode *nodes,
                                               const CUgraphEdgeData *data, size_t count,
                                               unsigned flags) {
  ENTER;
  (void)data;
  CUstream stream;
  if ((count && !nodes) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  if (error) return error;
  sc_lock();
  if (stream->capture != SC_CAPTURING) {
    error = CUDA_ERROR_ILLEGAL_STATE; /* "if the stream is not capturing" */
  } else {
    for (size_t i = 0; i < count && !error; i++)
      if (!sc_object_ok(nodes[i], SC_NODE, __func__) || nodes[i]->graph != stream->graph)
        error = CUDA_ERROR_INVALID_VALUE;
    if (!error && flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) set_tips(stream, NULL, 0);
    for (size_t i = 0; i < count && !error; i++)
      sc_add_node(&stream->tips, &stream->tip_count, nodes[i]);
  }
  sc_unlock();
  return error;
}
