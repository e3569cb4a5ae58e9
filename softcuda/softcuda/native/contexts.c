/* Contexts: primary ones, those of cuCtxCreate, and each thread's stack of current ones (Driver
 * API, "Primary Context Management" and "Context Management"). */
#include "contexts.h"
#include "lock.h"
#include "options.h"

/* Contexts stay in memory when they end, so that their use is seen. */
static struct CUctx_st *contexts;
static CUcontext primaries[SC_MAX_DEVICES];
static bool lost[SC_MAX_DEVICES]; /* devices that have gone, for the rest of the process */

static __thread struct {
  CUcontext *items;
  int depth, room;
} stack;

CUcontext sc_current(void) { return stack.depth ? stack.items[stack.depth - 1] : NULL; }

void sc_leave_context(CUcontext context) {
  if (sc_current() == context) stack.depth--;
}

void sc_contexts_each(void (*visit)(CUcontext)) {
  for (CUcontext context = contexts; context; context = context->next) visit(context);
}

CUresult sc_enter(const char *name) {
  CUresult refused = sc_begin_call(name);
  if (refused) return refused;
  CUcontext context = sc_current();
  return context ? context->sticky : CUDA_SUCCESS;
}

bool sc_is_device(CUdevice device) { return device >= 0 && device < sc_option.devices; }

static void push(CUcontext context) {
  if (stack.depth == stack.room) {
    stack.room = 2 * stack.room + 8;
    stack.items = realloc(stack.items, (size_t)stack.room * sizeof *stack.items);
  }
  stack.items[stack.depth++] = context;
}

/* Driver API, cuCtxSetLimit: the defaults of the device's runtime. A stack of 1 KiB, a FIFO of 1
 * MiB for printf and a heap of 8 MiB (Guide, "Formatted Output" and "Dynamic Global Memory
 * Allocation"). */
static void set_default_limits(CUcontext context) {
  memset(context->limits, 0, sizeof context->limits);
  context->limits[CU_LIMIT_STACK_SIZE] = 1 << 10;
  context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
  context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
  context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

/* A context begins its life, or a primary one begins it again. Needs the lock. */
static void begin(CUcontext context) {
  context->alive = true;
  context->sticky = lost[context->device] ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
  context->peers = 0;
  set_default_limits(context);
}

static CUcontext new_context(int device, bool primary, unsigned flags) {
  static uint64_t ids;
  CUcontext context = calloc(1, sizeof *context);
  context->device = device;
  context->primary = primary;
  context->flags = flags;
  context->id = ++ids;
  context->next = contexts;
  contexts = context;
  return context;
}

static bool is_context(CUcontext context) {
  bool is = false;
  sc_lock();
  for (CUcontext each = contexts; each && !is; each = each->next) is = each == context;
  sc_unlock();
  return is;
}

/* NULL means the current one where a call allows it. */
CUresult sc_context_usable(CUcontext context) {
  if (!context || !is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return context->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void sc_set_sticky(CUcontext context, CUresult error) {
  sc_lock();
  if (!context->sticky) context->sticky = error;
  if (error == CUDA_ERROR_DEVICE_UNAVAILABLE) lost[context->device] = true;
  sc_changed();
  sc_unlock();
}

void sc_forget_sticky(CUcontext context) {
  if (context->alive && !lost[context->device]) context->sticky = CUDA_SUCCESS;
}

/* ---- primary contexts ---------------------------------------------------------------------- */

CUcontext sc_primary(int device) {
  sc_lock();
  if (!primaries[device]) primaries[device] = new_context(device, true, 0);
  CUcontext context = primaries[device];
  sc_unlock();
  return context;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  ENTER_ANYWAY;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (lost[device]) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  CUcontext context = sc_primary(device);
  sc_lock();
  if (!context->alive) begin(context);
  context->retained++;
  sc_unlock();
  *out = context;
  return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  ENTER_ANYWAY;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  *flags = sc_primary(device)->flags;
  *active = sc_primary(device)->alive;
  return CUDA_SUCCESS;
}

/* The three lowest bits choose one way to wait; the others are single flags. */
static bool good_flags(unsigned flags) {
  unsigned way = flags & CU_CTX_SCHED_MASK;
  return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) && !(way & (way - 1));
}

API CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  ENTER_ANYWAY;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  sc_primary(device)->flags = flags;
  return CUDA_SUCCESS;
}

/* ---- contexts of the program --------------------------------------------------------------- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice device) {
  if (!out || !good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (lost[device]) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  sc_lock();
  CUcontext context = new_context(device, false, flags);
  begin(context);
  sc_unlock();
  push(context); /* Driver API, cuCtxCreate: the new context is current to the calling thread */
  *out = context;
  return CUDA_SUCCESS;
}

API CUresult cuCtxCreate(CUcontext *out, CUctxCreateParams *params, unsigned flags,
                         CUdevice device) {
  ENTER_ANYWAY;
  if (params && (params->numExecAffinityParams || params->cigParams))
    return CUDA_ERROR_NOT_SUPPORTED;
  return create(out, flags, device);
}

