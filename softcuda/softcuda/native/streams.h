/* Streams and events: what they are, which one a handle means (stream_handles.c), and what a
 * capture forbids (capture_rules.c). */
#pragma once
#include "handles.h"

struct sc_work;

struct CUstream_st {
  sc_object object;
  unsigned flags;
  int priority;
  pthread_t thread;
  bool started, stop;
  bool abandoned; /* its context has ended: its work is dropped */
  struct sc_work *head, *tail;
  pthread_cond_t given; /* to its thread: work, or word to stop */
  uint64_t queued, done; /* how many pieces of work */
  uint64_t number;       /* the nth stream of the process; 0 is the legacy default stream */
  /* capture (captures.c) */
  enum { SC_NOT_CAPTURING, SC_CAPTURING, SC_INVALIDATED } capture;
  CUstreamCaptureMode mode;
  pthread_t captured_by;
  struct CUstream_st *origin;     /* the stream that began the capture */
  struct CUgraph_st *graph;
  uint64_t capture_id;
  struct CUgraphNode_st **tips;   /* nodes that the next one depends on; owned */
  int tip_count;
};

struct CUevent_st {
  sc_object object;
  unsigned flags;
  uint64_t queued, done; /* how many records were queued, and have run */
  double at;             /* seconds on the host's monotonic clock, of the last that has run */
  CUstream stream;       /* of the last record */
  uint64_t position;     /* of the last record among the work of that stream */
  struct CUgraphNode_st **captured; /* tips at a record during a capture; owned */
  int captured_count;
  uint64_t capture_id;
};

/* ---- stream_handles.c ------------------------------------------------------------------------ */

/* All streams that live or still have work. Guarded by the lock. */
typedef struct sc_stream_list {
  CUstream *items;
  int count, room;
} sc_stream_list;
extern sc_stream_list sc_streams;

/* The stream that a handle means: NULL and CU_STREAM_LEGACY are the context's default stream,
 * CU_STREAM_PER_THREAD the calling thread's. NULL with a report where the handle is no stream. */
CUstream sc_stream(CUstream handle, const char *call);
/* The same as a result: CUDA_ERROR_INVALID_CONTEXT for a default stream without a context. */
CUresult sc_stream_of(CUstream handle, const char *call, CUstream *stream);
/* Whether a handle means a default stream. */
bool sc_is_default_stream(CUstream handle);
/* Whether a stream is the legacy default stream of its context. */
bool sc_is_legacy(CUstream stream);
/* A new stream of a program. Needs the lock. */
CUstream sc_stream_new(CUcontext context, unsigned flags, int priority);
/* Has a stream's thread end once its work is done. Needs the lock. */
void sc_stream_stop(CUstream stream);
void sc_streams_each(void (*visit)(CUstream, void *), void *data);
/* From now on NULL means the per-thread default stream (entry.c). */
void sc_use_per_thread_streams(void);

/* ---- capture_rules.c ------------------------------------------------------------------------- */

/* Refuses what is unsafe while a capture lasts (Driver API, cuThreadExchangeStreamCaptureMode), and
 * invalidates that capture. */
CUresult sc_refuse_while_capturing(void);
#define UNCAPTURED                                                                                 \
  do {                                                                                             \
    CUresult refused_ = sc_refuse_while_capturing();                                               \
    if (refused_) return refused_;                                                                 \
  } while (0)
/* Refuses work on a default stream while a stream that would wait for it is captured. */
CUresult sc_refuse_implicit(CUstream legacy);
/* Makes the capture that a stream belongs to invalid (Guide, "CUDA Graphs", Invalidation). */
void sc_invalidate_capture(CUstream stream);
/* Calls `visit` for the streams of one capture; of 0: for those that began one. */
void sc_capture_each(uint64_t id, void (*visit)(CUstream, void *), void *data);
/* A stream of a context that is captured and waits for its legacy stream, or NULL. */
CUstream sc_captured_blocking_stream(CUcontext context);
