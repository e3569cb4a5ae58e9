/* Runs a kernel: its grid, block by block, and the threads of each block. */
#include "access.h"
#include "blocks.h"
#include "counts.h"
#include "sanitizer.h"
#include "services.h"
#include "waiting.h"

/* ---- orders --------------------------------------------------------------------------------- */

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Blocks are too many to keep a permutation of; steps of a stride that shares no factor with their
 * number visit each once. */
static void order_blocks(sc_grid *grid) {
  uint64_t count = grid->block_count;
  grid->next_block = 0;
  grid->stride = 1;
  if (grid->order == SC_DESCENDING) grid->next_block = grid->stride = count - 1;
  if (grid->order != SC_PERMUTED || count < 2) return;
  grid->next_block = sc_random(&grid->random) % count;
  grid->stride = 1 + sc_random(&grid->random) % (count - 1);
  while (greatest_common_divisor(grid->stride, count) != 1) grid->stride = grid->stride % count + 1;
}

/* ---- services ------------------------------------------------------------------------------- */

static void fence(sc_thread *thread, uint32_t scope) {
  sc_fiber *fiber = sc_fiber_of(thread);
  if (!fiber->clocks) return;
  sc_races_settle(fiber);
  sc_races_fence(fiber, scope);
}

/* Guide, Trap function: the kernel is aborted. Programs then see "unspecified launch failure". */
static void trap(sc_thread *thread) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_report report = sc_report_of(fiber, "trap");
  snprintf(report.text, sizeof report.text, "the kernel has executed a trap");
  sc_report_once(fiber, &report, 0);
  sc_stop(fiber, CUDA_ERROR_LAUNCH_FAILED);
}

/* Nanoseconds of the host, but never the same twice: loops that wait for the clock end. */
static uint64_t read_clock(sc_thread *thread) {
  sc_grid *grid = sc_fiber_of(thread)->block->grid;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
  grid->last_clock = at > grid->last_clock ? at : grid->last_clock + 1;
  return grid->last_clock;
}

/* Where threads run in turn, one that waits for a later one waits until its time is over. */
static void yield(sc_thread *thread) {
  sc_fiber *fiber = sc_fiber_of(thread);
  if (fiber->clocks) sc_races_settle(fiber);
  if (!fiber->block->grid->kernel->waits) return;
  fiber->idle = true;
  sc_fiber_suspend(fiber);
}

static const sc_services services = {
    .access = sc_access,
    .barrier = sc_barrier_wait,
    .arrive = sc_barrier_arrive,
    .warp = sc_warp_call_run,
    .grid = sc_grid_wait,
    .fence = fence,
    .print = sc_print,
    .fail = sc_fail,
    .trap = trap,
    .take = sc_heap_take,
    .give_back = sc_heap_give_back,
    .clock = read_clock,
    .enter = sc_enter_frame,
    .leave = sc_leave_frame,
    .yield = yield,
    .trace = sc_counts_trace,
};

/* ---- blocks --------------------------------------------------------------------------------- */

static void begin_thread(sc_block *block, sc_fiber *fiber, uint32_t linear) {
  sc_thread *thread = &fiber->thread;
  memcpy(thread->tid, block->grid->places[linear], sizeof thread->tid);
  thread->linear = linear;
  thread->line = thread->file = 0;
  fiber->local_used = fiber->local_newest = 0;
  if (fiber->clocks) sc_races_begin_thread(fiber);
  if (block->grid->counts) sc_counts_begin_thread(fiber);
}

