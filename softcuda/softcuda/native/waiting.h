/* Threads that wait for each other: in warps (warps.c) and at barriers (barriers.c). */
#pragma once
#include "fibers.h"

void sc_warp_call_run(sc_thread *thread, sc_warp_call *call, uint32_t site);
uint32_t sc_barrier_wait(sc_thread *thread, uint32_t number, uint32_t threads, uint32_t op,
                         uint32_t predicate, uint32_t site);
void sc_barrier_arrive(sc_thread *thread, uint32_t number, uint32_t threads, uint32_t site);
void sc_grid_wait(sc_thread *thread, uint32_t site);
/* Marks a fiber as one that waits; it may be woken before it goes to sleep. */
void sc_begin_wait(sc_fiber *fiber, enum sc_status status, uint32_t site);
void sc_sleep(sc_fiber *fiber);
void sc_wake(sc_fiber *fiber);
/* A fiber has ended: those who wait for it need not any more. To be called in this order; the last
 * answers lanes that ask which of them are together. */
void sc_warp_left(sc_fiber *fiber);
void sc_barriers_left(sc_block *block);
void sc_warp_goes_on(sc_fiber *fiber);
/* Nothing can run in the whole launch: lets lanes go that wait for others in vain, and answers
 * true; or reports that the barriers will never be complete, and answers false. */
bool sc_warps_unstick(sc_grid *grid);
void sc_barriers_report_stuck(sc_grid *grid);
