/* Races: two accesses to the same byte by different threads, at least one of them a write, not both
 * atomic, and nothing that orders them (order.c; PTX ISA, 8.9 Memory Consistency Model: data race).
 *
 * For each word of memory the last write and two reads are remembered, as in FastTrack (Flanagan
 * and Freund, 2009).
 *
 * Approximated, always towards no report:
 * - An older write is forgotten for a newer one, and a third read that is not ordered after the
 *   others replaces the second.
 * - Two writes of the same value are no race, as compute-sanitizer's racecheck tells of them only
 *   as information. So a write that meets another is judged once it is done (sc_races_settle).
 * - Of arrays that are very large, what was touched long ago is forgotten (MOST_BYTES).
 */
#include "races.h"

enum { PAGE = 4096 };
/* Most memory for the cells of one stream's kernels. */
static const size_t MOST_BYTES = (size_t)512 << 20;

typedef struct cell {
  record write, reads[2];
} cell;

/* The cells of one page of memory: one for each word, or for each byte once a thread has touched
 * less than a word, since bytes of one word may belong to different threads. */
typedef struct page {
  uint64_t number;
  uint32_t shift; /* 2: words, 0: bytes */
  cell *cells;
  struct page *next; /* in its bucket */
  struct page *newer;
} page;

/* ---- cells ---------------------------------------------------------------------------------- */

static size_t cell_bytes(const page *page) { return (PAGE >> page->shift) * sizeof(cell); }

static void forget_oldest(struct sc_races *races) {
  page *old = races->oldest, **link = &races->buckets[old->number % SC_BUCKETS];
  while (*link != old) link = &(*link)->next;
  *link = old->next;
  races->oldest = old->newer;
  if (!races->oldest) races->newest = NULL;
  if (races->last == old) races->last = NULL;
  races->bytes -= cell_bytes(old);
  free(old->cells);
  free(old);
}

static page *add_page(struct sc_races *races, uint64_t number) {
  while (races->bytes > MOST_BYTES) forget_oldest(races);
  page *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  *made = (page){.number = number, .shift = 2, .next = races->buckets[number % SC_BUCKETS]};
  made->cells = calloc(1, cell_bytes(made));
  if (!made->cells) {
    free(made);
    return NULL;
  }
  races->bytes += cell_bytes(made);
  races->buckets[number % SC_BUCKETS] = made;
  if (races->newest) races->newest->newer = made;
  else races->oldest = made;
  return races->newest = made;
}

static bool split_into_bytes(struct sc_races *races, page *page) {
  cell *cells = calloc(PAGE, sizeof *cells);
  if (!cells) return false;
  for (int i = 0; i < PAGE; i++) cells[i] = page->cells[i >> 2];
  races->bytes -= cell_bytes(page);
  free(page->cells);
  page->cells = cells;
  page->shift = 0;
  races->bytes += cell_bytes(page);
  return true;
}

/* The cells of a page, fit for an access of this width; NULL: no memory. */
static page *find_page(sc_worker *worker, uint64_t address, uint32_t size) {
  struct sc_races *races = worker->races;
  page *found = races->last;
  if (!found || found->number != address / PAGE) {
    found = races->buckets[address / PAGE % SC_BUCKETS];
    while (found && found->number != address / PAGE) found = found->next;
  }
  if (found && (size >= 4 || !found->shift)) return races->last = found;
  sc_hold(worker);
  if (!found) found = add_page(races, address / PAGE);
  if (found && size < 4 && found->shift && !split_into_bytes(races, found)) found = NULL;
  if (found) races->last = found;
  sc_let_go(worker);
  return found;
}

/* ---- what is said --------------------------------------------------------------------------- */

static void describe_other(const sc_grid *grid, const sc_report *report, const record *other,
                           bool wrote, char *room, size_t bytes) {
  const uint32_t *at = report->other_thread, *block = report->other_block;
  const char *file = sc_file_name(grid, file_of(other));
  char of_block[64] = "", in_file[200] = "";
  if (memcmp(block, report->block, sizeof report->block))
    snprintf(of_block, sizeof of_block, " of block (%u, %u, %u)", block[0], block[1], block[2]);
  if (file && report->file && strcmp(file, report->file))
    snprintf(in_file, sizeof in_file, " of %.180s", file);
  snprintf(room, bytes, "thread (%u, %u, %u)%s %s%s (line %u%s)", at[0], at[1], at[2], of_block,
           wrote ? "writes" : "reads", other->who & SC_BY_ATOMIC ? " by an atomic operation" : "",
           line_of(other), in_file);
}

