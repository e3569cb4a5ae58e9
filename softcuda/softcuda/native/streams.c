/* Streams: each is a thread that runs the work of its queue, one piece after the other. */
#include "captures.h"
#include "contexts.h"
#include "lock.h"
#include "memory.h"
#include "options.h"
#include "queue.h"
#include "running.h"

#include <signal.h>

enum { LOWEST_PRIORITY = 0, GREATEST_PRIORITY = -5 }; /* as cuCtxGetStreamPriorityRange says */

/* Guide, "Stream synchronization behavior": the legacy default stream and all streams of its
 * context wait for each other, but for those created as CU_STREAM_NON_BLOCKING. */
static bool is_blocking(CUstream stream) { return !(stream->flags & CU_STREAM_NON_BLOCKING); }

/* ---- the thread of a stream ------------------------------------------------------------------ */

/* A delay on command: work starts later than it could. */
static void delay(CUstream stream) {
  const sc_command *command = sc_commanded(SC_DELAY, NULL, stream->number);
  if (!command) return;
  double until = sc_now() + (double)command->value * 1e-6, left;
  sc_lock();
  while ((left = until - sc_now()) > 0 && !sc_is_dropped(stream)) sc_wait_at_most(left);
  sc_unlock();
}

static void wait_for_streams(const sc_work *work, CUstream stream) {
  for (int i = 0; i < work->wait_count; i++)
    while (work->waits[i].stream->done < work->waits[i].upto && !sc_is_dropped(stream)) sc_wait();
}

static void *run_stream(void *argument) {
  CUstream stream = argument;
  sc_lock();
  for (;;) {
    while (!stream->head && !stream->stop) sc_wait_for(&stream->given);
    sc_work *work = stream->head;
    if (!work || sc_is_exiting()) break;
    wait_for_streams(work, stream);
    sc_unlock();
    delay(stream);
    sc_run(work, stream);
    sc_lock();
    stream->head = work->next;
    if (!stream->head) stream->tail = NULL;
    stream->done++;
    sc_changed();
    sc_work_free(work);
  }
  stream->started = false;
  sc_unlock();
  return NULL;
}

/* The thread is detached, so that the end of the process waits for no stream. Signals of the
 * program are handled by its own threads; those of a fault must come here, and those above
 * SIGRTMIN may be meant for a kernel that takes too long. */
static CUresult start(CUstream stream) {
  sigset_t blocked, former;
  sigfillset(&blocked);
  static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) sigdelset(&blocked, kept[i]);
  for (int i = SIGRTMIN; i <= SIGRTMAX; i++) sigdelset(&blocked, i);
  pthread_sigmask(SIG_SETMASK, &blocked, &former);
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  int failed = pthread_create(&stream->thread, &detached, run_stream, stream);
  pthread_attr_destroy(&detached);
  pthread_sigmask(SIG_SETMASK, &former, NULL);
  stream->started = !failed;
  return failed ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* ---- queueing -------------------------------------------------------------------------------- */

static void wait_for(sc_work *work, CUstream other, uint64_t upto) {
  if (other->done >= upto) return;
  work->waits = realloc(work->waits, (size_t)(work->wait_count + 1) * sizeof *work->waits);
  work->waits[work->wait_count++] = (struct sc_wait_for){.stream = other, .upto = upto};
}

/* What the order of streams asks for (Guide, "Stream synchronization behavior"). */
static void wait_for_default_streams(sc_work *work, CUstream stream) {
  CUcontext context = stream->object.context;
  CUstream *all = sc_streams.items;
  if (sc_is_legacy(stream)) {
    for (int i = 0; i < sc_streams.count; i++)
      if (all[i] != stream && all[i]->object.context == context && is_blocking(all[i]))
        wait_for(work, all[i], all[i]->queued);
  } else if (is_blocking(stream) && context->legacy) {
    wait_for(work, context->legacy, context->legacy->queued);
  }
}

