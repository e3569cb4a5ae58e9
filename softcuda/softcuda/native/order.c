/* What orders the accesses of threads, for races.c.
 *
 * Barriers of a block and of the grid, bar.warp.sync, the end of a launch; and a fence after which
 * its thread does an atomic operation on a place, for every thread that does an atomic operation on
 * that place later (PTX ISA, 8.8: release and acquire patterns). Threads of a warp are not ordered
 * by being in one warp (Guide, Independent Thread Scheduling).
 *
 * Approximated, always towards no report:
 * - An acquire needs no fence after it, as NVIDIA's threadFenceReduction sample has none.
 * - Whoever acquires from a thread that had itself acquired something knows every release up to
 *   then, wherever; the same when one thread acquires on more than SC_ACQUIRED places.
 * - Fences of several threads count for one of them that they meet at a barrier (note_fences).
 */
#include "races.h"

/* Beyond so many releases of one launch every two threads count as ordered. */
static const uint64_t MOST_RELEASES = 1 << 18;

/* ---- tables --------------------------------------------------------------------------------- */

static struct entry *find_entry(const table *table, uint64_t key) {
  if (!table->room) return NULL;
  uint64_t at = key * 0x9E3779B97F4A7C15u >> 20;
  while (table->entries[at % table->room].key && table->entries[at % table->room].key != key) at++;
  return &table->entries[at % table->room];
}

static struct entry *look_up(const table *table, uint64_t key) {
  struct entry *entry = find_entry(table, key);
  return entry && entry->key ? entry : NULL;
}

/* NULL: no memory. */
static struct entry *look_up_or_add(table *table, uint64_t key) {
  if (2 * table->count >= table->room) {
    struct table wider = {.room = table->room ? 2 * table->room : 64, .count = table->count};
    wider.entries = calloc(wider.room, sizeof *wider.entries);
    if (!wider.entries) return NULL;
    for (uint32_t i = 0; i < table->room; i++)
      if (table->entries[i].key) *find_entry(&wider, table->entries[i].key) = table->entries[i];
    free(table->entries);
    *table = wider;
  }
  struct entry *entry = find_entry(table, key);
  if (!entry->key) table->count++;
  entry->key = key;
  return entry;
}

static void clear(table *table) {
  if (table->count) memset(table->entries, 0, table->room * sizeof *table->entries);
  table->count = 0;
}

/* ---- release and acquire -------------------------------------------------------------------- */

static uint64_t newest_known(const sc_acquired *acquired) {
  uint64_t newest = acquired->all_upto;
  for (int i = 0; i < acquired->count; i++)
    if (acquired->of[i].upto > newest) newest = acquired->of[i].upto;
  return newest;
}

static void learn(sc_acquired *acquired, uint64_t place, uint64_t upto) {
  int i = 0;
  while (i < acquired->count && acquired->of[i].place != place) i++;
  if (i == SC_ACQUIRED) { /* too many places */
    if (upto > newest_known(acquired)) acquired->all_upto = upto;
    else acquired->all_upto = newest_known(acquired);
    acquired->count = 0;
    return;
  }
  if (i == acquired->count) acquired->of[acquired->count++].upto = 0;
  acquired->of[i].place = place;
  if (upto > acquired->of[i].upto) acquired->of[i].upto = upto;
}

static void learn_all(sc_acquired *to, const sc_acquired *from) {
  if (from->all_upto > to->all_upto) to->all_upto = from->all_upto;
  for (int i = 0; i < from->count; i++) learn(to, from->of[i].place, from->of[i].upto);
}

static bool knows(const sc_acquired *acquired, uint64_t number, uint64_t place) {
  if (number <= acquired->all_upto) return true;
  for (int i = 0; i < acquired->count; i++)
    if (acquired->of[i].place == place && number <= acquired->of[i].upto) return true;
  return false;
}

/* Shared memory of different blocks may lie at the same address. */
static uint64_t place_of(const sc_fiber *fiber, const sc_region *region, uint64_t address) {
  return region->space == SC_SHARED ? address ^ (fiber->block->linear + 1) << 47 : address;
}

void sc_acquire(sc_fiber *fiber, const sc_region *region, uint64_t address) {
  uint64_t place = place_of(fiber, region, address);
  const struct entry *entry = look_up(&races_of(fiber->block->grid)->by_place, place);
  if (!entry) return;
  sc_acquired *acquired = &fiber->clocks->acquired;
  learn(acquired, place, entry->value);
  if (entry->before > acquired->all_upto) acquired->all_upto = entry->before;
}

