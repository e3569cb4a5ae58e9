/* Queueing work on streams, and waiting for it (streams.c). */
#pragma once
#include "graphs.h"
#include "streams.h"

/* Queues a copy of the work, whose owned parts it takes, or adds it to the graph of a capture. */
CUresult sc_queue(CUstream stream, const sc_work *work);
/* Waits until all work that is queued on a stream now has run; the context's sticky error. */
CUresult sc_drain(CUstream stream);
/* The same for all streams of a context. */
CUresult sc_drain_context(CUcontext context);
/* Drops all work of a context that ends, and its default streams. Called with the lock, before the
 * memory of the context is freed. */
void sc_context_work_end(CUcontext context);
