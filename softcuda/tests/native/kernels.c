/* Kernels for the tests. `t->line` is what .loc would make of it. */
#include "harness.h"

#define KERNEL(name)                                                                              \
  void name(__attribute__((unused)) sc_thread *t, __attribute__((unused)) char *parameters)
#define A (((arrays *)parameters)->a)
#define B (((arrays *)parameters)->b)
#define C (((arrays *)parameters)->c)
#define FULL 0xFFFFFFFFu

/* ---- plain ---------------------------------------------------------------------------------- */

KERNEL(add) {
  uint64_t i = global_index(t);
  WRITE(t, float, C + 4 * i, READ(t, float, A + 4 * i) + READ(t, float, B + 4 * i));
}

KERNEL(halve) {
  volatile float number = READ(t, float, A);
  WRITE(t, float, C, number / 2);
}

/* Each thread notes the order in which it ran. */
KERNEL(trace) {
  uint32_t turn = ATOMIC_ADD(t, uint32_t, B, 1);
  WRITE(t, uint32_t, C + 4 * (uint64_t)turn, global_index(t));
}

KERNEL(trace_twice) {
  uint32_t turn = ATOMIC_ADD(t, uint32_t, B, 1);
  WRITE(t, uint32_t, C + 4 * (uint64_t)turn, global_index(t));
  barrier(t, 1);
  turn = ATOMIC_ADD(t, uint32_t, B, 1);
  WRITE(t, uint32_t, C + 4 * (uint64_t)turn, global_index(t));
}

KERNEL(reverse) {
  WRITE(t, float, shared(t, S + 4 * t->tid[0]), READ(t, float, A + 4 * (uint64_t)global_index(t)));
  barrier(t, 1);
  float value = READ(t, float, shared(t, S + 4 * (t->ntid[0] - 1 - t->tid[0])));
  WRITE(t, float, C + 4 * (uint64_t)global_index(t), value);
}

KERNEL(reductions_of_a_barrier) {
  uint32_t odd = t->tid[0] % 2;
  uint32_t count = t->services->barrier(t, 0, 0, SC_BARRIER_POPC, odd, 1);
  uint32_t all = t->services->barrier(t, 0, 0, SC_BARRIER_AND, odd, 2);
  uint32_t any = t->services->barrier(t, 0, 0, SC_BARRIER_OR, odd, 3);
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], count * 100 + all * 10 + any);
}

/* Warp 0 makes, warp 1 uses: barrier 1 with bar.arrive (PTX ISA, 9.7.13.1, Examples). */
KERNEL(producer) {
  uint64_t slot = shared(t, DOUBLES + 4 * (t->tid[0] % 32));
  if (t->tid[0] < 32) {
    WRITE(t, uint32_t, slot, t->tid[0] + 7);
    t->services->arrive(t, 1, 64, 1);
  } else {
    t->services->barrier(t, 1, 64, SC_BARRIER_SYNC, 0, 2);
    WRITE(t, uint32_t, C + 4 * (uint64_t)(t->tid[0] - 32), READ(t, uint32_t, slot));
  }
}

KERNEL(half_leave) {
  t->line = 5;
  if (t->tid[0] >= t->ntid[0] / 2) return;
  t->line = 7;
  barrier(t, 1);
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], 1);
}

KERNEL(grid_sum) {
  uint64_t i = global_index(t);
  WRITE(t, uint32_t, B + 4 * i, (uint32_t)i);
  t->services->grid(t, 1);
  uint32_t n = t->ntid[0] * t->nctaid[0], sum = 0;
  for (uint32_t k = 0; k < n; k++) sum += READ(t, uint32_t, B + 4 * (uint64_t)k);
  t->services->grid(t, 2);
  WRITE(t, uint32_t, C + 4 * i, sum);
}

KERNEL(yields) {
  if (t->tid[0] == 0) {
    while (!READ(t, volatile uint32_t, B)) t->services->yield(t);
    WRITE(t, uint32_t, C, 42);
  } else if (t->tid[0] == t->ntid[0] - 1) {
    WRITE(t, volatile uint32_t, B, 1);
  }
}

KERNEL(clocks) {
  uint64_t before = t->services->clock(t), after = t->services->clock(t);
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], after > before);
}

/* ---- warps ---------------------------------------------------------------------------------- */

