/* What the C text of every translated module includes: memory, atomic operations, and the services
 * of the device in the form in which the text calls them.
 *
 * Numbers in brackets are sections of the PTX ISA, 9.x.
 */
#pragma once
#include "arithmetic.h"
#include "device.h"

#define SC_EXPORT __attribute__((visibility("default")))

/* ---- memory --------------------------------------------------------------------------------- */

/* The bytes that a thread may touch without asking: an allocation, a variable, a frame. */
typedef struct sc_span {
  uint64_t at, size;
} sc_span;

SC_INLINE bool sc_in(sc_span span, uint64_t address, uint32_t size) {
  uint64_t offset = address - span.at;
  return offset < span.size && size <= span.size - offset && !(address & (size - 1));
}

/* See SC_MANY_ACCESSES in translate.py. */
#ifdef SC_MANY_ACCESSES
#define SC_ACCESS static __attribute__((noinline, unused))
#else
#define SC_ACCESS SC_INLINE
#endif

/* The host's address of `size` bytes that a thread touches. Most accesses go where the last one
 * went, and are aligned: they need no search. The sanitizer sees every access. */
SC_ACCESS void *sc_at(sc_thread *t, uint64_t address, uint32_t size, uint32_t how) {
#ifndef SC_SANITIZE
  if (sc_in((sc_span){t->recent_at, t->recent_size}, address, size)) return (void *)address;
#endif
  return t->services->access(t, address, size, how);
}

/* The same in shared memory. It has a last place of its own, because kernels go to and fro between
 * global and shared memory. */
SC_ACCESS void *sc_shared_at(sc_thread *t, sc_span *recent, uint64_t address, uint32_t size,
                             uint32_t how) {
#ifdef SC_SANITIZE
  (void)recent;
  return t->services->access(t, address, size, how);
#else
  if (sc_in(*recent, address, size)) return (void *)address;
  sc_span global = {t->recent_at, t->recent_size};
  void *found = t->services->access(t, address, size, how);
  *recent = (sc_span){t->recent_at, t->recent_size};
  t->recent_at = global.at;
  t->recent_size = global.size;
  return found;
#endif
}

/* The same for generic and local addresses in a function that has a frame of local memory. */
SC_ACCESS void *sc_frame_at(sc_thread *t, const char *frame, uint32_t bytes, uint64_t address,
                            uint32_t size, uint32_t how) {
#ifndef SC_SANITIZE
  if (sc_in((sc_span){(uint64_t)frame, bytes}, address, size)) return (void *)address;
#else
  (void)frame, (void)bytes;
#endif
  return sc_at(t, address, size, how);
}

/* Copies the parameters of a function to its frame of local memory, where they count as written. */
SC_INLINE char *sc_keep_parameters(sc_thread *t, char *to, const char *from, uint32_t size) {
#ifdef SC_SANITIZE
  for (uint32_t i = 0; i < size; i++) sc_at(t, (uint64_t)(to + i), 1, SC_WRITE);
#else
  (void)t;
#endif
  return memcpy(to, from, size);
}

/* Whether a generic address lies in the block's window of shared memory, or in the thread's local
 * memory [9.7.9, isspacep]. */
SC_INLINE bool sc_is_shared(const sc_thread *t, uint64_t address) {
  return address - (uint64_t)t->shared < (uint64_t)t->dynamic_at + t->dynamic_shared;
}

SC_INLINE bool sc_is_local(const sc_thread *t, uint64_t address) {
  return t->local && address - (uint64_t)t->local < t->local_bytes;
}

/* cp.async [9.7.9], done at once: copies `given` bytes and fills the others with zeros. */
SC_INLINE void sc_copy(sc_thread *t, uint64_t to, uint64_t from, uint32_t size, uint32_t given) {
  char held[16] = {0};
  if (given > size) given = size;
  if (given == size) {
    memcpy(held, sc_at(t, from, size, SC_READ), size);
  } else {
    for (uint32_t i = 0; i < given; i++) held[i] = *(char *)sc_at(t, from + i, 1, SC_READ);
  }
  memcpy(sc_at(t, to, size, SC_WRITE), held, size);
}

