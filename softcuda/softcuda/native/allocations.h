/* What may be freed (allocations.c). */
#pragma once
#include "memory.h"

/* The allocation that begins at an address and may be freed; `kinds` has a bit for each kind.
 * Reports what is wrong otherwise. */
CUresult sc_find_to_free(uint64_t address, unsigned kinds, const char *call, sc_allocation **found);
