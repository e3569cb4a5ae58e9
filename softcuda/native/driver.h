/* What the files of the driver share: its objects, and what each file offers the others.
 *
 * One lock guards all of the driver's own data (`sc_lock`); kernels run without it. "Driver API" in
 * comments is NVIDIA's "CUDA Driver API" reference, "Guide" the "CUDA C++ Programming Guide".
 */
#pragma once
#define _GNU_SOURCE
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

/* What an older cuda.h does not name yet, with the values of NVIDIA's. */
#if CUDA_VERSION < 13020
#define CU_MEMPOOL_ATTR_ALLOCATION_TYPE 9
#define CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES 10
#define CU_MEMPOOL_ATTR_LOCATION_ID 11
#define CU_MEMPOOL_ATTR_LOCATION_TYPE 12
#define CU_MEMPOOL_ATTR_MAX_POOL_SIZE 13
#endif
#if CUDA_VERSION < 13050
#define CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE 160
#endif

/* Symbols that are looked up by name; all others stay inside the library. */
#define API __attribute__((visibility("default")))

enum { SC_MAX_DEVICES = 16 };

/* ---- options.c: what softcuda is told from outside ------------------------------------------ */

enum sc_order { SC_ASCENDING, SC_DESCENDING, SC_PERMUTED };

/* A fault on command: `what` happens at the nth time that it could (0: each time), where the name
 * of the kernel contains `match` (empty: any). See sc_options_read for the words. */
typedef struct sc_command {
  enum sc_command_what {
    SC_OUT_OF_MEMORY, /* an allocation of at least `value` bytes fails */
    SC_ILLEGAL,       /* a launch ends with CUDA_ERROR_ILLEGAL_ADDRESS */
    SC_LOST,          /* a launch loses the device: CUDA_ERROR_DEVICE_UNAVAILABLE from then on */
    SC_HANG,          /* a launch never ends */
    SC_SLOW_COPY,     /* a copy takes `value` microseconds longer */
    SC_DELAY          /* work on the stream number `value2` starts `value` microseconds late */
  } what;
  uint64_t nth, seen, value, value2;
  char match[128];
} sc_command;

typedef struct sc_options {
  int devices;            /* 1; of these, those that CUDA_VISIBLE_DEVICES leaves */
  int physical[SC_MAX_DEVICES]; /* the number of each among all */
  int capability;         /* 80: compute capability 8.0 */
  int driver_version;     /* what cuDriverGetVersion tells; CUDA_VERSION of the header */
  uint64_t memory;        /* bytes of a device; 4 GiB */
  int multiprocessors;    /* 4 */
  int block_limit;        /* most threads of a block; 1024 */
  uint64_t shared_limit;  /* most shared bytes of a block without opting in; 49152 */
  enum sc_order order;    /* of threads and of blocks */
  uint64_t seed;          /* of SC_PERMUTED */
  bool sanitize;          /* find races, uninitialised reads and unmatched barriers */
  bool count;             /* keep what launches do, of modules that tell it */
  double kernel_timeout;  /* seconds until a kernel ends with LAUNCH_TIMEOUT; 0: never */
  sc_command commands[32];
  int command_count;
  bool leaks;             /* report what is alive when its context ends */
  char log[1024];         /* path of the call log; empty: none */
  char complaint[256];    /* why the environment cannot be used (cuInit says it); empty: it can */
} sc_options;

extern sc_options sc_option;

/* Reads the environment: SOFTCUDA_DEVICES, _CC, _VERSION, _MEMORY, _SMS, _BLOCK, _SHARED, _ORDER
 * (ascending, descending, or a seed), _SANITIZE, _COUNT, _TIMEOUT, _LEAKS, _LOG and _FAULTS. */
void sc_options_read(void);
/* Sets one option by its name in lower case ("order", "7"), also while programs run; false where
 * name or text mean nothing. Exported, for Python. */
API int softcuda_set(const char *name, const char *text);
/* The command of this kind that applies now, or NULL; counts each time that it could. */
sc_command *sc_commanded(enum sc_command_what what, const char *name, uint64_t value);

