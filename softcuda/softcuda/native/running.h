/* Running one piece of work: copies and fills (transfers.c), all else (running.c), and Ctrl-C while
 * the host waits for work (interrupts.c). */
#pragma once
#include "graphs.h"
#include "streams.h"

/* Does a copy (SC_WORK_COPY) or a fill (SC_WORK_FILL) now, and tells the sanitizer. In 2-D fills
 * `width` counts the elements of a row. */
void sc_run_copy(const sc_work *work);
void sc_run_fill(const sc_work *work);
/* Runs one piece of work on the calling thread; used by streams and by graphs. */
void sc_run(sc_work *work, CUstream stream);
/* Whether work of a stream is no longer done: its context has an error or has ended, or the process
 * ends. */
bool sc_is_dropped(CUstream stream);
/* At exit no further work begins; what runs is cut off. */
bool sc_is_exiting(void);

/* Around waits of the host for work: Ctrl-C ends that work (interrupts.c). */
bool sc_hear_interrupts(void);
void sc_wait_for_work(bool hears, CUcontext context);
void sc_end_hearing(bool hears);