/* Number of a new release; 0: no memory, or too many. */
static uint64_t add_release(struct sc_races *races, const release *made) {
  if (races->release_count >= MOST_RELEASES) return 0;
  if (races->release_count + 1 >= races->release_room) {
    uint64_t room = races->release_room ? 2 * races->release_room : 64;
    release *releases = realloc(races->releases, room * sizeof *releases);
    if (!releases) return 0;
    races->releases = releases;
    races->release_room = room;
  }
  races->releases[++races->release_count] = *made;
  return races->release_count;
}

static void release_by(sc_fiber *fiber, uint64_t place, const mark *fence, bool device) {
  struct sc_races *races = races_of(fiber->block->grid);
  struct entry *of_block = look_up_or_add(&races->by_block, fiber->block->linear + 1);
  struct entry *of_place = look_up_or_add(&races->by_place, place);
  if (!of_block || !of_place) return;
  release made = {.place = place, .block = (uint32_t)fiber->block->linear,
                  .thread = fiber->thread.linear, .next = (uint32_t)of_block->value,
                  .device = device, .at = *fence};
  uint64_t number = add_release(races, &made);
  if (!number) return;
  of_block->value = of_place->value = number;
  if (fence->before > of_place->before) of_place->before = fence->before;
}

/* An atomic operation after fences. The same again, with no new fence, says nothing new. */
void sc_release_at(sc_fiber *fiber, const sc_region *region, uint64_t address) {
  struct sc_clocks *clocks = fiber->clocks;
  uint64_t place = place_of(fiber, region, address);
  for (int device = 0; device < 2; device++) {
    mark fence = clocks->fences[device];
    if (device && fiber->block->fenced > fence.epoch) {
      fence.set = true;
      fence.epoch = fiber->block->fenced;
      uint64_t before = newest_known(&fiber->block->acquired);
      if (before > fence.before) fence.before = before;
    }
    bool again = clocks->released[device].place == place &&
                 clocks->released[device].change == fence.change &&
                 clocks->released[device].epoch == fence.epoch;
    bool covered = !device && clocks->fences[1].set && clocks->fences[1].clock == fence.clock;
    if (!fence.set || again || covered) continue;
    clocks->released[device].place = place;
    clocks->released[device].change = fence.change;
    clocks->released[device].epoch = fence.epoch;
    sc_hold(fiber->block->grid->worker);
    release_by(fiber, place, &fence, device);
    sc_let_go(fiber->block->grid->worker);
  }
}

void sc_races_fence(sc_fiber *fiber, uint32_t scope) {
  struct sc_clocks *clocks = fiber->clocks;
  mark fence = {.set = true, .epoch = fiber->block->epoch, .clock = clocks->clock};
  memcpy(fence.warp, clocks->warp, sizeof fence.warp);
  uint64_t of_thread = newest_known(&clocks->acquired);
  uint64_t of_block = newest_known(&fiber->block->acquired);
  fence.before = of_thread > of_block ? of_thread : of_block;
  fence.change = clocks->fences[0].change + 1;
  clocks->fences[0] = fence;
  clocks->clock++; /* what comes after the fence is not released by it */
  if (!scope) return;
  fence.change = clocks->fences[1].change + 1;
  clocks->fences[1] = fence;
  clocks->fenced = true;
}

/* Whether a release tells of an access of its block. */
static bool covers(const release *release, const record *access) {
  if (access->epoch < release->at.epoch) return true;
  uint32_t thread = thread_of(access);
  if (thread == release->thread) return clock_of(access) <= release->at.clock;
  return thread / SC_WARP == release->thread / SC_WARP &&
         clock_of(access) <= release->at.warp[thread % SC_WARP];
}

static bool was_released(const sc_fiber *fiber, const record *access) {
  const struct sc_races *races = races_of(fiber->block->grid);
  if (races->release_count >= MOST_RELEASES) return true;
  const struct entry *entry = look_up(&races->by_block, (uint64_t)block_of(access) + 1);
  bool same_block = block_of(access) == (uint32_t)fiber->block->linear;
  for (uint64_t n = entry ? entry->value : 0; n; n = races->releases[n].next) {
    const release *release = &races->releases[n];
    if ((!same_block && !release->device) || !covers(release, access)) continue;
    if (knows(&fiber->clocks->acquired, n, release->place) ||
        knows(&fiber->block->acquired, n, release->place))
      return true;
  }
  return false;
}

