/* What PTX instructions calculate, where that is more than one operator of C.
 *
 * Numbers in brackets are sections of the PTX ISA, 9.x. Denormals are never flushed: .ftz is for
 * speed, and results with and without it are within what a program has to expect. Approximate
 * instructions (.approx, .full) give the correctly rounded result or that of the host's libm.
 */
#pragma once
#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SC_INLINE static inline __attribute__((unused))

/* ---- bits of floating point numbers --------------------------------------------------------- */

SC_INLINE float sc_f32_of_b32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

SC_INLINE uint32_t sc_b32_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

SC_INLINE double sc_f64_of_b64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

SC_INLINE uint64_t sc_b64_of_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, 8);
  return bits;
}

/* ---- integers [9.7.1] ----------------------------------------------------------------------- */

/* Dividing by zero gives a value that the ISA leaves open; devices give all ones, and `a` for rem.
 * The smallest number over -1 wraps. */
#define SC_DIVISION(name, type, is_signed)                                                        \
  SC_INLINE type sc_div_##name(type a, type b) {                                                  \
    if (b == 0) return (type)-1;                                                                  \
    return is_signed && b == (type)-1 ? (type)(0 - (uint64_t)a) : (type)(a / b);                  \
  }                                                                                               \
  SC_INLINE type sc_rem_##name(type a, type b) {                                                  \
    if (b == 0) return a;                                                                         \
    return is_signed && b == (type)-1 ? 0 : (type)(a % b);                                        \
  }
SC_DIVISION(s16, int16_t, true)
SC_DIVISION(u16, uint16_t, false)
SC_DIVISION(s32, int32_t, true)
SC_DIVISION(u32, uint32_t, false)
SC_DIVISION(s64, int64_t, true)
SC_DIVISION(u64, uint64_t, false)

/* The upper half of a product. */
SC_INLINE int16_t sc_mul_hi_s16(int16_t a, int16_t b) { return (int16_t)((int32_t)a * b >> 16); }
SC_INLINE uint16_t sc_mul_hi_u16(uint16_t a, uint16_t b) {
  return (uint16_t)((uint32_t)a * b >> 16);
}
SC_INLINE int32_t sc_mul_hi_s32(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }
SC_INLINE uint32_t sc_mul_hi_u32(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}
SC_INLINE int64_t sc_mul_hi_s64(int64_t a, int64_t b) { return (int64_t)((__int128)a * b >> 64); }
SC_INLINE uint64_t sc_mul_hi_u64(uint64_t a, uint64_t b) {
  return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* mul24: bits 47..16 or 31..0 of the product of the lower 24 bits. */
SC_INLINE int64_t sc_mul24_s32(int32_t a, int32_t b) {
  return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}
SC_INLINE uint64_t sc_mul24_u32(uint32_t a, uint32_t b) {
  return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}

/* add.sat.s32 and sub.sat.s32 */
SC_INLINE int32_t sc_clamp_s32(int64_t value) {
  return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

/* add.cc, addc [9.7.2]: `carry` is what comes in and what goes out. */
#define SC_CARRY(bits, type, wide)                                                                \
  SC_INLINE type sc_add_carry_##bits(type a, type b, uint32_t *carry) {                           \
    wide sum = (wide)a + b + *carry;                                                              \
    *carry = (uint32_t)(sum >> bits);                                                             \
    return (type)sum;                                                                             \
  }                                                                                               \
  SC_INLINE type sc_sub_borrow_##bits(type a, type b, uint32_t *borrow) {                         \
    wide difference = (wide)a - b - *borrow;                                                      \
    *borrow = (uint32_t)(difference >> bits) & 1;                                                 \
    return (type)difference;                                                                      \
  }
SC_CARRY(32, uint32_t, uint64_t)
SC_CARRY(64, uint64_t, unsigned __int128)

