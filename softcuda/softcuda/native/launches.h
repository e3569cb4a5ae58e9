/* Launches: checked, copied, and run (launches.c). */
#pragma once
#include "launch.h"

/* Runs a launch (sc_execute) with the faults on command; the error goes to its context. It need not
 * begin, and ends where it waits, once `abandoned` is true. */
void sc_run_launch(const sc_launch *launch, const bool *abandoned);
/* A checked launch with a copy of its parameters, from `parameters` or from `extra`. */
CUresult sc_launch_new(const CUDA_KERNEL_NODE_PARAMS *what, CUcontext context, bool cooperative,
                       const char *call, sc_launch **made);
sc_launch *sc_launch_copy(const sc_launch *launch);
void sc_launch_free(sc_launch *launch);
