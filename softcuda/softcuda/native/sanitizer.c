/* What kernels read that nothing has written. Shared memory holds nothing when a block begins, and
 * a frame of local memory when a function begins; of the memory of devices shadow.c knows.
 */
#include "sanitizer.h"
#include "shadow.h"

void sc_sanitizer_absent(sc_grid *grid) {
  uint64_t newest = 0;
  for (int i = 0; i < grid->list->count; i++)
    if (grid->list->items[i]->number > newest) newest = grid->list->items[i]->number;
  sc_shadow_unseen_upto(newest);
}

/* ---- accesses of kernels -------------------------------------------------------------------- */

/* The bits of an array, and which of them stands for its first byte; NULL: all are initialised. */
static uint8_t *bits_of(sc_fiber *fiber, const sc_region *region, uint64_t *first) {
  sc_block *block = fiber->block;
  *first = 0;
  if (region->space == SC_SHARED) {
    *first = region->at - (uint64_t)(uintptr_t)block->window;
    return block->written;
  }
  if (region->space == SC_LOCAL) {
    *first = region->at - (uint64_t)(uintptr_t)fiber->stack->local;
    return fiber->stack->local_written;
  }
  sc_worker *worker = block->grid->worker;
  sc_hold(worker);
  uint8_t *bits = sc_shadow_bits(region->allocation);
  sc_let_go(worker);
  return bits;
}

static void report_uninitialised(sc_fiber *fiber, const sc_region *region, uint64_t address,
                                 uint32_t size) {
  char name[96];
  sc_report report = sc_report_of(fiber, "uninitialised");
  sc_report_region(&report, region, address, size);
  snprintf(report.text, sizeof report.text,
           "a read of %u byte%s at offset %llu of %s (%llu bytes), which nothing has written", size,
           size > 1 ? "s" : "", (unsigned long long)(address - region->at),
           sc_region_name(region, name, sizeof name), (unsigned long long)region->size);
  sc_report_once(fiber, &report, region->at);
}

void sc_sanitize_access(sc_fiber *fiber, const sc_region *region, uint64_t address, uint32_t size,
                        uint32_t how) {
  if (region->allocation && region->allocation->constant) return;
  if (how == SC_ATOMIC) how |= SC_READ | SC_WRITE;
  uint64_t first;
  uint8_t *bits = bits_of(fiber, region, &first);
  uint64_t begin = first + (address - region->at);
  if (bits && how & SC_READ && !sc_are_set(bits, begin, begin + size))
    report_uninitialised(fiber, region, address, size);
  if (region->space != SC_LOCAL) sc_races_access(fiber, region, address, size, how);
  if (bits && how & SC_WRITE) sc_set_bits(bits, begin, begin + size);
}

/* ---- a launch ------------------------------------------------------------------------------- */

bool sc_sanitizer_begin(sc_grid *grid) {
  sc_worker *worker = grid->worker;
  size_t live = grid->live_blocks, fibers = live * grid->fibers_of_block;
  size_t stride = grid->window_stride / 8 + 1;
  uint8_t *bits = sc_pool_take(&worker->bits, live * stride, true);
  if (!bits || !sc_pool_take(&worker->clocks, fibers * sc_clocks_bytes(), true)) return false;
  for (size_t i = 0; i < live; i++) grid->blocks[i].written = bits + i * stride;
  return sc_races_begin(grid);
}
