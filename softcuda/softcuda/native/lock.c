/* The lock that guards the driver's own data, and waiting for what others do. */
#include "lock.h"

#include <time.h>

/* A thread may take the lock again while it holds it. The mutex is taken once all the same, so that
 * sc_wait gives it away whole. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static __thread int depth;

__attribute__((constructor)) static void make_condition(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  pthread_condattr_destroy(&attributes);
}

void sc_lock(void) {
  if (!depth++) pthread_mutex_lock(&mutex);
}

void sc_unlock(void) {
  if (!--depth) pthread_mutex_unlock(&mutex);
}

void sc_wait(void) { pthread_cond_wait(&changed, &mutex); }

void sc_wait_for(pthread_cond_t *told) { pthread_cond_wait(told, &mutex); }

void sc_wait_at_most(double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  uint64_t nanoseconds = (uint64_t)until.tv_nsec + (uint64_t)(seconds * 1e9);
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  pthread_cond_timedwait(&changed, &mutex, &until);
}

void sc_changed(void) { pthread_cond_broadcast(&changed); }

double sc_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void sc_lock_after_fork(void) {
  pthread_mutex_init(&mutex, NULL);
  make_condition();
  depth = 0;
}
