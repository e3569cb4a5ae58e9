/* Images of code: PTX, which the compiler that Python gave turns into shared libraries, and what is
 * not PTX. */
#include "images.h"
#include "options.h"
#include "reports.h"

#include <ctype.h>
#include <signal.h>

static sc_compiler compile;

void softcuda_set_compiler(sc_compiler compiler) { compile = compiler; }

/* ---- options of the JIT ---------------------------------------------------------------------- */

void sc_read_jit_options(sc_jit_options *jit, unsigned count, CUjit_option *options,
                         void **values) {
  for (unsigned i = 0; i < count; i++)
    switch (options[i]) {
    case CU_JIT_INFO_LOG_BUFFER: jit->info = values[i]; break;
    case CU_JIT_ERROR_LOG_BUFFER: jit->error = values[i]; break;
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
      jit->info_size = &values[i];
      jit->info_room = (unsigned)(uintptr_t)values[i];
      break;
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
      jit->error_size = &values[i];
      jit->error_room = (unsigned)(uintptr_t)values[i];
      break;
    case CU_JIT_WALL_TIME: jit->wall_time = &values[i]; break;
    default: break; /* about machine code, of which there is none */
    }
}

static void fill_log(char *buffer, size_t room, void **size, const char *text) {
  size_t length = buffer && room ? strlen(text) : 0;
  if (length && length >= room) length = room - 1;
  if (buffer && room) {
    memcpy(buffer, text, length);
    buffer[length] = 0;
  }
  if (size) *size = (void *)length;
}

void sc_write_logs(const sc_jit_options *jit, const char *error) {
  fill_log(jit->info, jit->info_room, jit->info_size, "");
  fill_log(jit->error, jit->error_room, jit->error_size, error);
  if (jit->wall_time) memset(jit->wall_time, 0, sizeof(float)); /* no time means anything here */
}

/* ---- what an image is ------------------------------------------------------------------------ */

/* The newest PTX that a driver reads (PTX ISA, Release Notes: PTX ISA 7.0 came with CUDA 11.0, 8.5
 * with 12.5 and 12.6, 8.6 with 12.7, 9.0 with 13.0). */
static int newest_ptx(int driver) {
  int major = driver / 1000, minor = driver / 10 % 100;
  if (major == 12 && minor > 5) minor--;
  return major < 11 ? 65 : 10 * (major - 4) + minor;
}

static const char *after(const char *text, const char *word) {
  const char *at = strstr(text, word);
  return at ? at + strlen(word) : NULL;
}

/* Image kinds by their first bytes: machine code of real devices, alone or in a fat binary, is
 * CUDA_ERROR_NO_BINARY_FOR_GPU ("no kernel image available that is suitable for the device"). */
static CUresult check_image(const char *image, sc_compiled *out) {
  if (!strncmp(image, "\x7f" "ELF", 4) || !strncmp(image, "\x50\xed\x55\xba", 4)) {
    snprintf(out->log, sizeof out->log,
             "softcuda runs PTX, and this is machine code of a GPU; load the PTX");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  int major, minor;
  const char *version = isascii(image[0]) ? after(image, ".version") : NULL;
  const char *target = version ? after(version, ".target") : NULL;
  if (!target || sscanf(version, " %d.%d", &major, &minor) != 2 ||
      sscanf(target, " sm_%d", &out->target) != 1) {
    snprintf(out->log, sizeof out->log, "this is neither PTX nor a binary of CUDA");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  out->ptx_version = 10 * major + minor;
  if (out->ptx_version > newest_ptx(sc_option.driver_version)) {
    snprintf(out->log, sizeof out->log, "PTX %d.%d is newer than a driver for CUDA %d.%d reads",
             major, minor, sc_option.driver_version / 1000, sc_option.driver_version / 10 % 100);
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (out->target > sc_option.capability) { /* PTX ISA, 11.1.2 .target */
    snprintf(out->log, sizeof out->log, "PTX for sm_%d does not run on a device of sm_%d",
             out->target, sc_option.capability);
    return CUDA_ERROR_INVALID_PTX;
  }
  return CUDA_SUCCESS;
}

/* Ctrl-C came while Python compiled. Python may raise nothing in a function that C calls, so the
 * signal is sent once more: Python hears it where the driver's call has returned. */
static CUresult interrupt(sc_compiled *out) {
  snprintf(out->log, sizeof out->log, "softcuda was interrupted while it compiled");
  raise(SIGINT);
  return CUDA_ERROR_UNKNOWN;
}

/* Without the lock: the compiler is Python, whose threads may wait for the lock. */
CUresult sc_compile_image(const char *image, sc_compiled *out) {
  memset(out, 0, sizeof *out);
  CUresult error = check_image(image, out);
  if (!error && !compile) {
    snprintf(out->log, sizeof out->log, "no compiler of PTX was given to softcuda");
    error = CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  }
  if (!error)
    error = (CUresult)compile(image, out->path, sizeof out->path, out->log, sizeof out->log);
  if (!error && !out->path[0]) error = interrupt(out);
  if (error) sc_log("image refused: %.400s", out->log);
  return error;
}

/* ---- files ----------------------------------------------------------------------------------- */

char *sc_read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = NULL;
  size_t bytes = 0, got = 0, room = 0;
  do {
    text = realloc(text, (room += 1 << 16) + 8);
    got = fread(text + bytes, 1, room - bytes, file);
    bytes += got;
  } while (got);
  fclose(file);
  memset(text + bytes, 0, 8);
  return text;
}