static void begin_fiber(sc_block *block, sc_fiber *fiber, struct sc_clocks *clocks) {
  const sc_grid *grid = block->grid;
  const sc_launch *launch = grid->launch;
  *fiber = (sc_fiber){.block = block, .status = SC_RUNNABLE, .clocks = clocks};
  sc_thread *thread = &fiber->thread;
  memcpy(thread->ntid, launch->block, sizeof thread->ntid);
  memcpy(thread->nctaid, launch->grid, sizeof thread->nctaid);
  memcpy(thread->ctaid, block->index, sizeof thread->ctaid);
  thread->dynamic_shared = launch->dynamic_shared;
  thread->shared = block->window;
  thread->dynamic_at = grid->dynamic_at;
  thread->globals = launch->function->library->globals;
  thread->services = &services;
  thread->state = fiber;
}

static void begin_warps(sc_block *block) {
  const sc_grid *grid = block->grid;
  for (uint32_t i = 0; i < grid->warps; i++) {
    uint32_t left = grid->threads - i * SC_WARP, lanes = left < SC_WARP ? left : SC_WARP;
    sc_warp *warp = &block->warps[i];
    warp->alive = lanes == SC_WARP ? UINT32_MAX : (1u << lanes) - 1;
    warp->runnable = (int)lanes;
    warp->group_count = 0;
  }
}

/* The next block of the grid begins. Shared memory holds garbage then, always the same, so that a
 * result that depends on it shows. */
static void begin_block(sc_block *block) {
  sc_grid *grid = block->grid;
  const uint32_t *size = grid->launch->grid;
  uint64_t linear = block->linear = grid->next_block;
  grid->next_block = (linear + grid->stride) % grid->block_count;
  block->index[0] = (uint32_t)(linear % size[0]);
  block->index[1] = (uint32_t)(linear / size[0] % size[1]);
  block->index[2] = (uint32_t)(linear / size[0] / size[1]);
  block->alive = grid->threads;
  block->restart = false;
  memset(block->window, 0xA5, grid->window_bytes);
  if (grid->sanitize) sc_races_begin_block(block);
  memset(block->barriers, 0, sizeof block->barriers);
  sc_order_threads(block);
}

static struct sc_clocks *clocks_of(const sc_block *block, uint32_t linear) {
  return block->grid->sanitize ? sc_clocks_at(block, linear) : NULL;
}

/* ---- kernels whose threads wait for nothing ------------------------------------------------- */

/* A fiber has run; false: the kernel has ended by a fault. */
static bool is_fine(sc_grid *grid, sc_fiber *fiber) {
  const sc_worker *worker = grid->worker;
  if (worker->signal) sc_report_signal(grid);
  else if (worker->expired && !grid->error) sc_report_time_out(grid, fiber);
  return !grid->error;
}

/* All threads of all blocks on the stack of one fiber. */
static void run_in_turn(sc_fiber *fiber) {
  sc_block *block = fiber->block;
  sc_grid *grid = block->grid;
  char *parameters = grid->launch->parameters;
  for (uint64_t n = 0; n < grid->block_count; n++) {
    begin_block(block);
    memcpy(fiber->thread.ctaid, block->index, sizeof block->index);
    for (uint32_t i = 0; i < grid->threads; i++) {
      begin_thread(block, fiber, block->order[i]);
      grid->kernel->run(&fiber->thread, parameters);
      if (fiber->clocks) sc_races_settle(fiber);
    }
  }
}

/* The same for some threads of a block that are counted. A thread whose trace is full keeps the
 * fiber, and the others go on with another one. */
static void run_some_in_turn(sc_fiber *fiber) {
  sc_grid *grid = fiber->block->grid;
  while (grid->next_thread < grid->last_thread) {
    begin_thread(fiber->block, fiber, fiber->block->order[grid->next_thread++]);
    grid->kernel->run(&fiber->thread, grid->launch->parameters);
    if (fiber->clocks) sc_races_settle(fiber);
    sc_counts_end_thread(fiber);
  }
}

