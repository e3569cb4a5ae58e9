/* Facts about the addresses of each access, over all its requests: how many bytes a step of
 * threadIdx.x and .y is, which sectors are different, what a pad would leave. All are exact whole
 * numbers; nothing is sampled. */
#include "facts.h"

enum { SECTOR_BITS = 5, PAGE_SECTOR_BITS = 7, FIRST_ROOM = 64, BANK = 4 };
/* Fibonacci hashing. */
static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u;

/* ---- numbers that are the same in all requests ----------------------------------------------- */

static void note(known *k, int64_t value) {
  if (k->state == SC_UNKNOWN) *k = (known){SC_FIXED, value};
  else if (k->value != value) k->state = SC_VARIES;
}

/* ---- different sectors ----------------------------------------------------------------------- */

static page_bits *find(page_bits *pages, uint64_t room, uint64_t key) {
  uint64_t at = key * GOLDEN >> 20 & (room - 1);
  while (pages[at].key && pages[at].key != key) at = (at + 1) & (room - 1);
  return &pages[at];
}

static bool grow(sector_set *set) {
  uint64_t room = set->room ? 2 * set->room : FIRST_ROOM;
  page_bits *pages = calloc(room, sizeof *pages);
  if (!pages) return false;
  for (uint64_t i = 0; i < set->room; i++)
    if (set->pages[i].key) *find(pages, room, set->pages[i].key) = set->pages[i];
  free(set->pages);
  set->pages = pages;
  set->room = room;
  set->last = NULL;
  return true;
}

/* Adds sectors of a page and leaves those in `bits` that were new; false: no memory. */
static bool add_sectors(sector_set *set, uint64_t key, uint64_t epoch, uint64_t bits[2]) {
  key++; /* 0 is no key */
  if (!set->last || set->last->key != key) {
    if (2 * (set->used + 1) > set->room && !grow(set)) return false;
    set->last = find(set->pages, set->room, key);
    set->used += !set->last->key;
  }
  page_bits *page = set->last;
  if (!page->key || page->epoch != epoch) *page = (page_bits){.key = key, .epoch = epoch};
  for (int i = 0; i < 2; i++) {
    bits[i] &= ~page->bits[i];
    page->bits[i] |= bits[i];
    set->count += (uint64_t)__builtin_popcountll(bits[i]);
  }
  return true;
}

/* Sectors of one page that a request touches. What is new in its block may be new in all. */
static bool add_page(struct sc_facts *all, facts *one, const sc_block *block, uint64_t page,
                     uint64_t bits[2], bool is_load) {
  const sc_grid *grid = block->grid;
  uint64_t key = page * grid->live_blocks + (uint64_t)(block - grid->blocks);
  if (!add_sectors(&one->by_block, key, block->linear, bits)) return false;
  if (!(bits[0] | bits[1])) return true;
  uint64_t again[2] = {bits[0], bits[1]};
  if (is_load && !add_sectors(&all->loaded, key, block->linear, again)) return false;
  return add_sectors(&one->all, page, 0, bits);
}

/* Sectors one after another, as lanes side by side touch them. */
static bool add_range(struct sc_facts *all, facts *one, const sc_block *block, uint64_t first,
                      uint64_t last, bool is_load) {
  for (uint64_t page = first >> PAGE_SECTOR_BITS; first <= last; page++) {
    uint64_t bits[2] = {0, 0};
    for (; first <= last && first >> PAGE_SECTOR_BITS == page; first++)
      bits[first >> 6 & 1] |= (uint64_t)1 << (first & 63);
    if (!add_page(all, one, block, page, bits, is_load)) return false;
  }
  return true;
}

static bool add_global(struct sc_facts *all, facts *one, const sc_block *block,
                       const request *request, bool is_load) {
  uint64_t bits[2] = {0, 0}, page = request->places[0] >> (SECTOR_BITS + PAGE_SECTOR_BITS);
  for (uint32_t i = 0; i < request->count; i++) {
    uint64_t sector = request->places[i] >> SECTOR_BITS;
    if (sector >> PAGE_SECTOR_BITS != page) {
      if (!add_page(all, one, block, page, bits, is_load)) return false;
      bits[0] = bits[1] = 0;
      page = sector >> PAGE_SECTOR_BITS;
    }
    bits[sector >> 6 & 1] |= (uint64_t)1 << (sector & 63);
  }
  return add_page(all, one, block, page, bits, is_load);
}

/* ---- steps between lanes --------------------------------------------------------------------- */

/* Whether no lane between the first and the last is off. */
static bool is_dense(const request *one) {
  return one->lanes[one->count - 1] - one->lanes[0] == (int)one->count - 1;
}

