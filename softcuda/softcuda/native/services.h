/* Text that kernels print (printing.c), their heap (heap.c), and what a thread of the host keeps
 * between launches (workers.c). */
#pragma once
#include "fibers.h"

/* The calling thread's worker, made at its first launch; NULL where there is no memory for one. */
sc_worker *sc_worker_here(void);

int32_t sc_print(sc_thread *thread, uint64_t format, uint64_t arguments);
void sc_fail(sc_thread *thread, uint64_t message, uint64_t file, uint32_t line, uint64_t function);
void sc_printed_flush(sc_grid *grid);
uint64_t sc_heap_take(sc_thread *thread, uint64_t bytes);
void sc_heap_give_back(sc_thread *thread, uint64_t address);