/* A shift by more than the width counts as one by the width [9.7.8, shl, shr]. */
#define SC_SHIFT(bits, type, signed_type)                                                         \
  SC_INLINE type sc_shl_b##bits(type a, uint32_t n) { return n >= bits ? 0 : (type)(a << n); }    \
  SC_INLINE type sc_shr_u##bits(type a, uint32_t n) { return n >= bits ? 0 : (type)(a >> n); }    \
  SC_INLINE signed_type sc_shr_s##bits(signed_type a, uint32_t n) {                               \
    return (signed_type)(a >> (n >= bits ? bits - 1 : n));                                        \
  }
SC_SHIFT(16, uint16_t, int16_t)
SC_SHIFT(32, uint32_t, int32_t)
SC_SHIFT(64, uint64_t, int64_t)

/* shf: the upper word of (b:a) << n, or the lower word of (b:a) >> n. */
SC_INLINE uint32_t sc_shf_l(uint32_t a, uint32_t b, uint32_t n) {
  return (uint32_t)(((uint64_t)b << 32 | a) << n >> 32);
}
SC_INLINE uint32_t sc_shf_r(uint32_t a, uint32_t b, uint32_t n) {
  return (uint32_t)(((uint64_t)b << 32 | a) >> n);
}

SC_INLINE uint32_t sc_clz_b32(uint32_t a) { return a ? (uint32_t)__builtin_clz(a) : 32; }
SC_INLINE uint32_t sc_clz_b64(uint64_t a) { return a ? (uint32_t)__builtin_clzll(a) : 64; }

SC_INLINE uint64_t sc_brev_b64(uint64_t a) {
  uint64_t reversed = 0;
  for (int i = 0; i < 64; i++) reversed |= (a >> i & 1) << (63 - i);
  return reversed;
}
SC_INLINE uint32_t sc_brev_b32(uint32_t a) { return (uint32_t)(sc_brev_b64(a) >> 32); }

/* bfind: the highest bit that is set, of negative numbers the highest that is not; all ones where
 * there is none. */
SC_INLINE uint32_t sc_bfind_u64(uint64_t a) { return a ? 63 - sc_clz_b64(a) : UINT32_MAX; }
SC_INLINE uint32_t sc_bfind_s64(int64_t a) { return sc_bfind_u64((uint64_t)(a < 0 ? ~a : a)); }

/* bfe: `length` bits from `start`; signed ones carry on the highest bit of the field, or of `a`
 * where the field goes beyond it. */
SC_INLINE uint64_t sc_bfe(uint64_t a, uint32_t start, uint32_t length, bool is_signed,
                          uint32_t bits) {
  start &= 255;
  length &= 255;
  uint32_t last = length && start + length <= bits ? start + length - 1 : bits - 1;
  uint64_t fill = is_signed && length && (a >> last & 1) ? UINT64_MAX : 0;
  if (start >= bits) return fill;
  uint32_t width = length < bits - start ? length : bits - start;
  uint64_t mask = width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
  return (a >> start & mask) | (fill & ~mask);
}

/* bfi: `a` takes the place of `length` bits of `b` from `start`. */
SC_INLINE uint64_t sc_bfi(uint64_t a, uint64_t b, uint32_t start, uint32_t length, uint32_t bits) {
  start &= 255;
  length &= 255;
  if (start >= bits || !length) return b;
  uint64_t mask = (length >= 64 ? UINT64_MAX : ((uint64_t)1 << length) - 1) << start;
  return (b & ~mask) | (a << start & mask);
}

/* bmsk: ones at `length` bits from `start`. */
SC_INLINE uint32_t sc_bmsk(uint32_t start, uint32_t length) {
  if (start >= 32) return 0;
  return (length >= 32 ? UINT32_MAX : ((uint32_t)1 << length) - 1) << start;
}

/* fns: where the nth bit is that is set, from `base` upwards, or downwards for a negative n; 0 asks
 * for the bit at `base` itself. */
SC_INLINE uint32_t sc_fns(uint32_t mask, uint32_t base, int32_t n) {
  int step = n < 0 ? -1 : 1;
  int64_t left = n ? (int64_t)n * step : 1;
  for (int64_t at = base; at >= 0 && at < 32; at += step) {
    if (mask >> at & 1 && --left == 0) return (uint32_t)at;
    if (n == 0) break;
  }
  return UINT32_MAX;
}

