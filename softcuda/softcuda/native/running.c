/* Runs one piece of work on the calling thread: for streams, and for the nodes of graphs. */
#include "contexts.h"
#include "launches.h"
#include "lock.h"
#include "memory.h"
#include "reports.h"
#include "running.h"
#include "shadow.h"

#include <stdatomic.h>

static atomic_bool exiting;

__attribute__((destructor)) static void end(void) { exiting = true; }

bool sc_is_exiting(void) { return exiting; }

/* After an error of its context, and at the end of it, work is no longer done. */
bool sc_is_dropped(CUstream stream) {
  return stream->abandoned || stream->object.context->sticky || exiting;
}

/* A stream memory operation on memory that has been freed since it was queued. */
static bool memory_gone(const sc_work *work, CUstream stream) {
  sc_allocation *at = sc_find(work->to);
  if (at && !at->freed) return false;
  char name[80] = "";
  sc_report report = {.kind = "freed", .space = "global", .size = work->element};
  if (at) report.array = sc_allocation_name(at, name, sizeof name);
  snprintf(report.text, sizeof report.text,
           "a stream memory operation uses %#llx%s%s, which has been freed since it was queued",
           (unsigned long long)work->to, at ? " of " : "", name);
  sc_report_add(&report);
  sc_set_sticky(stream->object.context, CUDA_ERROR_ILLEGAL_ADDRESS);
  return true;
}

static uint64_t load(const sc_work *work) {
  return work->element == 8 ? __atomic_load_n((uint64_t *)work->to, __ATOMIC_SEQ_CST)
                            : __atomic_load_n((uint32_t *)work->to, __ATOMIC_SEQ_CST);
}

/* Driver API, CUstreamWaitValue_flags. GEQ compares cyclically: "(int32_t)(*addr - value) >= 0". */
static bool value_reached(const sc_work *work) {
  uint64_t have = load(work), want = work->value;
  switch (work->flags & 3) {
  case CU_STREAM_WAIT_VALUE_GEQ:
    return work->element == 8 ? (int64_t)(have - want) >= 0
                              : (int32_t)((uint32_t)have - (uint32_t)want) >= 0;
  case CU_STREAM_WAIT_VALUE_EQ: return have == want;
  case CU_STREAM_WAIT_VALUE_AND: return (have & want) != 0;
  default: /* CU_STREAM_WAIT_VALUE_NOR, in as many bits as the value has */
    return work->element == 8 ? ~(have | want) != 0 : (uint32_t) ~(have | want) != 0;
  }
}

/* The host may write the value without telling anybody, so it is looked at now and then, more
 * rarely the longer it takes. */
static void wait_for_value(const sc_work *work, CUstream stream) {
  double pause = 20e-6;
  sc_lock();
  while (!sc_is_dropped(stream) && !memory_gone(work, stream) && !value_reached(work)) {
    sc_wait_at_most(pause);
    if (pause < 1e-3) pause *= 1.25;
  }
  sc_unlock();
}

static void write_value(const sc_work *work, CUstream stream) {
  sc_lock();
  sc_allocation *at = memory_gone(work, stream) ? NULL : sc_find(work->to);
  if (at && work->element == 8)
    __atomic_store_n((uint64_t *)work->to, work->value, __ATOMIC_SEQ_CST);
  else if (at)
    __atomic_store_n((uint32_t *)work->to, (uint32_t)work->value, __ATOMIC_SEQ_CST);
  sc_unlock();
  if (at) sc_shadow_written(at, work->to - at->at, work->element);
}

/* Records count even when work is dropped: who waits for an event must not wait for ever. */
static void record(const sc_work *work) {
  sc_lock();
  work->event->at = sc_now();
  uint64_t ticket = work->ticket ? work->ticket : work->event->done + 1; /* a node has none */
  if (work->event->done < ticket) work->event->done = ticket;
  sc_changed();
  sc_unlock();
}

/* Driver API, cuLaunchHostFunc: "the function will not be called in the event of an error in the
 * CUDA context"; cuStreamAddCallback: callbacks "receive an appropriate CUresult" then. */
static void call_host(const sc_work *work, CUstream stream) {
  sc_set_calling_host(true);
  if (work->kind == SC_WORK_CALL)
    work->call(work->data);
  else
    work->callback((CUstream)work->from, stream->object.context->sticky, work->data);
  sc_set_calling_host(false);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* The node of a wait waits for what the event stands for when the node runs. */
static void wait_for_event(CUevent event, CUstream stream) {
  sc_lock();
  uint64_t upto = event->queued;
  while (event->done < upto && !stream->object.context->sticky && !stream->abandoned) sc_wait();
  sc_unlock();
}

static void run_nodes(CUgraph graph, CUstream stream);

static void run_node(CUgraphNode node, void *data) {
  CUstream stream = data;
  /* cuGraphNodeSetEnabled: disabled nodes "are functionally equivalent to empty nodes". */
  if (node->disabled) return;
  if (node->child) run_nodes(node->child, stream);
  else if (node->work && node->work->kind == SC_WORK_WAIT_EVENT)
    wait_for_event(node->work->event, stream);
  else if (node->work) sc_run(node->work, stream);
}

static void run_nodes(CUgraph graph, CUstream stream) {
  sc_plan child;
  sc_plan_begin(&child, graph);
  sc_plan_walk(&child, run_node, stream);
  sc_plan_end(&child);
}

/* ---- all kinds ------------------------------------------------------------------------------- */

/* Frees what cuMemFreeAsync gave back. An allocation is there from its call on, without work. */
static void free_memory(const sc_work *work) {
  sc_allocation *allocation = sc_find(work->to);
  if (allocation && !allocation->freed) sc_release(allocation);
}

void sc_run(sc_work *work, CUstream stream) {
  bool drop = sc_is_dropped(stream);
  if (work->kind == SC_WORK_RECORD) {
    record(work);
  } else if (work->kind == SC_WORK_CALLBACK) {
    if (!stream->abandoned) call_host(work, stream);
  } else if (work->kind == SC_WORK_GRAPH) {
    sc_plan_walk(work->plan, run_node, stream);  /* for its records, even when work is dropped */
  } else if (!drop) {
    switch (work->kind) {
    case SC_WORK_KERNEL: sc_run_launch(work->launch, &stream->abandoned); break;
    case SC_WORK_COPY: sc_run_copy(work); break;
    case SC_WORK_FILL: sc_run_fill(work); break;
    case SC_WORK_FREE: free_memory(work); break;
    case SC_WORK_WAIT_VALUE: wait_for_value(work, stream); break;
    case SC_WORK_WRITE_VALUE: write_value(work, stream); break;
    case SC_WORK_CALL: call_host(work, stream); break;
    default: break; /* waits for events are among `waits` */
    }
  }
}