/* One operation for each element of A: op, mask, b, c. Writes result and predicate for each
 * lane. */
KERNEL(warp_operations) {
  for (uint32_t i = 0; READ(t, uint32_t, A + 16 * (uint64_t)i) != FULL; i++) {
    const uint32_t *one = (const uint32_t *)at(t, A + 16 * (uint64_t)i, 16, SC_READ);
    if (!(one[1] >> t->tid[0] & 1)) continue;
    uint64_t value = READ(t, uint32_t, B + 4 * (uint64_t)t->tid[0]);
    sc_warp_call call = warp(t, (enum sc_warp_op)one[0], one[1], value, one[2], one[3], i);
    uint64_t out = C + 8 * (uint64_t)(i * 32 + t->tid[0]);
    WRITE(t, uint32_t, out, (uint32_t)call.result);
    WRITE(t, uint32_t, out + 4, call.predicate);
  }
}

KERNEL(active) {
  uint32_t lanes;
  if (t->tid[0] % 3 == 0) lanes = (uint32_t)warp(t, SC_ACTIVE, 0, 0, 0, 0, 1).result;
  else if (t->tid[0] % 3 == 1) lanes = (uint32_t)warp(t, SC_ACTIVE, 0, 0, 0, 0, 2).result;
  else lanes = 0;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], lanes);
}

/* Some lanes end before the others vote with the full mask: those that have ended are not
 * awaited. */
KERNEL(ended_lanes_vote) {
  if (t->tid[0] < 8) return;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0],
        (uint32_t)warp(t, SC_VOTE_BALLOT, FULL, 1, 0, 0, 1).result);
}

/* The same operation and mask in both branches: they meet. */
KERNEL(branches_meet) {
  uint32_t sum;
  if (t->tid[0] < 16) sum = (uint32_t)warp(t, SC_REDUX_ADD, FULL, 1, 0, 0, 1).result;
  else sum = (uint32_t)warp(t, SC_REDUX_ADD, FULL, 2, 0, 0, 2).result;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], sum);
}

KERNEL(never_meet) {
  t->line = 3;
  if (t->tid[0] < 16) {
    t->line = 4;
    warp(t, SC_VOTE_ANY, FULL, 1, 0, 0, 1);
  } else {
    t->line = 6;
    barrier(t, 2);
    return;
  }
  t->line = 8;
  barrier(t, 2);
}

KERNEL(not_a_member) {
  t->line = 2;
  warp(t, SC_VOTE_ANY, 0xFFFFu, 1, 0, 0, 1);
}

KERNEL(reads_an_absent_lane) {
  t->line = 2;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0],
        (uint32_t)warp(t, SC_SHUFFLE_DOWN, FULL, 100 + t->tid[0], 4, 31, 1).result);
}

/* ---- faults --------------------------------------------------------------------------------- */

KERNEL(past_the_end) {
  t->line = 12;
  if (global_index(t) == 5) WRITE(t, uint32_t, B + 64 + 8, 1);
}
KERNEL(just_past_the_end) { WRITE(t, uint32_t, B + 64, 1); }
KERNEL(before_the_beginning) { (void)READ(t, uint32_t, B - 12); }
KERNEL(across_the_end) {
  (void)READ(t, uint32_t, B + 60);
  (void)at(t, B + 48, 32, SC_READ);
}
KERNEL(nowhere) { (void)READ(t, uint32_t, (uint64_t)1 << 40); }
KERNEL(null) { (void)READ(t, uint32_t, 8); }
KERNEL(misaligned) { (void)READ(t, uint32_t, B + 6); }
KERNEL(touches_c) { (void)READ(t, uint32_t, C); }
KERNEL(writes_c) {
  (void)READ(t, uint32_t, C);
  WRITE(t, uint32_t, C, 1);
}
KERNEL(in_a_gap) { WRITE(t, uint32_t, shared(t, S + 4 * 24), 1); }
KERNEL(past_dynamic) {
  (void)READ(t, uint32_t, dynamic(t, 60));
  (void)READ(t, uint32_t, dynamic(t, 64));
}
KERNEL(past_local) {
  char *frame = t->services->enter(t, 24);
  for (int i = 0; i < 7; i++) WRITE(t, uint32_t, (uint64_t)(uintptr_t)frame + 4 * (uint64_t)i, 1);
  t->services->leave(t, frame);
}
KERNEL(after_leaving) {
  char *frame = t->services->enter(t, 24);
  WRITE(t, uint32_t, (uint64_t)(uintptr_t)frame, 1);
  t->services->leave(t, frame);
  (void)READ(t, uint32_t, (uint64_t)(uintptr_t)frame);
}
KERNEL(frames) {
  char *outer = t->services->enter(t, 100);
  WRITE(t, uint32_t, (uint64_t)(uintptr_t)outer + 96, 5 + t->tid[0]);
  char *inner = t->services->enter(t, 16);
  WRITE(t, uint32_t, (uint64_t)(uintptr_t)inner, 7);
  uint32_t sum = READ(t, uint32_t, (uint64_t)(uintptr_t)outer + 96) +
                 READ(t, uint32_t, (uint64_t)(uintptr_t)inner);
  t->services->leave(t, inner);
  barrier(t, 1);
  sum += READ(t, uint32_t, (uint64_t)(uintptr_t)outer + 96);
  t->services->leave(t, outer);
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], sum);
}