/* szext: carries on, or clears, what lies above the lower `n` bits. */
SC_INLINE uint32_t sc_szext(uint32_t a, uint32_t n, bool is_signed) {
  if (n >= 32) return a;
  uint32_t mask = ((uint32_t)1 << n) - 1;
  return is_signed && n && (a >> (n - 1) & 1) ? a | ~mask : a & mask;
}

/* lop3: any function of three bits; bit 4a + 2b + c of `table` is its value. */
SC_INLINE uint32_t sc_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 8; i++)
    if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return result;
}

/* prmt: four bytes of (b:a), or with their sign bit as all bits; `c` has a nibble for each. */
SC_INLINE uint32_t sc_prmt(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t both = (uint64_t)b << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t nibble = c >> 4 * i & 15, byte = (uint32_t)(both >> 8 * (nibble & 7)) & 255;
    if (nibble & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

/* The selector for another mode of prmt: one of four, by the lower two bits of `c`. */
SC_INLINE uint32_t sc_selector(uint64_t four, uint32_t c) {
  return (uint32_t)(four >> 16 * (c & 3)) & 0xffff;
}

/* dp4a, dp2a: c plus the products of four bytes, or of two halves of `a` with two bytes of `b`. */
SC_INLINE int64_t sc_lane(uint32_t word, int lane, int bits, bool is_signed) {
  uint32_t value = word >> lane * bits & ((1u << bits) - 1);
  return is_signed && value >> (bits - 1) ? (int64_t)value - ((int64_t)1 << bits) : (int64_t)value;
}
SC_INLINE uint32_t sc_dp4a(uint32_t a, uint32_t b, uint32_t c, bool signed_a, bool signed_b) {
  int64_t sum = c;
  for (int i = 0; i < 4; i++) sum += sc_lane(a, i, 8, signed_a) * sc_lane(b, i, 8, signed_b);
  return (uint32_t)sum;
}
SC_INLINE uint32_t sc_dp2a(uint32_t a, uint32_t b, uint32_t c, bool signed_a, bool signed_b,
                           int first) {
  int64_t sum = c;
  for (int i = 0; i < 2; i++)
    sum += sc_lane(a, i, 16, signed_a) * sc_lane(b, first + i, 8, signed_b);
  return (uint32_t)sum;
}

/* ---- floating point [9.7.3] ----------------------------------------------------------------- */

/* One operation in another mode of rounding than to nearest: FE_TOWARDZERO for .rz, FE_DOWNWARD for
 * .rm, FE_UPWARD for .rp. The operands are volatile, so that the compiler calculates nothing before
 * the mode is set, or after it is set back. */
#define SC_ROUNDED(name, type, result)                                                            \
  SC_INLINE type name(int mode, type x, type y, type z) {                                         \
    volatile type a = x, b = y, c = z;                                                            \
    (void)b, (void)c;                                                                             \
    fesetround(mode);                                                                             \
    volatile type rounded = result;                                                               \
    fesetround(FE_TONEAREST);                                                                     \
    return rounded;                                                                               \
  }
SC_ROUNDED(sc_add_f32_in, float, a + b)
SC_ROUNDED(sc_add_f64_in, double, a + b)
SC_ROUNDED(sc_sub_f32_in, float, a - b)
SC_ROUNDED(sc_sub_f64_in, double, a - b)
SC_ROUNDED(sc_mul_f32_in, float, a * b)
SC_ROUNDED(sc_mul_f64_in, double, a * b)
SC_ROUNDED(sc_div_f32_in, float, a / b)
SC_ROUNDED(sc_div_f64_in, double, a / b)
SC_ROUNDED(sc_fma_f32_in, float, fmaf(a, b, c))
SC_ROUNDED(sc_fma_f64_in, double, fma(a, b, c))
SC_ROUNDED(sc_sqrt_f32_in, float, sqrtf(a))
SC_ROUNDED(sc_sqrt_f64_in, double, sqrt(a))

/* min, max: a number wins over NaN, and -0 is less than +0; with .NaN, NaN wins. */
#define SC_LESS_AND_MORE(name, type)                                                              \
  SC_INLINE type sc_min_##name(type a, type b) {                                                  \
    if (isnan(a) || isnan(b)) return isnan(a) ? isnan(b) ? (type)NAN : b : a;                     \
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;                                         \
  }                                                                                               \
  SC_INLINE type sc_max_##name(type a, type b) {                                                  \
    if (isnan(a) || isnan(b)) return isnan(a) ? isnan(b) ? (type)NAN : b : a;                     \
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;                                         \
  }                                                                                               \
  SC_INLINE type sc_min_nan_##name(type a, type b) {                                              \
    return isnan(a) || isnan(b) ? (type)NAN : sc_min_##name(a, b);                                \
  }                                                                                               \
  SC_INLINE type sc_max_nan_##name(type a, type b) {                                              \
    return isnan(a) || isnan(b) ? (type)NAN : sc_max_##name(a, b);                                \
  }