/* ---- counting ------------------------------------------------------------------------------- */

/* A basic block begins, with so many places that SC_TOUCH fills before the next one begins. */
#define SC_BLOCK(number, count)                                                                   \
  do {                                                                                            \
    sc_trace *trace = &t->trace;                                                                  \
    if (__builtin_expect(trace->block == trace->block_end ||                                      \
                             ((count) && (count) > trace->place_end - trace->place), 0))          \
      t->services->trace(t, count);                                                               \
    *trace->block++ = number;                                                                     \
    if (count) {                                                                                  \
      places = trace->place;                                                                      \
      trace->place += count;                                                                      \
    }                                                                                             \
  } while (0)
#define SC_TOUCH(number, address) places[number] = (address)

/* ---- atomic operations [9.7.13.6 atom] ------------------------------------------------------ */

/* Kernels on other streams run at the same time on other threads of the host: the operations are
 * atomic there too. Compared as bits, so that NaN is equal to itself. */
#define SC_ATOMIC_OPERATION(operation, name, type, bits, to_bits, of_bits, result)                \
  SC_INLINE type sc_atom_##operation##_##name(void *at, type value) {                             \
    bits found = __atomic_load_n((bits *)at, __ATOMIC_SEQ_CST), put;                              \
    type old;                                                                                     \
    do {                                                                                          \
      old = of_bits(found);                                                                       \
      put = to_bits(result);                                                                      \
    } while (!__atomic_compare_exchange_n((bits *)at, &found, put, false, __ATOMIC_SEQ_CST,       \
                                          __ATOMIC_SEQ_CST));                                     \
    return old;                                                                                   \
  }

#define SC_INTEGER(operation, name, type, bits, result)                                           \
  SC_ATOMIC_OPERATION(operation, name, type, bits, (bits), (type), result)
#define SC_INTEGERS(name, type, bits)                                                             \
  SC_INTEGER(add, name, type, bits, (bits)old + (bits)value)                                      \
  SC_INTEGER(min, name, type, bits, old < value ? old : value)                                    \
  SC_INTEGER(max, name, type, bits, old > value ? old : value)
SC_INTEGERS(u32, uint32_t, uint32_t)
SC_INTEGERS(s32, int32_t, uint32_t)
SC_INTEGERS(u64, uint64_t, uint64_t)
SC_INTEGERS(s64, int64_t, uint64_t)

#define SC_BITS(name, type)                                                                       \
  SC_INTEGER(and, name, type, type, old & value)                                                  \
  SC_INTEGER(or, name, type, type, old | value)                                                   \
  SC_INTEGER(xor, name, type, type, old ^ value)                                                  \
  SC_INTEGER(exch, name, type, type, value)                                                       \
  SC_INLINE type sc_atom_cas_##name(void *at, type compare, type value) {                         \
    __atomic_compare_exchange_n((type *)at, &compare, value, false, __ATOMIC_SEQ_CST,             \
                                __ATOMIC_SEQ_CST);                                                \
    return compare;                                                                               \
  }
SC_BITS(b16, uint16_t)
SC_BITS(b32, uint32_t)
SC_BITS(b64, uint64_t)

/* inc and dec wrap at `value`. */
SC_INTEGER(inc, u32, uint32_t, uint32_t, old >= value ? 0 : old + 1)
SC_INTEGER(dec, u32, uint32_t, uint32_t, old == 0 || old > value ? value : old - 1)
SC_INTEGER(inc, u64, uint64_t, uint64_t, old >= value ? 0 : old + 1)
SC_INTEGER(dec, u64, uint64_t, uint64_t, old == 0 || old > value ? value : old - 1)