KERNEL(neighbours_frame) {
  char *frame = t->services->enter(t, 24);
  if (t->tid[0] == 0) WRITE(t, uint64_t, C, (uint64_t)(uintptr_t)frame);
  barrier(t, 1);
  uint64_t of_first = READ(t, uint64_t, C);
  WRITE(t, uint32_t, of_first, 1);
  t->services->leave(t, frame);
}

static __attribute__((noinline)) uint32_t deeper(sc_thread *t, uint32_t n) {
  volatile char frame[200];
  frame[n % 200] = (char)n;
  t->line = n;
  return n == FULL ? 0 : deeper(t, n + 1) + (uint32_t)frame[n % 200];
}
KERNEL(endless_recursion) { WRITE(t, uint32_t, C, deeper(t, 1)); }
KERNEL(endless_recursion_beside_others) {
  barrier(t, 1);
  if (t->tid[0] == 3) WRITE(t, uint32_t, C, deeper(t, 1));
  barrier(t, 2);
}
KERNEL(endless_frames) {
  while (1) t->services->enter(t, 1000);
}
KERNEL(endless_loop) {
  t->line = 9;
  for (volatile uint32_t i = 0;; i++) {
  }
}
KERNEL(endless_loop_beside_others) {
  barrier(t, 1);
  t->line = 9;
  for (volatile uint32_t i = 0; t->tid[0] == 1; i++) {
  }
  barrier(t, 2);
}
KERNEL(endless_barriers) {
  while (1) barrier(t, 1);
}
KERNEL(endless_yields) {
  while (1) t->services->yield(t);
}
KERNEL(endless_prints) {
  while (1) t->services->print(t, A, B);
}
KERNEL(two_barriers) {
  t->line = t->tid[0] ? 4 : 6;
  t->services->barrier(t, t->tid[0] ? 1 : 0, 0, SC_BARRIER_SYNC, 0, t->tid[0] ? 1 : 2);
}
KERNEL(divides) {
  volatile int one = 1, zero = 0;
  WRITE(t, int, C, one / zero);
}
KERNEL(is_illegal) {
  __builtin_trap();
}
KERNEL(traps) {
  t->line = 3;
  t->services->trap(t);
}
KERNEL(asserts) { t->services->fail(t, A, A + 16, 19, A + 32); }
KERNEL(reads_lost_memory) { WRITE(t, uint32_t, B, READ(t, uint32_t, (C + 4095) / 4096 * 4096)); }

/* ---- printing and the heap ------------------------------------------------------------------ */

/* A is the format, B the packed arguments. */
KERNEL(prints) { WRITE(t, int32_t, C, t->services->print(t, A, B)); }

KERNEL(uses_the_heap) {
  uint64_t p = t->services->take(t, 64);
  WRITE(t, uint32_t, p + 60, t->tid[0] + 1);
  uint32_t value = READ(t, uint32_t, p + 60);
  t->services->give_back(t, p);
  t->services->give_back(t, 0);
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], value);
}
KERNEL(exhausts_the_heap) {
  uint32_t blocks = 0;
  while (t->services->take(t, 1 << 20)) blocks++;
  WRITE(t, uint32_t, C, blocks);
}
KERNEL(frees_twice) {
  uint64_t p = t->services->take(t, 64);
  t->services->give_back(t, p);
  t->services->give_back(t, p);
  t->services->give_back(t, B);
}
KERNEL(uses_freed_heap) {
  uint64_t p = t->services->take(t, 64);
  WRITE(t, uint32_t, p, 1);
  t->services->give_back(t, p);
  (void)READ(t, uint32_t, p);
}

