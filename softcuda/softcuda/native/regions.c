/* Where an address leads, and what is said where it leads nowhere. */
#include "contexts.h"
#include "regions.h"

/* An address this near to an array was probably meant for it. */
static const uint64_t NEAR = (uint64_t)1 << 20;
/* Nobody has memory here: a pointer that is null, or an index from one. */
static const uint64_t FIRST_PAGE = 4096;

/* ---- shared and local memory ---------------------------------------------------------------- */

static const char DYNAMIC_NAME[] = "dynamic shared memory";

/* The variable of the block's window that holds an offset; nothing lies in the gaps between
 * them. */
static bool find_shared(const sc_fiber *fiber, uint64_t offset, sc_region *out) {
  const sc_grid *grid = fiber->block->grid;
  const sc_module *module = grid->module;
  uint64_t window = (uint64_t)(uintptr_t)fiber->thread.shared;
  if (offset >= grid->dynamic_at) {
    *out = (sc_region){.space = SC_SHARED, .at = window + grid->dynamic_at,
                       .size = grid->launch->dynamic_shared, .name = DYNAMIC_NAME};
    return offset < grid->window_bytes;
  }
  for (uint32_t i = 0; i < module->shared_count; i++) {
    const sc_variable *variable = &module->shared[i];
    if (offset - variable->at >= variable->bytes) continue;
    *out = (sc_region){.space = SC_SHARED, .at = window + variable->at, .size = variable->bytes,
                       .name = variable->name};
    return true;
  }
  return false;
}

/* A frame of the thread's own local memory; usually the newest. */
static bool find_local(const sc_fiber *fiber, uint64_t address, sc_region *out) {
  const char *local = fiber->stack->local;
  for (uint32_t at = fiber->local_newest;;) {
    const sc_frame *frame = (const sc_frame *)(local + at);
    uint64_t begin = (uint64_t)(uintptr_t)frame + SC_FRAME_GAP;
    if (address - begin < frame->bytes) {
      *out = (sc_region){.space = SC_LOCAL, .at = begin, .size = frame->bytes};
      return true;
    }
    if (!at) return false;
    at = frame->previous;
  }
}

/* ---- global memory -------------------------------------------------------------------------- */

/* Whether kernels of a context may touch an allocation: their device's own, a peer's where access
 * was enabled (Driver API, cuCtxEnablePeerAccess), and memory of the host that devices see. */
static bool may_reach(CUcontext context, const sc_allocation *allocation) {
  switch (allocation->kind) {
  case SC_HOST_MEMORY:
  case SC_MANAGED_MEMORY:
  case SC_REGISTERED_MEMORY: return true;
  default: break;
  }
  /* Guide, "Stream Ordered Memory Allocator", Device Accessibility: the pool decides, not peers. */
  if (allocation->pool) return sc_pool_reachable(allocation->pool, context->device);
  return allocation->device == context->device || (context->peers >> allocation->device & 1);
}

static bool holds(const sc_allocation *allocation, uint64_t address) {
  return address - allocation->at < allocation->size;
}

