/* printf and assert of kernels (Guide, Formatted Output and Assertion). */
#include "access.h"
#include "services.h"

#include <stdarg.h>

/* What waits to be printed; more than this is printed at once, where a GPU would overwrite it
 * (Guide, cudaLimitPrintfFifoSize: 1 MB). */
static const size_t BUFFER_BYTES = (size_t)1 << 20;
enum { MOST_ARGUMENTS = 32 }; /* "up to 32 arguments in addition to the format string" */

void sc_printed_flush(sc_grid *grid) {
  if (grid->printed.used) {
    fwrite(grid->printed.at, 1, grid->printed.used, stdout);
    fflush(stdout);
  }
  free(grid->printed.at);
  memset(&grid->printed, 0, sizeof grid->printed);
}

static void append(sc_grid *grid, const char *text, size_t bytes) {
  sc_hold(grid->worker);
  if (grid->printed.used + bytes > BUFFER_BYTES) sc_printed_flush(grid);
  if (grid->printed.used + bytes > grid->printed.room) {
    size_t room = 2 * (grid->printed.used + bytes) + 256;
    char *at = realloc(grid->printed.at, room);
    if (at) {
      grid->printed.at = at;
      grid->printed.room = room;
    } else {
      bytes = 0;
    }
  }
  memcpy(grid->printed.at + grid->printed.used, text, bytes);
  grid->printed.used += bytes;
  sc_let_go(grid->worker);
}