SC_LESS_AND_MORE(f32, float)
SC_LESS_AND_MORE(f64, double)

/* min and max with .xorsign.abs: of the absolute values, with the product of the signs. */
SC_INLINE float sc_xorsign(float magnitude, float a, float b) {
  return signbit(a) != signbit(b) ? -fabsf(magnitude) : fabsf(magnitude);
}

/* .sat: 0 to 1, and 0 for NaN. */
SC_INLINE double sc_sat(double a) { return a > 0 ? a < 1 ? a : 1 : 0; }
/* .relu: no less than 0, and NaN for NaN. */
SC_INLINE double sc_relu(double a) { return isnan(a) ? (double)NAN : a > 0 ? a : 0; }

/* ---- half precision [9.7.4]: f16 and bf16 are kept as bits, and calculated with as float ---- */

SC_INLINE float sc_f32_of_f16(uint16_t half) {
  uint32_t bits = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
  if (bits >= 0x0f800000) return sc_f32_of_b32(bits | 0x7f800000 | sign);
  float magnitude = sc_f32_of_b32(bits) * 0x1p112f; /* the biases differ by 112 */
  return sign ? -magnitude : magnitude;
}

SC_INLINE float sc_f32_of_bf16(uint16_t half) { return sc_f32_of_b32((uint32_t)half << 16); }

/* How cvt rounds to fewer digits: FE_* of <fenv.h>, or to nearest with ties away from 0. */
enum { SC_TIES_AWAY = 0x7fff };

SC_INLINE double sc_integral(double a, int mode) {
  switch (mode) {
    case FE_TOWARDZERO: return trunc(a);
    case FE_DOWNWARD: return floor(a);
    case FE_UPWARD: return ceil(a);
    case SC_TIES_AWAY: return round(a);
    default: return rint(a);
  }
}

/* The 16 bits of a number of so many digits whose least normal exponent is given. In steps of its
 * last digit it is a whole number; added to the exponent's field, it carries into that. */
SC_INLINE uint16_t sc_narrow(double a, int digits, int least, uint32_t infinity, int mode) {
  uint32_t sign = signbit(a) ? 0x8000 : 0;
  if (isnan(a)) return 0x7fff;
  double magnitude = fabs(a);
  if (isinf(magnitude)) return (uint16_t)(sign | infinity);
  int exponent = magnitude > 0 ? ilogb(magnitude) : least;
  if (exponent < least) exponent = least;
  double steps = scalbn(a, digits - 1 - exponent);
  uint32_t whole = (uint32_t)fabs(sc_integral(steps, mode));
  uint32_t bits = ((uint32_t)(exponent - least) << (digits - 1)) + whole;
  if (bits >= infinity) {
    bool inwards = mode == FE_TOWARDZERO || mode == (sign ? FE_UPWARD : FE_DOWNWARD);
    bits = inwards ? infinity - 1 : infinity;
  }
  return (uint16_t)(sign | bits);
}
SC_INLINE uint16_t sc_f16_in(int mode, double a) { return sc_narrow(a, 11, -14, 0x7c00, mode); }
SC_INLINE uint16_t sc_bf16_in(int mode, double a) { return sc_narrow(a, 8, -126, 0x7f80, mode); }
SC_INLINE uint16_t sc_f16_of(double a) { return sc_f16_in(FE_TONEAREST, a); }
SC_INLINE uint16_t sc_bf16_of(double a) { return sc_bf16_in(FE_TONEAREST, a); }

