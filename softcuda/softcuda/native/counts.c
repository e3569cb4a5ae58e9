/* Counts what warps do (SOFTCUDA_COUNT).
 *
 * Threads run one after the other here, so each leaves a trace: the basic blocks that it goes
 * through and the addresses that it touches. The traces of a warp are then followed together, as a
 * warp executes: lanes that are together and go to the same block execute it at once; lanes that
 * part at the end of a block go on in groups, and meet again in its immediate postdominator. The
 * groups are independent of each other, so that none waits for the trace of another.
 *
 * A trace has a fixed size. A thread whose trace is full waits until the other lanes have come as
 * far (sc_counts_trace), so that memory is bounded however long threads run. Basic blocks end where
 * threads may wait (counting.py), so that a trace is complete whenever it is followed.
 */
#include "counts.h"
#include "facts.h"
#include "options.h"
#include "reports.h"
#include "sanitizer.h"

#include <dlfcn.h>

enum {
  MAX_BLOCKS = 1024,   /* of the trace of a lane */
  MIN_BLOCKS = 64,
  MAX_GROUPS = 4 * SC_WARP, /* see struct group */
  MIN_AHEAD = 8,
  PATIENCE = 64,       /* passes without progress after which a trace may grow */
};
/* Of all traces of a launch, where that leaves MIN_BLOCKS to each. */
static const size_t MAX_TRACE_BYTES = (size_t)64 << 20;

typedef struct lane {
  uint32_t *blocks;
  uint64_t *places;
  uint32_t block_room, place_room;
  uint32_t block_count, place_count; /* written; of a thread that runs, its trace has them */
  uint32_t block_at, place_at;       /* followed */
  uint64_t local;                    /* where its local memory begins; 0: it has none */
  sc_thread *thread;                 /* NULL before it begins and when it has ended */
  void *grown;                       /* memory of its own, for a trace that had to grow */
} lane;

/* Lanes that are together. Where they part, the group waits in the block `meets` of its children
 * for those, and `mask` has the lanes that came there.
 *
 * There are at most 128: each group that goes on has a lane, and so has each that waits with lanes;
 * of the others each has two children, or lost one whose lanes ended. */
typedef struct group {
  bool used;
  uint32_t children; /* 0: it goes on */
  int parent;        /* -1: none */
  uint32_t mask;
  uint32_t last;     /* the block that it executed last */
  uint32_t parted;   /* the block at whose end its lanes left others; SC_NO_BLOCK: they are all */
  uint32_t of;       /* how many lanes came there */
  uint32_t ahead;    /* blocks to compare at once: few after lanes have parted */
  uint32_t meets;    /* where it joins its parent */
  int32_t depth, meets_depth; /* calls of functions around it, and around `meets` */
} group;

typedef struct warp {
  lane lanes[SC_WARP];
  uint32_t number; /* in its block */
  int top; /* groups beyond are not used */
  group groups[MAX_GROUPS];
} warp;

typedef struct of_block {
  uint64_t warps, lanes, divergent;
  uint64_t waited; /* lanes that part at its end: instructions of others until they meet */
} of_block;

/* A block of threads that is under way. */
typedef struct live_block {
  uint64_t number; /* in the grid, and 1 */
  uint64_t instructions;
} live_block;

struct sc_counts {
  warp *warps;
  size_t warp_count;
  uint32_t warps_of_block; /* how many of them a block has: all, or one for all in turn */
  of_block *of_blocks;
  sums (*of_accesses)[SC_SPACES];
  live_block *live;
  uint64_t busiest; /* instructions of the block that executes most */
  struct sc_facts facts;
  uint32_t idle_passes; /* since a lane got on otherwise than by waiting */
  bool failed;          /* no memory: the counts are not complete */
  struct sc_pool warp_pool, trace_pool, block_pool, access_pool, live_pool;
};

/* ---- traces --------------------------------------------------------------------------------- */

static uint32_t count_lanes(const sc_grid *grid, uint32_t number) {
  uint32_t left = grid->threads - number * SC_WARP;
  return left < SC_WARP ? left : SC_WARP;
}

