/* What races.c and order.c share: how an access is remembered, and what is known of its order.
 *
 * Each access is told by its thread, the block's epoch (a number that grows at every barrier) and
 * the thread's clock (which grows at everything else that orders).
 */
#pragma once
#include "sanitizer.h"

enum { SC_BUCKETS = 1 << 13, SC_WIDEST = 32 }; /* of pages; bytes of the widest access */

/* An access: `who` is block, thread, whether atomic, whether there is one at all, line; `when` is
 * the thread's clock and the number of the file. 16 bytes, since there are three for each word. */
typedef struct record {
  uint64_t who;
  uint32_t epoch, when;
} record;

#define SC_PRESENT ((uint64_t)1 << 20)
#define SC_BY_ATOMIC ((uint64_t)1 << 21)

static inline uint32_t block_of(const record *r) { return (uint32_t)(r->who >> 32); }
static inline uint32_t thread_of(const record *r) { return (uint32_t)(r->who >> 22) & 1023; }
static inline uint32_t line_of(const record *r) { return (uint32_t)r->who & 0xFFFFF; }
static inline uint32_t clock_of(const record *r) { return r->when & 0x3FFFFFF; }
static inline uint32_t file_of(const record *r) { return r->when >> 26; }
static inline bool both_atomic(const record *a, const record *b) {
  return a->who & b->who & SC_BY_ATOMIC;
}
static inline bool same_thread(const record *a, const record *b) {
  return !((a->who ^ b->who) >> 22);
}

/* A fence, and what its thread knew then: its own accesses and those of its warp. */
typedef struct mark {
  bool set;
  uint32_t change; /* counts changes */
  uint32_t epoch, clock, warp[SC_WARP];
  uint64_t before; /* all releases of others up to this one */
} mark;

typedef struct release {
  uint64_t place;
  uint32_t block, thread, next; /* the block's release before this one; 0: none */
  bool device;                  /* for all blocks, not only its own */
  mark at;
} release;

struct sc_clocks {
  uint32_t clock;
  uint32_t warp[SC_WARP]; /* what this thread knows of the clocks of its warp */
  uint32_t *far;          /* and of its block, where barriers of some threads are used; else NULL */
  mark fences[2];         /* the last of block scope or wider, and of device scope or wider */
  struct { uint64_t place; uint32_t change, epoch; } released[2]; /* the last release by each */
  bool wrote, fenced;     /* global memory, and at device scope, since the last barrier */
  sc_acquired acquired;
  /* A write that met another one: bytes by a mask, and what was there before. */
  uint32_t pending;
  uint32_t pending_size;
  uint32_t pending_line, pending_file; /* of that write: it is judged later */
  uint64_t pending_at;
  uint8_t before[SC_WIDEST];
  record other;
  sc_region region;
};

/* A table of numbers by numbers; 0 is no key. */
typedef struct table {
  struct entry { uint64_t key, value, before; } *entries;
  uint32_t room, count;
} table;

struct sc_races {
  struct page *buckets[SC_BUCKETS], *oldest, *newest, *last;
  size_t bytes;
  uint32_t epoch; /* the newest */
  uint32_t floor; /* what has an older one is ordered before all that runs */
  release *releases; /* by their numbers, from 1 */
  uint64_t release_count, release_room;
  table by_place;    /* the newest release on a place */
  table by_block;    /* of a block */
};

static inline struct sc_races *races_of(const sc_grid *grid) { return grid->worker->races; }

/* ---- order.c -------------------------------------------------------------------------------- */

/* Whether an access of another thread is ordered before what this one does now. */
bool sc_is_ordered(const sc_fiber *fiber, const record *access, bool shared);
/* Before and after an atomic operation on a place. */
void sc_acquire(sc_fiber *fiber, const sc_region *region, uint64_t address);
void sc_release_at(sc_fiber *fiber, const sc_region *region, uint64_t address);
void sc_order_begin(struct sc_races *races);
void sc_order_forget(struct sc_races *races);
