/* What the files that run kernels share.
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
#include "driver.h"

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

/* ---- fibers.c: stacks ----------------------------------------------------------------------- */

typedef struct sc_stack {
  char *guard, *low, *top; /* the stack is [low, top); below it lies memory without access */
  char *local;             /* local memory; NULL until a thread on this stack needs some */
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

/* The calling thread's worker, made at its first launch; NULL where there is no memory for one. */
sc_worker *sc_worker_here(void);
/* At least so many bytes in a pool, zeroed where `clear`; NULL where there is no memory. */
void *sc_pool_take(struct sc_pool *pool, size_t bytes, bool clear);
/* Runs a fiber until it waits, yields, ends or stops the kernel; false: no memory for its stack. */
bool sc_fiber_resume(sc_worker *worker, sc_fiber *fiber, void (*start)(sc_fiber *));
/* Lets the scheduler grid; returns when it resumes the fiber. */
void sc_fiber_suspend(sc_fiber *fiber);
/* Leaves a fiber for good. */
void sc_fiber_leave(sc_worker *worker) __attribute__((noreturn));
/* Gives the stack of a fiber back, when it has ended or will not go on. */
void sc_fiber_drop(sc_worker *worker, sc_fiber *fiber);
/* Gives back to the process all stacks that a launch took; none of its fibers has one any more. */
void sc_stacks_leave(sc_worker *worker);
char *sc_enter_frame(sc_thread *thread, uint32_t bytes);
void sc_leave_frame(sc_thread *thread, char *frame);
/* The stack whose thread has this address in its local memory, or NULL. */
const sc_stack *sc_local_owner(uint64_t address);

/* ---- signals.c ------------------------------------------------------------------------------ */

/* The worker of the calling thread, or NULL; safe in a handler of signals. */
extern __thread sc_worker *sc_worker_of_thread;
/* Sees to it that a fault or the end of its time ends the kernel and not the process. */
void sc_signals_begin(sc_worker *worker, double seconds);
void sc_signals_end(sc_worker *worker);
/* Frees what the functions above made for a worker. */
void sc_signals_forget(sc_worker *worker);

/* While these are held, signals do not end the kernel: around locks, malloc and stdio. */
static inline void sc_hold(sc_worker *worker) { worker->held++; }
void sc_let_go(sc_worker *worker);

/* ---- blocks.c ------------------------------------------------------------------------------- */

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

extern const sc_services sc_services_of_device;

/* A number of 64 bits from the generator of permutations. */
uint64_t sc_random(uint64_t *state);
/* The order in which the threads of a block run from now on. */
void sc_order_threads(sc_block *block);
/* Ends the kernel with an error; the fault was reported. */
void sc_stop(sc_fiber *fiber, CUresult error) __attribute__((noreturn));
/* A report that names the kernel, the thread and its line. */
sc_report sc_report_of(const sc_fiber *fiber, const char *kind);
void sc_report_other(sc_report *report, const sc_fiber *other);
/* Adds a report unless this launch has said the same of `what` at these lines. */
void sc_report_once(sc_fiber *fiber, const sc_report *report, uint64_t what);
/* The file of a line of the module, or NULL. */
const char *sc_file_name(const sc_grid *grid, uint32_t number);

/* ---- warps.c and barriers.c ----------------------------------------------------------------- */

void sc_warp_call_run(sc_thread *thread, sc_warp_call *call, uint32_t site);
uint32_t sc_barrier_wait(sc_thread *thread, uint32_t number, uint32_t threads, uint32_t op,
                         uint32_t predicate, uint32_t site);
void sc_barrier_arrive(sc_thread *thread, uint32_t number, uint32_t threads, uint32_t site);
void sc_grid_wait(sc_thread *thread, uint32_t site);
/* Marks a fiber as one that waits; it may be woken before it goes to sleep. */
void sc_begin_wait(sc_fiber *fiber, enum sc_status status, uint32_t site);
void sc_sleep(sc_fiber *fiber);
void sc_wake(sc_fiber *fiber);
/* A fiber has ended: those who wait for it need not any more. */
void sc_left(sc_fiber *fiber);
void sc_barriers_left(sc_block *block);
/* Nothing can run in the whole launch: lets lanes go that wait for others in vain, and answers
 * true; or reports that the barriers will never be complete, and answers false. */
bool sc_warps_unstick(sc_grid *grid);
void sc_barriers_report_stuck(sc_grid *grid);

/* ---- access.c ------------------------------------------------------------------------------- */

enum sc_space { SC_NOWHERE, SC_GLOBAL, SC_SHARED, SC_LOCAL };

/* An array that holds an address. */
typedef struct sc_region {
  enum sc_space space;
  uint64_t at, size;
  sc_allocation *allocation; /* of the global space */
  const char *name;          /* of a shared variable */
} sc_region;

void *sc_access(sc_thread *thread, uint64_t address, uint32_t size, uint32_t how);
/* The array that holds an address and that this thread may touch. */
bool sc_region_of(sc_fiber *fiber, uint64_t address, sc_region *out);
/* Describes an access that is refused, and answers the error that it ends the kernel with. `size`
 * is 0 where it is not known. */
CUresult sc_refuse_access(sc_fiber *fiber, uint64_t address, uint32_t size, uint32_t how);
/* Fills what a report says of an array. */
void sc_report_region(sc_report *report, const sc_region *region, uint64_t address, uint32_t size);
/* "'b'" or "allocation 7". */
const char *sc_region_name(const sc_region *region, char *room, size_t bytes);

/* ---- sanitizer.c, races.c, order.c ---------------------------------------------------------- */

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
void sc_races_fence(sc_fiber *fiber, uint32_t scope);
/* What orders threads: bar.warp.sync, a barrier of some threads of a block, of all, of the grid. */
void sc_races_warp(sc_block *block, uint32_t warp, uint32_t lanes);
void sc_races_arrive(sc_fiber *fiber, sc_barrier *barrier);
void sc_races_some(sc_block *block, uint32_t number);
void sc_races_block(sc_block *block);
void sc_races_grid(sc_grid *grid);

/* ---- counts.c ------------------------------------------------------------------------------- */

/* Takes what is needed to count a launch; false: no memory. */
bool sc_counts_begin(sc_grid *grid);
/* Keeps what a launch did, unless it has failed. */
void sc_counts_end(sc_grid *grid);
/* Keeps a launch that was not counted: its kernel is empty, or does not tell what it does. */
void sc_counts_absent(const sc_launch *launch);
void sc_counts_forget(sc_worker *worker);
void sc_counts_begin_warp(sc_block *block, uint32_t number);
void sc_counts_begin_thread(sc_fiber *fiber);
void sc_counts_end_thread(sc_fiber *fiber);
/* Counts what a warp, or all of a block, did as far as its lanes have come. */
void sc_counts_warp(sc_block *block, uint32_t number);
void sc_counts_block(sc_block *block);
/* All that can run did so once; `idle`: and did nothing but wait. */
void sc_counts_pass(sc_grid *grid, bool idle);
void sc_counts_trace(sc_thread *thread, uint32_t places);

/* ---- printing.c and heap.c ------------------------------------------------------------------ */

int32_t sc_print(sc_thread *thread, uint64_t format, uint64_t arguments);
void sc_fail(sc_thread *thread, uint64_t message, uint64_t file, uint32_t line, uint64_t function);
void sc_printed_flush(sc_grid *grid);
uint64_t sc_heap_take(sc_thread *thread, uint64_t bytes);
void sc_heap_give_back(sc_thread *thread, uint64_t address);
