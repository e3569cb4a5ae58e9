/* Objects that a program holds, with a lifetime (handles.c). */
#pragma once
#include "base.h"

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
/* Reports every object of a context that is still alive. */
void sc_report_leaks(CUcontext context);
/* Marks all objects of a context destroyed. */
void sc_objects_end(CUcontext context);
