/* Objects that a program holds. None is ever given back to the heap, so that the use of one that
 * was destroyed, or of a pointer that never was one, is seen rather than a crash. */
#include "handles.h"
#include "reports.h"

enum { SC_MAGIC = 0x53434f42 };

/* All addresses that were handed out, in a table with linear probing; its room is a power of
 * two. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static sc_object **registry;
static size_t registry_room, registry_count;
static sc_object *newest;
static uint64_t numbers[SC_POOL + 1]; /* how many of each kind there were */

static const struct {
  const char *name, *end; /* the call that ends it; NULL: its owner does */
} kinds[] = {
    [SC_STREAM] = {"stream", "cuStreamDestroy"},
    [SC_EVENT] = {"event", "cuEventDestroy"},
    [SC_GRAPH] = {"graph", "cuGraphDestroy"},
    [SC_GRAPH_EXEC] = {"executable graph", "cuGraphExecDestroy"},
    [SC_NODE] = {"node of a graph", NULL},
    [SC_LIBRARY] = {"module or library", "cuModuleUnload or cuLibraryUnload"},
    [SC_KERNEL] = {"kernel", NULL},
    [SC_LINK] = {"linker", "cuLinkDestroy"},
    [SC_POOL] = {"memory pool", "cuMemPoolDestroy"},
};

static size_t slot_of(const void *handle, sc_object **table, size_t room) {
  size_t slot = ((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15ull >> 20 & (room - 1);
  while (table[slot] && table[slot] != handle) slot = (slot + 1) & (room - 1);
  return slot;
}

static void grow_registry(void) {
  size_t room = registry_room ? 2 * registry_room : 256;
  sc_object **table = calloc(room, sizeof *table);
  for (size_t i = 0; i < registry_room; i++)
    if (registry[i]) table[slot_of(registry[i], table, room)] = registry[i];
  free(registry);
  registry = table;
  registry_room = room;
}

void *sc_object_new(enum sc_kind kind, size_t bytes, CUcontext context) {
  sc_object *object = calloc(1, bytes);
  if (!object) return NULL;
  pthread_mutex_lock(&registry_lock);
  *object = (sc_object){.kind = kind, .magic = SC_MAGIC, .alive = true,
                        .number = ++numbers[kind], .context = context, .next = newest};
  newest = object;
  if (2 * ++registry_count > registry_room) grow_registry();
  registry[slot_of(object, registry, registry_room)] = object;
  pthread_mutex_unlock(&registry_lock);
  return object;
}

static const char *article(const char *noun) { return strchr("aeiou", noun[0]) ? "an" : "a"; }

/* What is wrong with a handle, as a sentence in `text`; false where nothing is. */
static bool wrong_with(const void *handle, enum sc_kind kind, const char *call, char *text,
                       size_t room) {
  const sc_object *object =
      handle && registry_room ? registry[slot_of(handle, registry, registry_room)] : NULL;
  const char *wanted = kinds[kind].name;
  if (!handle)
    snprintf(text, room, "%s was given NULL, and needs %s %s", call, article(wanted), wanted);
  else if (!object)
    snprintf(text, room, "%s was given %p, which is no %s", call, handle, wanted);
  else if (object->kind != kind)
    snprintf(text, room, "%s was given %s %s, and needs %s %s", call,
             article(kinds[object->kind].name), kinds[object->kind].name, article(wanted), wanted);
  else if (!object->alive)
    snprintf(text, room, "%s was given %s %llu, which was destroyed before", call, wanted,
             (unsigned long long)object->number);
  else
    return false;
  return true;
}

bool sc_object_ok(const void *handle, enum sc_kind kind, const char *call) {
  sc_report report = {.kind = "handle"};
  pthread_mutex_lock(&registry_lock);
  bool wrong = wrong_with(handle, kind, call, report.text, sizeof report.text);
  pthread_mutex_unlock(&registry_lock);
  if (wrong) sc_report_add(&report);
  return !wrong;
}

CUresult sc_object_end(void *handle, enum sc_kind kind, const char *call) {
  if (!sc_object_ok(handle, kind, call)) return CUDA_ERROR_INVALID_HANDLE;
  ((sc_object *)handle)->alive = false;
  return CUDA_SUCCESS;
}

void sc_objects_end(CUcontext context) {
  pthread_mutex_lock(&registry_lock);
  for (sc_object *object = newest; object; object = object->next)
    if (object->context == context) object->alive = false;
  pthread_mutex_unlock(&registry_lock);
}

void sc_report_leaks(CUcontext context) {
  pthread_mutex_lock(&registry_lock);
  const sc_object *first = newest;
  pthread_mutex_unlock(&registry_lock);
  for (const sc_object *object = first; object; object = object->next) {
    if (!object->alive || object->context != context || !kinds[object->kind].end) continue;
    sc_report report = {.kind = "leak"};
    snprintf(report.text, sizeof report.text,
             "%s %llu was alive when its context ended; %s ends it", kinds[object->kind].name,
             (unsigned long long)object->number, kinds[object->kind].end);
    sc_report_add(&report);
  }
}
