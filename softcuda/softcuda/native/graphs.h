/* Queued work, and graphs of it: made, copied and freed (work.c, user_objects.c). */
#pragma once
#include "handles.h"
#include "launch.h"

enum sc_work_kind { SC_WORK_KERNEL, SC_WORK_COPY, SC_WORK_FILL, SC_WORK_RECORD, SC_WORK_WAIT_EVENT,
                    SC_WORK_WAIT_VALUE, SC_WORK_WRITE_VALUE, SC_WORK_CALL, SC_WORK_CALLBACK,
                    SC_WORK_GRAPH, SC_WORK_ALLOCATE, SC_WORK_FREE, SC_WORK_NOTHING };

/* One piece of queued work; also what a node of a graph does. */
typedef struct sc_work {
  enum sc_work_kind kind;
  sc_launch *launch;                    /* owned */
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

/* A node of a graph that a program holds is an object of handles.c; those of a plan are not. */
struct CUgraphNode_st {
  sc_object object;
  struct CUgraph_st *graph;
  CUgraphNodeType type;
  sc_work *work;                /* what it does; NULL: nothing, or all of `child`. Owned */
  struct CUgraph_st *child;     /* owned */
  struct CUgraphNode_st **from; /* the nodes that it depends on; owned */
  int from_count;
  struct CUgraphNode_st *original; /* of a clone: the node that it was cloned from */
  void **arguments;             /* of a kernel, as its parameters are asked for; owned */
  bool disabled;                /* in a plan */
  int place;                    /* among the nodes of its graph */
};

/* References to a user object that a graph owns. */
typedef struct sc_reference {
  CUuserObject object;
  unsigned count;
} sc_reference;

struct CUgraph_st {
  sc_object object;
  struct CUgraphNode_st **nodes; /* owned, in the order in which they were added */
  int count, room;
  struct CUgraph_st *original;   /* of a clone */
  bool program;                  /* a program holds it and its nodes, or may ask for them */
  bool capturing;                /* a capture adds to it */
  bool given;                    /* to the capture by the program: it outlives a failure */
  sc_reference *references;      /* owned */
  int reference_count;
};

/* All of these need the lock. */
CUgraph sc_graph_new(bool program);
/* A graph like another; `program`: with nodes that the program may ask for. */
CUgraph sc_graph_clone(CUgraph graph, bool program);
void sc_graph_free(CUgraph graph);
/* A new node, which takes the work. `from` is copied. */
CUgraphNode sc_node_new(CUgraph graph, CUgraphNodeType type, sc_work *work, CUgraphNode const *from,
                        size_t count);
/* The type of the node that does this work. */
CUgraphNodeType sc_node_type(const sc_work *work);
/* Puts other work in place of that of a node. */
void sc_node_set_work(CUgraphNode node, sc_work *work);
/* Gives a graph to a node, which owns it from then on. */
void sc_node_set_child(CUgraphNode node, CUgraph child);
sc_work *sc_work_copy(const sc_work *work);
/* Adds a node unless it is among the `count` ones. */
void sc_add_node(CUgraphNode **nodes, int *count, CUgraphNode node);
void sc_node_free(CUgraphNode node);
void sc_work_free(sc_work *work);

/* What an executable graph was when it was launched; later changes of it leave that as it is. */
typedef struct sc_plan {
  uint64_t users; /* executable graphs and launches */
  CUgraph graph;
  int **after;      /* for each node the places of those that depend on it; -1 ends them */
} sc_plan;

/* A plan of a graph as it is now, with one user. */
sc_plan *sc_plan_new(CUgraph graph);
/* One user less; the last one frees it. */
void sc_plan_leave(sc_plan *plan);
/* For a plan on the stack, of a graph that it does not own. */
void sc_plan_begin(sc_plan *plan, CUgraph graph);
void sc_plan_end(sc_plan *plan);
/* Calls `visit` for each node after those that it depends on, and answers for how many. Nodes
 * that do not depend on each other come in the order that was asked for threads and blocks: a
 * dependency that was forgotten is seen sooner so. */
int sc_plan_walk(const sc_plan *plan, void (*visit)(CUgraphNode, void *), void *data);

/* user_objects.c */
void sc_references_copy(CUgraph to, CUgraph from);
void sc_references_free(CUgraph graph);
