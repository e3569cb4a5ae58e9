/* Operations of all the lanes of a mask at once, and waiting.
 *
 * PTX ISA, 9.7.9.6 shfl.sync (and likewise vote.sync, match.sync, redux.sync, bar.warp.sync): the
 * executing thread waits "until all non-exited threads corresponding to membermask have executed
 * [it] with the same qualifiers and same membermask value". So lanes meet by operation and mask,
 * not by the place in the program, and lanes that have ended are not waited for.
 */
#include "sanitizer.h"
#include "waiting.h"

static uint32_t lane_of(const sc_fiber *fiber) { return fiber->thread.linear % SC_WARP; }
static uint32_t bit_of(const sc_fiber *fiber) { return 1u << lane_of(fiber); }

static sc_warp *warp_of(const sc_fiber *fiber) {
  return &fiber->block->warps[fiber->thread.linear / SC_WARP];
}

static sc_fiber *lane_at(sc_block *block, const sc_warp *warp, uint32_t lane) {
  return &block->fibers[(uint32_t)(warp - block->warps) * SC_WARP + lane];
}

static uint32_t first_lane(uint32_t mask) { return (uint32_t)__builtin_ctz(mask); }

#define EACH_LANE(lane, mask)                                                                     \
  for (uint32_t lane##_left = (mask), lane; lane##_left && (lane = first_lane(lane##_left), 1);   \
       lane##_left &= lane##_left - 1)

static const char *name_of(enum sc_warp_op op) {
  if (op == SC_SYNC) return "bar.warp.sync";
  if (op <= SC_SHUFFLE_IDX) return "shfl.sync";
  if (op <= SC_VOTE_BALLOT) return "vote.sync";
  if (op <= SC_MATCH_ALL) return "match.sync";
  if (op <= SC_REDUX_XOR) return "redux.sync";
  return op == SC_ELECT ? "elect.sync" : "activemask";
}

/* ---- what the operations compute ------------------------------------------------------------ */

/* PTX ISA, 9.7.9.6: the lane that shfl reads from; answers the predicate, that it is in range. */
static bool shuffle_source(const sc_warp_call *call, uint32_t lane, uint32_t *source) {
  uint32_t delta = call->b & 31, clamp = call->c & 31, segment = call->c >> 8 & 31;
  int highest = (int)((lane & segment) | (clamp & ~segment)), from = 0;
  switch (call->op) {
  case SC_SHUFFLE_UP: from = (int)lane - (int)delta; break;
  case SC_SHUFFLE_DOWN: from = (int)(lane + delta); break;
  case SC_SHUFFLE_BFLY: from = (int)(lane ^ delta); break;
  default: from = (int)((lane & segment) | (delta & ~segment));
  }
  bool inside = call->op == SC_SHUFFLE_UP ? from >= highest : from <= highest;
  *source = inside ? (uint32_t)from : lane;
  return inside;
}

static void report_inactive(sc_fiber *fiber, uint32_t source, uint32_t present) {
  sc_report report = sc_report_of(fiber, "warp");
  snprintf(report.text, sizeof report.text,
           "lane %u reads the value of lane %u, which does not take part in this shfl.sync (lanes "
           "0x%08x do): the value is undefined",
           lane_of(fiber), source, present);
  sc_report_once(fiber, &report, 0);
}

static void shuffle(sc_block *block, const sc_warp *warp, uint32_t present) {
  EACH_LANE(lane, present) {
    sc_fiber *fiber = lane_at(block, warp, lane);
    sc_warp_call *call = fiber->call;
    uint32_t source;
    call->predicate = shuffle_source(call, lane, &source);
    /* From an inactive lane the value is unpredictable (PTX ISA, 9.7.9.6): ours is the lane's
     * own. */
    if (!(present >> source & 1)) {
      if (block->grid->sanitize) report_inactive(fiber, source, present);
      source = lane;
    }
    call->result = lane_at(block, warp, source)->call->value;
  }
}

static void vote(sc_block *block, const sc_warp *warp, enum sc_warp_op op, uint32_t present) {
  uint32_t ballot = 0;
  EACH_LANE(lane, present)
    if (lane_at(block, warp, lane)->call->value) ballot |= 1u << lane;
  uint64_t result = ballot;
  if (op == SC_VOTE_ALL) result = ballot == present;
  if (op == SC_VOTE_ANY) result = ballot != 0;
  if (op == SC_VOTE_UNI) result = ballot == present || !ballot;
  EACH_LANE(lane, present) lane_at(block, warp, lane)->call->result = result;
}

static void match(sc_block *block, const sc_warp *warp, enum sc_warp_op op, uint32_t present) {
  EACH_LANE(lane, present) {
    sc_warp_call *call = lane_at(block, warp, lane)->call;
    uint32_t same = 0;
    EACH_LANE(other, present)
      if (lane_at(block, warp, other)->call->value == call->value) same |= 1u << other;
    bool all = same == present;
    call->result = op == SC_MATCH_ANY || all ? same : 0;
    call->predicate = all;
  }
}

static uint32_t reduce_two(enum sc_warp_op op, uint32_t a, uint32_t b) {
  switch (op) {
  case SC_REDUX_ADD: return a + b;
  case SC_REDUX_MIN_U: return a < b ? a : b;
  case SC_REDUX_MAX_U: return a > b ? a : b;
  case SC_REDUX_MIN_S: return (int32_t)a < (int32_t)b ? a : b;
  case SC_REDUX_MAX_S: return (int32_t)a > (int32_t)b ? a : b;
  case SC_REDUX_AND: return a & b;
  case SC_REDUX_OR: return a | b;
  default: return a ^ b;
  }
}

static void reduce(sc_block *block, const sc_warp *warp, enum sc_warp_op op, uint32_t present) {
  uint32_t first = first_lane(present);
  uint32_t result = (uint32_t)lane_at(block, warp, first)->call->value;
  EACH_LANE(lane, present & ~(1u << first))
    result = reduce_two(op, result, (uint32_t)lane_at(block, warp, lane)->call->value);
  EACH_LANE(lane, present) lane_at(block, warp, lane)->call->result = result;
}

static void elect(sc_block *block, const sc_warp *warp, uint32_t present) {
  EACH_LANE(lane, present) {
    sc_warp_call *call = lane_at(block, warp, lane)->call;
    call->result = first_lane(present);
    call->predicate = lane == first_lane(present);
  }
}

/* ---- meeting -------------------------------------------------------------------------------- */

/* All lanes that come are here: computes their results and lets them go on. */
static void finish(sc_block *block, sc_warp *warp, sc_group *group) {
  enum sc_warp_op op = group->op;
  uint32_t present = group->arrived;
  *group = warp->groups[--warp->group_count];
  if (op >= SC_SHUFFLE_UP && op <= SC_SHUFFLE_IDX) shuffle(block, warp, present);
  if (op >= SC_VOTE_ALL && op <= SC_VOTE_BALLOT) vote(block, warp, op, present);
  if (op == SC_MATCH_ANY || op == SC_MATCH_ALL) match(block, warp, op, present);
  if (op >= SC_REDUX_ADD && op <= SC_REDUX_XOR) reduce(block, warp, op, present);
  if (op == SC_ELECT) elect(block, warp, present);
  /* Only bar.warp.sync orders memory (PTX ISA, 9.7.13.2); of the others the Guide says that they
   * "do not imply a memory barrier" (Warp Shuffle Functions, Warp Vote Functions). */
  if (op == SC_SYNC && block->grid->sanitize)
    sc_races_warp(block, (uint32_t)(warp - block->warps), present);
  EACH_LANE(lane, present) sc_wake(lane_at(block, warp, lane));
}

static void finish_if_met(sc_block *block, sc_warp *warp, sc_group *group) {
  uint32_t awaited = group->mask & warp->alive;
  if ((group->arrived & awaited) == awaited) finish(block, warp, group);
}

static sc_group *join_group(sc_warp *warp, const sc_warp_call *call, uint32_t bit) {
  sc_group *group = warp->groups, *end = group + warp->group_count;
  while (group < end && (group->op != call->op || group->mask != call->mask)) group++;
  if (group == end) {
    warp->group_count++;
    *group = (sc_group){.op = call->op, .mask = call->mask};
  }
  group->arrived |= bit;
  return group;
}

/* activemask (PTX ISA, 9.7.13.6) promises no more than the lanes that happen to be together. Ours
 * is as of a warp in lock step: when no lane can go on by itself, those at the same place are
 * active. */
static void answer_active(sc_block *block, sc_warp *warp) {
  uint32_t lanes = 0, site = 0;
  EACH_LANE(lane, warp->alive) {
    const sc_fiber *fiber = lane_at(block, warp, lane);
    if (fiber->status != SC_AT_WARP || fiber->call->op != SC_ACTIVE) continue;
    if (!lanes) site = fiber->site;
    if (fiber->site == site) lanes |= 1u << lane;
  }
  EACH_LANE(lane, lanes) {
    sc_fiber *fiber = lane_at(block, warp, lane);
    fiber->call->result = lanes;
    sc_wake(fiber);
  }
}

static void report_not_member(sc_fiber *fiber, const sc_warp_call *call) {
  sc_report report = sc_report_of(fiber, "warp");
  snprintf(report.text, sizeof report.text,
           "lane %u executes %s with the mask 0x%08x, which does not name it", lane_of(fiber),
           name_of(call->op), call->mask);
  sc_report_once(fiber, &report, 0);
}

void sc_warp_call_run(sc_thread *thread, sc_warp_call *call, uint32_t site) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_warp *warp = warp_of(fiber);
  if (fiber->clocks) sc_races_settle(fiber);
  fiber->call = call;
  sc_begin_wait(fiber, SC_AT_WARP, site);
  if (call->op != SC_ACTIVE) {
    /* "The behavior ... is undefined if the executing thread is not in the membermask." */
    if (!(call->mask & bit_of(fiber))) report_not_member(fiber, call);
    call->mask |= bit_of(fiber);
    finish_if_met(fiber->block, warp, join_group(warp, call, bit_of(fiber)));
  }
  sc_sleep(fiber);
}

