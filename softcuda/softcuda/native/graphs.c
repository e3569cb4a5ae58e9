/* Graphs: nodes, the edges between them, and questions about both (Driver API, Graph
 * Management). */
#include "contexts.h"
#include "graphs.h"
#include "lock.h"

/* ---- graphs ---------------------------------------------------------------------------------- */

API CUresult cuGraphCreate(CUgraph *made, unsigned flags) {
  ENTER;
  if (!made || flags) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  *made = sc_graph_new(true);
  sc_unlock();
  return CUDA_SUCCESS;
}

/* The API has no CUDA_ERROR_INVALID_HANDLE for graphs: "CUDA_ERROR_INVALID_VALUE". */
#define GRAPH_OR_RETURN(graph)                                                                     \
  if (!sc_object_ok(graph, SC_GRAPH, __func__)) return CUDA_ERROR_INVALID_VALUE
#define NODE_OR_RETURN(node)                                                                       \
  if (!sc_object_ok(node, SC_NODE, __func__)) return CUDA_ERROR_INVALID_VALUE

API CUresult cuGraphDestroy(CUgraph graph) {
  CUresult sticky = sc_enter(__func__);
  if (sticky == CUDA_ERROR_NOT_INITIALIZED || sticky == CUDA_ERROR_NOT_PERMITTED) return sticky;
  GRAPH_OR_RETURN(graph);
  sc_lock();
  /* cuStreamGetCaptureInfo: "All operations other than destroy and node removal are permitted on
   * the graph while the capture sequence is in progress." */
  bool capturing = graph->capturing;
  if (!capturing) sc_graph_free(graph);
  sc_unlock();
  return capturing ? CUDA_ERROR_INVALID_VALUE : sticky;
}

API CUresult cuGraphClone(CUgraph *made, CUgraph graph) {
  ENTER;
  if (!made) return CUDA_ERROR_INVALID_VALUE;
  GRAPH_OR_RETURN(graph);
  sc_lock();
  *made = sc_graph_clone(graph, true);
  sc_unlock();
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone) {
  ENTER;
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  GRAPH_OR_RETURN(clone);
  NODE_OR_RETURN(original);
  for (int i = 0; i < clone->count; i++)
    if (clone->nodes[i]->original == original) {
      *found = clone->nodes[i];
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphGetId(CUgraph graph, unsigned *id) {
  ENTER;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  GRAPH_OR_RETURN(graph);
  *id = (unsigned)graph->object.number;
  return CUDA_SUCCESS;
}

/* ---- lists of nodes -------------------------------------------------------------------------- */

/* "nodes may be NULL, in which case this function will return the number [...] If numNodes is
 * higher than the actual number of nodes, the remaining entries in nodes will be set to NULL" */
static void give_nodes(CUgraphNode const *nodes, size_t count, CUgraphNode *out, size_t *room) {
  for (size_t i = 0; out && i < *room; i++) out[i] = i < count ? nodes[i] : NULL;
  if (!out || *room > count) *room = count;
}

API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *room) {
  ENTER;
  if (!room) return CUDA_ERROR_INVALID_VALUE;
  GRAPH_OR_RETURN(graph);
  give_nodes(graph->nodes, (size_t)graph->count, out, room);
  return CUDA_SUCCESS;
}

API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *out, size_t *room) {
  ENTER;
  if (!room) return CUDA_ERROR_INVALID_VALUE;
  GRAPH_OR_RETURN(graph);
  CUgraphNode *roots = NULL;
  int count = 0;
  for (int i = 0; i < graph->count; i++)
    if (!graph->nodes[i]->from_count) sc_add_node(&roots, &count, graph->nodes[i]);
  give_nodes(roots, (size_t)count, out, room);
  free(roots);
  return CUDA_SUCCESS;
}

/* Edges have no data here: "A zero-initialized struct indicates a standard full serialization". */
static void give_edge_data(CUgraphEdgeData *data, size_t count) {
  if (data) memset(data, 0, count * sizeof *data);
}

