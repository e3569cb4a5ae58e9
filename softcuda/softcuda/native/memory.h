/* Allocations, and the pools that they come from (memory.c). */
#pragma once
#include "allocation.h"

/* The live or freed allocation that holds an address, or NULL. Needs the lock. */
sc_allocation *sc_find(uint64_t address);
/* A list of all allocations, ascending by address, for reading without the lock; it stays valid
 * until sc_release_list. `generation` is of the moment it was made. */
typedef struct sc_list {
  sc_allocation **items;
  int count;
  uint64_t generation;
  int users;
} sc_list;
sc_list *sc_take_list(void);
void sc_release_list(sc_list *list);
/* The generation of the newest list, to see that one is old; needs no lock. */
uint64_t sc_generation(void);
/* Memory for a kind; the end of it lies at a guard page, fresh device memory is 0xA5. */
CUresult sc_allocate(CUcontext context, uint64_t bytes, enum sc_memory kind, sc_allocation **made);
CUresult sc_release(sc_allocation *allocation);
/* Pageable memory of the program that it registers (cuMemHostRegister). */
CUresult sc_register(CUcontext context, uint64_t at, uint64_t bytes, sc_allocation **made);
/* Bytes of a device that are not taken. */
uint64_t sc_memory_left(int device);
/* "b", or "allocation 7". */
const char *sc_allocation_name(const sc_allocation *allocation, char *room, size_t bytes);
/* Reports memory of a context that is still alive; of NULL: that of pools, which belong to no
 * context. */
void sc_report_memory_leaks(CUcontext context);
/* Frees all memory of a context that has ended; that of pools belongs to none and stays. */
void sc_memory_end(CUcontext context);
/* Names the allocation at an address, for reports. Exported, for Python. */
API int softcuda_name(uint64_t address, const char *name);
/* Whether bytes from an address on lie in one allocation, and what tells the sanitizer that they
 * were written. Exported, for what Python does on the host in place of NVIDIA's libraries. */
API int softcuda_holds(uint64_t address, uint64_t bytes);
API void softcuda_written(uint64_t address, uint64_t bytes);

/* Whether a device may touch the memory of a pool (cuMemPoolSetAccess): peer access of contexts
 * does not count there (Guide, "Stream Ordered Memory Allocator", Device Accessibility). */
bool sc_pool_reachable(CUmemoryPool pool, int device);
