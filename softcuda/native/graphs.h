/* What graphs are made of. For graphs.c, nodes.c, captures.c and plans.c. */
#pragma once
#include "driver.h"

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

/* What the parameters of a node say, as work. The result is new and belongs to the caller. */
CUresult sc_work_of(const CUgraphNodeParams *what, const char *call, sc_work **made);
/* Parameters of one kind in the form of those of any node. */
CUgraphNodeParams sc_kernel_parameters(const CUDA_KERNEL_NODE_PARAMS *what);
CUgraphNodeParams sc_fill_parameters(const CUDA_MEMSET_NODE_PARAMS *what);

/* user_objects.c */
void sc_references_copy(CUgraph to, CUgraph from);
void sc_references_free(CUgraph graph);
