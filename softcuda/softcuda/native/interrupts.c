/* Ctrl-C while the program waits for work: it ends that work, and the wait with it.
 *
 * A driver's call does not return to Python before the work is done, and Python raises nothing
 * before the call returns: an endless kernel would never let go of a program. Here the handler of
 * the program runs as ever, and the kernels end as after their time. Only waits of the main thread
 * hear it, to which Python gives its signals.
 */
#include "contexts.h"
#include "fibers.h"
#include "lock.h"
#include "running.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static const double PAUSE_SECONDS = 0.05; /* between two looks whether Ctrl-C came */

static struct sigaction former;
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number, siginfo_t *info, void *context) {
  interrupted = 1;
  if (former.sa_flags & SA_SIGINFO) former.sa_sigaction(number, info, context);
  else former.sa_handler(number);
}

/* A program that ignores the signal, or that it ends, has no handler. */
static bool has_handler(const struct sigaction *action) {
  return action->sa_flags & SA_SIGINFO ||
         (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

bool sc_hear_interrupts(void) {
  if (syscall(SYS_gettid) != getpid() || sigaction(SIGINT, NULL, &former) || !has_handler(&former))
    return false;
  struct sigaction ours = former; /* its mask, and whether calls of the system go on */
  ours.sa_sigaction = on_interrupt;
  ours.sa_flags |= SA_SIGINFO;
  interrupted = 0;
  return !sigaction(SIGINT, &ours, NULL);
}

void sc_end_hearing(bool hears) {
  if (hears) sigaction(SIGINT, &former, NULL);
}

void sc_wait_for_work(bool hears, CUcontext context) {
  if (!hears) {
    sc_wait();
    return;
  }
  if (!interrupted) {
    sc_wait_at_most(PAUSE_SECONDS);
    return;
  }
  if (sc_cancel_kernels()) sc_wait_at_most(PAUSE_SECONDS);
  else sc_set_sticky(context, CUDA_ERROR_LAUNCH_TIMEOUT); /* it waits for something else */
}
