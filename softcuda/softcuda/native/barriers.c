/* Barriers of a block (PTX ISA, 9.7.13.1) and of a grid (Guide, Grid Synchronization). */
#include "access.h"
#include "counts.h"
#include "sanitizer.h"
#include "waiting.h"

static const char *place_of(const sc_fiber *fiber, char *room, size_t bytes) {
  const uint32_t *at = fiber->thread.tid;
  snprintf(room, bytes, "(%u, %u, %u)", at[0], at[1], at[2]);
  return room;
}

/* ---- what the sanitizer says of a barrier that is complete ---------------------------------- */

static void report_unmatched(sc_fiber *waiting, const sc_fiber *missing, const char *why) {
  char place[48];
  sc_report report = sc_report_of(waiting, "barrier");
  sc_report_other(&report, missing);
  snprintf(report.text, sizeof report.text,
           "not all threads of the block reach this barrier: thread %s %s (line %u)%s",
           place_of(missing, place, sizeof place), why, missing->thread.line,
           missing->status == SC_ENDED ? ", which is defined since compute capability 7.0 alone"
                                       : "");
  sc_report_once(waiting, &report, 0);
}

/* A barrier is complete without threads that have ended since compute capability 7.0 (Guide,
 * Independent Thread Scheduling: it waits for "all non-exited threads in the block"). Before, and
 * in the words of the Guide on __syncthreads(), all threads must reach it, and the same one. */
static void check_matched(sc_block *block, uint32_t number) {
  const sc_grid *grid = block->grid;
  sc_fiber *waiting = NULL;
  for (uint32_t i = 0; i < grid->threads; i++) {
    sc_fiber *fiber = &block->fibers[i];
    if (fiber->status != SC_AT_BARRIER || fiber->barrier != number) continue;
    bool same_warp = waiting && waiting->thread.linear / SC_WARP == i / SC_WARP;
    if (same_warp && waiting->site != fiber->site)
      report_unmatched(waiting, fiber, "of the same warp waits at another one");
    if (!same_warp) waiting = fiber;
  }
  if (!waiting || block->alive == grid->threads) return;
  for (uint32_t i = 0; i < grid->threads; i++) {
    if (block->fibers[i].status != SC_ENDED) continue;
    report_unmatched(waiting, &block->fibers[i], "has ended before");
    return;
  }
}

/* ---- barriers of a block -------------------------------------------------------------------- */

/* "The arrival count is incremented by the warp size (not the number of active threads in the
 * warp)": lanes that have ended or never were count with those of their warp that came. */
static bool is_complete(const sc_block *block, const sc_barrier *barrier) {
  if (!barrier->arrived) return false;
  if (!barrier->threads) return barrier->arrived >= block->alive;
  uint32_t count = 0;
  for (uint32_t i = 0; i < block->grid->warps; i++) {
    uint32_t absent = SC_WARP - (uint32_t)__builtin_popcount(block->warps[i].alive);
    uint32_t here = barrier->of_warp[i] ? barrier->of_warp[i] + absent : 0;
    count += here < SC_WARP ? here : SC_WARP; /* some may have arrived and ended */
  }
  return count >= barrier->threads;
}

static uint32_t answer_of(const sc_barrier *barrier, uint32_t op) {
  switch (op) {
  case SC_BARRIER_POPC: return barrier->population;
  case SC_BARRIER_AND: return barrier->all;
  case SC_BARRIER_OR: return barrier->any;
  default: return 0;
  }
}

static void finish(sc_block *block, uint32_t number) {
  sc_grid *grid = block->grid;
  sc_barrier *barrier = &block->barriers[number];
  bool whole = barrier->waiting == block->alive;
  if (grid->sanitize) {
    if (!barrier->threads) check_matched(block, number);
    if (!barrier->threads || barrier->waiting == grid->threads) sc_races_block(block);
    else sc_races_some(block, number);
  }
  if (grid->counts && whole) sc_counts_block(block); /* traces stay short, and near */
  for (uint32_t i = 0; i < grid->threads; i++) {
    sc_fiber *fiber = &block->fibers[i];
    if (fiber->status != SC_AT_BARRIER || fiber->barrier != number) continue;
    fiber->answer = answer_of(barrier, fiber->answer);
    sc_wake(fiber);
  }
  barrier->arrived = barrier->waiting = 0;
  if (!whole) return;
  sc_order_threads(block);
  block->restart = true;
}

static sc_barrier *count_in(sc_fiber *fiber, uint32_t number, uint32_t threads) {
  sc_barrier *barrier = &fiber->block->barriers[number];
  if (!barrier->arrived) {
    uint32_t *released = barrier->released;
    *barrier = (sc_barrier){.threads = threads, .all = 1, .released = released};
  }
  barrier->arrived++;
  barrier->of_warp[fiber->thread.linear / SC_WARP]++;
  return barrier;
}

uint32_t sc_barrier_wait(sc_thread *thread, uint32_t number, uint32_t threads, uint32_t op,
                         uint32_t predicate, uint32_t site) {
  sc_fiber *fiber = sc_fiber_of(thread);
  if (fiber->clocks) sc_races_settle(fiber);
  number %= SC_BARRIERS;
  sc_barrier *barrier = count_in(fiber, number, threads);
  barrier->waiting++;
  barrier->population += predicate != 0;
  barrier->all &= predicate != 0;
  barrier->any |= predicate != 0;
  fiber->barrier = number;
  fiber->answer = op; /* until it is known */
  sc_begin_wait(fiber, SC_AT_BARRIER, site);
  if (is_complete(fiber->block, barrier)) finish(fiber->block, number);
  sc_sleep(fiber);
  return fiber->answer;
}