/* ---- reports.c: the log of calls, and faults that were found -------------------------------- */

/* A line of the log of calls (SOFTCUDA_LOG). */
void sc_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One fault. Strings are copied; what is not known stays empty or 0. */
typedef struct sc_report {
  const char *kind;    /* "out of bounds", "race", "uninitialised", "barrier" ... */
  const char *kernel;  /* mangled name */
  bool in_kernel;      /* whether block and thread below mean anything */
  uint32_t block[3], thread[3];
  bool has_other;
  uint32_t other_block[3], other_thread[3];
  const char *space;   /* "global", "shared", "local" */
  const char *array;   /* name of the allocation or of the shared variable */
  uint64_t offset, size, length; /* of the access in the array, its width, the array's bytes */
  bool has_array;
  const char *file;
  uint32_t line, other_line;
  char text[400];      /* one sentence that says what was found */
} sc_report;

/* Keeps a report. The same kind at the same place of the same kernel is counted, not kept again. */
void sc_report_add(const sc_report *report);
/* One report as a JSON object for each line, oldest first, and forgets them; bytes written, or the
 * bytes that are needed where `room` is too small. Exported, for Python. */
API size_t softcuda_reports(char *out, size_t room);
/* Writes a string of JSON. */
void sc_write_string(FILE *out, const char *text);
/* Prints the reports of one kind that are kept to stderr. */
void sc_reports_print(const char *kind);

/* ---- entry.c --------------------------------------------------------------------------------- */

void sc_lock(void);
void sc_unlock(void);
/* Waits, with the lock held, until something has changed (an operation ended, a stream woke). */
void sc_wait(void);
/* Tells all who wait in sc_wait. */
void sc_changed(void);
/* Around waits of the host for work: Ctrl-C ends that work (interrupts.c). */
bool sc_hear_interrupts(void);
void sc_wait_for_work(bool hears, CUcontext context);
void sc_end_hearing(bool hears);
/* As sc_wait, for what one thread alone waits for and another tells by pthread_cond_signal. */
void sc_wait_for(pthread_cond_t *told);
/* As sc_wait, but for so many seconds at most. */
void sc_wait_at_most(double seconds);
/* Seconds on the host's monotonic clock. */
double sc_now(void);
/* What a CUresult means, as cuGetErrorName and cuGetErrorString say it; NULL for no such result. */
const char *sc_error_name(CUresult error);
const char *sc_error_text(CUresult error);

/* Begins every call of the API: logs its name, and answers what lies in the way: not initialised,
 * or the sticky error of the current context (Driver API, 6.1 CUresult: "leaves the process in an
 * inconsistent state and any further CUDA work will return the same error"). */
CUresult sc_enter(const char *name);
#define ENTER                                                                                      \
  do {                                                                                             \
    CUresult entered_ = sc_enter(__func__);                                                        \
    if (entered_) return entered_;                                                                 \
  } while (0)

/* The same for calls that a sticky error does not stop: queries of devices, and those that make a
 * context current or end it. */
#define ENTER_ANYWAY                                                                               \
  do {                                                                                             \
    CUresult entered_ = sc_enter(__func__);                                                        \
    if (entered_ == CUDA_ERROR_NOT_INITIALIZED || entered_ == CUDA_ERROR_NOT_PERMITTED)            \
      return entered_;                                                                             \
  } while (0)

/* ---- handles.c: objects that a program holds, with a lifetime ------------------------------- */

enum sc_kind { SC_STREAM = 1, SC_EVENT, SC_GRAPH, SC_GRAPH_EXEC, SC_NODE, SC_LIBRARY, SC_KERNEL,
               SC_LINK, SC_POOL };

/* Begins every object. A destroyed one stays in memory, so that its use is seen. */
typedef struct sc_object {
  enum sc_kind kind;
  uint32_t magic;
  bool alive;
  uint64_t number; /* the nth of its kind, from 1 */
  struct CUctx_st *context;
  struct sc_object *next;
} sc_object;

/* A new object, zeroed, of `bytes` in all, of the context given. Needs the lock. */
void *sc_object_new(enum sc_kind kind, size_t bytes, CUcontext context);
/* Whether this is a live object of that kind. Otherwise reports the use of a destroyed or of an
 * unknown handle, naming the call, and answers false. */
