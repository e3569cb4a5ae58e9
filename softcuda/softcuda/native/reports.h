/* The log of calls, faults that were found (reports.c), and what errors mean (errors.c). */
#pragma once
#include "base.h"

/* A line of the log of calls (SOFTCUDA_LOG). */
void sc_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One fault. Strings are copied; what is not known stays empty or 0. */
typedef struct sc_report {
  const char *kind;    /* "out of bounds", "race", "uninitialised", "barrier" ... */
  const char *kernel;  /* mangled name */
  bool in_kernel;      /* whether block and thread below mean anything */
  uint32_t block[3], thread[3];
  bool has_other;
  uint32_t other_block[3], other_thread[3];
  const char *space;   /* "global", "shared", "local" */
  const char *array;   /* name of the allocation or of the shared variable */
  uint64_t offset, size, length; /* of the access in the array, its width, the array's bytes */
  bool has_array;
  const char *file;
  uint32_t line, other_line;
  char text[400];      /* one sentence that says what was found */
} sc_report;

/* Keeps a report. The same kind at the same place of the same kernel is counted, not kept again. */
void sc_report_add(const sc_report *report);
/* One report as a JSON object for each line, oldest first, and forgets them; bytes written, or the
 * bytes that are needed where `room` is too small. Exported, for Python. */
API size_t softcuda_reports(char *out, size_t room);
/* Writes a string of JSON. */
void sc_write_string(FILE *out, const char *text);
/* Prints the reports of one kind that are kept to stderr. */
void sc_reports_print(const char *kind);

/* What a CUresult means, as cuGetErrorName and cuGetErrorString say it; NULL for no such result. */
const char *sc_error_name(CUresult error);
const char *sc_error_text(CUresult error);
