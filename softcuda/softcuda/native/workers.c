/* What a thread of the host keeps between launches, from the first one to its end. */
#include "counts.h"
#include "sanitizer.h"
#include "services.h"

static pthread_key_t worker_key;
static pthread_once_t worker_once = PTHREAD_ONCE_INIT;

static void free_worker(void *data) {
  sc_worker *worker = data;
  sc_signals_forget(worker);
  sc_races_forget(worker);
  sc_counts_forget(worker);
  struct sc_pool pools[] = {worker->fibers,  worker->blocks, worker->orders, worker->places,
                            worker->windows, worker->clocks, worker->bits};
  for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) free(pools[i].at);
  sc_worker_of_thread = NULL;
  free(worker);
}

static void make_key(void) { pthread_key_create(&worker_key, free_worker); }

sc_worker *sc_worker_here(void) {
  if (sc_worker_of_thread) return sc_worker_of_thread;
  pthread_once(&worker_once, make_key);
  sc_worker *worker = calloc(1, sizeof *worker);
  if (!worker) return NULL;
  pthread_setspecific(worker_key, worker);
  sc_worker_of_thread = worker;
  return worker;
}