void sc_barrier_arrive(sc_thread *thread, uint32_t number, uint32_t threads, uint32_t site) {
  (void)site;
  sc_fiber *fiber = sc_fiber_of(thread);
  number %= SC_BARRIERS;
  sc_barrier *barrier = count_in(fiber, number, threads);
  if (fiber->clocks) {
    sc_races_settle(fiber);
    sc_races_arrive(fiber, barrier);
  }
  if (is_complete(fiber->block, barrier)) finish(fiber->block, number);
}

/* ---- the barrier of a grid ------------------------------------------------------------------ */

static void finish_grid_if_complete(sc_grid *grid) {
  if (!grid->at_grid || grid->at_grid < grid->alive) return;
  if (grid->sanitize) sc_races_grid(grid);
  for (uint32_t b = 0; b < grid->live_blocks; b++) {
    sc_block *block = &grid->blocks[b];
    for (uint32_t i = 0; i < grid->threads; i++)
      if (block->fibers[i].status == SC_AT_GRID) sc_wake(&block->fibers[i]);
    sc_order_threads(block);
    block->restart = true;
  }
  grid->at_grid = 0;
}

/* Guide, Grid Synchronization: "it is necessary to launch the kernel using
 * cudaLaunchCooperativeKernel"; a grid group of another launch is not valid, and its sync traps. */
static void refuse_grid(sc_fiber *fiber) {
  sc_report report = sc_report_of(fiber, "cooperative");
  snprintf(report.text, sizeof report.text,
           "the kernel synchronises the grid, but its launch is not a cooperative one");
  sc_report_once(fiber, &report, 0);
  sc_stop(fiber, CUDA_ERROR_LAUNCH_FAILED);
}

void sc_grid_wait(sc_thread *thread, uint32_t site) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_grid *grid = fiber->block->grid;
  if (fiber->clocks) sc_races_settle(fiber);
  if (!grid->launch->cooperative) refuse_grid(fiber);
  sc_begin_wait(fiber, SC_AT_GRID, site);
  grid->at_grid++;
  finish_grid_if_complete(grid);
  sc_sleep(fiber);
}

/* ---- threads that end, and those that wait for ever ----------------------------------------- */

void sc_barriers_left(sc_block *block) {
  for (uint32_t number = 0; number < SC_BARRIERS; number++)
    if (block->barriers[number].waiting && is_complete(block, &block->barriers[number]))
      finish(block, number);
  finish_grid_if_complete(block->grid);
}

static bool same_wait(const sc_fiber *a, const sc_fiber *b) {
  if (a->status != b->status) return false;
  return a->status == SC_AT_GRID || (a->block == b->block && a->barrier == b->barrier);
}

static const char *state_of(const sc_fiber *fiber, char *room, size_t bytes) {
  if (fiber->status == SC_ENDED) return "has ended";
  if (fiber->status == SC_AT_GRID) return "waits at the barrier of the grid";
  snprintf(room, bytes, "waits at barrier %u", fiber->barrier);
  return room;
}

static void report_stuck(sc_fiber *waiting, const sc_fiber *other) {
  char place[48], state[64], other_state[64];
  sc_report report = sc_report_of(waiting, "barrier");
  const char *what = state_of(waiting, state, sizeof state);
  if (other) {
    sc_report_other(&report, other);
    snprintf(report.text, sizeof report.text,
             "the kernel would never end: this thread %s, and thread %s %s (line %u)", what,
             place_of(other, place, sizeof place), state_of(other, other_state, sizeof other_state),
             other->thread.line);
  } else {
    const sc_barrier *barrier = &waiting->block->barriers[waiting->barrier];
    snprintf(report.text, sizeof report.text,
             "the kernel would never end: this thread %s for %u threads, and %u came", what,
             barrier->threads, barrier->arrived);
  }
  sc_report_once(waiting, &report, 0);
}

/* Another thread of the block that waits elsewhere, else one of any block, else one that has
 * ended. */
static const sc_fiber *find_other(const sc_grid *grid, const sc_fiber *waiting) {
  const sc_fiber *elsewhere = NULL, *ended = NULL;
  for (uint64_t i = 0; i < (uint64_t)grid->live_blocks * grid->threads; i++) {
    const sc_fiber *fiber = &grid->blocks->fibers[i];
    bool near = fiber->block == waiting->block;
    if (fiber->status == SC_ENDED) {
      if (!ended || (near && ended->block != waiting->block)) ended = fiber;
    } else if (!same_wait(fiber, waiting)) {
      if (!elsewhere || (near && elsewhere->block != waiting->block)) elsewhere = fiber;
    }
  }
  return elsewhere ? elsewhere : ended;
}

void sc_barriers_report_stuck(sc_grid *grid) {
  for (uint64_t i = 0; i < (uint64_t)grid->live_blocks * grid->threads; i++) {
    sc_fiber *fiber = &grid->blocks->fibers[i];
    if (fiber->status == SC_ENDED) continue;
    report_stuck(fiber, find_other(grid, fiber));
    return;
  }
}
