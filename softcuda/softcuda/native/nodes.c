/* Nodes of graphs: added, asked for and changed by their parameters (Driver API, Graph
 * Management). */
#include "contexts.h"
#include "launches.h"
#include "lock.h"
#include "memory.h"
#include "nodes.h"

/* ---- parameters and the work that they mean -------------------------------------------------- */

static sc_work *new_work(sc_work work) {
  sc_work *made = malloc(sizeof *made);
  *made = work;
  return made;
}

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v3 *what, bool cooperative,
                            const char *call, sc_work **made) {
  CUDA_KERNEL_NODE_PARAMS old = {
    .func = what->func, .kern = what->kern, .ctx = what->ctx,
    .gridDimX = what->gridDimX, .gridDimY = what->gridDimY, .gridDimZ = what->gridDimZ,
    .blockDimX = what->blockDimX, .blockDimY = what->blockDimY, .blockDimZ = what->blockDimZ,
    .sharedMemBytes = what->sharedMemBytes, .kernelParams = what->kernelParams,
    .extra = what->extra,
  };
  /* The context: that of the function, else "NULL will indicate the current context". */
  CUcontext context = what->ctx ? what->ctx : sc_current();
  if (what->func && sc_object_ok(what->func, SC_KERNEL, call)) {
    CUcontext home = ((sc_function *)what->func)->library->home;
    if (home) context = home;
  }
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  sc_launch *launch;
  CUresult error = sc_launch_new(&old, context, cooperative, call, &launch);
  if (!error) *made = new_work((sc_work){.kind = SC_WORK_KERNEL, .launch = launch});
  return error;
}

/* One side of a copy: its address, or 0 for arrays, which softcuda does not have. */
static uint64_t address_of(CUmemorytype type, const void *host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST                                        ? (uint64_t)host
         : type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED ? device
                                                                         : 0;
}

/* Whether the rows lie in one allocation of the device; host memory that is not known may be
 * anything. */
static bool in_memory(uint64_t at, uint64_t bytes, CUmemorytype type) {
  sc_allocation *memory = sc_find(at);
  if (!memory) return type == CU_MEMORYTYPE_HOST;
  return !memory->freed && at + bytes <= memory->at + memory->size;
}

static CUresult copy_work(const CUDA_MEMCPY3D *what, sc_work **made) {
  uint64_t from = address_of(what->srcMemoryType, what->srcHost, what->srcDevice);
  uint64_t to = address_of(what->dstMemoryType, what->dstHost, what->dstDevice);
  uint64_t width = what->WidthInBytes, height = what->Height ? what->Height : 1;
  if (what->srcMemoryType == CU_MEMORYTYPE_ARRAY || what->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!from || !to || !width || what->Depth > 1) /* of 3-D copies only those of one layer */
    return what->Depth > 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  uint64_t pitch_from = what->srcPitch ? what->srcPitch : width;
  uint64_t pitch_to = what->dstPitch ? what->dstPitch : width;
  if (pitch_from < width || pitch_to < width) return CUDA_ERROR_INVALID_VALUE;
  from += what->srcXInBytes + what->srcY * pitch_from;
  to += what->dstXInBytes + what->dstY * pitch_to;
  if (!in_memory(from, (height - 1) * pitch_from + width, what->srcMemoryType) ||
      !in_memory(to, (height - 1) * pitch_to + width, what->dstMemoryType))
    return CUDA_ERROR_INVALID_VALUE;
  sc_work work = {.kind = SC_WORK_COPY, .to = to, .from = from, .bytes = width * height};
  if (height > 1) {
    work.pitch_to = pitch_to;
    work.pitch_from = pitch_from;
    work.width = width;
    work.height = height;
  }
  *made = new_work(work);
  return CUDA_SUCCESS;
}

static CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS_v2 *what, sc_work **made) {
  uint64_t element = what->elementSize, height = what->height ? what->height : 1;
  if ((element != 1 && element != 2 && element != 4) || !what->width || what->dst % element)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t row = what->width * element, pitch = height > 1 ? what->pitch : row;
  if (pitch < row || !in_memory(what->dst, (height - 1) * pitch + row, CU_MEMORYTYPE_DEVICE))
    return CUDA_ERROR_INVALID_VALUE;
  sc_work work = {.kind = SC_WORK_FILL, .to = what->dst, .value = what->value,
                  .element = (uint32_t)element, .bytes = what->width * height};
  if (height > 1) {
    work.pitch_to = pitch;
    work.width = what->width;
    work.height = height;
  }
  *made = new_work(work);
  return CUDA_SUCCESS;
}