/* The lanes are neighbours in x: mostly all steps are one. */
static void note_even_steps(known *x, const request *one) {
  if (one->count < 2) return;
  uint64_t step = one->places[1] - one->places[0], differs = 0;
  for (uint32_t i = 2; i < one->count; i++)
    differs |= (one->places[i] - one->places[i - 1]) ^ step;
  *x = (known){differs ? SC_VARIES : SC_FIXED, (int64_t)step};
}

/* Notes the steps between lanes that are neighbours in x, and in y where a warp has more rows. */
static void find_steps(const struct sc_facts *all, const sc_grid *grid, const request *one,
                       known *x, known *y) {
  uint32_t width = grid->launch->block[0];
  if (width % SC_WARP == 0 && is_dense(one)) {
    note_even_steps(x, one);
    return;
  }
  uint64_t of_lane[SC_WARP];
  uint32_t present = 0;
  for (uint32_t i = 0; i < one->count; i++) {
    of_lane[one->lanes[i]] = one->places[i];
    present |= 1u << one->lanes[i];
  }
  uint32_t pairs = all->next_x[one->warp] & present & present >> 1;
  for (; pairs; pairs &= pairs - 1) {
    int lane = __builtin_ctz(pairs);
    note(x, (int64_t)(of_lane[lane + 1] - of_lane[lane]));
  }
  if (width >= SC_WARP) return;
  pairs = all->next_y[one->warp] & present & present >> width;
  for (; pairs; pairs &= pairs - 1) {
    int lane = __builtin_ctz(pairs);
    note(y, (int64_t)(of_lane[lane + (int)width] - of_lane[lane]));
  }
}

/* Which lanes have a neighbour in x, or in y, in their own warp. */
static void find_neighbours(struct sc_facts *all, const sc_grid *grid) {
  uint32_t width = grid->launch->block[0], height = grid->launch->block[1];
  for (uint32_t linear = 0; linear < grid->threads; linear++) {
    uint32_t warp = linear / SC_WARP, lane = linear % SC_WARP;
    if (!lane) all->next_x[warp] = all->next_y[warp] = 0;
    if (linear % width + 1 < width && lane + 1 < SC_WARP) all->next_x[warp] |= 1u << lane;
    if (linear / width % height + 1 < height && lane + width < SC_WARP)
      all->next_y[warp] |= 1u << lane;
  }
}

static void join(known *of_all, const known *of_one) {
  if (of_one->state == SC_VARIES) of_all->state = SC_VARIES;
  if (of_one->state == SC_FIXED) note(of_all, of_one->value);
}

static bool is_uniform(const request *one) {
  for (uint32_t i = 1; i < one->count; i++)
    if (one->places[i] != one->places[0]) return false;
  return true;
}

/* Adds the sectors of a request; where a step is within a sector, none between is left out. */
static bool add_places(struct sc_facts *all, facts *one, const sc_block *block,
                       const request *request, const known *x, bool is_load) {
  uint64_t first = request->places[0], last = request->places[request->count - 1];
  bool is_row = block->grid->launch->block[0] % SC_WARP == 0 && is_dense(request);
  if (is_row && x->state == SC_FIXED && x->value >= 0 && x->value <= 1 << SECTOR_BITS)
    return add_range(all, one, block, first >> SECTOR_BITS, last >> SECTOR_BITS, is_load);
  return add_global(all, one, block, request, is_load);
}

/* ---- what a pad would leave ------------------------------------------------------------------ */

static int64_t wider(const known *step, int64_t size) {
  int64_t bytes = step->state == SC_FIXED ? step->value : 0;
  if (bytes < 0) bytes = -bytes;
  return bytes > size ? bytes : 0;
}

/* Passes of a request if each row of its array were one element longer, and a bank at least. */
static uint64_t count_padded(const request *one, const sc_code_access *access, uint64_t pitch) {
  request moved = *one;
  sums of_moved = {0};
  uint32_t pad = access->size > BANK ? access->size : BANK;
  for (uint32_t i = 0; i < one->count; i++) moved.places[i] += one->places[i] / pitch * pad;
  sc_add_request(&of_moved, &moved, access, SC_IN_SHARED);
  return of_moved.passes;
}

static void add_shared(facts *f, const request *one, const sc_code_access *access, const known *x,
                       const known *y, uint64_t passes, uint64_t ideal) {
  int64_t pitch = wider(x, access->size);
  if (wider(y, access->size) > pitch) pitch = wider(y, access->size);
  if (x->state == SC_VARIES || y->state == SC_VARIES) f->pitch.state = SC_VARIES;
  else if (pitch) note(&f->pitch, pitch);
  f->conflicts |= passes > ideal;
  f->padded += pitch && f->conflicts && f->pitch.state == SC_FIXED
                   ? count_padded(one, access, (uint64_t)pitch) : passes;
}

/* ---- rows of a block that are whole warps ---------------------------------------------------- */

