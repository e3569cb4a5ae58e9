/* Which streams there are, and which one a handle means. */
#include "contexts.h"
#include "lock.h"
#include "streams.h"

#include <stdatomic.h>

sc_stream_list sc_streams;
static uint64_t created, defaults;
static atomic_bool null_is_per_thread, null_is_legacy;

void sc_use_per_thread_streams(void) { null_is_per_thread = !null_is_legacy; }

/* For a process in which NVIDIA's runtime asks for all functions of both kinds, as CuPy's does
 * where it is asked for the name of an error. */
API void softcuda_keep_default_stream(void) { null_is_legacy = true; }

void sc_streams_each(void (*visit)(CUstream, void *), void *data) {
  sc_lock();
  for (int i = 0; i < sc_streams.count; i++) visit(sc_streams.items[i], data);
  sc_unlock();
}

/* A stream that was destroyed is still part of a capture that it was drawn into. */
static bool is_over(CUstream stream) {
  return stream->stop && !stream->started && !stream->capture;
}

static void forget_ended(void) {
  int kept = 0;
  for (int i = 0; i < sc_streams.count; i++)
    if (!is_over(sc_streams.items[i])) sc_streams.items[kept++] = sc_streams.items[i];
  sc_streams.count = kept;
}

/* A thread without work is woken by its own: of a thousand streams, most have none. */
void sc_stream_stop(CUstream stream) {
  stream->stop = true;
  pthread_cond_signal(&stream->given);
}

static void remember(CUstream stream) {
  pthread_cond_init(&stream->given, NULL);
  forget_ended();
  if (sc_streams.count == sc_streams.room) {
    sc_streams.room = 2 * sc_streams.room + 16;
    sc_streams.items =
        realloc(sc_streams.items, (size_t)sc_streams.room * sizeof *sc_streams.items);
  }
  sc_streams.items[sc_streams.count++] = stream;
}

/* ---- which stream a handle means ------------------------------------------------------------- */

/* Default streams belong to a context or to a thread, not to the program: they are no objects of
 * handles.c, which would count them as leaks. They stay in memory as those do, since events and
 * queued work may still name them. */
static CUstream new_default_stream(CUcontext context, uint64_t number) {
  CUstream stream = calloc(1, sizeof *stream);
  stream->object = (sc_object){.kind = SC_STREAM, .alive = true, .context = context};
  /* Driver API, cuStreamGetId: unique; created streams count from 1. */
  stream->object.number = (1ull << 32) + defaults++;
  stream->number = number;
  remember(stream);
  return stream;
}

/* The default streams of one thread, one for each context (Guide, "Default Stream": "each host
 * thread has its own default stream"). */
typedef struct own_stream {
  CUstream stream;
  struct own_stream *next;
} own_stream;

static pthread_key_t own_streams;

static void end_own_streams(void *list) {
  for (own_stream *own = list, *next; own; own = next) {
    sc_lock();
    sc_stream_stop(own->stream);
    sc_unlock();
    next = own->next;
    free(own);
  }
}

__attribute__((constructor)) static void begin(void) {
  pthread_key_create(&own_streams, end_own_streams);
}

static CUstream per_thread_stream(CUcontext context) {
  own_stream *list = pthread_getspecific(own_streams);
  for (own_stream *own = list; own; own = own->next)
    if (own->stream->object.context == context && !own->stream->abandoned) return own->stream;
  own_stream *own = malloc(sizeof *own);
  *own = (own_stream){.stream = new_default_stream(context, ++created), .next = list};
  pthread_setspecific(own_streams, own);
  return own->stream;
}

static CUstream legacy_stream(CUcontext context) {
  if (!context->legacy) context->legacy = new_default_stream(context, 0);
  return context->legacy;
}

bool sc_is_default_stream(CUstream handle) {
  return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

CUstream sc_stream(CUstream handle, const char *call) {
  CUcontext context = sc_current();
  CUstream stream = NULL;
  sc_lock();
  if (!sc_is_default_stream(handle)) {
    if (context && handle == context->legacy) stream = handle; /* resolved before */
    else if (sc_object_ok(handle, SC_STREAM, call)) stream = handle;
  } else if (context) {
    bool own = handle == CU_STREAM_PER_THREAD || (!handle && null_is_per_thread);
    stream = own ? per_thread_stream(context) : legacy_stream(context);
  }
  sc_unlock();
  return stream;
}

CUresult sc_stream_of(CUstream handle, const char *call, CUstream *stream) {
  if (sc_is_default_stream(handle) && !sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = sc_stream(handle, call);
  return *stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool sc_is_legacy(CUstream stream) { return stream->object.context->legacy == stream; }

/* ---- new ones -------------------------------------------------------------------------------- */

CUstream sc_stream_new(CUcontext context, unsigned flags, int priority) {
  CUstream stream = sc_object_new(SC_STREAM, sizeof *stream, context);
  stream->flags = flags;
  stream->priority = priority;
  stream->number = ++created;
  remember(stream);
  return stream;
}