/* Where the warps of a block run one after another, all of them use the same memory. */
static warp *warp_of(const sc_block *block, uint32_t number) {
  const sc_counts *counts = block->grid->counts;
  if (counts->warps_of_block == 1) number = 0;
  return &counts->warps[(size_t)(block - block->grid->blocks) * counts->warps_of_block + number];
}

static lane *lane_of(const sc_fiber *fiber) {
  uint32_t linear = fiber->thread.linear;
  return &warp_of(fiber->block, linear / SC_WARP)->lanes[linear % SC_WARP];
}

static void give_trace(lane *l) {
  l->thread->trace = (sc_trace){l->blocks + l->block_count, l->blocks + l->block_room,
                                l->places + l->place_count, l->places + l->place_room};
}

static void take_trace(lane *l) {
  l->block_count = (uint32_t)(l->thread->trace.block - l->blocks);
  l->place_count = (uint32_t)(l->thread->trace.place - l->places);
  l->local = (uint64_t)(uintptr_t)l->thread->local;
}

/* Moves what was not followed yet to the beginning. */
static void keep_rest(lane *l) {
  uint32_t blocks = l->block_count - l->block_at, places = l->place_count - l->place_at;
  if (l->block_at && blocks)
    memmove(l->blocks, l->blocks + l->block_at, blocks * sizeof *l->blocks);
  if (l->place_at && places)
    memmove(l->places, l->places + l->place_at, places * sizeof *l->places);
  l->block_count = blocks;
  l->place_count = places;
  l->block_at = l->place_at = 0;
}

void sc_counts_begin_thread(sc_fiber *fiber) {
  lane *l = lane_of(fiber);
  l->block_count = l->place_count = l->block_at = l->place_at = 0;
  l->thread = &fiber->thread;
  give_trace(l);
}

void sc_counts_end_thread(sc_fiber *fiber) {
  lane *l = lane_of(fiber);
  take_trace(l);
  l->thread = NULL;
}

static bool has_room(const lane *l, uint32_t places) {
  return l->block_count < l->block_room && places <= l->place_room - l->place_count;
}

/* Doubles a trace. */
static void grow(sc_fiber *fiber, lane *l) {
  sc_counts *counts = fiber->block->grid->counts;
  size_t blocks = 2 * (size_t)l->block_room, places = 2 * (size_t)l->place_room;
  sc_hold(sc_worker_of(fiber));
  char *made = malloc(places * sizeof *l->places + blocks * sizeof *l->blocks);
  if (made) {
    uint64_t *to = (uint64_t *)made;
    memcpy(to, l->places, l->place_count * sizeof *to);
    memcpy(to + places, l->blocks, l->block_count * sizeof *l->blocks);
    free(l->grown);
    l->grown = made;
    l->places = to;
    l->blocks = (uint32_t *)(to + places);
    l->block_room = (uint32_t)blocks;
    l->place_room = (uint32_t)places;
  } else {
    counts->failed = true;
    l->block_count = l->place_count = 0;
  }
  sc_let_go(sc_worker_of(fiber));
}

/* Waits until the trace has room. The other lanes get on meanwhile. Should all of them wait for
 * what this one does, as where lanes hand a value to others of their warp by global memory, the
 * trace grows. */
void sc_counts_trace(sc_thread *thread, uint32_t places) {
  sc_fiber *fiber = sc_fiber_of(thread);
  const sc_grid *grid = fiber->block->grid;
  lane *l = lane_of(fiber);
  if (fiber->clocks) sc_races_settle(fiber);
  for (bool waited = false;; waited = true) {
    take_trace(l);
    if (grid->kernel->waits) sc_counts_warp(fiber->block, thread->linear / SC_WARP);
    if (has_room(l, places)) break;
    if (grid->counts->failed || grid->counts->idle_passes > PATIENCE) {
      grow(fiber, l);
      if (has_room(l, places)) break;
    }
    give_trace(l);
    fiber->idle = waited;
    sc_fiber_suspend(fiber);
  }
  give_trace(l);
}

void sc_counts_pass(sc_grid *grid, bool idle) {
  grid->counts->idle_passes = idle ? grid->counts->idle_passes + 1 : 0;
}

