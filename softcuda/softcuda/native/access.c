/* An access of a kernel: whether it may be, and what the sanitizer says of it. */
#include "access.h"
#include "sanitizer.h"

void *sc_access(sc_thread *thread, uint64_t address, uint32_t size, uint32_t how) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_region region;
  if (fiber->clocks) sc_races_settle(fiber);
  bool constant = false;
  bool fine = sc_region_of(fiber, address, &region) && !(address % size) &&
              address - region.at + size <= region.size;
  if (fine && region.allocation) constant = region.allocation->constant;
  if (!fine || (constant && sc_may_write(how)))
    sc_stop(fiber, sc_refuse_access(fiber, address, size, how));
  if (fiber->clocks) {
    sc_sanitize_access(fiber, &region, address, size, how);
  } else if (!constant) { /* what is remembered here is not asked about again, writes included */
    thread->recent_at = region.at;
    thread->recent_size = region.size;
  }
  return (void *)(uintptr_t)address;
}
