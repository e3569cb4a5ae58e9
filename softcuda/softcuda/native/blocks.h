/* Running a launch (blocks.c). */
#pragma once
#include "launch.h"

/* Runs all blocks of a launch on the calling thread and answers 0, or the error that a GPU would
 * give; a fault is then reported. */
CUresult sc_execute(const sc_launch *launch);