/* ---- waiting -------------------------------------------------------------------------------- */

void sc_begin_wait(sc_fiber *fiber, enum sc_status status, uint32_t site) {
  fiber->status = status;
  fiber->site = site;
  warp_of(fiber)->runnable--;
}

void sc_sleep(sc_fiber *fiber) {
  sc_warp_goes_on(fiber);
  sc_fiber_suspend(fiber);
}

void sc_wake(sc_fiber *fiber) {
  fiber->status = SC_RUNNABLE;
  warp_of(fiber)->runnable++;
}

void sc_warp_left(sc_fiber *fiber) {
  sc_block *block = fiber->block;
  sc_warp *warp = warp_of(fiber);
  warp->alive &= ~bit_of(fiber);
  warp->runnable--;
  for (int i = warp->group_count - 1; i >= 0; i--) finish_if_met(block, warp, &warp->groups[i]);
}

void sc_warp_goes_on(sc_fiber *fiber) {
  sc_warp *warp = warp_of(fiber);
  if (!warp->runnable) answer_active(fiber->block, warp);
}

static const char *place_of(const sc_fiber *fiber) {
  switch (fiber->status) {
  case SC_AT_BARRIER: return "waits at a barrier of the block";
  case SC_AT_GRID: return "waits at the barrier of the grid";
  default: return "waits for other lanes";
  }
}

static void report_stuck(sc_block *block, sc_warp *warp, const sc_group *group) {
  sc_fiber *fiber = lane_at(block, warp, first_lane(group->arrived));
  uint32_t missing = group->mask & warp->alive & ~group->arrived;
  const sc_fiber *other = lane_at(block, warp, first_lane(missing));
  sc_report report = sc_report_of(fiber, "warp");
  sc_report_other(&report, other);
  snprintf(report.text, sizeof report.text,
           "lane %u waits in %s for the lanes 0x%08x, of which 0x%08x never come: lane %u %s "
           "(line %u)",
           lane_of(fiber), name_of(group->op), group->mask, missing, lane_of(other),
           place_of(other), other->thread.line);
  sc_report_once(fiber, &report, 0);
}

bool sc_warps_unstick(sc_grid *grid) {
  for (uint32_t b = 0; b < grid->live_blocks; b++) {
    sc_block *block = &grid->blocks[b];
    for (sc_warp *warp = block->warps; warp < block->warps + grid->warps; warp++) {
      if (!warp->group_count) continue;
      report_stuck(block, warp, &warp->groups[0]);
      finish(block, warp, &warp->groups[0]);
      return true;
    }
  }
  return false;
}