static void append(CUstream stream, sc_work *work) {
  wait_for_default_streams(work, stream);
  if (work->kind == SC_WORK_WAIT_EVENT && work->event->stream)
    wait_for(work, work->event->stream, work->event->position);
  stream->queued++;
  if (work->kind == SC_WORK_RECORD) {
    work->ticket = ++work->event->queued;
    work->event->stream = stream;
    work->event->position = stream->queued;
  }
  if (stream->tail) stream->tail->next = work;
  else stream->head = work;
  stream->tail = work;
  pthread_cond_signal(&stream->given);
}

static CUresult why_not(CUstream stream) {
  if (stream->object.context->sticky) return stream->object.context->sticky;
  if (stream->abandoned) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream->capture == SC_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUresult error = sc_is_legacy(stream) ? sc_refuse_implicit(stream) : CUDA_SUCCESS;
  return error || stream->started || stream->capture ? error : start(stream);
}

CUresult sc_queue(CUstream stream, const sc_work *given) {
  sc_work *work = malloc(sizeof *work);
  *work = *given;
  work->next = NULL;
  sc_lock();
  CUresult error = why_not(stream);
  if (!error && stream->capture) {
    error = sc_capture_work(stream, work);
    if (!error) free(work); /* its owned parts belong to a node now */
  } else if (!error) {
    append(stream, work);
  }
  if (error) sc_work_free(work);
  sc_unlock();
  return error;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static CUresult wait_until(CUstream stream, uint64_t upto) {
  CUcontext context = stream->object.context;
  if (stream->done >= upto || context->sticky) return context->sticky;
  bool hears = sc_hear_interrupts();
  while (stream->done < upto && !context->sticky) sc_wait_for_work(hears, context);
  sc_end_hearing(hears);
  return context->sticky;
}

CUresult sc_drain(CUstream stream) {
  sc_lock();
  CUresult error = wait_until(stream, stream->queued);
  sc_unlock();
  return error;
}

CUresult sc_drain_context(CUcontext context) {
  sc_lock();
  int count = 0;
  struct sc_wait_for *all = malloc((size_t)(sc_streams.count + 1) * sizeof *all);
  for (int i = 0; i < sc_streams.count; i++) {
    CUstream stream = sc_streams.items[i];
    if (stream->object.context == context)
      all[count++] = (struct sc_wait_for){.stream = stream, .upto = stream->queued};
  }
  for (int i = 0; i < count; i++) wait_until(all[i].stream, all[i].upto);
  free(all);
  CUresult error = context->sticky;
  sc_unlock();
  return error;
}

void sc_context_work_end(CUcontext context) {
  int count = 0;
  CUstream *ending = malloc((size_t)(sc_streams.count + 1) * sizeof *ending);
  for (int i = 0; i < sc_streams.count; i++)
    if (sc_streams.items[i]->object.context == context) ending[count++] = sc_streams.items[i];
  for (int i = 0; i < count; i++) {
    ending[i]->abandoned = true;
    sc_stream_stop(ending[i]);
    sc_drop_capture(ending[i]);
  }
  sc_changed();
  for (int i = 0; i < count; i++)
    while (ending[i]->head && !sc_is_exiting()) sc_wait();
  free(ending);
  context->legacy = NULL;
}

static const double MOST_RECOVERY = 10; /* seconds; a kernel of another stream may never end */

/* Until the streams of a context have dropped what was queued, or done it. Needs the lock. */
static bool is_idle_soon(CUcontext context) {
  double until = sc_now() + MOST_RECOVERY;
  for (int i = 0; i < sc_streams.count; i++) {
    CUstream stream = sc_streams.items[i];
    while (stream->object.context == context && stream->done < stream->queued) {
      if (sc_is_exiting() || sc_now() >= until) return false;
      sc_wait_at_most(0.1);
      if (i >= sc_streams.count || sc_streams.items[i] != stream) return is_idle_soon(context);
    }
  }
  return true;
}

static void recover(CUcontext context) {
  if (context->alive && context->sticky && is_idle_soon(context)) sc_forget_sticky(context);
}

/* A program goes on after a fault, as on no device: its contexts answer no error any more. What the
 * fault had them drop stays undone. */
API void softcuda_recover(void) {
  sc_lock();
  sc_contexts_each(recover);
  sc_unlock();
}

/* ---- creating and destroying (Driver API, Stream Management) --------------------------------- */

static int clamp_priority(int priority) {
  return priority > LOWEST_PRIORITY     ? LOWEST_PRIORITY
         : priority < GREATEST_PRIORITY ? GREATEST_PRIORITY
                                        : priority;
}

static CUresult create(CUstream *made, unsigned flags, int priority) {
  CUcontext context = sc_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!made || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  /* cuStreamCreateWithPriority: "it will automatically be clamped". It has no effect here, which
   * is allowed: "a hint". */
  *made = sc_stream_new(context, flags, clamp_priority(priority));
  sc_unlock();
  return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *made, unsigned flags) {
  ENTER;
  return create(made, flags, 0);
}

API CUresult cuStreamCreateWithPriority(CUstream *made, unsigned flags, int priority) {
  ENTER;
  return create(made, flags, priority);
}

/* "the function will return immediately and the resources [...] will be released automatically once
 * the device has completed all work". Handles are given back after an error too. */
API CUresult cuStreamDestroy(CUstream handle) {
  CUresult sticky = sc_enter(__func__);
  if (sticky == CUDA_ERROR_NOT_INITIALIZED || sticky == CUDA_ERROR_NOT_PERMITTED) return sticky;
  if (sc_is_default_stream(handle)) return CUDA_ERROR_INVALID_HANDLE;
  sc_lock();
  CUresult error = sc_object_end(handle, SC_STREAM, __func__);
  if (!error) {
    sc_drop_capture(handle);
    sc_stream_stop(handle);
  }
  sc_unlock();
  return error ? error : sticky;
}

/* ---- waiting and asking ---------------------------------------------------------------------- */

/* Guide, "Prohibited and Unhandled Operations" of stream capture: "It is invalid to synchronize or
 * query the execution status of a stream which is being captured". */
static CUresult refuse_captured(CUstream stream) {
  sc_lock();
  CUresult error = CUDA_SUCCESS;
  if (stream->capture == SC_CAPTURING) {
    sc_invalidate_capture(stream);
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else if (stream->capture == SC_INVALIDATED) {
    error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (sc_is_legacy(stream)) {
    error = sc_refuse_implicit(stream);
  }
  sc_unlock();
  return error ? error : sc_refuse_while_capturing();
}

API CUresult cuStreamSynchronize(CUstream handle) {
  ENTER;
  CUstream stream;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  if (!error) error = refuse_captured(stream);
  /* An action in the legacy stream waits for all blocking streams (Guide, "Stream synchronization
   * behavior"); without work of its own it would not. */
  if (!error && sc_is_legacy(stream)) error = sc_queue(stream, &(sc_work){.kind = SC_WORK_NOTHING});
  return error ? error : sc_drain(stream);
}

API CUresult cuStreamQuery(CUstream handle) {
  ENTER;
  CUstream stream;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  if (!error) error = refuse_captured(stream);
  if (error) return error;
  sc_lock();
  bool ready = stream->done == stream->queued;
  for (int i = 0; sc_is_legacy(stream) && i < sc_streams.count; i++) {
    CUstream each = sc_streams.items[i];
    if (each->object.context == stream->object.context && is_blocking(each))
      ready = ready && each->done == each->queued;
  }
  sc_unlock();
  if (stream->object.context->sticky) return stream->object.context->sticky;
  return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

#define STREAM_OR_RETURN(condition)                                                                \
  CUstream stream;                                                                                 \
  do {                                                                                             \
    if (!(condition)) return CUDA_ERROR_INVALID_VALUE;                                             \
    CUresult wrong_ = sc_stream_of(handle, __func__, &stream);                                     \
    if (wrong_) return wrong_;                                                                     \
  } while (0)

API CUresult cuStreamGetPriority(CUstream handle, int *priority) {
  ENTER;
  STREAM_OR_RETURN(priority);
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

API CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
  ENTER;
  STREAM_OR_RETURN(flags);
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

API CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
  ENTER;
  STREAM_OR_RETURN(id);
  *id = stream->object.number;
  return CUDA_SUCCESS;
}

API CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
  ENTER;
  STREAM_OR_RETURN(device);
  *device = stream->object.context->device;
  return CUDA_SUCCESS;
}

API CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green) {
  ENTER;
  STREAM_OR_RETURN(context && green);
  *context = stream->object.context;
  *green = NULL;
  return CUDA_SUCCESS;
}

#undef cuStreamGetCtx
API CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
  ENTER;
  STREAM_OR_RETURN(context);
  *context = stream->object.context;
  return CUDA_SUCCESS;
}

/* Of the attributes, only the priority has a value that a program could ask for again; the others
 * are hints about caches and about how to wait. */
API CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute,
                                  CUstreamAttrValue *value) {
  ENTER;
  STREAM_OR_RETURN(value);
  memset(value, 0, sizeof *value);
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = stream->priority;
  if (attribute == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
    value->syncPolicy = CU_SYNC_POLICY_AUTO;
  return CUDA_SUCCESS;
}

API CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                  const CUstreamAttrValue *value) {
  ENTER;
  STREAM_OR_RETURN(value);
  if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY)
    stream->priority = clamp_priority(value->priority);
  return CUDA_SUCCESS;
}

API CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  ENTER;
  CUstream target, source;
  CUresult error = sc_stream_of(to, __func__, &target);
  if (!error) error = sc_stream_of(from, __func__, &source);
  if (error) return error;
  /* "Both streams must have the same context" */
  if (target->object.context != source->object.context) return CUDA_ERROR_INVALID_VALUE;
  target->priority = source->priority;
  return CUDA_SUCCESS;
}

/* ---- functions of the host ------------------------------------------------------------------- */

API CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data,
                                 unsigned flags) {
  ENTER;
  STREAM_OR_RETURN(callback && !flags);
  /* "this function is not supported with cuStreamBeginCapture and cuStreamEndCapture" */
  sc_lock();
  bool capturing = stream->capture == SC_CAPTURING;
  if (capturing) sc_invalidate_capture(stream);
  sc_unlock();
  if (capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  /* The callback is given the handle as the program named it. */
  return sc_queue(stream, &(sc_work){.kind = SC_WORK_CALLBACK, .callback = callback, .data = data,
                                     .from = (uint64_t)handle});
}

static CUresult queue_call(CUstream handle, CUhostFn call, void *data, const char *name) {
  CUstream stream;
  if (!call) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sc_stream_of(handle, name, &stream);
  if (error) return error;
  return sc_queue(stream, &(sc_work){.kind = SC_WORK_CALL, .call = call, .data = data});
}

#undef cuLaunchHostFunc
API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn call, void *data) {
  ENTER;
  return queue_call(handle, call, data, __func__);
}

