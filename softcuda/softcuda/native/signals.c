/* Signals that end a kernel in place of the process: its faults, and a timer for its time. */
#include "fibers.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older headers of glibc do not name the thread that a timer signals (timer_create(2)). */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { SIGNAL_STACK_BYTES = 64 << 10 };

/* Faults of the processor, each with the handler that was there before ours. */
static struct fault {
  const int number;
  struct sigaction former;
  bool met; /* a fault that is not a kernel's was handed on */
} faults[] = {{.number = SIGSEGV}, {.number = SIGBUS}, {.number = SIGFPE}, {.number = SIGILL}};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction former_timer;
static pthread_mutex_t handlers_lock = PTHREAD_MUTEX_INITIALIZER;

/* A real-time signal that neither glibc nor Python uses (signal(7), Real-time signals). */
static int timer_signal(void) { return SIGRTMAX - 3; }

/* Takes the kernel from its stack. Handlers run on a stack of their own and with no signal blocked
 * (SA_ONSTACK, SA_NODEFER), so that leaving one for good leaves nothing behind. */
static void take_away(sc_worker *worker, int number, uint64_t address) {
  worker->signal = number;
  worker->signal_at = address;
  worker->interrupted = worker->current;
  sc_fiber_leave(worker);
}

/* Lets the handler that was there before ours have a signal: it is put in place, and the faulting
 * instruction runs again. The second time, the default action: a handler that restores ours and
 * raises the signal again, as Python's faulthandler does, would go on for ever. */
static void hand_on(struct fault *fault, const siginfo_t *info) {
  struct sigaction fallback = {.sa_handler = SIG_DFL};
  sigaction(fault->number, fault->met ? &fallback : &fault->former, NULL);
  fault->met = true;
  if (info->si_code <= 0) raise(fault->number); /* sent by a process: it does not come again */
}

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  sc_worker *worker = sc_worker_of_thread;
  if (worker && worker->current && !worker->held && info->si_code > 0)
    take_away(worker, number, (uint64_t)(uintptr_t)info->si_addr);
  for (int i = 0; i < FAULTS; i++)
    if (faults[i].number == number) hand_on(&faults[i], info);
}

static void on_timer(int number, siginfo_t *info, void *context) {
  sc_worker *worker = sc_worker_of_thread;
  bool ours = info->si_code == SI_TIMER || info->si_code == SI_QUEUE;
  if (!ours || !worker || info->si_value.sival_ptr != worker) {
    if (former_timer.sa_flags & SA_SIGINFO) former_timer.sa_sigaction(number, info, context);
    else if (former_timer.sa_handler != SIG_DFL && former_timer.sa_handler != SIG_IGN)
      former_timer.sa_handler(number);
    return;
  }
  if (!worker->grid) return;
  worker->expired = 1;
  if (worker->current && !worker->held) take_away(worker, number, 0);
}

void sc_let_go(sc_worker *worker) {
  if (--worker->held || !worker->expired || !worker->current) return;
  take_away(worker, timer_signal(), 0);
}

/* Puts a handler in place, also where another one was put there since, and keeps that one. */
static void install(int number, void (*handler)(int, siginfo_t *, void *),
                    struct sigaction *former) {
  struct sigaction now;
  sigaction(number, NULL, &now);
  if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handler) return;
  *former = now;
  struct sigaction ours = {.sa_sigaction = handler,
                           .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART};
  sigemptyset(&ours.sa_mask);
  sigaction(number, &ours, NULL);
}

static void install_all(void) {
  pthread_mutex_lock(&handlers_lock);
  for (int i = 0; i < FAULTS; i++) {
    install(faults[i].number, on_fault, &faults[i].former);
    faults[i].met = false;
  }
  install(timer_signal(), on_timer, &former_timer);
  pthread_mutex_unlock(&handlers_lock);
}

/* A thread that has no stack for signals gets one: that of a kernel may have overflowed. */
static void ready_stack(sc_worker *worker) {
  stack_t now;
  if (worker->signal_stack || sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return;
  worker->signal_stack = malloc(SIGNAL_STACK_BYTES);
  if (!worker->signal_stack) return;
  stack_t ours = {.ss_sp = worker->signal_stack, .ss_size = SIGNAL_STACK_BYTES};
  sigaltstack(&ours, NULL);
}

static void make_timer(sc_worker *worker) {
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = timer_signal()};
  event.sigev_value.sival_ptr = worker;
  event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
  worker->has_timer = !timer_create(CLOCK_MONOTONIC, &event, &worker->timer);
}

/* Again every hundredth of a second, until it finds the kernel where it may end. */
static void set_timer(sc_worker *worker, double seconds) {
  struct itimerspec when = {{0}, {0}};
  when.it_value.tv_sec = (time_t)seconds;
  when.it_value.tv_nsec = (long)((seconds - (double)when.it_value.tv_sec) * 1e9);
  if (seconds > 0) when.it_interval.tv_nsec = 10000000;
  timer_settime(worker->timer, 0, &when, NULL);
}

/* ---- kernels that run ----------------------------------------------------------------------- */

static pthread_mutex_t running_lock = PTHREAD_MUTEX_INITIALIZER;
static sc_worker *running;

static void enter_running(sc_worker *worker) {
  pthread_mutex_lock(&running_lock);
  worker->thread = pthread_self();
  worker->cancelled = false;
  worker->next_running = running;
  running = worker;
  pthread_mutex_unlock(&running_lock);
}

static void leave_running(const sc_worker *worker) {
  pthread_mutex_lock(&running_lock);
  sc_worker **link = &running;
  while (*link != worker) link = &(*link)->next_running;
  *link = worker->next_running;
  pthread_mutex_unlock(&running_lock);
}

bool sc_cancel_kernels(void) {
  pthread_mutex_lock(&running_lock);
  bool any = running;
  for (sc_worker *worker = running; worker; worker = worker->next_running) {
    worker->cancelled = true;
    pthread_sigqueue(worker->thread, timer_signal(), (union sigval){.sival_ptr = worker});
  }
  pthread_mutex_unlock(&running_lock);
  return any;
}

void sc_signals_begin(sc_worker *worker, double seconds) {
  install_all();
  ready_stack(worker);
  worker->held = worker->expired = worker->signal = 0;
  /* A stream's thread may block all signals; these must come through. */
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, timer_signal());
  for (int i = 0; i < FAULTS; i++) sigaddset(&ours, faults[i].number);
  pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
  enter_running(worker);
  if (!(seconds > 0)) return;
  if (!worker->has_timer) make_timer(worker);
  if (worker->has_timer) set_timer(worker, seconds);
}

void sc_signals_end(sc_worker *worker) {
  leave_running(worker);
  if (worker->has_timer) set_timer(worker, 0);
}

void sc_signals_forget(sc_worker *worker) {
  if (worker->has_timer) timer_delete(worker->timer);
  if (!worker->signal_stack) return;
  stack_t none = {.ss_flags = SS_DISABLE};
  sigaltstack(&none, NULL);
  free(worker->signal_stack);
}