API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                             CUgraphEdgeData *data, size_t *room) {
  ENTER;
  if (!room || !from != !to) return CUDA_ERROR_INVALID_VALUE;
  GRAPH_OR_RETURN(graph);
  size_t count = 0;
  for (int i = 0; i < graph->count; i++)
    for (int j = 0; j < graph->nodes[i]->from_count; j++, count++)
      if (from && count < *room) {
        from[count] = graph->nodes[i]->from[j];
        to[count] = graph->nodes[i];
      }
  for (size_t i = count; from && i < *room; i++) from[i] = to[i] = NULL;
  if (!from || *room > count) *room = count;
  if (from) give_edge_data(data, *room);
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                        size_t *room) {
  ENTER;
  if (!room) return CUDA_ERROR_INVALID_VALUE;
  NODE_OR_RETURN(node);
  give_nodes(node->from, (size_t)node->from_count, out, room);
  if (out) give_edge_data(data, *room);
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out,
                                          CUgraphEdgeData *data, size_t *room) {
  ENTER;
  if (!room) return CUDA_ERROR_INVALID_VALUE;
  NODE_OR_RETURN(node);
  CUgraphNode *dependent = NULL;
  int count = 0;
  for (int i = 0; i < node->graph->count; i++)
    for (int j = 0; j < node->graph->nodes[i]->from_count; j++)
      if (node->graph->nodes[i]->from[j] == node)
        sc_add_node(&dependent, &count, node->graph->nodes[i]);
  give_nodes(dependent, (size_t)count, out, room);
  if (out) give_edge_data(data, *room);
  free(dependent);
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  ENTER;
  if (!type) return CUDA_ERROR_INVALID_VALUE;
  NODE_OR_RETURN(node);
  *type = node->type;
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetContainingGraph(CUgraphNode node, CUgraph *graph) {
  ENTER;
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  NODE_OR_RETURN(node);
  *graph = node->graph;
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetLocalId(CUgraphNode node, unsigned *id) {
  ENTER;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  NODE_OR_RETURN(node);
  *id = (unsigned)node->place;
  return CUDA_SUCCESS;
}

/* ---- edges ----------------------------------------------------------------------------------- */

API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    const CUgraphEdgeData *data, size_t count) {
  ENTER;
  (void)data;
  GRAPH_OR_RETURN(graph);
  if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    NODE_OR_RETURN(from[i]);
    NODE_OR_RETURN(to[i]);
    if (from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i])
      return CUDA_ERROR_INVALID_VALUE;
    for (int j = 0; j < to[i]->from_count; j++) /* "an existing dependency will return an error" */
      if (to[i]->from[j] == from[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  sc_lock();
  for (size_t i = 0; i < count; i++) sc_add_node(&to[i]->from, &to[i]->from_count, from[i]);
  sc_unlock();
  return CUDA_SUCCESS;
}

static bool remove_edge(CUgraphNode from, CUgraphNode to) {
  for (int i = 0; i < to->from_count; i++)
    if (to->from[i] == from) {
      memmove(to->from + i, to->from + i + 1, (size_t)(--to->from_count - i) * sizeof *to->from);
      return true;
    }
  return false;
}

API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *data,
                                       size_t count) {
  ENTER;
  (void)data;
  GRAPH_OR_RETURN(graph);
  if (count && (!from || !to)) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  sc_lock();
  for (size_t i = 0; i < count && !error; i++)
    if (!sc_object_ok(to[i], SC_NODE, __func__) || !remove_edge(from[i], to[i]))
      error = CUDA_ERROR_INVALID_VALUE; /* "an edge that does not exist in the graph" */
  sc_unlock();
  return error;
}

API CUresult cuGraphDestroyNode(CUgraphNode node) {
  ENTER;
  NODE_OR_RETURN(node);
  CUgraph graph = node->graph;
  if (graph->capturing) return CUDA_ERROR_INVALID_VALUE; /* see cuGraphDestroy */
  sc_lock();
  for (int i = 0; i < graph->count; i++) remove_edge(node, graph->nodes[i]);
  for (int i = node->place + 1; i < graph->count; i++) {
    graph->nodes[i]->place--;
    graph->nodes[i - 1] = graph->nodes[i];
  }
  graph->count--;
  sc_node_free(node);
  sc_unlock();
  return CUDA_SUCCESS;
}

/* ---- a picture ------------------------------------------------------------------------------- */

static const char *type_name(CUgraphNodeType type) {
  static const char *const names[] = {"kernel", "memcpy", "memset", "host", "graph", "empty",
                                      "event wait", "event record"};
  return type < sizeof names / sizeof *names ? names[type] : "memory operation";
}

API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags) {
  ENTER;
  (void)flags; /* how much of each node is told */
  GRAPH_OR_RETURN(graph);
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return CUDA_ERROR_INVALID_VALUE;
  fprintf(file, "digraph graph_%llu {\n", (unsigned long long)graph->object.number);
  for (int i = 0; i < graph->count; i++) {
    CUgraphNode node = graph->nodes[i];
    const char *name =
        node->work && node->work->launch ? node->work->launch->function->kernel->name : "";
    fprintf(file, "  node_%d [label=\"%d %s %s\"];\n", i, i, type_name(node->type), name);
    for (int j = 0; j < node->from_count; j++)
      fprintf(file, "  node_%d -> node_%d;\n", node->from[j]->place, i);
  }
  fputs("}\n", file);
  return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
