/* The lock, and waiting for what others do (lock.c). */
#pragma once
#include "base.h"

void sc_lock(void);
void sc_unlock(void);
/* Waits, with the lock held, until something has changed (an operation ended, a stream woke). */
void sc_wait(void);
/* Tells all who wait in sc_wait. */
void sc_changed(void);
/* As sc_wait, for what one thread alone waits for and another tells by pthread_cond_signal. */
void sc_wait_for(pthread_cond_t *told);
/* As sc_wait, but for so many seconds at most. */
void sc_wait_at_most(double seconds);
/* Seconds on the host's monotonic clock. */
double sc_now(void);
/* In the child of a fork: the lock is free, and nobody waits. */
void sc_lock_after_fork(void);