/* a * b + c of halves, rounded to odd: what is lost of the sum makes its last digit odd, so that a
 * second rounding, to fewer digits, is as right as if it were the only one. */
SC_INLINE double sc_fma_half(float a, float b, float c) {
  double product = (double)a * b, sum = product + c;
  double part = sum - product, lost = (product - (sum - part)) + (c - part);
  if (!isfinite(sum) || lost == 0 || sc_b64_of_f64(sum) & 1) return sum;
  return nextafter(sum, lost > 0 ? INFINITY : -INFINITY);
}

/* cvt to tf32: a float of 11 digits. */
SC_INLINE uint32_t sc_tf32_in(int mode, float a) {
  uint32_t bits = sc_b32_of_f32(a);
  if (!isfinite(a)) return isnan(a) ? 0x7fffffff : bits;
  uint32_t half = mode == SC_TIES_AWAY ? 0x1000 : 0x0fff + (bits >> 13 & 1);
  return (mode == FE_TOWARDZERO ? bits : bits + half) & ~(uint32_t)0x1fff;
}

/* ---- conversions [9.7.9.21 cvt] ------------------------------------------------------------- */

/* Numbers beyond the range give its end. What NaN gives depends on both types: zero if the source
 * is not .f64 and the destination is neither .s64 nor .u64, otherwise 1 << (width - 1). */
#define SC_TO_INTEGER(name, type, least, most)                                                    \
  SC_INLINE type sc_##name##_of_float(double a, type of_nan) {                                    \
    if (isnan(a)) return of_nan;                                                                  \
    return a <= (double)least ? least : a >= (double)most ? most : (type)a;                       \
  }
SC_TO_INTEGER(s8, int8_t, INT8_MIN, INT8_MAX)
SC_TO_INTEGER(u8, uint8_t, 0, UINT8_MAX)
SC_TO_INTEGER(s16, int16_t, INT16_MIN, INT16_MAX)
SC_TO_INTEGER(u16, uint16_t, 0, UINT16_MAX)
SC_TO_INTEGER(s32, int32_t, INT32_MIN, INT32_MAX)
SC_TO_INTEGER(u32, uint32_t, 0, UINT32_MAX)
SC_TO_INTEGER(s64, int64_t, INT64_MIN, INT64_MAX)
SC_TO_INTEGER(u64, uint64_t, 0, UINT64_MAX)

/* cvt.sat between integers: the nearest number in the range. */
SC_INLINE __int128 sc_clamp(__int128 a, __int128 least, __int128 most) {
  return a < least ? least : a > most ? most : a;
}

#define SC_FROM_INTEGER(name, type, from)                                                         \
  SC_INLINE type name(int mode, from x) {                                                         \
    volatile from a = x;                                                                          \
    fesetround(mode);                                                                             \
    volatile type rounded = (type)a;                                                              \
    fesetround(FE_TONEAREST);                                                                     \
    return rounded;                                                                               \
  }
SC_FROM_INTEGER(sc_f32_of_s64_in, float, int64_t)
SC_FROM_INTEGER(sc_f32_of_u64_in, float, uint64_t)
SC_FROM_INTEGER(sc_f64_of_s64_in, double, int64_t)
SC_FROM_INTEGER(sc_f64_of_u64_in, double, uint64_t)
SC_FROM_INTEGER(sc_f32_of_f64_in, float, double)