/* Lets a fiber of run_some_in_turn go on; false: the kernel has ended by a fault. */
static bool continue_turn(sc_grid *grid, sc_fiber *fiber) {
  fiber->idle = false;
  if (!sc_fiber_resume(grid->worker, fiber, run_some_in_turn))
    grid->error = CUDA_ERROR_OUT_OF_MEMORY;
  if (!is_fine(grid, fiber)) return false;
  if (fiber->status == SC_ENDED) sc_fiber_drop(grid->worker, fiber);
  else if (fiber->status != SC_RUNNABLE) grid->error = CUDA_ERROR_LAUNCH_FAILED; /* as below */
  return !grid->error;
}

/* Runs a stretch of the order: whole warps. */
static void run_stretch(sc_block *block, uint32_t first, uint32_t last) {
  sc_grid *grid = block->grid;
  uint32_t used = 0, left, begin = block->order[first], end = begin;
  for (uint32_t i = first; i < last; i++) {
    if (block->order[i] < begin) begin = block->order[i];
    if (block->order[i] > end) end = block->order[i];
  }
  for (uint32_t w = begin / SC_WARP; w <= end / SC_WARP; w++) sc_counts_begin_warp(block, w);
  grid->next_thread = first;
  grid->last_thread = last;
  while (grid->next_thread < last) {
    sc_fiber *fiber = &block->fibers[used];
    begin_fiber(block, fiber, clocks_of(block, used));
    if (!continue_turn(grid, fiber)) return;
    used += fiber->status != SC_ENDED;
  }
  do {
    bool idle = true;
    left = 0;
    for (uint32_t w = begin / SC_WARP; w <= end / SC_WARP; w++) sc_counts_warp(block, w);
    for (uint32_t i = 0; i < used; i++) {
      sc_fiber *fiber = &block->fibers[i];
      if (fiber->status == SC_ENDED) continue;
      if (!continue_turn(grid, fiber)) return;
      idle &= fiber->idle;
      left++;
    }
    sc_counts_pass(grid, idle);
  } while (left);
}

static void run_counted(sc_grid *grid) {
  sc_block *block = grid->blocks;
  for (uint32_t i = 0; i < grid->fibers_of_block; i++) block->fibers[i].stack = NULL;
  for (uint64_t n = 0; n < grid->block_count && !grid->error; n++) {
    begin_block(block);
    for (uint32_t first = 0, last; first < grid->threads && !grid->error; first = last) {
      /* As many as have traces at once. Descending, the first warp may have fewer lanes. */
      uint32_t rest = grid->threads % SC_WARP;
      last = grid->order == SC_PERMUTED ? grid->threads : first + SC_WARP;
      if (grid->order == SC_DESCENDING && !first && rest) last = rest;
      if (last > grid->threads) last = grid->threads;
      run_stretch(block, first, last);
    }
  }
  for (uint32_t i = 0; i < grid->fibers_of_block; i++)
    sc_fiber_drop(grid->worker, &block->fibers[i]);
}

static void run_alone(sc_grid *grid) {
  sc_fiber *fiber = grid->blocks->fibers;
  begin_fiber(grid->blocks, fiber, clocks_of(grid->blocks, 0));
  if (!sc_fiber_resume(grid->worker, fiber, run_in_turn)) grid->error = CUDA_ERROR_OUT_OF_MEMORY;
  if (grid->worker->signal) sc_report_signal(grid);
  /* It waits, though its module says that it does not. */
  if (!grid->error && fiber->status != SC_ENDED) grid->error = CUDA_ERROR_LAUNCH_FAILED;
  sc_fiber_drop(grid->worker, fiber);
}

/* ---- kernels whose threads wait for each other ---------------------------------------------- */

static void run_thread(sc_fiber *fiber) {
  sc_grid *grid = fiber->block->grid;
  grid->kernel->run(&fiber->thread, grid->launch->parameters);
  if (fiber->clocks) sc_races_settle(fiber);
  if (grid->counts) sc_counts_end_thread(fiber);
}

