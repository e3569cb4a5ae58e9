/* The heap of a device: malloc and free of kernels (Guide, Dynamic Global Memory Allocation). */
#include "contexts.h"
#include "lock.h"
#include "regions.h"
#include "sanitizer.h"
#include "services.h"

/* "The default size of the heap is 8 MB" where cudaLimitMallocHeapSize does not say otherwise. */
static const uint64_t DEFAULT_BYTES = (uint64_t)8 << 20;

static uint64_t heap_limit(const sc_grid *grid) {
  uint64_t limit = grid->launch->context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  return limit ? limit : DEFAULT_BYTES;
}

static uint64_t heap_used(const sc_grid *grid) {
  sc_list *list = sc_take_list();
  uint64_t used = 0;
  for (int i = 0; i < list->count; i++) {
    const sc_allocation *allocation = list->items[i];
    bool counts = allocation->kind == SC_HEAP_MEMORY && !allocation->freed &&
                  allocation->context == grid->launch->context;
    if (counts) used += allocation->size;
  }
  sc_release_list(list);
  return used;
}

uint64_t sc_heap_take(sc_thread *thread, uint64_t bytes) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_grid *grid = fiber->block->grid;
  sc_allocation *made = NULL;
  if (fiber->clocks) sc_races_settle(fiber);
  if (!bytes || bytes > heap_limit(grid)) return 0;
  sc_hold(grid->worker);
  /* "... or NULL if insufficient memory exists to fulfill the request" */
  if (heap_used(grid) + bytes <= heap_limit(grid) &&
      sc_allocate(grid->launch->context, bytes, SC_HEAP_MEMORY, &made))
    made = NULL;
  sc_let_go(grid->worker);
  return made ? made->at : 0;
}

static void report_free(sc_fiber *fiber, uint64_t address, const sc_region *region) {
  char name[96];
  sc_report report = sc_report_of(fiber, "free");
  if (!region) {
    snprintf(report.text, sizeof report.text,
             "free of the address %#llx, which malloc of a kernel has not given",
             (unsigned long long)address);
  } else {
    sc_report_region(&report, region, address, 0);
    snprintf(report.text, sizeof report.text, "%s is freed a second time",
             sc_region_name(region, name, sizeof name));
  }
  sc_report_once(fiber, &report, address);
}

/* "If ptr is NULL, the call to free() is ignored. Repeated calls to free() with the same ptr has
 * undefined behavior": ours reports it and goes on. */
void sc_heap_give_back(sc_thread *thread, uint64_t address) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_grid *grid = fiber->block->grid;
  if (fiber->clocks) sc_races_settle(fiber);
  if (!address) return;
  sc_hold(grid->worker);
  sc_lock();
  sc_allocation *allocation = sc_find(address);
  bool ours = allocation && allocation->kind == SC_HEAP_MEMORY && allocation->at == address;
  sc_unlock();
  if (ours && !allocation->freed) {
    sc_release(allocation);
    thread->recent_size = 0;
  } else if (ours) {
    sc_region region = {SC_GLOBAL, allocation->at, allocation->size, allocation, NULL};
    report_free(fiber, address, &region);
  } else {
    report_free(fiber, address, NULL);
  }
  sc_let_go(grid->worker);
}
