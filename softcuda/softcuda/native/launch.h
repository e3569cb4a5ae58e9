/* A launch: a kernel, its grid and its parameters. */
#pragma once
#include "modules.h"

typedef struct sc_launch {
  const sc_function *function;
  CUcontext context;
  uint32_t grid[3], block[3], dynamic_shared;
  bool cooperative;
  char *parameters; /* owned: the packed block */
} sc_launch;