/* What programs of CUDA 11 and 12 ask for; cuda.h keeps their prototypes to itself. */
API CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  ENTER_ANYWAY;
  return create(out, flags, device);
}

API CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int count, unsigned flags,
                            CUdevice device) {
  ENTER_ANYWAY;
  if (params || count) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(out, flags, device);
}

/* ---- the stack of current contexts --------------------------------------------------------- */

/* What may be made current. The handle of a primary context outlives its release: cuda-core
 * keeps it for each thread and makes it current again after numba.cuda.close() has reset the
 * device, which the documentation does not describe and NVIDIA's driver allows. */
static CUresult prepare(CUcontext context) {
  if (!is_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  sc_lock();
  if (context->primary && !context->alive) begin(context);
  sc_unlock();
  return sc_context_usable(context);
}

API CUresult cuCtxPushCurrent(CUcontext context) {
  ENTER_ANYWAY;
  CUresult wrong = prepare(context);
  if (!wrong) push(context);
  return wrong;
}

API CUresult cuCtxPopCurrent(CUcontext *out) {
  ENTER_ANYWAY;
  if (!stack.depth) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext top = stack.items[--stack.depth];
  if (out) *out = top;
  return CUDA_SUCCESS;
}

/* Driver API, cuCtxSetCurrent: replaces the top of the stack; NULL pops it. */
API CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER_ANYWAY;
  CUresult wrong = context ? prepare(context) : CUDA_SUCCESS;
  if (wrong) return wrong;
  if (stack.depth) stack.depth--;
  if (context) push(context);
  return CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *out) {
  ENTER_ANYWAY;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = sc_current();
  return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *out) {
  ENTER_ANYWAY;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(sc_current());
  if (!wrong) *out = sc_current()->device;
  return wrong;
}

API CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext context) {
  ENTER_ANYWAY;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(context ? context : sc_current());
  if (!wrong) *out = (context ? context : sc_current())->device;
  return wrong;
}

/* ---- what a context tells ------------------------------------------------------------------- */

API CUresult cuCtxGetFlags(unsigned *flags) {
  ENTER;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(sc_current());
  if (!wrong) *flags = sc_current()->flags;
  return wrong;
}

API CUresult cuCtxSetFlags(unsigned flags) {
  ENTER;
  if (!good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(sc_current());
  if (!wrong) sc_current()->flags = flags;
  return wrong;
}

API CUresult cuCtxGetId(CUcontext context, unsigned long long *id) {
  ENTER;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(context ? context : sc_current());
  if (!wrong) *id = (context ? context : sc_current())->id;
  return wrong;
}

API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  ENTER;
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(context ? context : sc_current());
  if (!wrong) *version = 3020; /* of the contexts of cuCtxCreate_v2 and later ones */
  return wrong;
}

/* Six levels, as devices of compute capability 7.0 and later have. */
API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  ENTER;
  CUresult wrong = sc_context_usable(sc_current());
  if (wrong) return wrong;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

/* Driver API, cuCtxSetLimit: the depth of cuLimitDevRuntimeSyncDepth is of devices before 9.0. */
static bool has_limit(CUlimit limit) {
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) return sc_option.capability < 90;
  return limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

API CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  ENTER;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(sc_current());
  if (wrong) return wrong;
  if (!has_limit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = sc_current()->limits[limit];
  return CUDA_SUCCESS;
}

API CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  ENTER;
  CUresult wrong = sc_context_usable(sc_current());
  if (wrong) return wrong;
  if (!has_limit(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH && value > 24) return CUDA_ERROR_INVALID_VALUE;
  if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE) value = 0; /* a hint; there is no such cache */
  sc_current()->limits[limit] = value;
  return CUDA_SUCCESS;
}

/* Driver API, cuCtxGetCacheConfig: "CU_FUNC_CACHE_PREFER_NONE on devices where the size of the L1
 * cache and shared memory are fixed". */
API CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
  ENTER;
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = sc_context_usable(sc_current());
  if (!wrong) *config = CU_FUNC_CACHE_PREFER_NONE;
  return wrong;
}

API CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  ENTER;
  if (config > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  return sc_context_usable(sc_current());
}

/* ---- peers (Driver API, "Peer Context Memory Access") -------------------------------------- */

API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  ENTER;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (sc_context_usable(sc_current()) || sc_context_usable(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext context = sc_current();
  if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
  sc_lock();
  bool before = context->peers >> peer->device & 1;
  context->peers |= 1u << peer->device;
  sc_unlock();
  return before ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

API CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  ENTER;
  if (sc_context_usable(sc_current()) || sc_context_usable(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  CUcontext context = sc_current();
  sc_lock();
  bool before = context->peers >> peer->device & 1;
  context->peers &= ~(1u << peer->device);
  sc_unlock();
  return before ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