/* ---- what only the sanitizer sees ----------------------------------------------------------- */

KERNEL(reads_what_nothing_wrote) {
  t->line = 4;
  WRITE(t, uint32_t, C, READ(t, uint32_t, B + 8));
}
KERNEL(reads_shared_that_nothing_wrote) {
  if (t->tid[0] < 4) WRITE(t, uint32_t, shared(t, S + 4 * t->tid[0]), 1);
  barrier(t, 1);
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0],
        READ(t, uint32_t, shared(t, S + 4 * t->tid[0])));
}
KERNEL(reverse_without_barrier) {
  t->line = 3;
  WRITE(t, float, shared(t, S + 4 * t->tid[0]), 1);
  t->line = 4;
  float value = READ(t, float, shared(t, S + 4 * (t->ntid[0] - 1 - t->tid[0])));
  WRITE(t, float, C + 4 * (uint64_t)global_index(t), value);
}
KERNEL(neighbours_within_a_word) {
  WRITE(t, uint8_t, C + t->tid[0], 1);
  WRITE(t, uint8_t, shared(t, S + t->tid[0]), 1);
}
KERNEL(all_write_one) {
  t->line = 2;
  WRITE(t, uint32_t, C, 17);
}
KERNEL(all_write_their_own_number) {
  t->line = 2;
  WRITE(t, uint32_t, C, global_index(t));
}
KERNEL(all_add_atomically) {
  ATOMIC_ADD(t, uint32_t, C, 1);
}
KERNEL(adds_and_reads) {
  t->line = 2;
  ATOMIC_ADD(t, uint32_t, C, 1);
  t->line = 3;
  WRITE(t, uint32_t, B + 4 * (uint64_t)global_index(t), READ(t, uint32_t, C));
}
KERNEL(blocks_overlap) {
  t->line = 2;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], t->ctaid[0]);
}
KERNEL(reads_the_next) {
  uint64_t i = global_index(t), n = t->ntid[0] * t->nctaid[0];
  t->line = 3;
  uint32_t next = READ(t, uint32_t, A + 4 * ((i + 1) % n));
  t->line = 4;
  WRITE(t, uint32_t, A + 4 * i, next + 1);
}
/* Lane 0 writes, all read: ordered by what `how` says. */
static void broadcast(sc_thread *t, char *parameters, enum sc_warp_op op) {
  t->line = 2;
  if (t->tid[0] == 0) WRITE(t, uint32_t, shared(t, S), 5);
  warp(t, op, FULL, 1, 0, 0, 1);
  t->line = 4;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0], READ(t, uint32_t, shared(t, S)));
}
KERNEL(broadcast_after_syncwarp) { broadcast(t, parameters, SC_SYNC); }
KERNEL(broadcast_after_vote) { broadcast(t, parameters, SC_VOTE_ANY); }
KERNEL(syncwarp_is_for_one_warp) {
  t->line = 2;
  if (t->tid[0] == 0) WRITE(t, uint32_t, shared(t, S), 5);
  warp(t, SC_SYNC, FULL, 0, 0, 0, 1);
  t->line = 4;
  if (t->tid[0] == 40) WRITE(t, uint32_t, C, READ(t, uint32_t, shared(t, S)));
}

