/* What a translated PTX module and the driver share.
 *
 * A module becomes a shared library with one symbol, `softcuda_module`. Every entry of the module
 * is a function that runs one thread; all that it needs of the device, it asks of `sc_services`.
 *
 * Addresses follow the generic address space of PTX (PTX ISA, 6.4.1.1): global, constant and local
 * memory are addressed by the host's own addresses; shared memory by offsets from the start of the
 * block's window, to which `cvta.shared` adds the address of that window.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { SC_ABI = 1, SC_WARP = 32 };

/* How memory is touched. SC_ATOMIC alone reads and writes at once; with SC_READ or SC_WRITE it is a
 * strong load or store. */
enum sc_how { SC_READ = 1, SC_WRITE = 2, SC_ATOMIC = 4 };

/* Whether that may write. */
static inline int sc_may_write(uint32_t how) { return how & SC_WRITE || how == SC_ATOMIC; }

/* Operations of all the threads of a mask at once (PTX ISA, 9.7.9.6 shfl.sync, 9.7.13.9 vote.sync,
 * match.sync, redux.sync; 9.7.13.2 bar.warp.sync). */
enum sc_warp_op {
  SC_SYNC,
  SC_SHUFFLE_UP, SC_SHUFFLE_DOWN, SC_SHUFFLE_BFLY, SC_SHUFFLE_IDX,
  SC_VOTE_ALL, SC_VOTE_ANY, SC_VOTE_UNI, SC_VOTE_BALLOT,
  SC_MATCH_ANY, SC_MATCH_ALL,
  SC_REDUX_ADD, SC_REDUX_MIN_U, SC_REDUX_MAX_U, SC_REDUX_MIN_S, SC_REDUX_MAX_S,
  SC_REDUX_AND, SC_REDUX_OR, SC_REDUX_XOR,
  SC_ELECT, SC_ACTIVE
};

/* What a barrier counts besides the threads (PTX ISA, 9.7.13.1 barrier.red). */
enum sc_barrier_op { SC_BARRIER_SYNC, SC_BARRIER_POPC, SC_BARRIER_AND, SC_BARRIER_OR };

typedef struct sc_thread sc_thread;

/* The operands of a warp operation, and where its two results go. */
typedef struct sc_warp_call {
  enum sc_warp_op op;
  uint32_t mask;
  uint64_t value;     /* a: the value, or the predicate of a vote */
  uint32_t b, c;      /* of shfl: lane or delta, and clamp with segment mask */
  uint64_t result;
  uint32_t predicate; /* of shfl, match.all and elect */
} sc_warp_call;

/* `site` is the number of the instruction in its module: threads that wait at different ones are
 * not at the same barrier. */
typedef struct sc_services {
  /* The host's address of `size` bytes that a thread touches; `size` is a power of two, or the
   * whole of a vector. Does not return where a GPU would stop the kernel. */
  void *(*access)(sc_thread *, uint64_t address, uint32_t size, uint32_t how);
  /* barrier{.red}: `threads` is how many take part, 0 for all of the block. */
  uint32_t (*barrier)(sc_thread *, uint32_t number, uint32_t threads, uint32_t op,
                      uint32_t predicate, uint32_t site);
  /* Counts at a barrier without waiting (barrier.arrive). */
  void (*arrive)(sc_thread *, uint32_t number, uint32_t threads, uint32_t site);
  void (*warp)(sc_thread *, sc_warp_call *, uint32_t site);
  /* All threads of all blocks of a cooperative launch. */
  void (*grid)(sc_thread *, uint32_t site);
  /* membar / fence; `scope`: 0 block, 1 device, 2 system. */
  void (*fence)(sc_thread *, uint32_t scope);
  /* vprintf of the device (CUDA C++ Programming Guide, 10.35 Formatted Output). */
  int32_t (*print)(sc_thread *, uint64_t format, uint64_t arguments);
  /* __assertfail. Does not return. */
  void (*fail)(sc_thread *, uint64_t message, uint64_t file, uint32_t line, uint64_t function);
  /* trap. Does not return. */
  void (*trap)(sc_thread *);
  /* The device's heap (malloc and free of device code). */
  uint64_t (*take)(sc_thread *, uint64_t bytes);
  void (*give_back)(sc_thread *, uint64_t address);
  /* %clock64 and %globaltimer: they grow, and are no times. */
  uint64_t (*clock)(sc_thread *);
  /* A frame of local memory of a function, 16-aligned; `leave` with its address gives it back. */
  char *(*enter)(sc_thread *, uint32_t bytes);
  void (*leave)(sc_thread *, char *frame);
  /* Another thread may run: called in a loop that may wait for one (nanosleep). */
  void (*yield)(sc_thread *);
  /* Makes room in the trace for a basic block with `places` addresses. */
  void (*trace)(sc_thread *, uint32_t places);
} sc_services;

