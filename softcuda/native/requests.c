/* What one request of a warp takes: sectors of global and local memory, wavefronts of shared
 * memory. Only addresses, widths and the lanes that take part decide. */
#include "counts.h"

enum { SECTOR = 32, BANKS = 32, WORD = 4, SLOTS = 128 };

static uint32_t words_of(uint32_t size) { return size > WORD ? size / WORD : 1; }

/* ---- different numbers ---------------------------------------------------------------------- */

/* A set of at most 64 numbers, none of which is UINT64_MAX. */
typedef struct set {
  uint32_t count;
  uint64_t slots[SLOTS];
} set;

static void clear(set *s) {
  s->count = 0;
  memset(s->slots, 0xFF, sizeof s->slots);
}

static void insert(set *s, uint64_t number) {
  uint32_t at = (uint32_t)(number * 0x9E3779B97F4A7C15u >> 57); /* Fibonacci hashing: 7 bits */
  while (s->slots[at] != UINT64_MAX && s->slots[at] != number) at = (at + 1) % SLOTS;
  s->count += s->slots[at] != number;
  s->slots[at] = number;
}

/* How many different numbers there are, each divided by 2^shift. */
static uint32_t count_in_set(const uint64_t *numbers, uint32_t count, uint32_t shift) {
  set s;
  clear(&s);
  for (uint32_t i = 0; i < count; i++) insert(&s, numbers[i] >> shift);
  return s.count;
}

/* How many different addresses there are, and in how many sectors, where that is asked. */
static uint32_t count_different(const uint64_t *numbers, uint32_t count, uint32_t *sectors) {
  uint32_t steps = 1, sector_steps = 1, falls = 0;
  for (uint32_t i = 1; i < count; i++) {
    steps += numbers[i] != numbers[i - 1];
    sector_steps += numbers[i] >> 5 != numbers[i - 1] >> 5;
    falls |= numbers[i] < numbers[i - 1];
  }
  if (!falls) { /* they ascend, as addresses mostly do */
    if (sectors) *sectors = sector_steps;
    return steps;
  }
  if (sectors) *sectors = count_in_set(numbers, count, 5);
  return count_in_set(numbers, count, 0);
}

/* ---- global and local memory ---------------------------------------------------------------- */

/* Accesses are aligned to their width, so that each lies in one sector. */
static void add_global(sums *sum, const request *one, uint32_t size) {
  uint32_t sectors, different = count_different(one->places, one->count, &sectors);
  sum->passes += sectors;
  sum->ideal += (different * size + SECTOR - 1) / SECTOR;
  sum->same += one->count - different;
}

/* "Local memory is organized such that consecutive 32-bit words are accessed by consecutive thread
 * IDs" (Guide, Local Memory): word w of lane l is the word w * 32 + l of the warp. */
static void add_local(sums *sum, const request *one, uint32_t size) {
  uint32_t words = words_of(size), lanes_of_sector = SECTOR / WORD;
  uint64_t sectors[SC_WARP];
  for (uint32_t i = 0; i < one->count; i++)
    sectors[i] = one->places[i] / WORD * (SC_WARP / lanes_of_sector) +
                 one->lanes[i] / lanes_of_sector;
  uint64_t different = (uint64_t)words * count_different(sectors, one->count, NULL);
  sum->passes += different;
  sum->ideal += ((uint64_t)one->count * words * WORD + SECTOR - 1) / SECTOR;
}

/* ---- shared memory -------------------------------------------------------------------------- */

/* Passes of some lanes: each bank gives one word a pass, to all lanes that want it. Atomic
 * operations come one after another in each bank. */
static uint32_t count_passes(const uint64_t *places, uint32_t count, uint32_t size, bool atomic) {
  uint64_t low = UINT64_MAX, high = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (places[i] < low) low = places[i];
    if (places[i] > high) high = places[i];
  }
  uint64_t first = low / WORD, last = (high + size - 1) / WORD;
  if (!atomic && last - first < BANKS) return 1;
  uint32_t words = words_of(size), most = 0;
  uint8_t in_bank[BANKS] = {0};
  uint64_t of_bank[BANKS][SC_WARP];
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t w = 0; w < words; w++) {
      uint64_t word = places[i] / WORD + w;
      uint32_t bank = (uint32_t)(word % BANKS), at = 0, have = in_bank[bank];
      while (!atomic && at < have && of_bank[bank][at] != word) at++;
      if (!atomic && at < have) continue;
      of_bank[bank][have] = word;
      if (++in_bank[bank] > most) most = in_bank[bank];
    }
  }
  return most;
}

/* Whether each lane has the address of the lane whose number differs in `bit`, where that takes
 * part. */
static bool pairs_agree(const request *one, uint32_t bit) {
  uint64_t of_lane[SC_WARP];
  uint32_t present = 0;
  for (uint32_t i = 0; i < one->count; i++) {
    of_lane[one->lanes[i]] = one->places[i];
    present |= 1u << one->lanes[i];
  }
  for (uint32_t i = 0; i < one->count; i++) {
    uint32_t other = one->lanes[i] ^ bit;
    if (present >> other & 1 && of_lane[other] != one->places[i]) return false;
  }
  return true;
}

/* 128 bytes come back in a pass: lanes of 8 bytes go by halves of a warp, lanes of 16 bytes by
 * quarters. Devices of compute capability 7.x take twice as many lanes of a load together where
 * pairs of lanes, neighbours or those two apart, have one address (NVIDIA's developer forum,
 * "Unexpected shared memory bank conflict", 77228). */
static void add_shared(sums *sum, const request *one, const sc_code_access *access,
                       int capability) {
  bool atomic = access->kind == SC_CHANGES;
  uint32_t words = words_of(access->size), each = SC_WARP / words;
  if (words > 1 && access->kind == SC_LOADS && capability / 10 == 7 &&
      (pairs_agree(one, 1) || pairs_agree(one, 2)))
    each *= 2;
  for (uint32_t begin = 0, end; begin < one->count; begin = end) {
    for (end = begin + 1; end < one->count && one->lanes[end] / each == one->lanes[begin] / each;)
      end++;
    sum->passes += count_passes(one->places + begin, end - begin, access->size, atomic);
    sum->ideal++;
  }
  if (atomic) sum->same += one->count - count_different(one->places, one->count, NULL);
}

/* ---- a request ------------------------------------------------------------------------------ */

void sc_add_request(sums *sum, const request *one, const sc_code_access *access,
                    enum sc_code_space space, int capability) {
  sum->requests++;
  sum->lanes += one->count;
  if (space == SC_IN_GLOBAL) add_global(sum, one, access->size);
  if (space == SC_IN_SHARED) add_shared(sum, one, access, capability);
  if (space == SC_IN_LOCAL) add_local(sum, one, access->size);
}