static bool has_rows_of_warps(const sc_grid *grid) {
  return grid->launch->block[0] % SC_WARP == 0 && grid->launch->block[1] > 1 &&
         grid->live_blocks == 1;
}

static void note_lead(struct sc_facts *all, const sc_block *block, uint32_t number,
                      const request *one, enum sc_code_space space) {
  if (block->linear != all->lead_block) {
    sc_facts_settle(all, block->grid);
    all->lead_block = block->linear;
  }
  if (one->lanes[0] || (all->lead_spaces[number] && all->lead_spaces[number] != space)) return;
  all->lead_spaces[number] = (uint8_t)space;
  lead *l = &all->leads[number][one->warp];
  uint64_t weight = ++l->count * GOLDEN;
  weight ^= weight >> 29;
  l->sum += one->places[0];
  l->weighted += weight * one->places[0];
  l->weights += weight;
}

/* The k-th requests of two warps are a step apart, for each k: sums tell by how much, and sums with
 * different weights whether that is so of each. */
static void compare(known *y, const lead *a, const lead *b) {
  if (!a->count || a->count != b->count) return; /* lanes are off: no pairs */
  int64_t apart = (int64_t)(b->sum - a->sum), count = (int64_t)a->count;
  int64_t step = apart / count;
  if (apart % count || b->weighted - a->weighted != (uint64_t)step * a->weights)
    y->state = SC_VARIES;
  else note(y, step);
}

void sc_facts_settle(struct sc_facts *all, const sc_grid *grid) {
  if (!has_rows_of_warps(grid)) return;
  uint32_t of_row = grid->launch->block[0] / SC_WARP, height = grid->launch->block[1];
  for (uint32_t i = 0; i < grid->module->access_count; i++) {
    if (!all->lead_spaces[i]) continue;
    known *y = &all->of_accesses[i][all->lead_spaces[i]].step_y;
    for (uint32_t w = 0; w + of_row < grid->warps; w++)
      if (w / of_row % height + 1 < height)
        compare(y, &all->leads[i][w], &all->leads[i][w + of_row]);
    memset(all->leads[i], 0, sizeof all->leads[i]);
  }
}

/* Whether the step changes at more than every second lane, as where an index comes from data. Rows
 * that end within a warp change it twice. */
static bool is_uneven(const request *one) {
  uint32_t changes = 0;
  for (uint32_t i = 2; i < one->count; i++)
    changes += one->places[i] - one->places[i - 1] != one->places[i - 1] - one->places[i - 2];
  return 2 * changes > one->count;
}

/* ---- a request, a launch --------------------------------------------------------------------- */

void sc_facts_add(struct sc_facts *all, const sc_block *block, uint32_t number, const request *one,
                  enum sc_code_space space, uint64_t passes, uint64_t ideal) {
  const sc_code_access *access = &block->grid->module->accesses[number];
  facts *f = &all->of_accesses[number][space];
  known x = {0}, y = {0};
  if (space == SC_IN_NONE) return;
  find_steps(all, block->grid, one, &x, &y);
  join(&f->step_x, &x);
  join(&f->step_y, &y);
  f->uniform += is_uniform(one);
  f->uneven += x.state == SC_VARIES && is_uneven(one);
  if (space == SC_IN_SHARED) add_shared(f, one, access, &x, &y, passes, ideal);
  if (space == SC_IN_GLOBAL && !add_places(all, f, block, one, &x, access->kind == SC_LOADS))
    all->failed = true;
  if (has_rows_of_warps(block->grid)) note_lead(all, block, number, one, space);
}

bool sc_facts_begin(struct sc_facts *all, const sc_grid *grid) {
  size_t count = grid->module->access_count + 1;
  all->of_accesses = sc_pool_take(&all->facts_pool, count * sizeof *all->of_accesses, true);
  all->off = sc_pool_take(&all->off_pool, count * sizeof *all->off, true);
  all->leads = sc_pool_take(&all->lead_pool, count * sizeof *all->leads, true);
  all->lead_spaces = sc_pool_take(&all->space_pool, count, true);
  find_neighbours(all, grid);
  all->lead_block = 0;
  all->failed = false;
  all->loaded = (sector_set){0};
  return all->of_accesses && all->off && all->leads && all->lead_spaces;
}

void sc_facts_end(struct sc_facts *all, const sc_grid *grid) {
  for (uint32_t i = 0; i < grid->module->access_count; i++)
    for (uint32_t space = 0; space < SC_SPACES; space++) {
      free(all->of_accesses[i][space].all.pages);
      free(all->of_accesses[i][space].by_block.pages);
    }
  free(all->loaded.pages);
}

void sc_facts_forget(struct sc_facts *all) {
  free(all->facts_pool.at);
  free(all->off_pool.at);
  free(all->lead_pool.at);
  free(all->space_pool.at);
}
