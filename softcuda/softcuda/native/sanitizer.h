/* Reads of what nothing has written (sanitizer.c), races (races.c), and what orders threads
 * (order.c). */
#pragma once
#include "regions.h"

/* Takes what the sanitizer needs for a launch; false: no memory. */
bool sc_sanitizer_begin(sc_grid *grid);
struct sc_clocks *sc_clocks_at(const sc_block *block, uint32_t linear);
size_t sc_clocks_bytes(void);
/* Kernels that run without the sanitizer write what it does not see. */
void sc_sanitizer_absent(sc_grid *grid);
/* An access that was found to be inside of `region`. */
void sc_sanitize_access(sc_fiber *fiber, const sc_region *region, uint64_t address, uint32_t size,
                        uint32_t how);

bool sc_races_begin(sc_grid *grid);
void sc_races_end(sc_grid *grid);
void sc_races_forget(sc_worker *worker);
void sc_races_begin_block(sc_block *block);
void sc_races_begin_thread(sc_fiber *fiber);
void sc_races_access(sc_fiber *fiber, const sc_region *region, uint64_t address, uint32_t size,
                     uint32_t how);
/* Says whether the last write, which met another one, wrote something else than what was there.
 * Must come before another fiber runs. */
void sc_races_settle(sc_fiber *fiber);
/* A fence; what the thread has written before must be settled. */
void sc_races_fence(sc_fiber *fiber, uint32_t scope);
/* What orders threads: bar.warp.sync, a barrier of some threads of a block, of all, of the grid. */
void sc_races_warp(sc_block *block, uint32_t warp, uint32_t lanes);
void sc_races_arrive(sc_fiber *fiber, sc_barrier *barrier);
void sc_races_some(sc_block *block, uint32_t number);
void sc_races_block(sc_block *block);
void sc_races_grid(sc_grid *grid);
