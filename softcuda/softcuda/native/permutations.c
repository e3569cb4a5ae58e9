/* The orders in which threads run. */
#include "fibers.h"

/* splitmix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
uint64_t sc_random(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

void sc_order_threads(sc_block *block) {
  sc_grid *grid = block->grid;
  if (grid->order != SC_PERMUTED) return;
  for (uint32_t i = grid->threads; i > 1; i--) { /* Fisher and Yates */
    uint32_t other = (uint32_t)(sc_random(&grid->random) % i);
    uint16_t last = block->order[i - 1];
    block->order[i - 1] = block->order[other];
    block->order[other] = last;
  }
}