static void fill_other(sc_report *report, const sc_grid *grid, const record *other) {
  const uint32_t *size = grid->launch->grid;
  uint32_t block = block_of(other);
  report->has_other = true;
  memcpy(report->other_thread, grid->places[thread_of(other)], sizeof report->other_thread);
  report->other_block[0] = block % size[0];
  report->other_block[1] = block / size[0] % size[1];
  report->other_block[2] = block / size[0] / size[1];
  report->other_line = line_of(other);
}

/* `kinds` is what the other did and what this thread does, at `file` and `line`: "read/write". */
static void report_race(sc_fiber *fiber, const sc_region *region, uint64_t address, uint32_t size,
                        const record *other, const char *kinds, uint32_t file, uint32_t line) {
  char name[96], said[300];
  sc_report report = sc_report_of(fiber, "race");
  const sc_grid *grid = fiber->block->grid;
  report.file = sc_file_name(grid, file);
  report.line = line;
  bool shared = region->space == SC_SHARED;
  bool near = block_of(other) == (uint32_t)fiber->block->linear;
  sc_report_region(&report, region, address, size);
  fill_other(&report, grid, other);
  describe_other(grid, &report, other, kinds[0] == 'w', said, sizeof said);
  snprintf(report.text, sizeof report.text,
           "%s race (%s, %s) at offset %llu of %s (%llu bytes): this thread %s %u byte%s that %s",
           kinds, report.space,
           shared ? "between barriers" : near ? "within a block" : "between blocks",
           (unsigned long long)report.offset, sc_region_name(region, name, sizeof name),
           (unsigned long long)region->size, strchr(kinds, '/')[1] == 'w' ? "writes" : "reads",
           size, size > 1 ? "s" : "", said);
  sc_report_once(fiber, &report, region->at ^ kinds[0] << 8 ^ strchr(kinds, '/')[1]);
}

void sc_races_settle(sc_fiber *fiber) {
  struct sc_clocks *clocks = fiber->clocks;
  if (!clocks->pending) return;
  const uint8_t *now = (const uint8_t *)(uintptr_t)clocks->pending_at;
  bool same = true;
  for (uint32_t i = 0; i < clocks->pending_size; i++)
    if (clocks->pending >> i & 1 && now[i] != clocks->before[i]) same = false;
  clocks->pending = 0;
  if (!same)
    report_race(fiber, &clocks->region, clocks->pending_at, clocks->pending_size, &clocks->other,
                "write/write", clocks->pending_file, clocks->pending_line);
}

/* ---- accesses ------------------------------------------------------------------------------- */

/* One access while it is checked, cell by cell. */
typedef struct access {
  sc_fiber *fiber;
  const sc_region *region;
  uint64_t address;
  uint32_t size;
  record me;
} access;

static bool meets(const access *one, const record *other) {
  if (!(other->who & SC_PRESENT) || same_thread(other, &one->me)) return false;
  if (both_atomic(other, &one->me)) return false;
  return !sc_is_ordered(one->fiber, other, one->region->space == SC_SHARED);
}

static void report_meeting(const access *one, const record *other, const char *kinds) {
  const sc_thread *thread = &one->fiber->thread;
  report_race(one->fiber, one->region, one->address, one->size, other, kinds, thread->file,
              thread->line);
}

/* Two plain writes: whether they write the same is seen when this one is done. */
static void put_off(const access *one, const record *other, uint32_t bytes) {
  struct sc_clocks *clocks = one->fiber->clocks;
  if (!clocks->pending) {
    clocks->pending_at = one->address;
    clocks->pending_size = one->size;
    clocks->pending_line = one->fiber->thread.line;
    clocks->pending_file = one->fiber->thread.file;
    clocks->other = *other;
    clocks->region = *one->region;
    memcpy(clocks->before, (const void *)(uintptr_t)one->address, one->size);
  }
  clocks->pending |= bytes;
}