bool sc_object_ok(const void *handle, enum sc_kind kind, const char *call);
/* Marks an object destroyed; what was said of sc_object_ok goes for a second time. */
CUresult sc_object_end(void *handle, enum sc_kind kind, const char *call);
/* Reports every object and allocation of a context that is still alive. */
void sc_report_leaks(CUcontext context);
/* Marks all objects of a context destroyed. */
void sc_objects_end(CUcontext context);

/* ---- devices.c: devices and contexts --------------------------------------------------------- */

struct CUctx_st {
  int device;
  int retained;       /* of the primary context */
  bool alive;
  CUresult sticky;    /* the error that every further call answers */
  uint32_t peers;     /* bit n: may reach the memory of device n */
  uint64_t used;      /* bytes of device memory */
  struct CUstream_st *legacy; /* its default stream */
  bool primary, was_reset;
  unsigned flags;     /* CU_CTX_SCHED_SPIN ... */
  uint64_t id;
  size_t limits[16];  /* by CUlimit */
  struct CUctx_st *next;
};

/* The current context of the calling thread, or NULL. */
CUcontext sc_current(void);
/* Gives a context the error that all further calls answer; wakes those who wait. */
void sc_set_sticky(CUcontext context, CUresult error);
/* The primary context of a device, whether it is alive or not. */
CUcontext sc_primary(int device);
/* An attribute of a device; 0 where it has no such thing. */
int sc_attribute(CUdevice_attribute attribute, int device);

/* ---- memory.c: allocations ------------------------------------------------------------------- */

enum sc_memory { SC_DEVICE_MEMORY = 1, SC_HOST_MEMORY, SC_MANAGED_MEMORY, SC_REGISTERED_MEMORY,
                 SC_MODULE_MEMORY, SC_HEAP_MEMORY };

/* Memory that kernels may touch. Lists of them are replaced, never changed, so that a kernel reads
 * one without the lock. */
typedef struct sc_allocation {
  uint64_t at, size;
  uint64_t mapped_at, mapped_size; /* with the guard pages around it */
  enum sc_memory kind;
  CUcontext context;
  int device;
  bool freed;        /* kept, without access, so that its use is seen */
  bool constant;
  unsigned flags;    /* of cuMemHostAlloc, cuMemHostRegister and cuMemAllocManaged */
  bool synchronous;  /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
  bool freeing;      /* cuMemFreeAsync was called, and has not run */
  struct CUmemPoolHandle_st *pool; /* that it came from; NULL: none */
  uint64_t number;   /* the nth allocation, from 1 */
  char name[64];     /* as given by softcuda_name; else "allocation 7" is said */
  struct sc_shadow *shadow; /* the sanitizer's; NULL until it needs one */
} sc_allocation;

/* The live or freed allocation that holds an address, or NULL. Needs the lock. */
sc_allocation *sc_find(uint64_t address);
/* A list of all allocations, ascending by address, for reading without the lock; it stays valid
 * until sc_release_list. `generation` is of the moment it was made. */
typedef struct sc_list {
  sc_allocation **items;
  int count;
  uint64_t generation;
  int users;
} sc_list;
sc_list *sc_take_list(void);
void sc_release_list(sc_list *list);
/* The generation of the newest list, to see that one is old; needs no lock. */
uint64_t sc_generation(void);
/* Memory for a kind; the end of it lies at a guard page, fresh device memory is 0xA5. */
CUresult sc_allocate(CUcontext context, uint64_t bytes, enum sc_memory kind, sc_allocation **made);
CUresult sc_release(sc_allocation *allocation);
/* Pageable memory of the program that it registers (cuMemHostRegister). */
CUresult sc_register(CUcontext context, uint64_t at, uint64_t bytes, sc_allocation **made);
/* Bytes of a device that are not taken. */
uint64_t sc_memory_left(int device);
/* The allocation that begins at an address and may be freed; `kinds` has a bit for each kind.
 * Reports what is wrong otherwise. */