/* How many items of the list begin at or before an address. */
static int count_before(const sc_list *list, uint64_t address) {
  int low = 0, high = list->count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (list->items[middle]->at <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The allocation that holds an address; a live one where a freed one has lain at the same place, as
 * memory of the host may that is registered again. */
static sc_allocation *find_allocation(const sc_list *list, uint64_t address) {
  int before = count_before(list, address);
  if (before && holds(list->items[before - 1], address) && !list->items[before - 1]->freed)
    return list->items[before - 1];
  sc_allocation *freed = NULL;
  for (int i = before - 1; i >= 0; i--) {
    if (!holds(list->items[i], address)) continue;
    if (!list->items[i]->freed) return list->items[i];
    if (!freed) freed = list->items[i];
  }
  return freed;
}

/* Memory that was made since the launch began, such as that of the device's heap. */
static bool renew_list(sc_grid *grid) {
  if (grid->list->generation == sc_generation()) return false;
  sc_hold(grid->worker);
  sc_list *old = grid->list;
  grid->list = sc_take_list();
  memset(grid->cached, 0, sizeof grid->cached);
  sc_release_list(old);
  sc_let_go(grid->worker);
  return true;
}

static sc_allocation *search(sc_grid *grid, uint64_t address) {
  sc_allocation *allocation = find_allocation(grid->list, address);
  if ((!allocation || allocation->freed) && renew_list(grid))
    allocation = find_allocation(grid->list, address);
  return allocation;
}

static bool find_global(sc_grid *grid, uint64_t address, sc_region *out) {
  sc_allocation **cached = &grid->cached[(address >> 12) % SC_CACHED];
  sc_allocation *allocation = *cached;
  if (!allocation || !holds(allocation, address) || allocation->freed) {
    allocation = search(grid, address);
    if (!allocation || allocation->freed || !may_reach(grid->launch->context, allocation))
      return false;
    *cached = allocation;
  }
  *out = (sc_region){.space = SC_GLOBAL, .at = allocation->at, .size = allocation->size,
                     .allocation = allocation};
  return true;
}

/* ---- what is said --------------------------------------------------------------------------- */

const char *sc_region_name(const sc_region *region, char *room, size_t bytes) {
  char name[80];
  const sc_allocation *allocation = region->allocation;
  if (region->space == SC_LOCAL) snprintf(room, bytes, "local memory");
  else if (region->name == DYNAMIC_NAME) snprintf(room, bytes, "%s", DYNAMIC_NAME);
  else if (region->name) snprintf(room, bytes, "'%s'", region->name);
  else if (allocation->name[0]) snprintf(room, bytes, "'%s'", allocation->name);
  else snprintf(room, bytes, "%s", sc_allocation_name(allocation, name, sizeof name));
  return room;
}

void sc_report_region(sc_report *report, const sc_region *region, uint64_t address, uint32_t size) {
  static __thread char name[80]; /* until the report is kept */
  const char *const spaces[] = {"", "global", "shared", "local"};
  report->space = spaces[region->space];
  report->size = size;
  report->length = region->size;
  report->offset = address - region->at;
  report->has_array = address >= region->at; /* before the array there is no offset */
  report->array = region->name;
  if (region->allocation)
    report->array = sc_allocation_name(region->allocation, name, sizeof name);
}

static const char *name_of(uint32_t how) {
  if (how & SC_ATOMIC && sc_may_write(how)) return "an atomic operation";
  if (how & SC_WRITE) return "a write";
  return how & SC_READ ? "a read" : "an access";
}

/* "a write of 4 bytes" */
static void describe_access(char *room, size_t bytes, uint32_t size, uint32_t how) {
  if (size) snprintf(room, bytes, "%s of %u byte%s", name_of(how), size, size > 1 ? "s" : "");
  else snprintf(room, bytes, "%s", name_of(how));
}

static uint64_t distance(const sc_region *region, uint64_t address) {
  if (address < region->at) return region->at - address;
  uint64_t end = region->at + region->size;
  return address < end ? 0 : address - end;
}

static void consider(sc_region *nearest, sc_region candidate, uint64_t address) {
  if (distance(&candidate, address) > NEAR) return;
  if (nearest->space && distance(nearest, address) <= distance(&candidate, address)) return;
  *nearest = candidate;
}

/* The array that an address was probably meant for; SC_NOWHERE where none is near. */
static sc_region find_nearest(const sc_fiber *fiber, uint64_t address) {
  const sc_grid *grid = fiber->block->grid;
  const sc_module *module = grid->module;
  sc_region nearest = {0};
  uint64_t window = (uint64_t)(uintptr_t)fiber->thread.shared;
  for (uint32_t i = 0; i < module->shared_count; i++) {
    const sc_variable *variable = &module->shared[i];
    sc_region shared = {SC_SHARED, window + variable->at, variable->bytes, NULL, variable->name};
    consider(&nearest, shared, address);
  }
  uint32_t bytes = grid->launch->dynamic_shared;
  sc_region dynamic = {SC_SHARED, window + grid->dynamic_at, bytes, NULL, DYNAMIC_NAME};
  if (bytes) consider(&nearest, dynamic, address);
  if (fiber->stack->local && fiber->local_used) {
    const sc_frame *frame = (const sc_frame *)(fiber->stack->local + fiber->local_newest);
    uint64_t at = (uint64_t)(uintptr_t)frame + SC_FRAME_GAP;
    consider(&nearest, (sc_region){SC_LOCAL, at, frame->bytes, NULL, NULL}, address);
  }
  for (int i = 0; i < grid->list->count; i++) {
    sc_allocation *allocation = grid->list->items[i];
    if (allocation->freed || !may_reach(grid->launch->context, allocation)) continue;
    sc_region global = {SC_GLOBAL, allocation->at, allocation->size, allocation, NULL};
    consider(&nearest, global, address);
  }
  return nearest;
}

/* "a write of 4 bytes 8 bytes past the end of 'b' (4096 bytes)" */
static void describe_outside(sc_report *report, const char *access, const sc_region *nearest,
                             uint64_t address, uint32_t size) {
  char name[96], where[64];
  uint64_t end = nearest->at + nearest->size;
  unsigned long long away = address < nearest->at ? nearest->at - address : address - end;
  if (address >= nearest->at && address < end)
    snprintf(where, sizeof where, "across the end");
  else if (address == end)
    snprintf(where, sizeof where, "just past the end");
  else
    snprintf(where, sizeof where, "%llu byte%s %s", away, away > 1 ? "s" : "",
             address < end ? "before the beginning" : "past the end");
  sc_report_region(report, nearest, address, size);
  snprintf(report->text, sizeof report->text, "%s %s of %s (%llu bytes)", access, where,
           sc_region_name(nearest, name, sizeof name), (unsigned long long)nearest->size);
}

static const char *name_nowhere(const sc_fiber *fiber, uint64_t address, const sc_stack *owner) {
  if (address < FIRST_PAGE) return "a null pointer";
  if (!owner) return "where no memory of this device is";
  return owner == fiber->stack ? "local memory of a function that has returned"
                               : "local memory of another thread";
}

static CUresult refuse_outside(sc_fiber *fiber, uint64_t address, uint32_t size, uint32_t how) {
  char access[64];
  describe_access(access, sizeof access, size, how);
  sc_report report = sc_report_of(fiber, address < FIRST_PAGE ? "null" : "out of bounds");
  report.size = size;
  const sc_stack *owner = sc_local_owner(address);
  sc_region nearest = find_nearest(fiber, address);
  if (nearest.space && address >= FIRST_PAGE && (!owner || owner == fiber->stack)) {
    describe_outside(&report, access, &nearest, address, size);
  } else {
    if (owner) report.space = "local";
    snprintf(report.text, sizeof report.text, "%s at the address %#llx, %s", access,
             (unsigned long long)address, name_nowhere(fiber, address, owner));
  }
  sc_report_once(fiber, &report, 0);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult refuse_region(sc_fiber *fiber, const char *kind, const sc_region *region,
                              uint64_t address, uint32_t size, uint32_t how, const char *why) {
  char access[64], name[96];
  describe_access(access, sizeof access, size, how);
  sc_report report = sc_report_of(fiber, kind);
  sc_report_region(&report, region, address, size);
  snprintf(report.text, sizeof report.text, "%s at offset %llu of %s (%llu bytes), %s", access,
           (unsigned long long)(address - region->at), sc_region_name(region, name, sizeof name),
           (unsigned long long)region->size, why);
  sc_report_once(fiber, &report, 0);
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

CUresult sc_refuse_access(sc_fiber *fiber, uint64_t address, uint32_t size, uint32_t how) {
  sc_grid *grid = fiber->block->grid;
  renew_list(grid);
  sc_region region;
  if (!sc_region_of(fiber, address, &region)) {
    sc_allocation *allocation = find_allocation(grid->list, address);
    if (!allocation) return refuse_outside(fiber, address, size, how);
    region = (sc_region){SC_GLOBAL, allocation->at, allocation->size, allocation, NULL};
    if (allocation->freed)
      return refuse_region(fiber, "freed", &region, address, size, how, "which has been freed");
    return refuse_region(fiber, "peer", &region, address, size, how,
                         "which is memory of another device that this context may not reach");
  }
  if (size && address % size) {
    refuse_region(fiber, "misaligned", &region, address, size, how,
                  "whose address is no multiple of its width");
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  }
  if (region.allocation && region.allocation->constant && sc_may_write(how))
    return refuse_region(fiber, "read-only", &region, address, size, how, "which is constant");
  if (!size)
    return refuse_region(fiber, "out of bounds", &region, address, size, how,
                         "where the host has no memory any more");
  return refuse_outside(fiber, address, size, how);
}

/* ---- the array of an address ---------------------------------------------------------------- */

bool sc_region_of(sc_fiber *fiber, uint64_t address, sc_region *out) {
  sc_grid *grid = fiber->block->grid;
  uint64_t offset = address - (uint64_t)(uintptr_t)fiber->thread.shared;
  if (offset < grid->window_bytes) return find_shared(fiber, offset, out);
  const char *local = fiber->stack->local;
  if (local && address - (uint64_t)(uintptr_t)local < fiber->local_used)
    return find_local(fiber, address, out);
  return find_global(grid, address, out);
}
