/* Accesses (access.c), frames of local memory (frames.c), and what ends a kernel (faults.c). */
#pragma once
#include "regions.h"

/* Ends the kernel with an error; the fault was reported. */
void sc_stop(sc_fiber *fiber, CUresult error) __attribute__((noreturn));
/* Says what signal took the fiber from its stack, or that its time is over. */
void sc_report_signal(sc_grid *grid);
void sc_report_time_out(sc_grid *grid, sc_fiber *fiber);

void *sc_access(sc_thread *thread, uint64_t address, uint32_t size, uint32_t how);

char *sc_enter_frame(sc_thread *thread, uint32_t bytes);
void sc_leave_frame(sc_thread *thread, char *frame);