CUresult sc_find_to_free(uint64_t address, unsigned kinds, const char *call, sc_allocation **found);
/* "b", or "allocation 7". */
const char *sc_allocation_name(const sc_allocation *allocation, char *room, size_t bytes);
/* The allocations among those; of NULL: those of pools, which belong to no context. */
void sc_report_memory_leaks(CUcontext context);
/* Frees all memory of a context that has ended; that of pools belongs to none and stays. */
void sc_memory_end(CUcontext context);
/* Names the allocation at an address, for reports. Exported, for Python. */
API int softcuda_name(uint64_t address, const char *name);
/* Whether bytes from an address on lie in one allocation, and what tells the sanitizer that they
 * were written. Exported, for what Python does on the host in place of NVIDIA's libraries. */
API int softcuda_holds(uint64_t address, uint64_t bytes);
API void softcuda_written(uint64_t address, uint64_t bytes);

/* ---- copies.c and pools.c: what sc_run calls for its work ------------------------------------ */

struct sc_work;

/* Does a copy (SC_WORK_COPY) or a fill (SC_WORK_FILL) now, and tells the sanitizer. In 2-D fills
 * `width` counts the elements of a row. */
void sc_run_copy(const struct sc_work *work);
void sc_run_fill(const struct sc_work *work);
/* Frees the memory at `work->to`, which cuMemFreeAsync gave back (SC_WORK_FREE); SC_WORK_ALLOCATE
 * needs nothing, since the memory is there from the call on. */
void sc_run_free(const struct sc_work *work);
/* Memory of a pool was freed. */
void sc_pool_gets_back(CUmemoryPool pool, uint64_t bytes);
/* Whether a device may touch the memory of a pool (cuMemPoolSetAccess): peer access of contexts
 * does not count there (Guide, "Stream Ordered Memory Allocator", Device Accessibility). */
bool sc_pool_reachable(CUmemoryPool pool, int device);

/* ---- streams.c: work that is queued ---------------------------------------------------------- */

struct sc_launch;

enum sc_work_kind { SC_WORK_KERNEL, SC_WORK_COPY, SC_WORK_FILL, SC_WORK_RECORD, SC_WORK_WAIT_EVENT,
                    SC_WORK_WAIT_VALUE, SC_WORK_WRITE_VALUE, SC_WORK_CALL, SC_WORK_CALLBACK,
                    SC_WORK_GRAPH, SC_WORK_ALLOCATE, SC_WORK_FREE, SC_WORK_NOTHING };

/* One piece of queued work; also what a node of a graph does. */
typedef struct sc_work {
  enum sc_work_kind kind;
  struct sc_launch *launch;             /* owned */
  uint64_t to, from, bytes;             /* copies; `bytes` counts elements for fills */
  uint64_t pitch_to, pitch_from, width, height; /* 2-D copies and fills; height 0: one row */
  char *staged;                         /* owned: pageable host memory as it was when queued */
  uint64_t value;
  uint32_t element, flags;              /* bytes of an element of a fill; flags of a wait */
  struct CUevent_st *event;
  uint64_t ticket;                      /* which record of the event */
  CUhostFn call;
  CUstreamCallback callback;
  void *data;
  struct sc_plan *plan;                 /* of a launch of a graph; one use of it is owned */
  struct sc_work *next;
  struct sc_wait_for { struct CUstream_st *stream; uint64_t upto; } *waits; /* owned */
  int wait_count;
} sc_work;

struct CUstream_st {
  sc_object object;
  unsigned flags;
  int priority;
  pthread_t thread;
  bool started, stop;
  bool abandoned; /* its context has ended: its work is dropped */
  sc_work *head, *tail;
  pthread_cond_t given; /* to its thread: work, or word to stop */
  uint64_t queued, done; /* how many pieces of work */
  uint64_t number;       /* the nth stream of the process; 0 is the legacy default stream */
  /* capture (graphs.c) */
  enum { SC_NOT_CAPTURING, SC_CAPTURING, SC_INVALIDATED } capture;
  CUstreamCaptureMode mode;
  pthread_t captured_by;
  struct CUstream_st *origin;     /* the stream that began the capture */
  struct CUgraph_st *graph;
  uint64_t capture_id;
  struct CUgraphNode_st **tips;   /* nodes that the next one depends on; owned */
  int tip_count;
};

