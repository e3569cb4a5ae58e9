/* What a report says of the thread that it is about. */
#include "fibers.h"

const char *sc_file_name(const sc_grid *grid, uint32_t number) {
  return number < grid->module->file_count ? grid->module->files[number] : NULL;
}

sc_report sc_report_of(const sc_fiber *fiber, const char *kind) {
  const sc_grid *grid = fiber->block->grid;
  sc_report report = {.kind = kind, .kernel = grid->kernel->name, .in_kernel = true};
  memcpy(report.block, fiber->thread.ctaid, sizeof report.block);
  memcpy(report.thread, fiber->thread.tid, sizeof report.thread);
  report.file = sc_file_name(grid, fiber->thread.file);
  report.line = fiber->thread.line;
  return report;
}

void sc_report_other(sc_report *report, const sc_fiber *other) {
  report->has_other = true;
  memcpy(report->other_block, other->thread.ctaid, sizeof report->other_block);
  memcpy(report->other_thread, other->thread.tid, sizeof report->other_thread);
  report->other_line = other->thread.line;
}

/* FNV-1a over what tells reports of one launch apart. */
static uint64_t report_key(const sc_report *report, uint64_t what) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char *at = report->kind; *at; at++) hash = (hash ^ (uint8_t)*at) * 0x100000001B3u;
  uint64_t parts[] = {report->line, report->other_line, what};
  for (int i = 0; i < 3; i++) hash = (hash ^ parts[i]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 32;
  return hash | 1;
}

void sc_report_once(sc_fiber *fiber, const sc_report *report, uint64_t what) {
  sc_grid *grid = fiber->block->grid;
  const uint32_t places = sizeof grid->said / sizeof *grid->said;
  uint64_t key = report_key(report, what);
  for (uint32_t i = 0; i < places; i++) { /* where all places are taken, enough was said */
    uint64_t *said = &grid->said[(key + i) % places];
    if (*said == key) return;
    if (*said) continue;
    *said = key;
    sc_hold(grid->worker);
    sc_report_add(report);
    sc_let_go(grid->worker);
    return;
  }
}
