/* The log of calls (SOFTCUDA_LOG), and the faults that were found. */
#include "options.h"
#include "reports.h"

#include <ctype.h>
#include <stdarg.h>

/* ---- the log ------------------------------------------------------------------------------- */

void sc_log(const char *format, ...) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static FILE *file;
  static char opened[sizeof sc_option.log];
  if (!sc_option.log[0]) return;
  pthread_mutex_lock(&lock);
  if (strcmp(opened, sc_option.log)) { /* the first line, or the option has changed */
    if (file) fclose(file);
    strcpy(opened, sc_option.log);
    file = fopen(opened, "ae");
    if (file) setvbuf(file, NULL, _IOLBF, BUFSIZ);
    else fprintf(stderr, "softcuda: the log %s cannot be written\n", opened);
  }
  if (file) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- reports ------------------------------------------------------------------------------- */

enum { MOST_REPORTS = 200 }; /* a broken kernel finds thousands, and the first ones tell most */

static pthread_mutex_t reports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  sc_report report;
  uint64_t count;
} kept[MOST_REPORTS];
static int kept_count;
static uint64_t dropped;

static char *copied(const char *text) { return text && *text ? strdup(text) : NULL; }

static bool same_text(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }

/* Whether two reports tell of the same place: in kernels a line of a kernel and an array, elsewhere
 * the sentence. */
static bool same_place(const sc_report *a, const sc_report *b) {
  if (!same_text(a->kind, b->kind) || !same_text(a->kernel, b->kernel)) return false;
  if (!a->in_kernel || !b->in_kernel)
    return a->in_kernel == b->in_kernel && !strcmp(a->text, b->text);
  return a->line == b->line && a->other_line == b->other_line && same_text(a->file, b->file) &&
         same_text(a->space, b->space) && same_text(a->array, b->array);
}

static void keep(const sc_report *report) {
  for (int i = 0; i < kept_count; i++) {
    if (!same_place(report, &kept[i].report)) continue;
    kept[i].count++;
    return;
  }
  if (kept_count == MOST_REPORTS) {
    dropped++;
    return;
  }
  sc_report copy = *report;
  copy.kind = copied(report->kind);
  copy.kernel = copied(report->kernel);
  copy.space = copied(report->space);
  copy.array = copied(report->array);
  copy.file = copied(report->file);
  kept[kept_count].report = copy;
  kept[kept_count++].count = 1;
}

/* Calls are known by their names without the "_v2" that cuda.h adds to them. */
static void drop_versions(char *text) {
  for (char *at = text; (at = strstr(at, "_v")) != NULL; at++) {
    char *begin = at;
    while (begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')) begin--;
    bool is_call = !strncmp(begin, "cu", 2) && isupper((unsigned char)begin[2]);
    bool is_end = isdigit((unsigned char)at[2]) && !isalnum((unsigned char)at[3]) && at[3] != '_';
    if (is_call && is_end) memmove(at, at + 3, strlen(at + 3) + 1);
  }
}

void sc_report_add(const sc_report *given) {
  sc_report report = *given;
  drop_versions(report.text);
  sc_log("found %s: %s", report.kind, report.text);
  pthread_mutex_lock(&reports_lock);
  keep(&report);
  pthread_mutex_unlock(&reports_lock);
}

void sc_reports_print(const char *kind) {
  pthread_mutex_lock(&reports_lock);
  for (int i = 0; i < kept_count; i++)
    if (same_text(kept[i].report.kind, kind))
      fprintf(stderr, "softcuda: %s: %s\n", kind, kept[i].report.text);
  pthread_mutex_unlock(&reports_lock);
}

static void forget_all(void) {
  for (int i = 0; i < kept_count; i++) {
    const sc_report *report = &kept[i].report;
    free((char *)report->kind);
    free((char *)report->kernel);
    free((char *)report->space);
    free((char *)report->array);
    free((char *)report->file);
  }
  kept_count = 0;
  dropped = 0;
}

/* ---- as JSON (RFC 8259) -------------------------------------------------------------------- */

/* How many bytes of UTF-8 stand at `text` (RFC 3629, 4), or 0. */
static int utf8_length(const unsigned char *text) {
  static const struct {
    unsigned char first, last, low, high; /* of the first byte, and of the second */
    int length;
  } forms[] = {
      {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
      {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
      {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
  };
  if (text[0] < 0x80) return 1;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (text[0] < forms[i].first || text[0] > forms[i].last) continue;
    if (text[1] < forms[i].low || text[1] > forms[i].high) return 0;
    for (int k = 2; k < forms[i].length; k++)
      if ((text[k] & 0xC0) != 0x80) return 0;
    return forms[i].length;
  }
  return 0;
}

void sc_write_string(FILE *out, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  fputc('"', out);
  while (*at) {
    int length = utf8_length(at);
    if (!length) {
      fputs("\\ufffd", out);
      length = 1;
    } else if (*at == '"' || *at == '\\') {
      fprintf(out, "\\%c", *at);
    } else if (*at < 0x20 || *at == 0x7F) {
      fprintf(out, "\\u%04x", *at);
    } else {
      fwrite(at, 1, (size_t)length, out);
    }
    at += length;
  }
  fputc('"', out);
}

static void write_text(FILE *out, const char *name, const char *text) {
  if (!text || !*text) return;
  fprintf(out, ", \"%s\": ", name);
  sc_write_string(out, text);
}

static void write_number(FILE *out, const char *name, uint64_t number) {
  fprintf(out, ", \"%s\": %llu", name, (unsigned long long)number);
}

static void write_index(FILE *out, const char *name, const uint32_t index[3]) {
  fprintf(out, ", \"%s\": [%u, %u, %u]", name, index[0], index[1], index[2]);
}

static void write_report(FILE *out, const sc_report *report, uint64_t count) {
  fputs("{\"kind\": ", out);
  sc_write_string(out, report->kind ? report->kind : "");
  write_text(out, "kernel", report->kernel);
  if (report->in_kernel) {
    write_index(out, "block", report->block);
    write_index(out, "thread", report->thread);
  }
  if (report->has_other) {
    write_index(out, "other_block", report->other_block);
    write_index(out, "other_thread", report->other_thread);
  }
  write_text(out, "space", report->space);
  write_text(out, "array", report->array);
  if (report->has_array) {
    write_number(out, "offset", report->offset);
    write_number(out, "length", report->length);
  }
  if (report->size) write_number(out, "size", report->size);
  write_text(out, "file", report->file);
  if (report->line) write_number(out, "line", report->line);
  if (report->other_line) write_number(out, "other_line", report->other_line);
  write_text(out, "text", report->text);
  write_number(out, "count", count);
  fputs("}\n", out);
}

size_t softcuda_reports(char *out, size_t room) {
  char *text = NULL;
  size_t bytes = 0;
  pthread_mutex_lock(&reports_lock);
  FILE *stream = open_memstream(&text, &bytes);
  for (int i = 0; i < kept_count; i++) write_report(stream, &kept[i].report, kept[i].count);
  if (dropped) {
    sc_report rest = {.kind = "dropped"};
    snprintf(rest.text, sizeof rest.text, "only the first %d reports were kept", MOST_REPORTS);
    write_report(stream, &rest, dropped);
  }
  fclose(stream);
  if (bytes <= room) {
    if (bytes) memcpy(out, text, bytes);
    forget_all();
  }
  pthread_mutex_unlock(&reports_lock);
  free(text);
  return bytes;
}
