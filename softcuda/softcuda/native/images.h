/* Images of code: what they are, how they are compiled, and the logs of that. For modules.c and
 * links.c. */
#pragma once
#include "base.h"

/* Where the logs of the JIT go. The sizes of their buffers are taken from the array of option
 * values, and how much was filled is put there (Driver API, CUjit_option). */
typedef struct sc_jit_options {
  char *info, *error;
  size_t info_room, error_room;
  void **info_size, **error_size, **wall_time;
} sc_jit_options;

typedef struct sc_compiled {
  char path[4096];  /* of the shared library */
  char log[8192];   /* what is wrong with the image */
  int ptx_version, target; /* 84 and 80: of ".version 8.4" and ".target sm_80" */
} sc_compiled;

/* Compiles PTX to a shared library and writes its path to `path`; `log` takes what is wrong. Given
 * by Python (softcuda_set_compiler), so that translation and the cache of libraries stay there.
 * Answers 0 or a CUresult; without a path where Ctrl-C interrupted it. */
typedef int (*sc_compiler)(const char *ptx, char *path, size_t path_room, char *log,
                           size_t log_room);
API void softcuda_set_compiler(sc_compiler compiler);
void sc_read_jit_options(sc_jit_options *jit, unsigned count, CUjit_option *options, void **values);
void sc_write_logs(const sc_jit_options *jit, const char *error);
/* Checks and compiles an image; to be called without the lock. */
CUresult sc_compile_image(const char *image, sc_compiled *out);
/* The whole of a file with zeros behind it, or NULL; the caller frees it. */
char *sc_read_file(const char *path);