static void begin_fibers(sc_block *block) {
  for (uint32_t i = 0; block->grid->counts && i < block->grid->warps; i++)
    sc_counts_begin_warp(block, i);
  for (uint32_t i = 0; i < block->grid->threads; i++) {
    begin_fiber(block, &block->fibers[i], clocks_of(block, i));
    begin_thread(block, &block->fibers[i], i);
  }
  begin_warps(block);
}

static void fiber_ended(sc_grid *grid, sc_fiber *fiber) {
  sc_fiber_drop(grid->worker, fiber);
  fiber->block->alive--;
  grid->alive--;
  if (grid->counts && !fiber->block->alive) sc_counts_block(fiber->block);
  sc_warp_left(fiber);
  sc_barriers_left(fiber->block);
  sc_warp_goes_on(fiber);
}

/* Runs a fiber; false: the kernel has ended by a fault. */
static bool step(sc_grid *grid, sc_fiber *fiber) {
  fiber->idle = false;
  if (!sc_fiber_resume(grid->worker, fiber, run_thread)) grid->error = CUDA_ERROR_OUT_OF_MEMORY;
  if (!is_fine(grid, fiber)) return false;
  if (fiber->status == SC_ENDED) fiber_ended(grid, fiber);
  return true;
}

/* Lets each thread of a block that can run do so, once; answers how many did, and clears `idle`
 * where one did anything but wait. */
static uint32_t run_pass(sc_grid *grid, sc_block *block, bool *idle) {
  uint32_t ran = 0;
  for (uint32_t i = 0; i < grid->threads; i++) {
    sc_fiber *fiber = &block->fibers[block->order[i]];
    if (fiber->status != SC_RUNNABLE) continue;
    ran++;
    if (!step(grid, fiber)) break;
    *idle &= fiber->idle;
    if (!block->restart) continue;
    block->restart = false;
    i = UINT32_MAX; /* 0 next */
  }
  return ran;
}

static void run_live_blocks(sc_grid *grid) {
  grid->alive = (uint64_t)grid->live_blocks * grid->threads;
  grid->at_grid = 0;
  for (uint32_t i = 0; i < grid->live_blocks; i++) {
    begin_block(&grid->blocks[i]);
    begin_fibers(&grid->blocks[i]);
  }
  while (grid->alive && !grid->error) {
    uint64_t ran = 0;
    bool idle = true;
    for (uint32_t i = 0; i < grid->live_blocks && !grid->error; i++)
      ran += run_pass(grid, &grid->blocks[i], &idle);
    if (grid->counts) sc_counts_pass(grid, idle);
    if (ran || grid->error || sc_warps_unstick(grid)) continue;
    sc_barriers_report_stuck(grid);
    grid->error = CUDA_ERROR_LAUNCH_TIMEOUT; /* a GPU would wait until its time-out */
  }
  if (!grid->error) return;
  for (uint64_t i = 0; i < (uint64_t)grid->live_blocks * grid->threads; i++)
    sc_fiber_drop(grid->worker, &grid->blocks->fibers[i]);
}

static void run_together(sc_grid *grid) {
  for (uint64_t i = 0; i < grid->block_count && !grid->error; i += grid->live_blocks)
    run_live_blocks(grid);
}

/* ---- a launch ------------------------------------------------------------------------------- */

static void find_places(sc_grid *grid) {
  const uint32_t *block = grid->launch->block;
  for (uint32_t i = 0; i < grid->threads; i++) {
    grid->places[i][0] = i % block[0];
    grid->places[i][1] = i / block[0] % block[1];
    grid->places[i][2] = i / block[0] / block[1];
  }
}

static void prepare_blocks(sc_grid *grid, char *windows, uint16_t *orders, sc_fiber *fibers) {
  for (uint32_t i = 0; i < grid->live_blocks; i++) {
    sc_block *block = &grid->blocks[i];
    block->grid = grid;
    block->window = windows + (size_t)i * grid->window_stride;
    block->order = orders + (size_t)i * grid->threads;
    block->fibers = fibers + (size_t)i * grid->fibers_of_block;
    for (uint32_t t = 0; t < grid->threads; t++)
      block->order[t] = (uint16_t)(grid->order == SC_DESCENDING ? grid->threads - 1 - t : t);
  }
}

