/* Which bytes are initialised: a bit for each byte of the memory of devices and of shared memory.
 *
 * Memory of a device holds nothing until a copy, a fill or a kernel writes it, and shared memory
 * nothing when a block begins. Memory of the host, managed memory and variables of modules count as
 * initialised, since the host writes them unseen or the module gives their contents.
 */
#include "blocks.h"

struct sc_shadow {
  uint8_t *bits; /* NULL: all of it counts as initialised */
};

/* Allocations up to this number may have been written by kernels that ran without the sanitizer. */
static uint64_t unseen_upto;

/* ---- bits ----------------------------------------------------------------------------------- */

static uint8_t bits_from(uint64_t bit, uint64_t end) {
  unsigned mask = 0xFFu << (bit & 7);
  if (end - (bit & ~(uint64_t)7) < 8) mask &= (1u << (end & 7)) - 1;
  return (uint8_t)mask;
}

/* Kernels of two streams may write neighbours at once. */
static void set_bits(uint8_t *bits, uint64_t begin, uint64_t end) {
  for (uint64_t bit = begin; bit < end; bit = (bit | 7) + 1) {
    uint8_t mask = bits_from(bit, end), *byte = &bits[bit >> 3];
    if ((__atomic_load_n(byte, __ATOMIC_RELAXED) & mask) == mask) continue;
    __atomic_fetch_or(byte, mask, __ATOMIC_RELAXED);
  }
}

static bool all_set(const uint8_t *bits, uint64_t begin, uint64_t end) {
  for (uint64_t bit = begin; bit < end; bit = (bit | 7) + 1) {
    uint8_t mask = bits_from(bit, end);
    if ((__atomic_load_n(&bits[bit >> 3], __ATOMIC_RELAXED) & mask) != mask) return false;
  }
  return true;
}

static bool is_set(const uint8_t *bits, uint64_t bit) { return bits[bit >> 3] >> (bit & 7) & 1; }

/* ---- shadows of allocations ----------------------------------------------------------------- */

static bool begins_empty(const sc_allocation *allocation) {
  bool empty = allocation->kind == SC_DEVICE_MEMORY || allocation->kind == SC_HEAP_MEMORY;
  return empty && sc_option.sanitize &&
         allocation->number > __atomic_load_n(&unseen_upto, __ATOMIC_RELAXED);
}

/* Made when memory is first touched; the first to have made it wins. NULL: no memory for it. */
static struct sc_shadow *shadow_of(sc_allocation *allocation) {
  struct sc_shadow *shadow = __atomic_load_n(&allocation->shadow, __ATOMIC_ACQUIRE);
  if (shadow) return shadow;
  struct sc_shadow *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  if (begins_empty(allocation)) made->bits = calloc(1, allocation->size / 8 + 1);
  if (__atomic_compare_exchange_n(&allocation->shadow, &shadow, made, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return made;
  free(made->bits);
  free(made);
  return shadow;
}

void sc_shadow_written(sc_allocation *allocation, uint64_t offset, uint64_t bytes) {
  const struct sc_shadow *shadow = shadow_of(allocation);
  if (!shadow || !shadow->bits || offset >= allocation->size) return;
  uint64_t left = allocation->size - offset;
  set_bits(shadow->bits, offset, offset + (bytes < left ? bytes : left));
}

/* Whole bytes of bits where both begin at one, as arrays do. */
static void copy_bits(uint8_t *to, uint64_t to_bit, const uint8_t *from, uint64_t from_bit,
                      uint64_t count) {
  uint64_t done = 0;
  if (!(to_bit & 7) && !(from_bit & 7)) {
    memmove(to + (to_bit >> 3), from + (from_bit >> 3), count >> 3);
    done = count & ~(uint64_t)7;
  }
  for (; done < count; done++) {
    uint64_t bit = to_bit + done;
    to[bit >> 3] &= (uint8_t)~(1u << (bit & 7));
    if (is_set(from, from_bit + done)) to[bit >> 3] |= (uint8_t)(1u << (bit & 7));
  }
}

void sc_shadow_copied(sc_allocation *to, uint64_t to_offset, sc_allocation *from,
                      uint64_t from_offset, uint64_t bytes) {
  const struct sc_shadow *source = from ? shadow_of(from) : NULL, *shadow = shadow_of(to);
  if (!shadow || !shadow->bits) return;
  if (!source || !source->bits) {
    sc_shadow_written(to, to_offset, bytes);
  } else if (to_offset + bytes <= to->size && from_offset + bytes <= from->size) {
    copy_bits(shadow->bits, to_offset, source->bits, from_offset, bytes);
  }
}

void sc_shadow_free(sc_allocation *allocation) {
  struct sc_shadow *shadow = allocation->shadow;
  if (!shadow) return;
  allocation->shadow = NULL;
  free(shadow->bits);
  free(shadow);
}

void sc_sanitizer_absent(sc_grid *grid) {
  uint64_t newest = __atomic_load_n(&unseen_upto, __ATOMIC_RELAXED);
  for (int i = 0; i < grid->list->count; i++)
    if (grid->list->items[i]->number > newest) newest = grid->list->items[i]->number;
  __atomic_store_n(&unseen_upto, newest, __ATOMIC_RELAXED);
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
  sc_worker *worker = block->grid->worker;
  sc_hold(worker);
  const struct sc_shadow *shadow = shadow_of(region->allocation);
  sc_let_go(worker);
  if (!shadow) return NULL;
  bool unseen = region->allocation->number <= __atomic_load_n(&unseen_upto, __ATOMIC_RELAXED);
  return unseen ? NULL : shadow->bits;
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
  if (region->space == SC_LOCAL) return; /* a thread's own, and its frames are filled alike */
  if (region->allocation && region->allocation->constant) return;
  if (how == SC_ATOMIC) how |= SC_READ | SC_WRITE;
  uint64_t first;
  uint8_t *bits = bits_of(fiber, region, &first);
  uint64_t begin = first + (address - region->at);
  if (bits && how & SC_READ && !all_set(bits, begin, begin + size))
    report_uninitialised(fiber, region, address, size);
  sc_races_access(fiber, region, address, size, how);
  if (bits && how & SC_WRITE) set_bits(bits, begin, begin + size);
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
