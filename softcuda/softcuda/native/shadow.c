/* Which bytes are initialised: a bit for each byte of the memory of devices and of shared memory.
 *
 * Memory of a device holds nothing until a copy, a fill or a kernel writes it. Memory of
 * the host, managed memory and variables of modules count as initialised, since the host writes
 * them unseen or the module gives their contents.
 */
#include "options.h"
#include "shadow.h"

struct sc_shadow {
  uint8_t *bits; /* NULL: all of it counts as initialised */
};

/* Allocations up to this number may have been written by kernels that ran without the sanitizer. */
static uint64_t unseen_upto;

static bool is_set(const uint8_t *bits, uint64_t bit) { return bits[bit >> 3] >> (bit & 7) & 1; }

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
  sc_set_bits(shadow->bits, offset, offset + (bytes < left ? bytes : left));
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

uint8_t *sc_shadow_bits(sc_allocation *allocation) {
  const struct sc_shadow *shadow = shadow_of(allocation);
  bool unseen = allocation->number <= __atomic_load_n(&unseen_upto, __ATOMIC_RELAXED);
  return !shadow || unseen ? NULL : shadow->bits;
}

void sc_shadow_unseen_upto(uint64_t number) {
  if (number > __atomic_load_n(&unseen_upto, __ATOMIC_RELAXED))
    __atomic_store_n(&unseen_upto, number, __ATOMIC_RELAXED);
}
