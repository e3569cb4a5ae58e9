/* For tests of how kernels run: kernels written by hand as the translation would write them. */
#pragma once
#include "blocks.h"
#include "contexts.h"
#include "grid.h"
#include "lock.h"
#include "reports.h"
#include "shadow.h"

/* What runtime.h does of an access. */
static inline void *at(sc_thread *t, uint64_t address, uint32_t size, uint32_t how) {
  uint64_t offset = address - t->recent_at;
  if (offset < t->recent_size && size <= t->recent_size - offset && !(address & (size - 1)))
    return (void *)(uintptr_t)address;
  return t->services->access(t, address, size, how);
}

#define READ(t, type, address) (*(type *)at(t, (uint64_t)(address), sizeof(type), SC_READ))
#define WRITE(t, type, address, value)                                                            \
  do {                                                                                            \
    type value_ = (value);                                                                        \
    *(type *)at(t, (uint64_t)(address), sizeof(type), SC_WRITE) = value_;                         \
  } while (0)
#define ATOMIC_ADD(t, type, address, value)                                                       \
  __atomic_fetch_add((type *)at(t, (uint64_t)(address), sizeof(type),                             \
                                SC_READ | SC_WRITE | SC_ATOMIC),                                  \
                     value, __ATOMIC_SEQ_CST)

enum { S = 0, DOUBLES = 128, GAP = 16 }; /* offsets of the module's shared variables */

static inline uint64_t shared(sc_thread *t, uint64_t offset) {
  return (uint64_t)(uintptr_t)t->shared + offset;
}
static inline uint64_t dynamic(sc_thread *t, uint64_t offset) {
  return shared(t, t->dynamic_at + offset);
}
static inline uint32_t global_index(const sc_thread *t) {
  return t->ctaid[0] * t->ntid[0] + t->tid[0];
}
static inline void barrier(sc_thread *t, uint32_t site) {
  t->services->barrier(t, 0, 0, SC_BARRIER_SYNC, 0, site);
}
static inline sc_warp_call warp(sc_thread *t, enum sc_warp_op op, uint32_t mask, uint64_t value,
                                uint32_t b, uint32_t c, uint32_t site) {
  sc_warp_call call = {.op = op, .mask = mask, .value = value, .b = b, .c = c};
  t->services->warp(t, &call, site);
  return call;
}

/* The three arrays that every kernel gets. */
typedef struct arrays {
  uint64_t a, b, c;
} arrays;
