/* Copies and fills, when their work runs. */
#include "contexts.h"
#include "memory.h"
#include "options.h"
#include "reports.h"
#include "running.h"
#include "shadow.h"

#include <time.h>

/* The memory at an address. Where it was freed since the call, by work of another stream, a GPU
 * would stop with an illegal address. */
static bool still_there(uint64_t at, const char *what, sc_allocation **memory) {
  *memory = sc_find(at);
  if (!*memory || !(*memory)->freed) return true;
  char name[80];
  sc_report report = {.kind = "freed", .array = sc_allocation_name(*memory, name, sizeof name)};
  snprintf(report.text, sizeof report.text, "a queued %s uses %s, which was freed before it ran",
           what, name);
  sc_report_add(&report);
  sc_set_sticky((*memory)->context, CUDA_ERROR_ILLEGAL_ADDRESS);
  return false;
}

static void be_slow(uint64_t bytes) {
  const sc_command *command = sc_commanded(SC_SLOW_COPY, NULL, bytes);
  if (!command) return;
  struct timespec time = {(time_t)(command->value / 1000000),
                          (long)(command->value % 1000000 * 1000)};
  nanosleep(&time, NULL);
}

void sc_run_copy(const sc_work *work) {
  sc_allocation *to, *from = NULL;
  if (!still_there(work->to, "copy", &to)) return;
  if (!work->staged && !still_there(work->from, "copy", &from)) return;
  be_slow(work->bytes);
  sc_list *list = sc_option.sanitize ? sc_take_list() : NULL; /* keeps shadows that are in use */
  const char *source = work->staged ? work->staged : (const char *)(uintptr_t)work->from;
  char *target = (char *)(uintptr_t)work->to;
  uint64_t rows = work->height ? work->height : 1;
  uint64_t width = work->height ? work->width : work->bytes;
  for (uint64_t y = 0; y < rows; y++) {
    memmove(target + y * work->pitch_to, source + y * work->pitch_from, width);
    if (!to) continue;
    uint64_t offset = work->to + y * work->pitch_to - to->at;
    if (from)
      sc_shadow_copied(to, offset, from, work->from + y * work->pitch_from - from->at, width);
    else
      sc_shadow_written(to, offset, width);
  }
  sc_release_list(list);
}

static void fill_row(char *at, uint64_t count, uint32_t element, uint64_t value) {
  if (element == 1) {
    memset(at, (int)value, count);
    return;
  }
  for (uint64_t i = 0; i < count; i++) memcpy(at + i * element, &value, element);
}

/* `bytes` counts all elements, `width` those of a row. */
void sc_run_fill(const sc_work *work) {
  sc_allocation *to;
  if (!still_there(work->to, "fill", &to)) return;
  sc_list *list = sc_option.sanitize ? sc_take_list() : NULL;
  uint64_t rows = work->height ? work->height : 1;
  uint64_t width = work->height ? work->width : work->bytes;
  for (uint64_t y = 0; y < rows; y++) {
    uint64_t at = work->to + y * work->pitch_to;
    fill_row((char *)(uintptr_t)at, width, work->element, work->value);
    if (to) sc_shadow_written(to, at - to->at, width * work->element);
  }
  sc_release_list(list);
}
