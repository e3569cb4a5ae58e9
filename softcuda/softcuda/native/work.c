/* Queued work, graphs of it, and plans: made, copied and freed. */
#include "contexts.h"
#include "graphs.h"
#include "launches.h"
#include "options.h"

/* ---- graphs and work ------------------------------------------------------------------------- */

CUgraph sc_graph_new(bool program) {
  CUgraph graph =
      program ? sc_object_new(SC_GRAPH, sizeof *graph, sc_current()) : calloc(1, sizeof *graph);
  graph->program = program;
  return graph;
}

CUgraphNodeType sc_node_type(const sc_work *work) {
  switch (work->kind) {
  case SC_WORK_KERNEL: return CU_GRAPH_NODE_TYPE_KERNEL;
  case SC_WORK_COPY: return CU_GRAPH_NODE_TYPE_MEMCPY;
  case SC_WORK_FILL: return CU_GRAPH_NODE_TYPE_MEMSET;
  case SC_WORK_CALL: return CU_GRAPH_NODE_TYPE_HOST;
  case SC_WORK_RECORD: return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  case SC_WORK_WAIT_EVENT: return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
  case SC_WORK_WAIT_VALUE:
  case SC_WORK_WRITE_VALUE: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  case SC_WORK_GRAPH: return CU_GRAPH_NODE_TYPE_GRAPH;
  default: return CU_GRAPH_NODE_TYPE_EMPTY;
  }
}

CUgraphNode sc_node_new(CUgraph graph, CUgraphNodeType type, sc_work *work,
                        CUgraphNode const *from, size_t count) {
  CUgraphNode node =
      graph->program ? sc_object_new(SC_NODE, sizeof *node, NULL) : calloc(1, sizeof *node);
  node->graph = graph;
  node->type = type;
  node->work = work;
  for (size_t i = 0; i < count; i++) sc_add_node(&node->from, &node->from_count, from[i]);
  if (graph->count == graph->room)
    graph->nodes =
        realloc(graph->nodes, (size_t)(graph->room = 2 * graph->room + 16) * sizeof *graph->nodes);
  node->place = graph->count;
  graph->nodes[graph->count++] = node;
  return node;
}

void sc_add_node(CUgraphNode **nodes, int *count, CUgraphNode node) {
  for (int i = 0; i < *count; i++)
    if ((*nodes)[i] == node) return;
  *nodes = realloc(*nodes, (size_t)(*count + 1) * sizeof **nodes);
  (*nodes)[(*count)++] = node;
}

void sc_node_set_work(CUgraphNode node, sc_work *work) {
  if (node->work) sc_work_free(node->work);
  free(node->arguments);
  node->arguments = NULL;
  node->work = work;
}

void sc_node_set_child(CUgraphNode node, CUgraph child) {
  node->child = child;
  child->object.context = NULL; /* not the program's to destroy any more */
}

/* Memory that was staged when the work was queued has as many bytes as the copy. */
sc_work *sc_work_copy(const sc_work *work) {
  sc_work *copy = malloc(sizeof *copy);
  *copy = *work;
  copy->next = NULL;
  copy->waits = NULL;
  copy->wait_count = 0;
  if (work->launch) copy->launch = sc_launch_copy(work->launch);
  if (work->staged) {
    copy->staged = malloc(work->bytes);
    memcpy(copy->staged, work->staged, work->bytes);
  }
  return copy;
}

void sc_node_free(CUgraphNode node) {
  sc_node_set_work(node, NULL);
  if (node->child) sc_graph_free(node->child);
  free(node->from);
  node->child = NULL;
  node->from = NULL;
  node->from_count = 0;
  node->object.alive = false;
  if (!node->graph->program) free(node);
}

void sc_graph_free(CUgraph graph) {
  for (int i = 0; i < graph->count; i++) sc_node_free(graph->nodes[i]);
  free(graph->nodes);
  graph->nodes = NULL;
  graph->count = graph->room = 0;
  sc_references_free(graph);
  graph->object.alive = false;
  if (!graph->program) free(graph);
}

