/* What ends a kernel: a fault, a signal, or the end of its time. */
#include "access.h"
#include "sanitizer.h"

#include <signal.h>

void sc_stop(sc_fiber *fiber, CUresult error) {
  if (fiber->clocks) sc_races_settle(fiber);
  fiber->block->grid->error = error;
  sc_fiber_leave(sc_worker_of(fiber));
}

void sc_report_time_out(sc_grid *grid, sc_fiber *fiber) {
  bool cancelled = grid->worker->cancelled;
  sc_report report = sc_report_of(fiber, cancelled ? "interrupted" : "time-out");
  if (cancelled)
    snprintf(report.text, sizeof report.text,
             "Ctrl-C has ended the kernel; this thread was running");
  else
    snprintf(report.text, sizeof report.text,
             "the kernel has not ended after %g s; this thread was running",
             sc_option.kernel_timeout);
  sc_report_once(fiber, &report, 0);
  grid->error = CUDA_ERROR_LAUNCH_TIMEOUT;
}

static void report_overflow(sc_grid *grid, sc_fiber *fiber) {
  sc_report report = sc_report_of(fiber, "stack overflow");
  report.space = "local";
  snprintf(report.text, sizeof report.text,
           "the stack of a thread is full; does a function call itself without end?");
  sc_report_once(fiber, &report, 0);
  /* Driver API, CUDA_ERROR_HARDWARE_STACK_ERROR: "exceeding the stack size limit". */
  grid->error = CUDA_ERROR_HARDWARE_STACK_ERROR;
}

static void report_instruction(sc_grid *grid, sc_fiber *fiber, int number) {
  sc_report report = sc_report_of(fiber, "illegal instruction");
  snprintf(report.text, sizeof report.text, "the kernel was ended by signal %d (%s)", number,
           strsignal(number));
  sc_report_once(fiber, &report, 0);
  grid->error = CUDA_ERROR_ILLEGAL_INSTRUCTION;
}

void sc_report_signal(sc_grid *grid) {
  sc_worker *worker = grid->worker;
  sc_fiber *fiber = worker->interrupted;
  const sc_stack *stack = fiber->stack;
  uint64_t at = worker->signal_at;
  switch (worker->signal) {
  case SIGSEGV:
  case SIGBUS:
    if (at - (uint64_t)(uintptr_t)stack->guard < (uint64_t)(stack->low - stack->guard))
      report_overflow(grid, fiber);
    else
      grid->error = sc_refuse_access(fiber, at, 0, 0);
    break;
  case SIGFPE:
  case SIGILL:
    report_instruction(grid, fiber, worker->signal);
    break;
  default:
    sc_report_time_out(grid, fiber);
  }
}
