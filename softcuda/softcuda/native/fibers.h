/* Fibers and their stacks (fibers.c), signals that end a kernel (signals.c), what a report says of
 * a thread (findings.c), and orders of threads (permutations.c). */
#pragma once
#include "grid.h"
#include "reports.h"

/* ---- fibers.c ------------------------------------------------------------------------------- */

/* The worker of the calling thread, or NULL; safe in a handler of signals. */
extern __thread sc_worker *sc_worker_of_thread;
/* At least so many bytes in a pool, zeroed where `clear`; NULL where there is no memory. */
void *sc_pool_take(struct sc_pool *pool, size_t bytes, bool clear);
/* Runs a fiber until it waits, yields, ends or stops the kernel; false: no memory for its stack. */
bool sc_fiber_resume(sc_worker *worker, sc_fiber *fiber, void (*start)(sc_fiber *));
/* Lets the scheduler run; returns when it resumes the fiber. */
void sc_fiber_suspend(sc_fiber *fiber);
/* Leaves a fiber for good. */
void sc_fiber_leave(sc_worker *worker) __attribute__((noreturn));
/* Gives the stack of a fiber back, when it has ended or will not go on. */
void sc_fiber_drop(sc_worker *worker, sc_fiber *fiber);
/* Gives back to the process all stacks that a launch took; none of its fibers has one any more. */
void sc_stacks_leave(sc_worker *worker);
/* The stack whose thread has this address in its local memory, or NULL. */
const sc_stack *sc_local_owner(uint64_t address);

/* ---- signals.c ------------------------------------------------------------------------------ */

/* Sees to it that a fault or the end of its time ends the kernel and not the process. */
void sc_signals_begin(sc_worker *worker, double seconds);
void sc_signals_end(sc_worker *worker);
/* Frees what the functions above made for a worker. */
void sc_signals_forget(sc_worker *worker);
/* Asks all kernels that run to end, as after their time; answers whether there are any. They end
 * where they may: ask again until none runs. */
bool sc_cancel_kernels(void);

/* While these are held, signals do not end the kernel: around locks, malloc and stdio. */
static inline void sc_hold(sc_worker *worker) { worker->held++; }
void sc_let_go(sc_worker *worker);

/* ---- findings.c ----------------------------------------------------------------------------- */

/* A report that names the kernel, the thread and its line. */
sc_report sc_report_of(const sc_fiber *fiber, const char *kind);
void sc_report_other(sc_report *report, const sc_fiber *other);
/* Adds a report unless this launch has said the same of `what` at these lines. */
void sc_report_once(sc_fiber *fiber, const sc_report *report, uint64_t what);
/* The file of a line of the module, or NULL. */
const char *sc_file_name(const sc_grid *grid, uint32_t number);

/* ---- permutations.c ------------------------------------------------------------------------- */

/* A number of 64 bits from the generator of permutations. */
uint64_t sc_random(uint64_t *state);
/* The order in which the threads of a block run from now on. */
void sc_order_threads(sc_block *block);