CUgraph sc_graph_clone(CUgraph graph, bool program) {
  CUgraph clone = sc_graph_new(program);
  clone->original = graph;
  for (int i = 0; i < graph->count; i++) {
    CUgraphNode node = graph->nodes[i];
    sc_work *work = node->work ? sc_work_copy(node->work) : NULL;
    CUgraphNode made = sc_node_new(clone, node->type, work, NULL, 0);
    made->original = node;
    made->disabled = node->disabled;
    if (node->child) sc_node_set_child(made, sc_graph_clone(node->child, program));
  }
  for (int i = 0; i < graph->count; i++) /* an edge may lead to a node that was added earlier */
    for (int j = 0; j < graph->nodes[i]->from_count; j++)
      sc_add_node(&clone->nodes[i]->from, &clone->nodes[i]->from_count,
                  clone->nodes[graph->nodes[i]->from[j]->place]);
  sc_references_copy(clone, graph);
  return clone;
}

void sc_work_free(sc_work *work) {
  if (work->launch) sc_launch_free(work->launch);
  if (work->plan) sc_plan_leave(work->plan);
  free(work->staged);
  free(work->waits);
  free(work);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void find_dependents(sc_plan *plan) {
  CUgraph graph = plan->graph;
  int *counts = calloc((size_t)graph->count + 1, sizeof *counts);
  for (int i = 0; i < graph->count; i++)
    for (int j = 0; j < graph->nodes[i]->from_count; j++) counts[graph->nodes[i]->from[j]->place]++;
  plan->after = calloc((size_t)graph->count + 1, sizeof *plan->after);
  for (int i = 0; i < graph->count; i++) {
    plan->after[i] = malloc((size_t)(counts[i] + 1) * sizeof **plan->after);
    plan->after[i][counts[i]] = -1;
    counts[i] = 0;
  }
  for (int i = 0; i < graph->count; i++)
    for (int j = 0; j < graph->nodes[i]->from_count; j++) {
      int before = graph->nodes[i]->from[j]->place;
      plan->after[before][counts[before]++] = i;
    }
  free(counts);
}

void sc_plan_begin(sc_plan *plan, CUgraph graph) {
  *plan = (sc_plan){.users = 1, .graph = graph};
  find_dependents(plan);
}

void sc_plan_end(sc_plan *plan) {
  for (int i = 0; i < plan->graph->count; i++) free(plan->after[i]);
  free(plan->after);
}

sc_plan *sc_plan_new(CUgraph graph) {
  sc_plan *plan = malloc(sizeof *plan);
  sc_plan_begin(plan, sc_graph_clone(graph, false));
  return plan;
}

void sc_plan_leave(sc_plan *plan) {
  if (--plan->users) return;
  sc_plan_end(plan);
  sc_graph_free(plan->graph);
  free(plan);
}

int sc_plan_walk(const sc_plan *plan, void (*visit)(CUgraphNode, void *), void *data) {
  CUgraph graph = plan->graph;
  int *left = malloc(((size_t)graph->count + 1) * 2 * sizeof *left), *ready = left + graph->count;
  int count = 0, visited = 0;
  uint64_t state = sc_option.seed;
  for (int i = 0; i < graph->count; i++) {
    left[i] = graph->nodes[i]->from_count;
    if (!left[i]) ready[count++] = i;
  }
  while (count) {
    int pick = sc_option.order == SC_DESCENDING ? count - 1 : 0;
    if (sc_option.order == SC_PERMUTED) {
      state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
      pick = (int)((state >> 33) % (uint64_t)count);
    }
    int place = ready[pick];
    memmove(ready + pick, ready + pick + 1, (size_t)(--count - pick) * sizeof *ready);
    if (visit) visit(graph->nodes[place], data);
    visited++;
    for (int *next = plan->after[place]; *next >= 0; next++)
      if (!--left[*next]) ready[count++] = *next;
  }
  free(left);
  return visited;
}