/* ---- order ---------------------------------------------------------------------------------- */

bool sc_is_ordered(const sc_fiber *fiber, const record *access, bool shared) {
  const sc_block *block = fiber->block;
  const struct sc_races *races = races_of(block->grid);
  if (access->epoch < races->floor) return true;
  if (block_of(access) == (uint32_t)block->linear) {
    if (access->epoch < block->epoch) return true;
    const struct sc_clocks *clocks = fiber->clocks;
    uint32_t thread = thread_of(access);
    if (thread / SC_WARP == fiber->thread.linear / SC_WARP &&
        clock_of(access) <= clocks->warp[thread % SC_WARP])
      return true;
    if (clocks->far && clock_of(access) <= clocks->far[thread]) return true;
  } else if (shared) {
    return true; /* another block's, at the same address before */
  }
  return races->release_count && was_released(fiber, access);
}

/* ---- what orders threads -------------------------------------------------------------------- */

static void raise_to(uint32_t *clock, uint32_t value) {
  if (value > *clock) *clock = value;
}

/* Fences before bar.warp.sync: what each lane had behind its own, each may release afterwards. */
static void join_fences(sc_fiber *first, uint32_t lanes, int device) {
  mark joined = {0};
  for (uint32_t lane = 0; lane < SC_WARP; lane++) {
    if (!(lanes >> lane & 1) || !first[lane].clocks->fences[device].set) continue;
    const mark *fence = &first[lane].clocks->fences[device];
    joined.set = true;
    raise_to(&joined.epoch, fence->epoch);
    raise_to(&joined.warp[lane], fence->clock);
    for (int i = 0; i < SC_WARP; i++) raise_to(&joined.warp[i], fence->warp[i]);
    if (fence->before > joined.before) joined.before = fence->before;
  }
  for (uint32_t lane = 0; joined.set && lane < SC_WARP; lane++) {
    if (!(lanes >> lane & 1)) continue;
    mark *fence = &first[lane].clocks->fences[device];
    joined.clock = fence->clock;
    joined.change = fence->change + 1;
    *fence = joined;
  }
}

void sc_races_warp(sc_block *block, uint32_t warp, uint32_t lanes) {
  uint32_t known[SC_WARP] = {0};
  sc_acquired acquired = {0};
  sc_fiber *first = &block->fibers[warp * SC_WARP];
  uint32_t *far = NULL;
  for (int device = 0; device < 2; device++) join_fences(first, lanes, device);
  for (uint32_t lane = 0; lane < SC_WARP; lane++) {
    if (!(lanes >> lane & 1)) continue;
    const struct sc_clocks *clocks = first[lane].clocks;
    for (int i = 0; i < SC_WARP; i++) raise_to(&known[i], clocks->warp[i]);
    raise_to(&known[lane], clocks->clock);
    learn_all(&acquired, &clocks->acquired);
    if (clocks->far) far = clocks->far;
  }
  for (uint32_t lane = 0; lane < SC_WARP; lane++) {
    if (!(lanes >> lane & 1)) continue;
    struct sc_clocks *clocks = first[lane].clocks;
    memcpy(clocks->warp, known, sizeof known);
    clocks->acquired = acquired;
    clocks->clock++;
    if (far && clocks->far)
      for (uint32_t i = 0; i < block->grid->threads; i++) raise_to(&far[i], clocks->far[i]);
  }
  for (uint32_t lane = 0; far && lane < SC_WARP; lane++)
    if (lanes >> lane & 1 && first[lane].clocks->far && first[lane].clocks->far != far)
      memcpy(first[lane].clocks->far, far, block->grid->threads * sizeof *far);
}

/* Adds what a thread knows of the clocks of its block to `known`. */
static void tell(const sc_fiber *fiber, uint32_t *known) {
  const sc_grid *grid = fiber->block->grid;
  const struct sc_clocks *clocks = fiber->clocks;
  uint32_t first = fiber->thread.linear / SC_WARP * SC_WARP;
  for (uint32_t i = 0; i < SC_WARP && first + i < grid->threads; i++)
    raise_to(&known[first + i], clocks->warp[i]);
  for (uint32_t i = 0; clocks->far && i < grid->threads; i++) raise_to(&known[i], clocks->far[i]);
  raise_to(&known[fiber->thread.linear], clocks->clock);
}

static uint32_t *new_clocks(const sc_grid *grid) {
  sc_hold(grid->worker);
  uint32_t *made = calloc(grid->threads, sizeof *made);
  sc_let_go(grid->worker);
  return made;
}