/* Takes what a launch needs from the worker's pools; false: no memory. */
static bool prepare(sc_grid *grid) {
  sc_worker *worker = grid->worker;
  size_t live = grid->live_blocks, threads = grid->threads;
  size_t fibers = live * grid->fibers_of_block;
  grid->blocks = sc_pool_take(&worker->blocks, live * sizeof *grid->blocks, true);
  grid->places = sc_pool_take(&worker->places, threads * sizeof *grid->places, false);
  void *of_fibers = sc_pool_take(&worker->fibers, fibers * sizeof(sc_fiber), false);
  void *orders = sc_pool_take(&worker->orders, live * threads * sizeof(uint16_t), false);
  void *windows = sc_pool_take(&worker->windows, live * grid->window_stride, false);
  if (!grid->blocks || !grid->places || !of_fibers || !orders || !windows) return false;
  find_places(grid);
  prepare_blocks(grid, windows, orders, of_fibers);
  return true;
}

static bool begin_run(sc_grid *grid) {
  const sc_launch *launch = grid->launch;
  grid->kernel = launch->function->kernel;
  grid->module = launch->function->library->module;
  grid->order = sc_option.order;
  grid->sanitize = sc_option.sanitize;
  grid->random = sc_option.seed;
  grid->threads = launch->block[0] * launch->block[1] * launch->block[2];
  grid->warps = (grid->threads + SC_WARP - 1) / SC_WARP;
  grid->block_count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  grid->dynamic_at = (grid->module->shared_window + 15) & ~15u;
  grid->window_bytes = grid->dynamic_at + launch->dynamic_shared;
  /* Never empty, with a gap between two, and aligned as much as arrays of Numba may ask for. */
  grid->window_stride = (grid->window_bytes + 511) & ~255u;
  /* Blocks of a cooperative launch are all on the device at once (Guide, Grid Synchronization). */
  bool all = launch->cooperative && grid->kernel->waits;
  grid->live_blocks = all ? (uint32_t)grid->block_count : 1;
  order_blocks(grid);
  if (grid->module->blocks && !sc_counts_begin(grid)) return false;
  uint32_t warp = grid->threads < SC_WARP ? grid->threads : SC_WARP;
  grid->fibers_of_block = grid->kernel->waits || (grid->counts && grid->order == SC_PERMUTED)
                              ? grid->threads : grid->counts ? warp : 1;
  if (!prepare(grid) || (grid->sanitize && !sc_sanitizer_begin(grid))) return false;
  grid->list = sc_take_list();
  if (!grid->sanitize) sc_sanitizer_absent(grid);
  return true;
}

CUresult sc_execute(const sc_launch *launch) {
  if (launch->function->kernel->empty) { /* grids have up to 2^73 threads */
    sc_counts_absent(launch);
    return CUDA_SUCCESS;
  }
  sc_worker *worker = sc_worker_here();
  if (!worker) return CUDA_ERROR_OUT_OF_MEMORY;
  sc_grid grid = {.launch = launch, .worker = worker};
  if (!begin_run(&grid)) return CUDA_ERROR_OUT_OF_MEMORY;
  worker->grid = &grid;
  sc_signals_begin(worker, sc_option.kernel_timeout);
  if (grid.kernel->waits) run_together(&grid);
  else if (grid.counts) run_counted(&grid);
  else run_alone(&grid);
  sc_signals_end(worker);
  sc_stacks_leave(worker);
  worker->grid = NULL;
  if (grid.sanitize) sc_races_end(&grid);
  if (grid.counts) sc_counts_end(&grid);
  else if (!grid.error) sc_counts_absent(launch);
  sc_printed_flush(&grid);
  sc_release_list(grid.list);
  return grid.error;
}
