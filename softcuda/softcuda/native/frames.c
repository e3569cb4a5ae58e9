/* The local memory of CUDA threads, frame by frame. */
#include "access.h"

#include <sys/mman.h>

static void overflow(sc_fiber *fiber, uint32_t bytes) {
  sc_report report = sc_report_of(fiber, "stack overflow");
  report.space = "local";
  snprintf(report.text, sizeof report.text,
           "local memory of a thread has no room for %u bytes more; %u of %u are in use", bytes,
           fiber->local_used, SC_LOCAL_BYTES);
  sc_report_once(fiber, &report, 0);
  /* Driver API, CUDA_ERROR_HARDWARE_STACK_ERROR: "exceeding the stack size limit". */
  sc_stop(fiber, CUDA_ERROR_HARDWARE_STACK_ERROR);
}

/* Memory of zeros; NULL: none. */
static void *map_zeros(size_t bytes) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

static bool make_local(sc_fiber *fiber) {
  sc_stack *stack = fiber->stack;
  if (!stack->local) stack->local = map_zeros(SC_LOCAL_ROOM);
  if (fiber->clocks && !stack->local_written) stack->local_written = map_zeros(SC_LOCAL_ROOM / 8);
  return stack->local && (!fiber->clocks || stack->local_written);
}

char *sc_enter_frame(sc_thread *thread, uint32_t bytes) {
  sc_fiber *fiber = sc_fiber_of(thread);
  if (!make_local(fiber)) overflow(fiber, bytes);
  thread->local = fiber->stack->local;
  thread->local_bytes = SC_LOCAL_ROOM;
  /* [gap with the header][frame][gap] */
  uint32_t at = fiber->local_used, padded = (bytes + SC_FRAME_GAP - 1) & ~(SC_FRAME_GAP - 1u);
  if (bytes > SC_LOCAL_BYTES || at + padded > SC_LOCAL_BYTES) overflow(fiber, bytes);
  sc_frame *frame = (sc_frame *)(fiber->stack->local + at);
  *frame = (sc_frame){.previous = fiber->local_newest, .bytes = bytes};
  fiber->local_newest = at;
  fiber->local_used = at + SC_FRAME_GAP + padded + SC_FRAME_GAP;
  char *begin_of_frame = (char *)frame + SC_FRAME_GAP;
  if (fiber->clocks) {
    /* The same garbage in every run, so that a result that depends on it shows. */
    memset(begin_of_frame, 0xA5, bytes);
    memset(fiber->stack->local_written + (at + SC_FRAME_GAP) / 8, 0, padded / 8);
  }
  return begin_of_frame;
}

void sc_leave_frame(sc_thread *thread, char *frame) {
  sc_fiber *fiber = sc_fiber_of(thread);
  const sc_frame *header = (const sc_frame *)(frame - SC_FRAME_GAP);
  fiber->local_used = (uint32_t)((const char *)header - fiber->stack->local);
  fiber->local_newest = header->previous;
  if (thread->recent_at - (uint64_t)(uintptr_t)frame < header->bytes) thread->recent_size = 0;
}