#define SC_FLOATS(name, type, bits, to_bits, of_bits)                                             \
  SC_ATOMIC_OPERATION(add, name, type, bits, to_bits, of_bits, old + value)                       \
  SC_ATOMIC_OPERATION(min, name, type, bits, to_bits, of_bits, sc_min_##name(old, value))         \
  SC_ATOMIC_OPERATION(max, name, type, bits, to_bits, of_bits, sc_max_##name(old, value))
SC_FLOATS(f32, float, uint32_t, sc_b32_of_f32, sc_f32_of_b32)
SC_FLOATS(f64, double, uint64_t, sc_b64_of_f64, sc_f64_of_b64)

/* Halves come and go as bits; of two halves in a word each is added by itself. */
SC_INLINE uint16_t sc_add_f16(uint16_t a, uint16_t b) {
  return sc_f16_of(sc_f32_of_f16(a) + sc_f32_of_f16(b));
}
SC_INLINE uint16_t sc_add_bf16(uint16_t a, uint16_t b) {
  return sc_bf16_of(sc_f32_of_bf16(a) + sc_f32_of_bf16(b));
}
SC_INTEGER(add, f16, uint16_t, uint16_t, sc_add_f16(old, value))
SC_INTEGER(add, bf16, uint16_t, uint16_t, sc_add_bf16(old, value))
SC_INTEGER(add, f16x2, uint32_t, uint32_t,
           sc_add_f16((uint16_t)old, (uint16_t)value) |
               (uint32_t)sc_add_f16((uint16_t)(old >> 16), (uint16_t)(value >> 16)) << 16)
SC_INTEGER(add, bf16x2, uint32_t, uint32_t,
           sc_add_bf16((uint16_t)old, (uint16_t)value) |
               (uint32_t)sc_add_bf16((uint16_t)(old >> 16), (uint16_t)(value >> 16)) << 16)

/* ---- threads -------------------------------------------------------------------------------- */

SC_INLINE uint32_t sc_lane_id(const sc_thread *t) { return t->linear % SC_WARP; }

SC_INLINE uint32_t sc_warps(const sc_thread *t) {
  return (t->ntid[0] * t->ntid[1] * t->ntid[2] + SC_WARP - 1) / SC_WARP;
}

/* A warp operation; what it gives besides its result goes to `predicate`, where there is one. */
SC_INLINE uint64_t sc_warp(sc_thread *t, enum sc_warp_op op, uint32_t mask, uint64_t value,
                           uint32_t b, uint32_t c, uint32_t site, bool *predicate) {
  sc_warp_call call = {.op = op, .mask = mask, .value = value, .b = b, .c = c};
  t->services->warp(t, &call, site);
  if (predicate) *predicate = call.predicate;
  return call.result;
}

/* A device function: true where the thread has ended in it (exit). */
typedef bool sc_code(sc_thread *t, char *returned, char *parameters);

/* The function of an address that a program has calculated with; anything else is a trap. */
SC_INLINE sc_code *sc_function_at(sc_thread *t, uint64_t address, sc_code *const *all,
                                  size_t count) {
  for (size_t i = 0; i < count; i++)
    if ((uint64_t)(uintptr_t)all[i] == address) return all[i];
  t->services->trap(t);
  __builtin_unreachable();
}

/* ---- functions that the CUDA runtime brings along ------------------------------------------- */

SC_INLINE void sc_put_u32(sc_thread *t, uint64_t address, uint32_t value) {
  if (address) *(uint32_t *)sc_at(t, address, 4, SC_WRITE) = value;
}

/* cudaCGGetSize: how many threads the grid has, and how many grids there are: one. */
SC_INLINE uint32_t sc_grid_size(sc_thread *t, uint64_t threads, uint64_t grids) {
  uint32_t block = t->ntid[0] * t->ntid[1] * t->ntid[2];
  sc_put_u32(t, threads, t->nctaid[0] * t->nctaid[1] * t->nctaid[2] * block);
  sc_put_u32(t, grids, 1);
  return 0;
}

/* cudaCGGetRank: the number of the thread in the grid, and that of the grid. */
SC_INLINE uint32_t sc_grid_rank(sc_thread *t, uint64_t thread, uint64_t grid) {
  uint32_t block = t->ctaid[0] + t->nctaid[0] * (t->ctaid[1] + t->nctaid[1] * t->ctaid[2]);
  sc_put_u32(t, thread, block * (t->ntid[0] * t->ntid[1] * t->ntid[2]) + t->linear);
  sc_put_u32(t, grid, 0);
  return 0;
}
