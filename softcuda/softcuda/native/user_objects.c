/* User objects: what graphs keep alive for a program (Guide, "CUDA User Objects"). */
#include "contexts.h"
#include "graphs.h"
#include "lock.h"

struct CUuserObject_st {
  uint64_t references; /* of the program and of graphs */
  CUhostFn destroy;
  void *data;
  CUuserObject next;
};

static CUuserObject objects;

static bool is_object(CUuserObject object) {
  for (CUuserObject each = objects; each; each = each->next)
    if (each == object) return true;
  return false;
}

static void *destroy(void *argument) {
  CUuserObject object = argument;
  object->destroy(object->data);
  free(object);
  return NULL;
}

/* "Destructor callbacks [...] are executed by a shared internal thread": never by one of the
 * program, and never under the lock. */
static void release(CUuserObject object, uint64_t count) {
  object->references -= count < object->references ? count : object->references;
  if (object->references) return;
  CUuserObject *at = &objects;
  while (*at != object) at = &(*at)->next;
  *at = object->next;
  pthread_t thread;
  if (!pthread_create(&thread, NULL, destroy, object)) pthread_detach(thread);
}

API CUresult cuUserObjectCreate(CUuserObject *made, void *data, CUhostFn destroy_call,
                                unsigned references, unsigned flags) {
  ENTER;
  if (!made || !destroy_call || !references || references > INT32_MAX ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  CUuserObject object = malloc(sizeof *object);
  sc_lock();
  *object = (struct CUuserObject_st){
    .references = references, .destroy = destroy_call, .data = data, .next = objects};
  objects = object;
  sc_unlock();
  *made = object;
  return CUDA_SUCCESS;
}

static CUresult change_count(CUuserObject object, unsigned count, bool more) {
  if (!count || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  bool known = is_object(object);
  if (known && more) object->references += count;
  else if (known) release(object, count);
  sc_unlock();
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  ENTER;
  return change_count(object, count, true);
}

API CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  ENTER;
  return change_count(object, count, false);
}

static sc_reference *find_reference(CUgraph graph, CUuserObject object) {
  for (int i = 0; i < graph->reference_count; i++)
    if (graph->references[i].object == object) return &graph->references[i];
  return NULL;
}

static void add_reference(CUgraph graph, CUuserObject object, unsigned count) {
  sc_reference *there = find_reference(graph, object);
  if (there) {
    there->count += count;
    return;
  }
  size_t bytes = (size_t)(graph->reference_count + 1) * sizeof *graph->references;
  graph->references = realloc(graph->references, bytes);
  graph->references[graph->reference_count++] = (sc_reference){.object = object, .count = count};
}

API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count,
                                     unsigned flags) {
  ENTER;
  if (!count || count > INT32_MAX || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(graph, SC_GRAPH, __func__)) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  bool known = is_object(object);
  if (known) {
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE)) object->references += count;
    add_reference(graph, object, count);
  }
  sc_unlock();
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  ENTER;
  if (!count || !sc_object_ok(graph, SC_GRAPH, __func__)) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  sc_reference *reference = find_reference(graph, object);
  bool valid = reference && reference->count >= count;
  if (valid) {
    release(object, count);
    reference->count -= count;
    if (!reference->count) *reference = graph->references[--graph->reference_count];
  }
  sc_unlock();
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* "the references [...] are also owned by clones, child graphs and executable graphs" */
void sc_references_copy(CUgraph to, CUgraph from) {
  for (int i = 0; i < from->reference_count; i++) {
    from->references[i].object->references++;
    add_reference(to, from->references[i].object, 1);
  }
}

void sc_references_free(CUgraph graph) {
  for (int i = 0; i < graph->reference_count; i++)
    release(graph->references[i].object, graph->references[i].count);
  free(graph->references);
  graph->references = NULL;
  graph->reference_count = 0;
}
