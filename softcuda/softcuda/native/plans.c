/* Executable graphs: made, changed, and run (Driver API, Graph Management).
 *
 * An executable graph has a plan: a copy of the graph as it was, so that the graph may be
 * changed or destroyed. Launches that are queued keep their plan; a change makes another one
 * first.
 */
#include "contexts.h"
#include "lock.h"
#include "nodes.h"
#include "options.h"
#include "queue.h"

struct CUgraphExec_st {
  sc_object object;
  sc_plan *plan;
  unsigned long long flags;
  CUstream last_stream; /* of its last launch, and the place of that in the stream */
  uint64_t last_position;
};

static bool has_cycle(const sc_plan *plan) {
  for (int i = 0; i < plan->graph->count; i++) {
    if (!plan->graph->nodes[i]->child) continue;
    sc_plan child;
    sc_plan_begin(&child, plan->graph->nodes[i]->child);
    bool cycle = has_cycle(&child);
    sc_plan_end(&child);
    if (cycle) return true;
  }
  return sc_plan_walk(plan, NULL, NULL) != plan->graph->count;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* The records of a graph count from its launch on: who waits for such an event then waits for the
 * whole graph. */
static void count_records(CUgraph graph, CUstream stream) {
  for (int i = 0; i < graph->count; i++) {
    CUgraphNode node = graph->nodes[i];
    if (node->child) count_records(node->child, stream);
    if (node->disabled || node->type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) continue;
    node->work->event->queued++;
    node->work->event->stream = stream;
    node->work->event->position = stream->queued;
    node->work->event->capture_id = 0;
  }
}

/* "Each launch is ordered behind both any previous work in hStream and any previous launches of
 * hGraphExec." */
static CUresult launch(CUgraphExec exec, CUstream stream) {
  sc_work work = {.kind = SC_WORK_GRAPH, .plan = exec->plan};
  if (exec->last_stream && exec->last_stream->done < exec->last_position) {
    work.waits = malloc(sizeof *work.waits);
    *work.waits = (struct sc_wait_for){.stream = exec->last_stream, .upto = exec->last_position};
    work.wait_count = 1;
  }
  exec->plan->users++;
  CUresult error = sc_queue(stream, &work);
  if (error || stream->capture) return error;
  exec->last_stream = stream;
  exec->last_position = stream->queued;
  count_records(exec->plan->graph, stream);
  return CUDA_SUCCESS;
}

/* ---- making executable graphs ---------------------------------------------------------------- */

static CUresult instantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags,
                            const char *call) {
  if (!made || flags & ~15ull) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(graph, SC_GRAPH, call)) return CUDA_ERROR_INVALID_VALUE;
  /* "The graph will not be instantiable until the user calls cuStreamEndCapture." */
  if (graph->capturing) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
  sc_plan *plan = sc_plan_new(graph);
  if (has_cycle(plan)) {
    sc_plan_leave(plan);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraphExec exec = sc_object_new(SC_GRAPH_EXEC, sizeof *exec, sc_current());
  exec->plan = plan;
  exec->flags = flags;
  *made = exec;
  return CUDA_SUCCESS;
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *made, CUgraph graph,
                                         unsigned long long flags) {
  ENTER;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* "Only [...] by cuGraphInstantiateWithParams" */
    return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  CUresult error = instantiate(made, graph, flags, __func__);
  sc_unlock();
  return error;
}

API CUresult cuGraphInstantiateWithParams(CUgraphExec *made, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  ENTER;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  CUresult error = instantiate(made, graph, params->flags, __func__);
  sc_unlock();
  params->hErrNode_out = NULL;
  params->result_out = !error ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                       : error == CUDA_ERROR_NOT_SUPPORTED
                           ? CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED
                           : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return error;
}

#define EXEC_OR_RETURN(exec)                                                                       \
  if (!sc_object_ok(exec, SC_GRAPH_EXEC, __func__)) return CUDA_ERROR_INVALID_VALUE

/* There is nothing to upload; it is ordered in the stream all the same. */
API CUresult cuGraphUpload(CUgraphExec exec, CUstream handle) {
  ENTER;
  EXEC_OR_RETURN(exec);
  CUstream stream;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  return error ? error : sc_queue(stream, &(sc_work){.kind = SC_WORK_NOTHING});
}

API CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle) {
  ENTER;
  EXEC_OR_RETURN(exec);
  CUstream stream;
  CUresult error = sc_stream_of(handle, __func__, &stream);
  if (error) return error;
  sc_lock();
  error = launch(exec, stream);
  sc_unlock();
  return error;
}

/* "If the executable graph is in-flight, it will not be terminated, but rather freed asynchronously
 * on completion." */
API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  CUresult sticky = sc_enter(__func__);
  if (sticky == CUDA_ERROR_NOT_INITIALIZED || sticky == CUDA_ERROR_NOT_PERMITTED) return sticky;
  sc_lock();
  CUresult error = CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_end(exec, SC_GRAPH_EXEC, __func__)) {
    sc_plan_leave(exec->plan);
    exec->plan = NULL;
    error = sticky;
  }
  sc_unlock();
  return error;
}

API CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags) {
  ENTER;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  EXEC_OR_RETURN(exec);
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

API CUresult cuGraphExecGetId(CUgraphExec exec, unsigned *id) {
  ENTER;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  EXEC_OR_RETURN(exec);
  *id = (unsigned)exec->object.number;
  return CUDA_SUCCESS;
}

/* ---- changing executable graphs -------------------------------------------------------------- */

/* The node of the plan that was made from a node of the graph. Launches that are queued keep the
 * plan as it is: "Already enqueued or running launches of hGraphExec are not affected by this
 * call." */
static CUgraphNode own_node(CUgraphExec exec, CUgraphNode original) {
  for (int i = 0; i < exec->plan->graph->count; i++) {
    if (exec->plan->graph->nodes[i]->original != original) continue;
    if (exec->plan->users > 1) {
      sc_plan *former = exec->plan;
      exec->plan = sc_plan_new(former->graph);
      for (int j = 0; j < former->graph->count; j++)
        exec->plan->graph->nodes[j]->original = former->graph->nodes[j]->original;
      sc_plan_leave(former);
    }
    return exec->plan->graph->nodes[i];
  }
  return NULL;
}

static CUresult change_locked(CUgraphExec exec, CUgraphNode original,
                              const CUgraphNodeParams *what, const char *call) {
  if (!what || !sc_object_ok(exec, SC_GRAPH_EXEC, call) ||
      !sc_object_ok(original, SC_NODE, call) || original->type != what->type)
    return CUDA_ERROR_INVALID_VALUE;
  if (what->type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_NOT_SUPPORTED;
  sc_work *work;
  CUresult error = sc_work_of(what, call, &work);
  if (error) return error;
  CUgraphNode node = own_node(exec, original);
  /* cuGraphExecKernelNodeSetParams: "The owning context of the function cannot change." */
  bool moved = node && work && work->launch &&
               work->launch->context != node->work->launch->context;
  if (!node || moved) {
    if (work) sc_work_free(work);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (work && work->launch) work->launch->cooperative = node->work->launch->cooperative;
  sc_node_set_work(node, work);
  return CUDA_SUCCESS;
}

static CUresult change(CUgraphExec exec, CUgraphNode original, const CUgraphNodeParams *what,
                       const char *call) {
  sc_lock();
  CUresult error = change_locked(exec, original, what, call);
  sc_unlock();
  return error;
}

API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *what) {
  ENTER;
  return change(exec, node, what, __func__);
}

API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = sc_kernel_parameters(what);
  return change(exec, node, &params, __func__);
}

API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMCPY3D *what, CUcontext context) {
  ENTER;
  (void)context;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  params.memcpy.copyParams = *what;
  return change(exec, node, &params, __func__);
}

API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *what,
                                            CUcontext context) {
  ENTER;
  (void)context;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = sc_fill_parameters(what);
  return change(exec, node, &params, __func__);
}

API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
  params.host.fn = what->fn;
  params.host.userData = what->userData;
  return change(exec, node, &params, __func__);
}

API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                CUevent event) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
  params.eventRecord.event = event;
  return change(exec, node, &params, __func__);
}

API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
  params.eventWait.event = event;
  return change(exec, node, &params, __func__);
}

/* "Currently only kernel, memset and memcpy nodes are supported." */
static bool can_be_disabled(CUgraphNode node) {
  return node && (node->type == CU_GRAPH_NODE_TYPE_KERNEL ||
                  node->type == CU_GRAPH_NODE_TYPE_MEMSET ||
                  node->type == CU_GRAPH_NODE_TYPE_MEMCPY);
}

API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode original, unsigned enabled) {
  ENTER;
  EXEC_OR_RETURN(exec);
  sc_lock();
  CUgraphNode node = own_node(exec, original);
  bool valid = can_be_disabled(node);
  if (valid) node->disabled = !enabled;
  sc_unlock();
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode original, unsigned *enabled) {
  ENTER;
  EXEC_OR_RETURN(exec);
  if (!enabled) return CUDA_ERROR_INVALID_VALUE;
  CUgraph graph = exec->plan->graph;
  for (int i = 0; i < graph->count; i++)
    if (graph->nodes[i]->original == original && can_be_disabled(graph->nodes[i])) {
      *enabled = !graph->nodes[i]->disabled;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

/* Whether two nodes at the same place differ in more than an update may change. */
static CUgraphExecUpdateResult compare(CUgraphNode have, CUgraphNode want) {
  if (have->from_count != want->from_count) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (int i = 0; i < have->from_count; i++)
    if (have->from[i]->place != want->from[i]->place)
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (have->type != want->type) return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
  if (have->type != CU_GRAPH_NODE_TYPE_KERNEL) return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  const sc_launch *a = have->work->launch, *b = want->work->launch;
  if (a->context != b->context) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  /* "A cooperative node cannot be updated to a non-cooperative node, and vice-versa." */
  return a->cooperative == b->cooperative ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                          : CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
}

/* Nodes are paired by the order in which they were added, which the driver does not promise: a
 * graph that was captured or built in the same way again is paired right. */
static bool find_difference(CUgraph have, CUgraph want, CUgraphExecUpdateResultInfo *info) {
  if (have->count != want->count) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return true;
  }
  for (int i = 0; i < have->count; i++) {
    info->result = compare(have->nodes[i], want->nodes[i]);
    if (info->result) {
      info->errorNode = want->nodes[i];
      return true;
    }
    if (have->nodes[i]->child &&
        find_difference(have->nodes[i]->child, want->nodes[i]->child, info))
      return true;
  }
  return false;
}

API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
  ENTER;
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
  EXEC_OR_RETURN(exec);
  if (!sc_object_ok(graph, SC_GRAPH, __func__)) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  bool differs = find_difference(exec->plan->graph, graph, info);
  if (!differs) {
    sc_plan *former = exec->plan;
    exec->plan = sc_plan_new(graph);
    for (int i = 0; i < graph->count; i++) { /* nodes go by the graph of the instantiation */
      exec->plan->graph->nodes[i]->original = former->graph->nodes[i]->original;
      exec->plan->graph->nodes[i]->disabled = former->graph->nodes[i]->disabled;
    }
    sc_plan_leave(former);
  }
  sc_unlock();
  return differs ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}