static CUresult event_work(enum sc_work_kind kind, CUevent event, const char *call,
                           sc_work **made) {
  if (!sc_object_ok(event, SC_EVENT, call)) return CUDA_ERROR_INVALID_VALUE;
  *made = new_work((sc_work){.kind = kind, .event = event});
  return CUDA_SUCCESS;
}

CUresult sc_work_of(const CUgraphNodeParams *what, const char *call, sc_work **made) {
  *made = NULL;
  switch (what->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: return kernel_work(&what->kernel, false, call, made);
  case CU_GRAPH_NODE_TYPE_MEMCPY: return copy_work(&what->memcpy.copyParams, made);
  case CU_GRAPH_NODE_TYPE_MEMSET: return fill_work(&what->memset, made);
  case CU_GRAPH_NODE_TYPE_HOST:
    if (!what->host.fn) return CUDA_ERROR_INVALID_VALUE;
    *made = new_work((sc_work){.kind = SC_WORK_CALL, .call = what->host.fn,
                               .data = what->host.userData});
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return event_work(SC_WORK_RECORD, what->eventRecord.event, call, made);
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return event_work(SC_WORK_WAIT_EVENT, what->eventWait.event, call, made);
  case CU_GRAPH_NODE_TYPE_GRAPH:
  case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
  default: return CUDA_ERROR_NOT_SUPPORTED; /* memory of graphs, conditions, semaphores */
  }
}

/* ---- adding ---------------------------------------------------------------------------------- */

static CUresult add(CUgraphNode *made, CUgraph graph, const CUgraphNode *from, size_t count,
                    const CUgraphNodeParams *what, const char *call) {
  if (!made || !what || (count && !from)) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(graph, SC_GRAPH, call)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (!sc_object_ok(from[i], SC_NODE, call) || from[i]->graph != graph)
      return CUDA_ERROR_INVALID_VALUE;
    for (size_t j = 0; j < i; j++) /* "may not have any duplicate entries" */
      if (from[j] == from[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  CUgraph child = what->type == CU_GRAPH_NODE_TYPE_GRAPH ? what->graph.graph : NULL;
  if (what->type == CU_GRAPH_NODE_TYPE_GRAPH &&
      (!sc_object_ok(child, SC_GRAPH, call) || child == graph))
    return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  sc_work *work;
  CUresult error = sc_work_of(what, call, &work);
  if (!error) {
    *made = sc_node_new(graph, what->type, work, from, count);
    bool moved = child && what->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (child) sc_node_set_child(*made, moved ? child : sc_graph_clone(child, true));
  }
  sc_unlock();
  return error;
}

API CUresult cuGraphAddNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                            const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *what) {
  ENTER;
  (void)data;
  return add(made, graph, from, count, what, __func__);
}

API CUresult cuGraphAddNode_v3(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                               const CUgraphEdgeData *data, size_t count,
                               CUgraphNodeParams *what) {
  ENTER;
  (void)data;
  /* "if both the kernel node's CUfunction and ctx are non-NULL, [...] must match" */
  if (what && what->type == CU_GRAPH_NODE_TYPE_KERNEL && what->kernel.func && what->kernel.ctx &&
      sc_object_ok(what->kernel.func, SC_KERNEL, __func__)) {
    CUcontext home = ((sc_function *)what->kernel.func)->library->home;
    if (home && home != what->kernel.ctx) return CUDA_ERROR_INVALID_CONTEXT;
  }
  return add(made, graph, from, count, what, __func__);
}

CUgraphNodeParams sc_kernel_parameters(const CUDA_KERNEL_NODE_PARAMS *what) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
    .func = what->func, .kern = what->kern, .ctx = what->ctx,
    .gridDimX = what->gridDimX, .gridDimY = what->gridDimY, .gridDimZ = what->gridDimZ,
    .blockDimX = what->blockDimX, .blockDimY = what->blockDimY, .blockDimZ = what->blockDimZ,
    .sharedMemBytes = what->sharedMemBytes, .kernelParams = what->kernelParams,
    .extra = what->extra,
  };
  return params;
}

