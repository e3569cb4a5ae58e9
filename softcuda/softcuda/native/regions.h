/* Where an address leads, and what is said where it leads nowhere (regions.c). */
#pragma once
#include "fibers.h"

enum sc_space { SC_NOWHERE, SC_GLOBAL, SC_SHARED, SC_LOCAL };

/* An array that holds an address. */
typedef struct sc_region {
  enum sc_space space;
  uint64_t at, size;
  sc_allocation *allocation; /* of the global space */
  const char *name;          /* of a shared variable */
} sc_region;

/* The array that holds an address and that this thread may touch. */
bool sc_region_of(sc_fiber *fiber, uint64_t address, sc_region *out);
/* Describes an access that is refused, and answers the error that it ends the kernel with. `size`
 * is 0 where it is not known. */
CUresult sc_refuse_access(sc_fiber *fiber, uint64_t address, uint32_t size, uint32_t how);
/* Fills what a report says of an array. */
void sc_report_region(sc_report *report, const sc_region *region, uint64_t address, uint32_t size);
/* "'b'" or "allocation 7". */
const char *sc_region_name(const sc_region *region, char *room, size_t bytes);