struct CUevent_st {
  sc_object object;
  unsigned flags;
  uint64_t queued, done; /* how many records were queued, and have run */
  double at;             /* seconds on the host's monotonic clock, of the last that has run */
  CUstream stream;       /* of the last record */
  uint64_t position;     /* of the last record among the work of that stream */
  struct CUgraphNode_st **captured; /* tips at a record during a capture; owned */
  int captured_count;
  uint64_t capture_id;
};

/* The stream that a handle means: NULL and CU_STREAM_LEGACY are the context's default stream,
 * CU_STREAM_PER_THREAD the calling thread's. NULL with a report where the handle is no stream. */
CUstream sc_stream(CUstream handle, const char *call);
/* The same as a result: CUDA_ERROR_INVALID_CONTEXT for a default stream without a context. */
CUresult sc_stream_of(CUstream handle, const char *call, CUstream *stream);
/* Queues a copy of the work, whose owned parts it takes, or adds it to the graph of a capture. */
CUresult sc_queue(CUstream stream, const sc_work *work);
/* Waits until all work that is queued on a stream now has run; the context's sticky error. */
CUresult sc_drain(CUstream stream);
/* The same for all streams of a context. */
CUresult sc_drain_context(CUcontext context);
/* Runs one piece of work on the calling thread; used by streams and by graphs. */
void sc_run(sc_work *work, CUstream stream);
void sc_work_free(sc_work *work);
void sc_streams_each(void (*visit)(CUstream, void *), void *data);
/* Drops all work of a context that ends and what is kept for it: its default streams, and the
 * variables and functions of libraries (modules.c). Called by devices.c, with the lock, before the
 * memory of the context is freed. */
void sc_context_work_end(CUcontext context);
/* Whether the calling thread runs a function of the host for a stream, which may not call CUDA. */
bool sc_in_callback(void);
/* From now on NULL means the per-thread default stream (entry.c). */
void sc_use_per_thread_streams(void);

/* ---- graphs.c: captures and graphs ----------------------------------------------------------- */

/* Refuses what is unsafe while a capture lasts (Driver API, cuThreadExchangeStreamCaptureMode), and
 * invalidates that capture. */
CUresult sc_refuse_while_capturing(void);
#define UNCAPTURED                                                                                 \
  do {                                                                                             \
    CUresult refused_ = sc_refuse_while_capturing();                                               \
    if (refused_) return refused_;                                                                 \
  } while (0)
/* Adds work to the graph that a stream is capturing. Needs the lock. */
CUresult sc_capture_work(CUstream stream, const sc_work *work);
/* A record of an event on a capturing stream: remembers the tips, adds no node. */
CUresult sc_capture_record(CUstream stream, CUevent event);
/* A wait for an event on a capturing stream, or for a captured event: draws the stream in. */
CUresult sc_capture_wait(CUstream stream, CUevent event);
/* Runs all nodes of an instantiated graph, each after those that it depends on. What an executable
 * graph was when it was launched is a plan, which later changes of it leave as it is. */
void sc_run_graph(struct sc_plan *plan, CUstream stream);
void sc_plan_leave(struct sc_plan *plan);
/* Its graph; no program holds it. */
struct CUgraph_st *sc_plan_graph(struct sc_plan *plan);
/* Refuses work on a default stream while a stream that would wait for it is captured. */
CUresult sc_refuse_implicit(CUstream legacy);
/* Whether an event was last recorded in a capture that goes on. */
bool sc_event_captured(CUevent event);
/* Makes the capture that a stream belongs to invalid (Guide, "CUDA Graphs", Invalidation). */
void sc_invalidate_capture(CUstream stream);
/* Ends a capture whose first stream is destroyed, and drops its graph. A stream that was drawn in
 * may go: its work must be joined all the same. */
void sc_drop_capture(CUstream stream);

/* ---- modules.c ------------------------------------------------------------------------------- */