/* ---- a request of a warp -------------------------------------------------------------------- */

static enum sc_code_space space_of(const sc_block *block, const lane *l, uint64_t address) {
  if (address - (uint64_t)(uintptr_t)block->window < block->grid->window_bytes)
    return SC_IN_SHARED;
  return l->local && address - l->local < SC_LOCAL_ROOM ? SC_IN_LOCAL : SC_IN_GLOBAL;
}

static void count_request(const sc_block *block, uint32_t number, const request *one,
                          enum sc_code_space space) {
  sc_counts *counts = block->grid->counts;
  sums *sum = &counts->of_accesses[number][space];
  uint64_t passes = sum->passes, ideal = sum->ideal;
  sc_add_request(sum, one, &block->grid->module->accesses[number], space);
  sc_facts_add(&counts->facts, block, number, one, space, sum->passes - passes,
               sum->ideal - ideal);
}

static void count_off(const sc_block *block, uint32_t number, const request *all) {
  for (uint32_t i = 0; i < all->count; i++)
    block->grid->counts->facts.off[number] += !all->places[i];
}

/* Adds the lanes of `all` that do an access in one space. */
static void count_some(const sc_block *block, const lane *lanes, uint32_t number,
                       const request *all, enum sc_code_space space) {
  const sc_code_access *access = &block->grid->module->accesses[number];
  uint64_t window = (uint64_t)(uintptr_t)block->window;
  request one;
  one.count = 0;
  one.warp = all->warp;
  for (uint32_t i = 0; i < all->count; i++) {
    const lane *l = &lanes[all->lanes[i]];
    uint64_t place = all->places[i];
    if (!place) continue; /* its guard is off */
    if (access->space == SC_IN_ANY && space_of(block, l, place) != space) continue;
    one.lanes[one.count] = all->lanes[i];
    one.places[one.count++] =
        space == SC_IN_SHARED ? place - window : space == SC_IN_LOCAL ? place - l->local : place;
  }
  if (one.count) count_request(block, number, &one, space);
}

/* Lanes may use one instruction for several spaces, where it takes generic addresses. */
static void count_access(const sc_block *block, const lane *lanes, uint32_t number,
                         const request *all) {
  const sc_code_access *access = &block->grid->module->accesses[number];
  if (access->guarded) count_off(block, number, all);
  if (access->space == SC_IN_GLOBAL && !access->guarded) {
    count_request(block, number, all, SC_IN_GLOBAL);
  } else if (access->space != SC_IN_ANY) {
    count_some(block, lanes, number, all, access->space);
  } else {
    for (enum sc_code_space space = SC_IN_GLOBAL; space <= SC_IN_LOCAL; space++)
      count_some(block, lanes, number, all, space);
  }
}

/* ---- groups of a warp ----------------------------------------------------------------------- */

static int add_group(warp *w, group made) {
  int at = 0;
  while (at < w->top && w->groups[at].used) at++;
  if (at == MAX_GROUPS) return -1;
  if (at == w->top) w->top++;
  w->groups[at] = made;
  w->groups[at].used = true;
  return at;
}

/* A group is no more: its lanes have joined its parent, or have ended. */
static void end_group(warp *w, int at) {
  while (at >= 0) {
    group *g = &w->groups[at];
    if (g->children || g->mask) return;
    g->used = false;
    at = g->parent;
    if (at >= 0) w->groups[at].children--;
  }
  while (w->top && !w->groups[w->top - 1].used) w->top--;
}

static void join_parent(warp *w, int at) {
  group *g = &w->groups[at];
  w->groups[g->parent].mask |= g->mask;
  g->mask = 0;
  end_group(w, at);
}

