/* Work that a stream captures in place of running it (captures.c). */
#pragma once
#include "graphs.h"
#include "streams.h"

/* Adds work to the graph that a stream is capturing. Needs the lock. */
CUresult sc_capture_work(CUstream stream, const sc_work *work);
/* A record of an event on a capturing stream: remembers the tips, adds no node. */
CUresult sc_capture_record(CUstream stream, CUevent event);
/* A wait for an event on a capturing stream, or for a captured event: draws the stream in. */
CUresult sc_capture_wait(CUstream stream, CUevent event);
/* Whether an event was last recorded in a capture that goes on. */
bool sc_event_captured(CUevent event);
/* Ends a capture whose first stream is destroyed, and drops its graph. A stream that was drawn in
 * may go: its work must be joined all the same. */
void sc_drop_capture(CUstream stream);
