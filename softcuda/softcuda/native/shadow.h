/* Which bytes of memory are initialised: a bit for each (shadow.c). */
#pragma once
#include "allocation.h"

/* What was written so far: called for copies and fills by the host's side of the API. */
void sc_shadow_written(sc_allocation *allocation, uint64_t offset, uint64_t bytes);
/* A copy carries along which bytes are initialised. */
void sc_shadow_copied(sc_allocation *to, uint64_t to_offset, sc_allocation *from,
                      uint64_t from_offset, uint64_t bytes);
void sc_shadow_free(sc_allocation *allocation);
/* The bits of an allocation, by its bytes; NULL: all of it counts as initialised. They are made
 * when they are first asked for. */
uint8_t *sc_shadow_bits(sc_allocation *allocation);
/* From now on allocations up to this number count as initialised. */
void sc_shadow_unseen_upto(uint64_t number);

/* ---- bits ----------------------------------------------------------------------------------- */

static inline uint8_t sc_bits_from(uint64_t bit, uint64_t end) {
  unsigned mask = 0xFFu << (bit & 7);
  if (end - (bit & ~(uint64_t)7) < 8) mask &= (1u << (end & 7)) - 1;
  return (uint8_t)mask;
}

/* Kernels of two streams may write neighbours at once. */
static inline void sc_set_bits(uint8_t *bits, uint64_t begin, uint64_t end) {
  for (uint64_t bit = begin; bit < end; bit = (bit | 7) + 1) {
    uint8_t mask = sc_bits_from(bit, end), *byte = &bits[bit >> 3];
    if ((__atomic_load_n(byte, __ATOMIC_RELAXED) & mask) == mask) continue;
    __atomic_fetch_or(byte, mask, __ATOMIC_RELAXED);
  }
}

static inline bool sc_are_set(const uint8_t *bits, uint64_t begin, uint64_t end) {
  for (uint64_t bit = begin; bit < end; bit = (bit | 7) + 1) {
    uint8_t mask = sc_bits_from(bit, end);
    if ((__atomic_load_n(&bits[bit >> 3], __ATOMIC_RELAXED) & mask) != mask) return false;
  }
  return true;
}