/* threadFenceReduction: each block writes its part, the last one to say so adds them up. */
enum { WITH_FENCE = 1, WITH_BARRIER = 2, BY_THREAD = 4 };
static void last_block(sc_thread *t, char *parameters, int how) {
  uint64_t i = global_index(t), n = t->ntid[0] * t->nctaid[0];
  t->line = 2;
  WRITE(t, uint32_t, B + 4 * i, 1);
  if (how & WITH_FENCE) t->services->fence(t, 1);
  if (how & WITH_BARRIER) barrier(t, 1);
  if (how & BY_THREAD || t->tid[0] == 0) {
    uint32_t last = how & BY_THREAD ? (uint32_t)n : t->nctaid[0];
    t->line = 5;
    uint32_t ticket = ATOMIC_ADD(t, uint32_t, C, 1);
    WRITE(t, uint32_t, shared(t, S + 4 * t->tid[0]), ticket == last - 1);
  }
  if (!(how & BY_THREAD)) barrier(t, 2);
  t->line = 9;
  uint32_t mine = how & BY_THREAD ? t->tid[0] : 0;
  if (!READ(t, uint32_t, shared(t, S + 4 * mine))) return;
  uint32_t sum = 0;
  if (t->tid[0] == 0 || how & BY_THREAD)
    for (uint64_t k = 0; k < n; k++) sum += READ(t, uint32_t, B + 4 * k);
  if (sum) WRITE(t, uint32_t, C + 4, sum);
}
KERNEL(last_block_adds) { last_block(t, parameters, WITH_FENCE | WITH_BARRIER); }
KERNEL(last_block_without_fence) { last_block(t, parameters, WITH_BARRIER); }
KERNEL(last_block_without_barrier) { last_block(t, parameters, WITH_FENCE); }
KERNEL(last_thread_adds) { last_block(t, parameters, WITH_FENCE | BY_THREAD); }

/* A lock: what is written under it is ordered by the fence before it is opened. */
static void locked(sc_thread *t, char *parameters, bool fence) {
  uint32_t open = 0;
  __atomic_compare_exchange_n((uint32_t *)at(t, C, 4, SC_READ | SC_WRITE | SC_ATOMIC), &open, 1,
                              false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  t->line = 3;
  WRITE(t, uint32_t, C + 4, READ(t, uint32_t, C + 4) + 1);
  if (fence) t->services->fence(t, 1);
  __atomic_store_n((uint32_t *)at(t, C, 4, SC_READ | SC_WRITE | SC_ATOMIC), 0, __ATOMIC_SEQ_CST);
}
KERNEL(locks) { locked(t, parameters, true); }
KERNEL(locks_without_fence) { locked(t, parameters, false); }

/* Block 0 writes, and then a flag; block 1 reads the flag, and then what was written. */
static void pass_by_flag(sc_thread *t, char *parameters, bool fence, uint32_t strong) {
  if (t->ctaid[0] == 0) {
    t->line = 2;
    WRITE(t, uint32_t, C + 4, 5);
    if (fence) t->services->fence(t, 1);
    *(uint32_t *)at(t, C, 4, SC_WRITE | strong) = 1;
  } else if (*(uint32_t *)at(t, C, 4, SC_READ | strong)) {
    t->line = 6;
    WRITE(t, uint32_t, B, READ(t, uint32_t, C + 4));
  }
}
KERNEL(passes_by_flag) { pass_by_flag(t, parameters, true, SC_ATOMIC); }
KERNEL(passes_by_flag_without_fence) { pass_by_flag(t, parameters, false, SC_ATOMIC); }
KERNEL(passes_by_plain_flag) { pass_by_flag(t, parameters, true, 0); }

/* Two warps of three meet at barrier 1. */
KERNEL(some_meet) {
  t->line = 2;
  WRITE(t, uint32_t, shared(t, DOUBLES + 4 * t->tid[0]), 1);
  if (t->tid[0] >= 64) return;
  t->services->barrier(t, 1, 64, SC_BARRIER_SYNC, 0, 1);
  t->line = 4;
  WRITE(t, uint32_t, C + 4 * (uint64_t)t->tid[0],
        READ(t, uint32_t, shared(t, DOUBLES + 4 * (63 - t->tid[0]))));
}
KERNEL(some_meet_and_one_reads_more) {
  t->line = 2;
  WRITE(t, uint32_t, shared(t, DOUBLES + 4 * t->tid[0]), 1);
  if (t->tid[0] >= 64) return;
  t->services->barrier(t, 1, 64, SC_BARRIER_SYNC, 0, 1);
  t->line = 4;
  if (t->tid[0] == 0)
    WRITE(t, uint32_t, C, READ(t, uint32_t, shared(t, DOUBLES + 4 * 70)));
}
KERNEL(barrier_in_both_branches) {
  t->line = 3;
  if (t->tid[0] % 2) {
    t->line = 4;
    barrier(t, 1);
  } else {
    t->line = 6;
    barrier(t, 2);
  }
}