static void append_formatted(sc_grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void append_formatted(sc_grid *grid, const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  sc_hold(grid->worker);
  va_start(arguments, format);
  int bytes = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (bytes > 0) append(grid, text, (size_t)bytes);
  if (bytes >= 0) free(text);
  sc_let_go(grid->worker);
}

/* Bytes of a text up to its end, or up to the end of the array that it lies in. */
static size_t text_length(sc_fiber *fiber, uint64_t address) {
  sc_region region;
  if (!sc_region_of(fiber, address, &region))
    sc_stop(fiber, sc_refuse_access(fiber, address, 1, SC_READ));
  return strnlen((const char *)(uintptr_t)address, region.at + region.size - address);
}

/* One conversion of a format: "%-8.3lld". */
typedef struct conversion {
  char text[48]; /* with ll in place of its size, where it is one of whole numbers */
  char kind;     /* d, u, x, f, s, c, p ...; 0: none that we know */
  bool wide;     /* its argument takes 8 bytes */
  int stars;     /* widths and precisions that are arguments */
} conversion;

/* Reads what stands after a '%'; answers how many characters it is. */
static size_t read_conversion(const char *at, size_t left, conversion *out) {
  size_t i = 0, used = 0;
  int longs = 0;
  memset(out, 0, sizeof *out);
  out->text[used++] = '%';
  while (i < left && strchr("#0- +123456789.*", at[i]) && used < sizeof out->text - 8) {
    out->stars += at[i] == '*';
    out->text[used++] = at[i++];
  }
  while (i < left && strchr("hlqjztL", at[i])) {
    longs += at[i] == 'h' ? 0 : 1; /* l, ll, q, j, z, t: 8 bytes on a 64-bit device */
    i++;
  }
  if (i == left || !strchr("diuoxXcpsaAeEfFgG", at[i])) return i;
  out->kind = at[i];
  out->wide = longs || strchr("psaAeEfFgG", at[i]);
  if (strchr("diuoxX", at[i])) {
    out->text[used++] = 'l';
    out->text[used++] = 'l';
  }
  out->text[used++] = at[i];
  return i + 1;
}

/* The packed arguments: each at a multiple of its size, as a compiler lays out a struct of them. */
static uint64_t next_argument(sc_thread *thread, uint64_t *at, bool wide) {
  uint32_t size = wide ? 8 : 4;
  uint64_t value = 0;
  *at = (*at + size - 1) & ~(uint64_t)(size - 1);
  memcpy(&value, sc_access(thread, *at, size, SC_READ), size);
  *at += size;
  return value;
}

static long long as_signed(uint64_t value, bool wide) {
  return wide ? (long long)value : (long long)(int32_t)value;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
#define FORMATTED(value)                                                                          \
  (one->stars == 2   ? append_formatted(grid, one->text, stars[0], stars[1], value)               \
   : one->stars == 1 ? append_formatted(grid, one->text, stars[0], value)                         \
                     : append_formatted(grid, one->text, value))

/* Prints one argument; answers how many were used. */
static int print_one(sc_thread *thread, const conversion *one, uint64_t *at) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_grid *grid = fiber->block->grid;
  int stars[2] = {0};
  for (int i = 0; i < one->stars && i < 2; i++) stars[i] = (int)next_argument(thread, at, false);
  uint64_t value = next_argument(thread, at, one->wide);
  double number;
  memcpy(&number, &value, sizeof number);
  switch (one->kind) {
  case 'd':
  case 'i': FORMATTED(as_signed(value, one->wide)); break;
  case 'c': FORMATTED((int)value); break;
  case 'p': FORMATTED((void *)(uintptr_t)value); break;
  case 's': {
    size_t length = value ? text_length(fiber, value) : 6;
    sc_hold(grid->worker);
    char *text = strndup(value ? (const char *)(uintptr_t)value : "(null)", length);
    if (text) FORMATTED(text);
    free(text);
    sc_let_go(grid->worker);
    break;
  }
  case 'u':
  case 'o':
  case 'x':
  case 'X': FORMATTED((unsigned long long)value); break;
  default: FORMATTED(number);
  }
  return one->stars + 1;
}
#pragma GCC diagnostic pop

int32_t sc_print(sc_thread *thread, uint64_t format, uint64_t arguments) {
  sc_fiber *fiber = sc_fiber_of(thread);
  sc_grid *grid = fiber->block->grid;
  const char *text = (const char *)(uintptr_t)format;
  size_t length = text_length(fiber, format);
  int used = 0;
  for (size_t i = 0; i < length;) {
    const char *percent = memchr(text + i, '%', length - i);
    size_t plain = percent ? (size_t)(percent - text) - i : length - i;
    append(grid, text + i, plain);
    i += plain;
    if (i == length) break;
    conversion one;
    size_t read = read_conversion(text + i + 1, length - i - 1, &one);
    if (one.kind && one.stars < 3 && used < MOST_ARGUMENTS) {
      used += print_one(thread, &one, &arguments);
      i += 1 + read;
    } else { /* "%%", or something that is printed as it stands */
      append(grid, "%", 1);
      i += i + 1 < length && text[i + 1] == '%' ? 2 : 1;
    }
  }
  return used; /* "the number of arguments parsed by the device" */
}

static const char *text_at(sc_fiber *fiber, uint64_t address, char *room, size_t bytes) {
  sc_region region;
  snprintf(room, bytes, "?");
  if (address && sc_region_of(fiber, address, &region)) {
    uint64_t left = region.at + region.size - address;
    snprintf(room, bytes, "%.*s", (int)(left < bytes ? left : bytes),
             (const char *)(uintptr_t)address);
  }
  return room;
}

void sc_fail(sc_thread *thread, uint64_t message, uint64_t file, uint32_t line, uint64_t function) {
  sc_fiber *fiber = sc_fiber_of(thread);
  char said[200], where[300], name[200];
  text_at(fiber, message, said, sizeof said);
  text_at(fiber, file, where, sizeof where);
  text_at(fiber, function, name, sizeof name);
  const uint32_t *block = thread->ctaid, *tid = thread->tid;
  sc_hold(sc_worker_of(fiber));
  /* In the words of the Guide, Assertion. */
  fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
          where, line, name, block[0], block[1], block[2], tid[0], tid[1], tid[2], said);
  sc_let_go(sc_worker_of(fiber));
  sc_report report = sc_report_of(fiber, "assert");
  if (!report.line) {
    report.line = line;
    report.file = where;
  }
  snprintf(report.text, sizeof report.text, "assertion `%s` failed in %.150s", said, name);
  sc_report_once(fiber, &report, 0);
  sc_stop(fiber, CUDA_ERROR_ASSERT);
}
