/* What a grid that runs is made of.
 *
 * A launch is a `sc_grid`; it runs on one thread of the host, whose pooled memory is a `sc_worker`.
 * Its blocks are `sc_block`s: one at a time, or all at once in a cooperative launch. A CUDA thread
 * is a `sc_fiber`. Where threads wait for each other each fiber has a stack of its own, and
 * `run_pass` (blocks.c) picks the next one; otherwise one fiber is all the threads, one after
 * another.
 *
 * A fiber that ends the kernel never returns: it switches to the scheduler, which leaves the stacks
 * as they are. So nothing that must be freed is held across a call that may fault.
 */
#pragma once
#include "launch.h"
#include "options.h"

#include <time.h>

enum {
  SC_BARRIERS = 16,  /* of a block (PTX ISA, 9.7.13.1: "barriers numbered 0 through 15") */
  SC_CACHED = 64,    /* allocations that a launch finds again without a search */
  SC_ACQUIRED = 8,   /* places whose releases are remembered one by one (races.c) */
  SC_FRAME_GAP = 256, /* bytes around each frame of local memory that belong to nothing; also how
                       * frames are aligned, as much as arrays of Numba may ask for */
};

/* Most local memory of a thread (Guide, Technical Specifications per Compute Capability: 512
 * KB). */
#define SC_LOCAL_BYTES ((uint32_t)512 << 10)
/* That, and the header and the gap of the newest frame. */
#define SC_LOCAL_ROOM (SC_LOCAL_BYTES + 4096)

typedef struct sc_stack {
  char *guard, *low, *top; /* the stack is [low, top); below it lies memory without access */
  char *local;             /* local memory; NULL until a thread on this stack needs some */
  uint8_t *local_written;  /* a bit for each byte of it: whether it is initialised (sanitizer) */
  struct sc_stack *next;
} sc_stack;

typedef struct sc_worker sc_worker;
typedef struct sc_fiber sc_fiber;
typedef struct sc_block sc_block;
typedef struct sc_grid sc_grid;
typedef struct sc_counts sc_counts;

/* Begins every frame of local memory. */
typedef struct sc_frame {
  uint32_t previous, bytes; /* where the frame below begins; bytes of this one */
} sc_frame;

/* Where a fiber stands. */
enum sc_status { SC_ENDED, SC_RUNNABLE, SC_AT_BARRIER, SC_AT_WARP, SC_AT_GRID };

struct sc_fiber {
  sc_thread thread;
  sc_block *block;
  sc_stack *stack; /* NULL before it first runs and after it has ended */
  void *saved;     /* the stack pointer while others run */
  enum sc_status status;
  bool idle;             /* it let others run and did nothing else, as far as is known */
  uint32_t site;         /* of the operation at which it waits */
  uint32_t barrier;      /* its number */
  uint32_t answer;       /* of barrier.red */
  sc_warp_call *call;    /* of the warp operation at which it waits */
  uint32_t local_used;   /* bytes of local memory in use, gaps and headers included */
  uint32_t local_newest; /* where the newest frame begins */
  struct sc_clocks *clocks; /* races.c; NULL without the sanitizer */
};

/* What a thread of the host keeps between launches. */
struct sc_worker {
  sc_grid *grid;                /* NULL between launches */
  sc_fiber *volatile current; /* whose stack is in use; NULL while the scheduler runs */
  sc_fiber *starting;         /* and what it starts with */
  void (*start)(sc_fiber *);
  sc_fiber *interrupted;      /* the one that a signal took from its stack */
  void *scheduler;            /* its saved stack pointer */
  volatile int held;          /* > 0: a lock or memory of the host's is in hand, stop later */
  volatile int expired;       /* the time of the kernel is over */
  volatile bool cancelled;    /* by Ctrl-C, before that */
  pthread_t thread;           /* the one that it belongs to */
  sc_worker *next_running;    /* signals.c */
  volatile int signal;        /* that ended the kernel, and the address it was about */
  volatile uint64_t signal_at;
  sc_stack *free_stacks, *last_stack; /* taken from the process for this launch, unused */
  timer_t timer;
  bool has_timer;
  void *signal_stack;
  /* Reused from launch to launch. */
  struct sc_pool { void *at; size_t bytes; } fibers, blocks, orders, places, windows, clocks, bits;
  struct sc_races *races;
  sc_counts *counts;
};

typedef struct sc_barrier {
  uint32_t threads; /* how many it waits for; 0: all of the block that have not ended */
  uint32_t arrived, waiting;
  uint32_t population, all, any; /* of the predicates of barrier.red */
  uint16_t of_warp[SC_WARP];     /* how many arrived, by warp */
  uint32_t *released;            /* clocks of those that arrived without waiting; else NULL */
} sc_barrier;

/* Threads of one warp that wait for each other. */
typedef struct sc_group {
  enum sc_warp_op op;
  uint32_t mask, arrived;
} sc_group;

typedef struct sc_warp {
  uint32_t alive;    /* lanes that have not ended */
  int runnable;      /* how many of them do not wait */
  int group_count;
  sc_group groups[SC_WARP];
} sc_warp;

/* What is known of the releases of other threads (races.c). */
typedef struct sc_acquired {
  uint64_t all_upto; /* every release up to this one, wherever */
  int count;
  struct { uint64_t place, upto; } of[SC_ACQUIRED]; /* those on one place */
} sc_acquired;

struct sc_block {
  sc_grid *grid;
  uint64_t linear;
  uint32_t index[3];
  char *window;
  uint8_t *written;   /* a bit for each byte of the window: whether it is initialised (sanitizer) */
  sc_fiber *fibers;
  uint16_t *order;    /* of the threads, as they run */
  uint32_t alive;     /* threads that have not ended */
  bool restart;       /* begin again with the first thread of the order */
  uint32_t epoch;     /* of its last barrier (races.c) */
  uint32_t fenced;    /* writes of older epochs are behind a fence of their threads (races.c) */
  sc_acquired acquired;
  sc_barrier barriers[SC_BARRIERS];
  sc_warp warps[SC_WARP];
};

struct sc_grid {
  const sc_launch *launch;
  const sc_kernel *kernel;
  const sc_module *module;
  sc_worker *worker;
  sc_list *list;
  sc_allocation *cached[SC_CACHED]; /* that this launch may write, by their pages */
  enum sc_order order;
  bool sanitize;
  sc_counts *counts;       /* counts.c; NULL where the module does not tell what it does */
  uint64_t random;         /* state of the generator of permutations */
  uint64_t block_count, next_block, stride; /* blocks run with this stride, modulo their count */
  uint32_t threads, warps; /* of a block */
  uint32_t (*places)[3];   /* threadIdx of each thread */
  uint32_t dynamic_at, window_bytes, window_stride;
  sc_block *blocks;
  uint32_t live_blocks;    /* how many of them live at once */
  uint32_t fibers_of_block;
  uint32_t next_thread, last_thread; /* of the order; where fibers take turns (run_stretch) */
  uint64_t alive, at_grid; /* threads of the live blocks; how many wait at the grid's barrier */
  CUresult error;
  uint64_t heap_used;
  uint64_t last_clock;
  struct { char *at; size_t used, room; } printed;
  uint64_t said[256];      /* hashes of what was reported: once for each launch */
};

static inline sc_fiber *sc_fiber_of(sc_thread *thread) { return thread->state; }
static inline sc_worker *sc_worker_of(const sc_fiber *fiber) { return fiber->block->grid->worker; }