/* `mode` tells how the stream may wait for the function: by spinning or by blocking. */
API CUresult cuLaunchHostFunc_v2(CUstream handle, CUhostFn call, void *data, unsigned mode) {
  ENTER;
  (void)mode;
  return queue_call(handle, call, data, __func__);
}

/* ---- waiting for memory, and writing it (Driver API, Stream Memory Operations) --------------- */

static CUresult queue_value(CUstream handle, enum sc_work_kind kind, CUdeviceptr address,
                            uint64_t value, uint32_t bytes, unsigned flags, const char *call) {
  CUstream stream;
  CUresult error = sc_stream_of(handle, call, &stream);
  if (error) return error;
  unsigned allowed = kind == SC_WORK_WAIT_VALUE ? 3u | CU_STREAM_WAIT_VALUE_FLUSH
                                                : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  /* No remote writes are ever outstanding, yet CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0. */
  if (flags & CU_STREAM_WAIT_VALUE_FLUSH && kind == SC_WORK_WAIT_VALUE)
    return CUDA_ERROR_NOT_SUPPORTED;
  sc_lock();
  sc_allocation *at = sc_find(address);
  /* "None of the operations accepts pointers to managed memory buffers (cuMemAllocManaged)." */
  bool valid = at && !at->freed && at->kind != SC_MANAGED_MEMORY && address % bytes == 0 &&
               address + bytes <= at->at + at->size;
  sc_unlock();
  if (!valid || flags & ~allowed) return CUDA_ERROR_INVALID_VALUE;
  return sc_queue(stream, &(sc_work){.kind = kind, .to = address, .value = value,
                                     .element = bytes, .flags = flags});
}