void sc_races_arrive(sc_fiber *fiber, sc_barrier *barrier) {
  if (!barrier->released) barrier->released = new_clocks(fiber->block->grid);
  if (barrier->released) tell(fiber, barrier->released);
  fiber->clocks->clock++;
}

static bool waits_at(const sc_fiber *fiber, uint32_t number) {
  return fiber->status == SC_AT_BARRIER && fiber->barrier == number;
}

void sc_races_some(sc_block *block, uint32_t number) {
  const sc_grid *grid = block->grid;
  sc_barrier *barrier = &block->barriers[number];
  uint32_t *known = barrier->released ? barrier->released : new_clocks(grid);
  barrier->released = NULL;
  sc_acquired acquired = {0};
  for (uint32_t i = 0; known && i < grid->threads; i++) {
    if (!waits_at(&block->fibers[i], number)) continue;
    tell(&block->fibers[i], known);
    learn_all(&acquired, &block->fibers[i].clocks->acquired);
  }
  for (uint32_t i = 0; known && i < grid->threads; i++) {
    struct sc_clocks *clocks = block->fibers[i].clocks;
    if (!waits_at(&block->fibers[i], number)) continue;
    if (!clocks->far) clocks->far = new_clocks(grid);
    if (clocks->far) memcpy(clocks->far, known, grid->threads * sizeof *known);
    clocks->acquired = acquired;
    clocks->clock++;
  }
  sc_hold(grid->worker);
  free(known);
  sc_let_go(grid->worker);
}

/* Each thread writes and fences, all meet at a barrier, and one of them says so by an atomic
 * operation: the fences of the others count as done by that one, as __threadfence() was meant
 * before there was a formal model. It takes one of each thread that has written since the last
 * barrier. */
static void note_fences(sc_block *block) {
  bool any = false, all = true;
  for (uint32_t i = 0; i < block->grid->threads; i++) {
    struct sc_clocks *clocks = block->fibers[i].clocks;
    any |= clocks->fenced;
    all &= clocks->fenced || !clocks->wrote;
    clocks->fenced = clocks->wrote = false;
  }
  if (any && all) block->fenced = block->epoch;
}

void sc_races_block(sc_block *block) {
  struct sc_races *races = races_of(block->grid);
  block->epoch = ++races->epoch;
  note_fences(block);
  if (!races->release_count) return;
  for (uint32_t i = 0; i < block->grid->threads; i++) {
    sc_acquired *acquired = &block->fibers[i].clocks->acquired;
    if (acquired->all_upto || acquired->count) learn_all(&block->acquired, acquired);
  }
}

void sc_races_grid(sc_grid *grid) {
  struct sc_races *races = races_of(grid);
  races->floor = ++races->epoch;
  for (uint32_t b = 0; b < grid->live_blocks; b++) grid->blocks[b].epoch = races->epoch;
}

/* ---- launches, blocks, threads -------------------------------------------------------------- */

size_t sc_clocks_bytes(void) { return sizeof(struct sc_clocks); }

struct sc_clocks *sc_clocks_at(const sc_block *block, uint32_t linear) {
  uint64_t first = (uint64_t)(block - block->grid->blocks) * block->grid->threads;
  return (struct sc_clocks *)block->grid->worker->clocks.at + first + linear;
}

void sc_order_begin(struct sc_races *races) {
  races->floor = ++races->epoch;
  races->release_count = 0;
  clear(&races->by_place);
  clear(&races->by_block);
}

void sc_order_forget(struct sc_races *races) {
  free(races->releases);
  free(races->by_place.entries);
  free(races->by_block.entries);
}

void sc_races_begin_block(sc_block *block) {
  const sc_grid *grid = block->grid;
  struct sc_races *races = races_of(grid);
  block->epoch = ++races->epoch;
  block->fenced = 0;
  block->acquired = (sc_acquired){0};
  memset(block->written, 0, grid->window_stride / 8 + 1);
  sc_hold(grid->worker);
  for (int i = 0; i < SC_BARRIERS; i++) free(block->barriers[i].released);
  sc_let_go(grid->worker);
}

void sc_races_begin_thread(sc_fiber *fiber) {
  struct sc_clocks *clocks = fiber->clocks;
  uint32_t *far = clocks->far;
  memset(clocks, 0, sizeof *clocks);
  clocks->clock = 1;
  clocks->far = far;
  if (far) memset(far, 0, fiber->block->grid->threads * sizeof *far);
}