typedef struct sc_library sc_library;

typedef struct sc_function {
  sc_object object;
  const sc_kernel *kernel;
  sc_library *library;
  uint32_t dynamic_limit; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; 0: default */
} sc_function;

struct sc_library {
  sc_object object;
  void *handle; /* of dlopen */
  const sc_module *module;
  sc_function **functions;
  char **globals;               /* addresses, by number */
  sc_allocation **allocations;  /* of the globals */
  uint64_t users;               /* launches that are queued or kept by graphs */
  CUcontext home;               /* of its variables; NULL: a library, which has copies instead */
  int ptx_version, target;      /* 84 and 80: of ".version 8.4" and ".target sm_80" */
  sc_library *of;               /* the library of which this is the copy for one context */
  sc_library *copies;           /* of a library: its copies, one for each context that uses it */
  sc_library *next;             /* among the copies */
};

/* Compiles PTX to a shared library and writes its path to `path`; `log` takes what is wrong. Given
 * by Python (softcuda_set_compiler), so that translation and the cache of libraries stay there.
 * Answers 0 or a CUresult. */
typedef int (*sc_compiler)(const char *ptx, char *path, size_t path_room, char *log,
                           size_t log_room);
API void softcuda_set_compiler(sc_compiler compiler);
/* The function that a CUfunction or a CUkernel means in a context; a kernel of a library gets the
 * variables of that context. NULL, with the error and a report, where the handle is none. */
CUresult sc_function_in(CUfunction handle, CUcontext context, const char *call, sc_function **out);
/* Most dynamic shared bytes of a block, and most threads of one, for this function. */
uint32_t sc_dynamic_limit(const sc_function *function);
uint32_t sc_thread_limit(const sc_function *function);
void sc_library_use(sc_library *library);
void sc_library_leave(sc_library *library);
/* Drops what libraries keep for a context that ends. Needs the lock. */
void sc_context_modules_end(CUcontext context);

/* ---- launches.c and blocks.c: running a kernel ----------------------------------------------- */

typedef struct sc_launch {
  const sc_function *function;
  CUcontext context;
  uint32_t grid[3], block[3], dynamic_shared;
  bool cooperative;
  char *parameters; /* owned: the packed block */
} sc_launch;

/* Runs all blocks of a launch on the calling thread and answers 0, or the error that a GPU would
 * give; a fault is then reported. */
CUresult sc_execute(const sc_launch *launch);
/* Asks all kernels that run to end, as after their time; answers whether there are any. They end
 * where they may: ask again until none runs. */
bool sc_cancel_kernels(void);
/* The same with the faults on command; the error goes to the context of the launch. */
void sc_run_launch(const sc_launch *launch, CUstream stream);
/* A checked launch with a copy of its parameters, from `parameters` or from `extra`. */
CUresult sc_launch_new(const CUDA_KERNEL_NODE_PARAMS *what, CUcontext context, bool cooperative,
                       const char *call, sc_launch **made);
sc_launch *sc_launch_copy(const sc_launch *launch);
void sc_launch_free(sc_launch *launch);
/* How many blocks of this size fit on the device at once: the limit of a cooperative launch. */
uint64_t sc_resident_blocks(const sc_function *function, uint64_t threads, uint32_t shared);

/* ---- counts.c -------------------------------------------------------------------------------- */

/* Keeps that a launch has no counts, since it ended with an error. */
void sc_counts_missing(const sc_launch *launch, CUresult error);
/* What launches did, as a JSON object for each line, oldest first, and forgets it; see
 * softcuda_reports. Exported, for Python. */
API size_t softcuda_counts(char *out, size_t room);

/* ---- sanitizer.c ----------------------------------------------------------------------------- */

/* What was written so far: called for copies and fills by the host's side of the API. */
void sc_shadow_written(sc_allocation *allocation, uint64_t offset, uint64_t bytes);
/* A copy carries along which bytes are initialised. */
void sc_shadow_copied(sc_allocation *to, uint64_t to_offset, sc_allocation *from,
                      uint64_t from_offset, uint64_t bytes);
void sc_shadow_free(sc_allocation *allocation);