API CUresult cuStreamWaitValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                 unsigned flags) {
  ENTER;
  return queue_value(handle, SC_WORK_WAIT_VALUE, address, value, 4, flags, __func__);
}

API CUresult cuStreamWaitValue64(CUstream handle, CUdeviceptr address, cuuint64_t value,
                                 unsigned flags) {
  ENTER;
  return queue_value(handle, SC_WORK_WAIT_VALUE, address, value, 8, flags, __func__);
}

API CUresult cuStreamWriteValue32(CUstream handle, CUdeviceptr address, cuuint32_t value,
                                  unsigned flags) {
  ENTER;
  return queue_value(handle, SC_WORK_WRITE_VALUE, address, value, 4, flags, __func__);
}

API CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr address, cuuint64_t value,
                                  unsigned flags) {
  ENTER;
  return queue_value(handle, SC_WORK_WRITE_VALUE, address, value, 8, flags, __func__);
}

static CUresult queue_operation(CUstream handle, const CUstreamBatchMemOpParams *what,
                                const char *call) {
  switch (what->operation) {
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    return queue_value(handle, SC_WORK_WAIT_VALUE, what->waitValue.address, what->waitValue.value,
                       4, what->waitValue.flags, call);
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    return queue_value(handle, SC_WORK_WAIT_VALUE, what->waitValue.address,
                       what->waitValue.value64, 8, what->waitValue.flags, call);
  case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    return queue_value(handle, SC_WORK_WRITE_VALUE, what->writeValue.address,
                       what->writeValue.value, 4, what->writeValue.flags, call);
  case CU_STREAM_MEM_OP_WRITE_VALUE_64:
    return queue_value(handle, SC_WORK_WRITE_VALUE, what->writeValue.address,
                       what->writeValue.value64, 8, what->writeValue.flags, call);
  case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS; /* work of a stream is in order anyway */
  default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

/* "up to 256" operations; they run in the order of the array. */
API CUresult cuStreamBatchMemOp(CUstream handle, unsigned count,
                                CUstreamBatchMemOpParams *operations, unsigned flags) {
  ENTER;
  if (!operations || !count || count > 256 || flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  for (unsigned i = 0; i < count && !error; i++)
    error = queue_operation(handle, &operations[i], __func__);
  return error;
}

/* Which stream may touch managed memory: here the host may at all times, and every stream. */
API CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t bytes,
                                    unsigned flags) {
  ENTER;
  STREAM_OR_RETURN(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST ||
                   flags == CU_MEM_ATTACH_SINGLE);
  sc_lock();
  sc_allocation *at = sc_find(address);
  bool valid = at && !at->freed && at->kind == SC_MANAGED_MEMORY &&
               (!bytes || bytes == at->size); /* "length must be zero" or the whole of it */
  sc_unlock();
  if (!valid) return CUDA_ERROR_INVALID_VALUE;
  return sc_queue(stream, &(sc_work){.kind = SC_WORK_NOTHING});
}