static void check_write(const access *one, cell *cell, uint32_t bytes) {
  bool atomic = one->me.who & SC_BY_ATOMIC;
  if (meets(one, &cell->write)) {
    if (atomic || cell->write.who & SC_BY_ATOMIC) report_meeting(one, &cell->write, "write/write");
    else put_off(one, &cell->write, bytes);
  }
  for (int i = 0; i < 2; i++)
    if (meets(one, &cell->reads[i])) report_meeting(one, &cell->reads[i], "read/write");
  cell->write = one->me;
  cell->reads[0].who = cell->reads[1].who = 0;
}

/* A read stands for all reads that are ordered before it. */
static bool replaces(const access *one, const record *read) {
  if (!(read->who & SC_PRESENT) || same_thread(read, &one->me)) return true;
  return sc_is_ordered(one->fiber, read, one->region->space == SC_SHARED);
}

static void check_read(const access *one, cell *cell) {
  if (meets(one, &cell->write)) report_meeting(one, &cell->write, "write/read");
  cell->reads[replaces(one, &cell->reads[0]) ? 0 : 1] = one->me;
}

static record record_of(const sc_fiber *fiber, uint32_t how) {
  const sc_thread *thread = &fiber->thread;
  uint64_t line = thread->line < 0xFFFFF ? thread->line : 0xFFFFF;
  uint32_t file = thread->file < 64 ? thread->file : 0;
  return (record){
      .who = fiber->block->linear << 32 | (uint64_t)thread->linear << 22 |
             (how & SC_ATOMIC ? SC_BY_ATOMIC : 0) | SC_PRESENT | line,
      .epoch = fiber->block->epoch,
      .when = (fiber->clocks->clock & 0x3FFFFFF) | file << 26,
  };
}

void sc_races_access(sc_fiber *fiber, const sc_region *region, uint64_t address, uint32_t size,
                     uint32_t how) {
  const page *page = find_page(fiber->block->grid->worker, address, size);
  if (!page || size > SC_WIDEST) return;
  if (how & SC_ATOMIC && how & SC_READ) sc_acquire(fiber, region, address);
  access one = {fiber, region, address, size, record_of(fiber, how)};
  uint32_t width = 1u << page->shift;
  uint32_t bytes_of_cell = (1u << width) - 1;
  cell *cells = &page->cells[address % PAGE >> page->shift];
  for (uint32_t i = 0; i < size / width; i++) {
    if (how & SC_WRITE) check_write(&one, &cells[i], bytes_of_cell << i * width);
    else check_read(&one, &cells[i]);
  }
  if (how & SC_WRITE && region->space == SC_GLOBAL) fiber->clocks->wrote = true;
  if (how & SC_ATOMIC && how & SC_WRITE) sc_release_at(fiber, region, address);
}

/* ---- launches -------------------------------------------------------------- */

bool sc_races_begin(sc_grid *grid) {
  sc_worker *worker = grid->worker;
  if (!worker->races) worker->races = calloc(1, sizeof *worker->races);
  struct sc_races *races = worker->races;
  if (!races) return false;
  /* Cells stay for the next launch, which everything before is ordered with; until their epochs or
   * their memory run out. */
  if (races->epoch > UINT32_MAX / 2 || races->bytes > MOST_BYTES / 4) {
    while (races->oldest) forget_oldest(races);
    races->epoch = 0;
  }
  sc_order_begin(races);
  return true;
}

void sc_races_end(sc_grid *grid) {
  size_t fibers = grid->kernel->waits ? (size_t)grid->live_blocks * grid->threads : 1;
  struct sc_clocks *clocks = grid->worker->clocks.at;
  for (size_t i = 0; i < fibers; i++) free(clocks[i].far);
  for (uint32_t b = 0; b < grid->live_blocks; b++)
    for (int i = 0; i < SC_BARRIERS; i++) free(grid->blocks[b].barriers[i].released);
}

void sc_races_forget(sc_worker *worker) {
  struct sc_races *races = worker->races;
  if (!races) return;
  while (races->oldest) forget_oldest(races);
  sc_order_forget(races);
  free(races);
}
