/* What one request of a warp takes: sectors of global and local memory, wavefronts of shared
 * memory. Only addresses, widths and the lanes that take part decide. */
#include "requests.h"

enum { SECTOR = 32, SECTOR_BITS = 5, BANKS = 32, WORD = 4, SLOTS = 128 };

static uint32_t words_of(uint32_t size) { return size > WORD ? size / WORD : 1; }

/* The passes of `unit` bytes that as many lanes take side by side, and no more than were needed:
 * lanes that read one place need fewer. Nsight Compute's ideal is the same (counts.md). */
static uint64_t at_best(uint32_t needed, const request *one, uint32_t size, uint32_t unit) {
  uint32_t side_by_side = (one->count * size + unit - 1) / unit;
  return needed < side_by_side ? needed : side_by_side;
}

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
static uint32_t count_different(const uint64_t *numbers, uint32_t count, uint32_t shift) {
  uint32_t steps = 1, falls = 0;
  for (uint32_t i = 1; i < count; i++) {
    steps += numbers[i] >> shift != numbers[i - 1] >> shift;
    falls |= numbers[i] < numbers[i - 1];
  }
  if (!falls) return steps; /* they ascend, as addresses mostly do */
  set s;
  clear(&s);
  for (uint32_t i = 0; i < count; i++) insert(&s, numbers[i] >> shift);
  return s.count;
}

/* ---- global and local memory ---------------------------------------------------------------- */

/* Lanes that change one address come one after another: a sector is taken as often as the address
 * in it that most lanes have. */
static uint32_t count_changed_sectors(const uint64_t *places, uint32_t count) {
  uint32_t of_address[SC_WARP] = {0}, sum = 0;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < count; k++) of_address[i] += places[k] == places[i];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t most = 0;
    bool is_first = true;
    for (uint32_t k = 0; k < count; k++) {
      if (places[k] >> SECTOR_BITS != places[i] >> SECTOR_BITS) continue;
      is_first = is_first && k >= i;
      if (of_address[k] > most) most = of_address[k];
    }
    if (is_first) sum += most;
  }
  return sum;
}

/* Accesses are aligned to their width, so that each lies in one sector. */
static void add_global(sums *sum, const request *one, const sc_code_access *access) {
  uint32_t sectors = count_different(one->places, one->count, SECTOR_BITS);
  sum->ideal += at_best(sectors, one, access->size, SECTOR);
  uint32_t same = 0;
  if (access->kind == SC_CHANGES) same = one->count - count_different(one->places, one->count, 0);
  sum->same += same;
  sum->passes += same ? count_changed_sectors(one->places, one->count) : sectors;
}

/* "Local memory is organized such that consecutive 32-bit words are accessed by consecutive thread
 * IDs" (Guide, Local Memory): word w of lane l is the word w * 32 + l of the warp. */
static void add_local(sums *sum, const request *one, uint32_t size) {
  uint32_t words = words_of(size), lanes_of_sector = SECTOR / WORD;
  uint64_t sectors[SC_WARP];
  for (uint32_t i = 0; i < one->count; i++)
    sectors[i] = one->places[i] / WORD * (SC_WARP / lanes_of_sector) +
                 one->lanes[i] / lanes_of_sector;
  sum->passes += (uint64_t)words * count_different(sectors, one->count, 0);
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
 * quarters. Twice as many lanes of a load go together where pairs of lanes, neighbours or those two
 * apart, have one address: on devices of compute capability 7.x (NVIDIA's developer forum,
 * "Unexpected shared memory bank conflict", 77228), and on an H100 (9.0). */
static void add_shared(sums *sum, const request *one, const sc_code_access *access) {
  bool atomic = access->kind == SC_CHANGES;
  uint32_t words = words_of(access->size), each = SC_WARP / words, passes = 0;
  if (words > 1 && access->kind == SC_LOADS && (pairs_agree(one, 1) || pairs_agree(one, 2)))
    each *= 2;
  for (uint32_t begin = 0, end; begin < one->count; begin = end) {
    for (end = begin + 1; end < one->count && one->lanes[end] / each == one->lanes[begin] / each;)
      end++;
    passes += count_passes(one->places + begin, end - begin, access->size, atomic);
  }
  sum->passes += passes;
  sum->ideal += at_best(passes, one, access->size, BANKS * WORD);
  if (atomic) sum->same += one->count - count_different(one->places, one->count, 0);
}

/* ---- a request ------------------------------------------------------------------------------ */

void sc_add_request(sums *sum, const request *one, const sc_code_access *access,
                    enum sc_code_space space) {
  sum->requests++;
  sum->lanes += one->count;
  if (space == SC_IN_GLOBAL) add_global(sum, one, access);
  if (space == SC_IN_SHARED) add_shared(sum, one, access);
  if (space == SC_IN_LOCAL) add_local(sum, one, access->size);
}