/* Where a thread goes (SC_COUNT): its basic blocks, and the addresses that it touches in them. */
typedef struct sc_trace {
  uint32_t *block, *block_end;
  uint64_t *place, *place_end;
} sc_trace;

/* What counting.py says of accesses and of basic blocks. */
enum sc_code_space { SC_IN_ANY, SC_IN_GLOBAL, SC_IN_SHARED, SC_IN_LOCAL, SC_IN_NONE, SC_SPACES };
enum sc_code_kind { SC_LOADS, SC_STORES, SC_CHANGES };

typedef struct sc_code_access {
  uint8_t space, kind, size; /* bytes of a lane */
  uint8_t guarded;           /* 0 stands for a lane that does not do it */
} sc_code_access;

#define SC_NO_BLOCK UINT32_MAX

typedef struct sc_code_block {
  uint32_t meets;       /* where lanes meet that part at its end, or SC_NO_BLOCK */
  int32_t depth;        /* 1 where a function begins, -1 where it returns */
  uint32_t first, count; /* its accesses */
  uint32_t instructions;
} sc_code_block;

/* One CUDA thread while it runs. */
struct sc_thread {
  uint32_t tid[3], ntid[3], ctaid[3], nctaid[3];
  uint32_t linear;         /* index in its block; lane and warp follow from it */
  uint32_t dynamic_shared; /* bytes */
  char *shared;            /* the block's window; offsets begin at 0 */
  uint32_t dynamic_at;     /* offset of dynamic shared memory in the window */
  char **globals;          /* addresses of the module's variables, by their numbers */
  uint32_t line, file;     /* of the last .loc; 0 where the module has none */
  const sc_services *services;
  /* The allocation that was touched last: accesses in it need no search (0 under the sanitizer). */
  uint64_t recent_at, recent_size;
  void *state;             /* the driver's own */
  /* Where its local memory lies, whichever frames are in use; NULL before the first one. */
  char *local;
  uint32_t local_bytes;
  sc_trace trace;
};

typedef struct sc_kernel {
  const char *name;
  void (*run)(sc_thread *, char *parameters);
  uint32_t parameters;             /* how many */
  const uint32_t *offsets, *sizes; /* of each in the packed block, bytes */
  uint32_t parameter_bytes;
  uint32_t local_bytes;            /* of its frame and of those it calls */
  uint32_t max_threads;            /* .maxntid, 0: none */
  uint32_t waits;                  /* whether threads wait for each other: barrier, warp, grid */
  uint32_t cooperative;            /* whether it synchronises the grid */
  uint32_t empty;                  /* whether it only returns */
} sc_kernel;

/* A variable of a module. In the shared space `at` is its offset in the window, otherwise the
 * driver gives it memory of the device and fills it from `initial`, or with zeros (PTX ISA,
 * 5.4.4). */
typedef struct sc_variable {
  const char *name;
  uint64_t bytes;
  uint32_t align, at;
  const void *initial;
  uint32_t constant; /* in the .const space: a kernel may not write it */
} sc_variable;

typedef struct sc_module {
  uint32_t abi; /* SC_ABI */
  const sc_kernel *kernels;
  uint32_t kernel_count;
  const sc_variable *globals; /* by their numbers, constants included */
  uint32_t global_count;
  const sc_variable *shared; /* static ones, ascending, with gaps between them as guards */
  uint32_t shared_count;
  uint32_t shared_window; /* bytes up to where dynamic shared memory begins, guards included */
  uint32_t shared_bytes;  /* the same without guards: what the kernel declares */
  const char *const *files; /* by the numbers of .file; files[0] is empty */
  uint32_t file_count;
  /* By their numbers; NULL and 0 where the module was not compiled to count. */
  const sc_code_block *blocks;
  uint32_t block_count;
  const sc_code_access *accesses;
  uint32_t access_count;
  uint32_t widest; /* most accesses of a basic block */
} sc_module;

/* A translated library is compiled for one of several ways to run; all have the same layout. */
#define SC_MODULE_SYMBOL "softcuda_module"