#define EACH(l, mask)                                                                             \
  for (uint32_t l##_left = (mask), l; l##_left && (l = (uint32_t)__builtin_ctz(l##_left), 1);     \
       l##_left &= l##_left - 1)

static uint32_t next_of(const lane *l) { return l->blocks[l->block_at]; }

/* Lanes of a group go to different blocks. */
static void part(sc_block *block, warp *w, lane *lanes, int at) {
  sc_counts *counts = block->grid->counts;
  group before = w->groups[at];
  const sc_code_block *code = &block->grid->module->blocks[before.last];
  counts->of_blocks[before.last].divergent++;
  bool nested = code->meets != SC_NO_BLOCK &&
                (before.meets != code->meets || before.meets_depth != before.depth);
  group child = before;
  child.ahead = MIN_AHEAD;
  if (nested || before.parted == SC_NO_BLOCK) child.of = (uint32_t)__builtin_popcount(before.mask);
  child.parted = before.last;
  if (nested) {
    child = (group){.parent = at, .last = before.last, .ahead = MIN_AHEAD, .meets = code->meets,
                    .parted = child.parted, .of = child.of, .depth = before.depth,
                    .meets_depth = before.depth};
    w->groups[at].mask = 0;
  } else {
    w->groups[at].mask = 0;
    w->groups[at].used = false;
    if (before.parent >= 0) w->groups[before.parent].children--;
  }
  for (uint32_t left = before.mask; left;) {
    uint32_t next = next_of(&lanes[__builtin_ctz(left)]);
    child.mask = 0;
    EACH(l, left) if (next_of(&lanes[l]) == next) child.mask |= 1u << l;
    left &= ~child.mask;
    bool has_come = child.parent >= 0 && next == child.meets && child.depth == child.meets_depth;
    if (has_come) {
      w->groups[child.parent].mask |= child.mask;
    } else {
      if (child.parent >= 0) w->groups[child.parent].children++;
      if (add_group(w, child) < 0) counts->failed = true;
    }
  }
}

/* How many blocks the lanes of a group go through together from here on; -1 where a lane has to
 * run first. Lanes that have ended leave the group. */
static int64_t count_together(group *g, const lane *lanes) {
  uint32_t together = g->ahead;
  EACH(l, g->mask) {
    const lane *one = &lanes[l];
    uint32_t left = one->block_count - one->block_at;
    if (!left && one->thread) return -1;
    if (!left) g->mask &= ~(1u << l);
    else if (left < together) together = left;
  }
  if (!g->mask) return 0;
  const lane *lead = &lanes[__builtin_ctz(g->mask)];
  const uint32_t *way = lead->blocks + lead->block_at;
  EACH(l, g->mask & (g->mask - 1)) {
    const uint32_t *other = lanes[l].blocks + lanes[l].block_at;
    if (!memcmp(way, other, together * sizeof *way)) continue;
    uint32_t same = 0;
    while (way[same] == other[same]) same++;
    together = same;
  }
  g->ahead = together < g->ahead ? MIN_AHEAD : 2 * g->ahead;
  if (g->ahead > MAX_BLOCKS) g->ahead = MAX_BLOCKS;
  return together;
}

/* Adds lanes that wait while others execute instructions, to the branches where they parted. */
static void count_waiting(sc_counts *counts, const warp *w, const group *g, uint32_t lanes,
                          uint64_t instructions) {
  for (; g->parted != SC_NO_BLOCK; g = &w->groups[g->parent]) {
    counts->of_blocks[g->parted].waited += (g->of - lanes) * instructions;
    lanes = g->of;
    if (g->parent < 0) break;
  }
}

static void count_of_block(const sc_block *block, uint64_t instructions) {
  sc_counts *counts = block->grid->counts;
  live_block *one = &counts->live[block - block->grid->blocks];
  if (one->number != block->linear + 1) *one = (live_block){.number = block->linear + 1};
  one->instructions += instructions;
  if (one->instructions > counts->busiest) counts->busiest = one->instructions;
}

/* Executes at most `together` blocks, up to where the group joins its parent; answers how many. */
static uint32_t execute(sc_block *block, const warp *w, group *g, lane *lanes, uint32_t together) {
  const sc_module *module = block->grid->module;
  sc_counts *counts = block->grid->counts;
  const uint64_t *of_lanes[SC_WARP];
  uint8_t first = (uint8_t)__builtin_ctz(g->mask);
  request one;
  one.count = 0;
  one.warp = w->number;
  EACH(l, g->mask) {
    of_lanes[one.count] = lanes[l].places + lanes[l].place_at;
    one.lanes[one.count++] = (uint8_t)l;
  }
  const lane *lead = &lanes[first];
  const uint32_t *way = lead->blocks + lead->block_at;
  uint32_t done = 0, places = 0;
  uint64_t instructions = 0;
  for (; done < together; done++) {
    uint32_t number = way[done];
    if (number == g->meets && g->depth == g->meets_depth) break;
    const sc_code_block *code = &module->blocks[number];
    counts->of_blocks[number].warps++;
    counts->of_blocks[number].lanes += one.count;
    count_waiting(counts, w, g, one.count, code->instructions);
    instructions += code->instructions;
    for (uint32_t i = 0; i < code->count; i++, places++) {
      for (uint32_t k = 0; k < one.count; k++) one.places[k] = of_lanes[k][places];
      count_access(block, lanes, code->first + i, &one);
    }
    g->depth += code->depth;
    g->last = number;
  }
  for (uint32_t k = 0; k < one.count; k++) {
    lanes[one.lanes[k]].block_at += done;
    lanes[one.lanes[k]].place_at += places;
  }
  count_of_block(block, instructions);
  return done;
}

/* Lets a group get on; false where it has to wait for a lane to run. */
static bool advance(sc_block *block, warp *w, lane *lanes, int at) {
  group *g = &w->groups[at];
  int64_t together = count_together(g, lanes);
  if (together < 0) return false;
  if (!g->mask) end_group(w, at);
  else if (!together) part(block, w, lanes, at);
  else if (!execute(block, w, g, lanes, (uint32_t)together)) join_parent(w, at);
  return true;
}

void sc_counts_begin_warp(sc_block *block, uint32_t number) {
  uint32_t lanes = count_lanes(block->grid, number);
  uint32_t mask = lanes == SC_WARP ? UINT32_MAX : (1u << lanes) - 1;
  warp *w = warp_of(block, number);
  w->top = 0;
  w->number = number;
  add_group(w, (group){.parent = -1, .mask = mask, .last = SC_NO_BLOCK, .parted = SC_NO_BLOCK,
                       .ahead = MAX_BLOCKS, .meets = SC_NO_BLOCK});
}

void sc_counts_warp(sc_block *block, uint32_t number) {
  const sc_counts *counts = block->grid->counts;
  uint32_t count = count_lanes(block->grid, number);
  warp *w = warp_of(block, number);
  lane *lanes = w->lanes;
  for (uint32_t i = 0; i < count; i++)
    if (lanes[i].thread) take_trace(&lanes[i]);
  bool moved = !counts->failed;
  while (moved) {
    moved = false;
    for (int at = 0; at < w->top; at++)
      while (w->groups[at].used && !w->groups[at].children && advance(block, w, lanes, at))
        moved = true;
  }
  for (uint32_t i = 0; i < count; i++) {
    keep_rest(&lanes[i]);
    if (lanes[i].thread) give_trace(&lanes[i]);
  }
}

void sc_counts_block(sc_block *block) {
  for (uint32_t i = 0; i < block->grid->warps; i++) sc_counts_warp(block, i);
}

/* ---- a launch ------------------------------------------------------------------------------- */

/* Gives each lane its trace; false: no memory. */
static bool place_traces(sc_counts *counts, uint32_t widest) {
  size_t lanes = counts->warp_count * SC_WARP;
  size_t blocks = 2 * MAX_BLOCKS, places, each;
  do {
    blocks /= 2;
    places = blocks > 2 * (size_t)widest ? blocks : 2 * (size_t)widest;
    each = (places * sizeof(uint64_t) + blocks * sizeof(uint32_t) + 63) / 64 * 64;
    /* Traces a whole number of pages apart would all compete for the same lines of a cache. */
    each += each / 64 % 2 ? 0 : 64;
  } while (blocks > MIN_BLOCKS && lanes * each > MAX_TRACE_BYTES);
  char *at = sc_pool_take(&counts->trace_pool, lanes * each, false);
  for (size_t i = 0; at && i < lanes; i++, at += each)
    counts->warps[i / SC_WARP].lanes[i % SC_WARP] = (lane){.places = (uint64_t *)at,
                              .blocks = (uint32_t *)(at + places * sizeof(uint64_t)),
                              .block_room = (uint32_t)blocks, .place_room = (uint32_t)places};
  return at;
}

bool sc_counts_begin(sc_grid *grid) {
  sc_worker *worker = grid->worker;
  const sc_module *module = grid->module;
  sc_counts *counts = worker->counts;
  if (!counts) counts = worker->counts = calloc(1, sizeof *counts);
  if (!counts) return false;
  bool together = grid->kernel->waits || grid->order == SC_PERMUTED;
  counts->warps_of_block = together ? grid->warps : 1;
  counts->warp_count = (size_t)grid->live_blocks * counts->warps_of_block;
  counts->idle_passes = 0;
  counts->failed = false;
  counts->busiest = 0;
  size_t blocks = module->block_count, accesses = module->access_count;
  counts->warps =
      sc_pool_take(&counts->warp_pool, counts->warp_count * sizeof *counts->warps, false);
  counts->of_blocks =
      sc_pool_take(&counts->block_pool, blocks * sizeof *counts->of_blocks, true);
  counts->of_accesses =
      sc_pool_take(&counts->access_pool, (accesses + 1) * sizeof *counts->of_accesses, true);
  counts->live =
      sc_pool_take(&counts->live_pool, grid->live_blocks * sizeof *counts->live, true);
  if (!counts->warps || !counts->of_blocks || !counts->of_accesses || !counts->live) return false;
  if (!place_traces(counts, module->widest) || !sc_facts_begin(&counts->facts, grid)) return false;
  grid->counts = counts;
  return true;
}

static void forget_grown(sc_counts *counts) {
  for (size_t i = 0; i < counts->warp_count; i++)
    for (int l = 0; l < SC_WARP; l++) free(counts->warps[i].lanes[l].grown);
}

void sc_counts_forget(sc_worker *worker) {
  sc_counts *counts = worker->counts;
  if (!counts) return;
  free(counts->warp_pool.at);
  free(counts->trace_pool.at);
  free(counts->block_pool.at);
  free(counts->access_pool.at);
  free(counts->live_pool.at);
  sc_facts_forget(&counts->facts);
  free(counts);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Lines of JSON, one for each launch, until they are asked for. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *lines;
static const char NOT_COMPILED[] =
    "its module was loaded before counting was asked for; load it afterwards";
static char *text;
static size_t text_bytes;
/* Of what nobody asks for: as much as tens of thousands of launches take. */
static const long MAX_TEXT_BYTES = (long)256 << 20;
static const char NO_ROOM[] = "too many launches before it have counts that were not asked for";

static void write_numbers(FILE *out, const uint64_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++)
    fprintf(out, "%s%llu", i ? ", " : "[", (unsigned long long)numbers[i]);
  fputc(']', out);
}

static void write_blocks(FILE *out, const sc_grid *grid) {
  const char *comma = "";
  for (uint32_t i = 0; i < grid->module->block_count; i++) {
    const of_block *one = &grid->counts->of_blocks[i];
    if (!one->warps) continue;
    fputs(comma, out);
    write_numbers(out, (uint64_t[]){i, one->warps, one->lanes, one->divergent, one->waited}, 5);
    comma = ", ";
  }
}

static void write_known(FILE *out, const known *one) {
  if (one->state == SC_FIXED) fprintf(out, "%lld, ", (long long)one->value);
  else fputs(one->state == SC_VARIES ? "\"varies\", " : "null, ", out);
}

static void write_facts(FILE *out, const facts *one) {
  fputc('[', out);
  write_known(out, &one->step_x);
  write_known(out, &one->step_y);
  write_known(out, &one->pitch);
  fprintf(out, "%llu, %llu, %llu, %llu, %llu]", (unsigned long long)one->uniform,
          (unsigned long long)one->padded, (unsigned long long)one->all.count,
          (unsigned long long)one->by_block.count, (unsigned long long)one->uneven);
}

static void write_off(FILE *out, const sc_grid *grid) {
  const char *comma = "";
  for (uint32_t i = 0; i < grid->module->access_count; i++) {
    if (!grid->counts->facts.off[i]) continue;
    fputs(comma, out);
    write_numbers(out, (uint64_t[]){i, grid->counts->facts.off[i]}, 2);
    comma = ", ";
  }
}

static void write_accesses(FILE *out, const sc_grid *grid) {
  const char *comma = "";
  for (uint32_t i = 0; i < grid->module->access_count; i++) {
    for (uint32_t space = 0; space < SC_SPACES; space++) {
      const sums *one = &grid->counts->of_accesses[i][space];
      if (!one->requests) continue;
      fprintf(out, "%s[", comma);
      write_numbers(out, (uint64_t[]){i, space, one->requests, one->lanes, one->passes,
                                      one->ideal, one->same}, 7);
      fputs(", ", out);
      write_facts(out, &grid->counts->facts.of_accesses[i][space]);
      fputc(']', out);
      comma = ", ";
    }
  }
}

/* `grid`: NULL where the launch has no counts. */
static void write_launch(FILE *out, const sc_launch *launch, const sc_grid *grid,
                         const char *missing) {
  const sc_module *module = launch->function->library->module;
  const uint32_t *g = launch->grid, *b = launch->block;
  Dl_info library;
  fputs("{\"kernel\": ", out);
  sc_write_string(out, launch->function->kernel->name);
  fprintf(out, ", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u]", g[0], g[1], g[2], b[0], b[1],
          b[2]);
  fprintf(out, ", \"shared_bytes\": %u, \"capability\": %d",
          module->shared_bytes + launch->dynamic_shared, sc_option.capability);
  fputs(", \"library\": ", out);
  sc_write_string(out, dladdr(module, &library) ? library.dli_fname : "");
  if (missing) {
    fputs(", \"missing\": ", out);
    sc_write_string(out, missing);
  }
  if (grid) {
    fputs(", \"blocks\": [", out);
    write_blocks(out, grid);
    fputs("], \"accesses\": [", out);
    write_accesses(out, grid);
    fputs("], \"off\": [", out);
    write_off(out, grid);
    fprintf(out, "], \"loaded\": %llu, \"busiest\": %llu",
            (unsigned long long)grid->counts->facts.loaded.count,
            (unsigned long long)grid->counts->busiest);
  }
  fputs("}\n", out);
}

static void keep(const sc_launch *launch, const sc_grid *grid, const char *missing) {
  if (!sc_option.count) return;
  pthread_mutex_lock(&lock);
  if (!lines) lines = open_memstream(&text, &text_bytes);
  if (lines && grid && ftell(lines) > MAX_TEXT_BYTES) {
    grid = NULL;
    missing = NO_ROOM;
  }
  if (lines) write_launch(lines, launch, grid, missing);
  pthread_mutex_unlock(&lock);
}

void sc_counts_end(sc_grid *grid) {
  struct sc_facts *facts = &grid->counts->facts;
  forget_grown(grid->counts);
  sc_facts_settle(facts, grid);
  bool failed = grid->counts->failed || facts->failed;
  if (!grid->error) /* else sc_counts_missing */
    keep(grid->launch, failed ? NULL : grid, failed ? "there was no memory for what it did" : NULL);
  sc_facts_end(facts, grid);
}

void sc_counts_absent(const sc_launch *launch) {
  bool compiled = launch->function->library->module->blocks;
  keep(launch, NULL, compiled ? NULL : NOT_COMPILED);
}

void sc_counts_missing(const sc_launch *launch, CUresult error) {
  char why[128];
  snprintf(why, sizeof why, "the launch ended with %s", sc_error_name(error));
  keep(launch, NULL, why);
}

size_t softcuda_counts(char *out, size_t room) {
  pthread_mutex_lock(&lock);
  if (lines) fflush(lines);
  size_t bytes = lines ? text_bytes : 0;
  if (lines && bytes <= room) {
    memcpy(out, text, bytes);
    fclose(lines);
    free(text);
    lines = NULL;
    text = NULL;
  }
  pthread_mutex_unlock(&lock);
  return bytes;
}