CUgraphNodeParams sc_fill_parameters(const CUDA_MEMSET_NODE_PARAMS *what) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
    .dst = what->dst, .pitch = what->pitch, .value = what->value,
    .elementSize = what->elementSize, .width = what->width, .height = what->height,
  };
  return params;
}

API CUresult cuGraphAddKernelNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                  size_t count, const CUDA_KERNEL_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = sc_kernel_parameters(what);
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddMemcpyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                  size_t count, const CUDA_MEMCPY3D *what, CUcontext context) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  params.memcpy.copyCtx = context;
  params.memcpy.copyParams = *what;
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddMemsetNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                  size_t count, const CUDA_MEMSET_NODE_PARAMS *what,
                                  CUcontext context) {
  ENTER;
  (void)context;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = sc_fill_parameters(what);
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddHostNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                size_t count, const CUDA_HOST_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
  params.host.fn = what->fn;
  params.host.userData = what->userData;
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddChildGraphNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                      size_t count, CUgraph child) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  params.graph.graph = child;
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddEmptyNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                 size_t count) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddEventRecordNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                       size_t count, CUevent event) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
  params.eventRecord.event = event;
  return add(made, graph, from, count, &params, __func__);
}

API CUresult cuGraphAddEventWaitNode(CUgraphNode *made, CUgraph graph, const CUgraphNode *from,
                                     size_t count, CUevent event) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
  params.eventWait.event = event;
  return add(made, graph, from, count, &params, __func__);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* "Any pointers returned [...] point to driver-owned memory associated with the node." */
static void get_kernel(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
  const sc_launch *launch = node->work->launch;
  const sc_kernel *kernel = launch->function->kernel;
  if (!node->arguments) {
    node->arguments = calloc(kernel->parameters + 1, sizeof *node->arguments);
    for (uint32_t i = 0; i < kernel->parameters; i++)
      node->arguments[i] = launch->parameters + kernel->offsets[i];
  }
  *out = (CUDA_KERNEL_NODE_PARAMS){
    .func = (CUfunction)launch->function, .ctx = launch->context,
    .gridDimX = launch->grid[0], .gridDimY = launch->grid[1], .gridDimZ = launch->grid[2],
    .blockDimX = launch->block[0], .blockDimY = launch->block[1], .blockDimZ = launch->block[2],
    .sharedMemBytes = launch->dynamic_shared, .kernelParams = node->arguments,
  };
}

static void get_copy(CUgraphNode node, CUDA_MEMCPY3D *out) {
  const sc_work *work = node->work;
  uint64_t rows = work->height ? work->height : 1;
  uint64_t width = work->height ? work->width : work->bytes;
  *out = (CUDA_MEMCPY3D){
    .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = work->from,
    .srcPitch = work->height ? work->pitch_from : width, .srcHeight = rows,
    .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = work->to,
    .dstPitch = work->height ? work->pitch_to : width, .dstHeight = rows,
    .WidthInBytes = width, .Height = rows, .Depth = 1,
  };
}

static void get_fill(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out) {
  const sc_work *work = node->work;
  *out = (CUDA_MEMSET_NODE_PARAMS){
    .dst = work->to, .pitch = work->pitch_to, .value = (unsigned)work->value,
    .elementSize = work->element, .width = work->height ? work->width : work->bytes,
    .height = work->height ? work->height : 1,
  };
}

/* Whether this is a node of that type, and there is a place for the answer. */
static bool askable(CUgraphNode node, CUgraphNodeType type, const void *out, const char *call) {
  return out && sc_object_ok(node, SC_NODE, call) && node->type == type;
}

API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_KERNEL, out, __func__)) return CUDA_ERROR_INVALID_VALUE;
  get_kernel(node, out);
  return CUDA_SUCCESS;
}

API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_MEMCPY, out, __func__)) return CUDA_ERROR_INVALID_VALUE;
  get_copy(node, out);
  return CUDA_SUCCESS;
}

API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_MEMSET, out, __func__)) return CUDA_ERROR_INVALID_VALUE;
  get_fill(node, out);
  return CUDA_SUCCESS;
}

API CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_HOST, out, __func__)) return CUDA_ERROR_INVALID_VALUE;
  *out = (CUDA_HOST_NODE_PARAMS){.fn = node->work->call, .userData = node->work->data};
  return CUDA_SUCCESS;
}

API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_GRAPH, out, __func__)) return CUDA_ERROR_INVALID_VALUE;
  *out = node->child;
  return CUDA_SUCCESS;
}

API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out, __func__))
    return CUDA_ERROR_INVALID_VALUE;
  *out = node->work->event;
  return CUDA_SUCCESS;
}

API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out, __func__))
    return CUDA_ERROR_INVALID_VALUE;
  *out = node->work->event;
  return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetParams(CUgraphNode node, CUgraphNodeParams *out) {
  ENTER;
  if (!out || !sc_object_ok(node, SC_NODE, __func__)) return CUDA_ERROR_INVALID_VALUE;
  *out = (CUgraphNodeParams){.type = node->type};
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUDA_MEMSET_NODE_PARAMS fill;
  switch (node->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    get_kernel(node, &kernel);
    *out = sc_kernel_parameters(&kernel);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY: get_copy(node, &out->memcpy.copyParams); break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    get_fill(node, &fill);
    *out = sc_fill_parameters(&fill);
    break;
  case CU_GRAPH_NODE_TYPE_HOST:
    out->host.fn = node->work->call;
    out->host.userData = node->work->data;
    break;
  case CU_GRAPH_NODE_TYPE_GRAPH: out->graph.graph = node->child; break;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: out->eventRecord.event = node->work->event; break;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT: out->eventWait.event = node->work->event; break;
  case CU_GRAPH_NODE_TYPE_EMPTY: break;
  default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

/* ---- changing -------------------------------------------------------------------------------- */

static CUresult change(CUgraphNode node, const CUgraphNodeParams *what, const char *call) {
  if (!what || !sc_object_ok(node, SC_NODE, call) || node->type != what->type)
    return CUDA_ERROR_INVALID_VALUE;
  if (what->type == CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_NOT_SUPPORTED;
  sc_lock();
  sc_work *work;
  CUresult error = sc_work_of(what, call, &work);
  if (!error) {
    /* Whether a launch is cooperative is an attribute of the node, not a parameter. */
    if (work && work->launch) work->launch->cooperative = node->work->launch->cooperative;
    sc_node_set_work(node, work);
  }
  sc_unlock();
  return error;
}

#undef cuGraphNodeSetParams
API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *what) {
  ENTER;
  return change(node, what, __func__);
}

API CUresult cuGraphNodeSetParams_v2(CUgraphNode node, CUgraphNodeParams *what) {
  ENTER;
  return change(node, what, __func__);
}

API CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = sc_kernel_parameters(what);
  return change(node, &params, __func__);
}

API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  params.memcpy.copyParams = *what;
  return change(node, &params, __func__);
}

API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = sc_fill_parameters(what);
  return change(node, &params, __func__);
}

API CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *what) {
  ENTER;
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
  params.host.fn = what->fn;
  params.host.userData = what->userData;
  return change(node, &params, __func__);
}

API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
  params.eventRecord.event = event;
  return change(node, &params, __func__);
}

API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  ENTER;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
  params.eventWait.event = event;
  return change(node, &params, __func__);
}

/* ---- attributes of kernel nodes -------------------------------------------------------------- */

API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                           CUkernelNodeAttrValue *out) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_KERNEL, out, __func__)) return CUDA_ERROR_INVALID_VALUE;
  memset(out, 0, sizeof *out);
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    out->cooperative = node->work->launch->cooperative;
  return CUDA_SUCCESS;
}

API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                           const CUkernelNodeAttrValue *value) {
  ENTER;
  if (!askable(node, CU_GRAPH_NODE_TYPE_KERNEL, value, __func__)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
    node->work->launch->cooperative = value->cooperative != 0;
  return CUDA_SUCCESS; /* the others are hints */
}

API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  ENTER;
  if (!askable(to, CU_GRAPH_NODE_TYPE_KERNEL, to, __func__) ||
      !askable(from, CU_GRAPH_NODE_TYPE_KERNEL, from, __func__))
    return CUDA_ERROR_INVALID_VALUE;
  to->work->launch->cooperative = from->work->launch->cooperative;
  return CUDA_SUCCESS;
}
