/* A look-alike of libnvJitLink that links with NVIDIA's and leaves PTX in place of a cubin.
 *
 * numba-cuda compiles to LTO-IR where nvJitLink is installed: NVIDIA's linker optimises it as a
 * whole and assembles it to machine code of a GPU. The machine code of softcuda is PTX, and the
 * linker can stop there (nvJitLink, 2.2 option "-ptx", "only supported with -lto"). All else is
 * handed on.
 *
 * The PTX ends in comments with the inputs and options that it was linked from. resources.py links
 * them again for real GPUs: the linker assembles LTO-IR to other machine code than its own PTX
 * (black_scholes: 32 registers, and 38 by way of PTX). Programs keep linked code in files, so that
 * what belongs to it has to lie in it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

/* nvJitLinkResult and nvJitLinkInputType (nvJitLink, 3.1 and 3.2). */
enum { SUCCESS = 0, UNRECOGNIZED_OPTION, MISSING_ARCH, INVALID_INPUT, PTX_COMPILE, NVVM_COMPILE,
       INTERNAL };
enum { INPUT_NONE, INPUT_CUBIN, INPUT_PTX, INPUT_LTOIR, INPUT_FATBIN, INPUT_OBJECT, INPUT_LIBRARY };

typedef struct linker {
  void *real;
  bool lto, wants_ptx; /* the options -lto and -ptx of the caller */
  char *origin;        /* comments: options and inputs, one a line */
  size_t origin_bytes;
  char *ptx;           /* inputs that are PTX, one after the other */
  size_t ptx_bytes;
  char *linked;        /* what stands for the cubin */
  size_t linked_bytes;
  char complaint[300]; /* ours, in front of the real error log */
} linker;

static char real_path[4096];
static void *real_library;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

API void softcuda_set_nvjitlink(const char *path) {
  snprintf(real_path, sizeof real_path, "%s", path);
}

static void open_real(void) {
  real_library = dlopen(real_path, RTLD_NOW | RTLD_LOCAL);
  if (!real_library) fprintf(stderr, "softcuda: %s\n", dlerror());
}

static void *real_function(const char *name) {
  pthread_once(&opened, open_real);
  return real_library ? dlsym(real_library, name) : NULL;
}

#define REAL(name, ...) \
  int (*real)(__VA_ARGS__) = (int (*)(__VA_ARGS__))real_function(#name); \
  if (!real) return INTERNAL

API int nvJitLinkVersion(unsigned *major, unsigned *minor) {
  REAL(nvJitLinkVersion, unsigned *, unsigned *);
  return real(major, minor);
}

static void append(char **text, size_t *bytes, const char *more, size_t count) {
  char *grown = realloc(*text, *bytes + count + 2);
  if (!grown) abort();
  memcpy(grown + *bytes, more, count);
  *bytes += count;
  grown[(*bytes)++] = '\n';
  grown[*bytes] = 0;
  *text = grown;
}

/* resources.py reads lines that begin so. */
#define ORIGIN "//softcuda-linked-from "

static void note(linker *l, const char *kind, const char *text) {
  char *line = NULL;
  int length = asprintf(&line, ORIGIN "%s %s", kind, text);
  if (length < 0) abort();
  append(&l->origin, &l->origin_bytes, line, (size_t)length);
  free(line);
}

static void note_input(linker *l, int type, const unsigned char *data, size_t bytes) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *line = malloc(sizeof ORIGIN + 16 + (bytes + 2) / 3 * 4);
  if (!line) abort();
  char *out = line + sprintf(line, ORIGIN "%d ", type);
  for (size_t i = 0; i < bytes; i += 3) { /* base64 (RFC 4648, 4) */
    size_t left = bytes - i;
    uint32_t group = (uint32_t)data[i] << 16 | (left > 1 ? data[i + 1] << 8 : 0) |
                     (left > 2 ? data[i + 2] : 0);
    *out++ = digits[group >> 18];
    *out++ = digits[group >> 12 & 63];
    *out++ = left > 1 ? digits[group >> 6 & 63] : '=';
    *out++ = left > 2 ? digits[group & 63] : '=';
  }
  append(&l->origin, &l->origin_bytes, line, (size_t)(out - line));
  free(line);
}

API int nvJitLinkCreate(linker **handle, uint32_t count, const char **options) {
  REAL(nvJitLinkCreate, void **, uint32_t, const char **);
  linker *made = calloc(1, sizeof *made);
  const char **extended = calloc(count + 1, sizeof *extended);
  for (uint32_t i = 0; i < count; i++) {
    extended[i] = options[i];
    made->lto |= !strcmp(options[i], "-lto");
    made->wants_ptx |= !strcmp(options[i], "-ptx");
    /* The architecture is chosen again for each GPU, and a line ends an option. */
    if (strncmp(options[i], "-arch", 5) && !strchr(options[i], '\n'))
      note(made, "option", options[i]);
  }
  if (made->lto && !made->wants_ptx) extended[count++] = "-ptx";
  int result = real(&made->real, count, extended);
  free(extended);
  *handle = made;
  return result;
}

API int nvJitLinkDestroy(linker **handle) {
  REAL(nvJitLinkDestroy, void **);
  linker *l = *handle;
  if (!l) return INVALID_INPUT;
  int result = real(&l->real);
  free(l->origin);
  free(l->ptx);
  free(l->linked);
  free(l);
  *handle = NULL;
  return result;
}

/* Grid synchronisation comes from this library of NVIDIA's on a GPU; softcuda has its own. */
static bool is_device_runtime(const char *name) { return name && strstr(name, "cudadevrt"); }

static int refuse_binary(linker *l, const char *name) {
  snprintf(l->complaint, sizeof l->complaint,
           "softcuda runs PTX and cannot link the machine code of %s; link its PTX or LTO-IR\n",
           name ? name : "an input without a name");
  return INVALID_INPUT;
}

API int nvJitLinkAddData(linker *l, int type, const void *data, size_t bytes, const char *name) {
  REAL(nvJitLinkAddData, void *, int, const void *, size_t, const char *);
  if (type == INPUT_PTX) append(&l->ptx, &l->ptx_bytes, data, strnlen(data, bytes));
  else if (type != INPUT_LTOIR && !is_device_runtime(name)) return refuse_binary(l, name);
  if (is_device_runtime(name)) note(l, "library", "cudadevrt");
  else note_input(l, type, data, bytes);
  /* Beside LTO-IR, other inputs are not optimised but only linked, which "-ptx" refuses to do. */
  if (type != INPUT_LTOIR && l->lto) return SUCCESS;
  return real(l->real, type, data, bytes, name);
}

API int nvJitLinkAddFile(linker *l, int type, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return INVALID_INPUT;
  char *data = NULL;
  size_t bytes = 0, got, room = 0;
  do {
    char *grown = realloc(data, room += 1 << 16);
    if (!grown) abort();
    data = grown;
    got = fread(data + bytes, 1, room - bytes, file);
    bytes += got;
  } while (got);
  fclose(file);
  int result = nvJitLinkAddData(l, type, data, bytes, path);
  free(data);
  return result;
}

API int nvJitLinkGetLinkedPtxSize(linker *l, size_t *bytes) {
  REAL(nvJitLinkGetLinkedPtxSize, void *, size_t *);
  return real(l->real, bytes);
}

API int nvJitLinkGetLinkedPtx(linker *l, char *ptx) {
  REAL(nvJitLinkGetLinkedPtx, void *, char *);
  return real(l->real, ptx);
}

/* What stands for the cubin: the linked PTX of all LTO-IR, and the inputs that were PTX. */
static int keep_linked(linker *l) {
  size_t bytes = 0;
  int result = SUCCESS;
  if (l->lto && !(result = nvJitLinkGetLinkedPtxSize(l, &bytes)) && bytes) {
    char *text = calloc(1, bytes + 1);
    result = nvJitLinkGetLinkedPtx(l, text);
    append(&l->linked, &l->linked_bytes, text, strnlen(text, bytes));
    free(text);
  }
  if (l->ptx_bytes) append(&l->linked, &l->linked_bytes, l->ptx, l->ptx_bytes);
  if (l->linked && l->origin) append(&l->linked, &l->linked_bytes, l->origin, l->origin_bytes);
  return result;
}

API int nvJitLinkComplete(linker *l) {
  REAL(nvJitLinkComplete, void *);
  int result = real(l->real);
  return result ? result : keep_linked(l);
}

API int nvJitLinkGetLinkedCubinSize(linker *l, size_t *bytes) {
  if (!l->linked) return INVALID_INPUT;
  *bytes = l->linked_bytes + 1;
  return SUCCESS;
}

API int nvJitLinkGetLinkedCubin(linker *l, void *cubin) {
  if (!l->linked) return INVALID_INPUT;
  memcpy(cubin, l->linked, l->linked_bytes + 1);
  return SUCCESS;
}

API int nvJitLinkGetLinkedLTOIRSize(linker *l, size_t *bytes) {
  REAL(nvJitLinkGetLinkedLTOIRSize, void *, size_t *);
  return real(l->real, bytes);
}

API int nvJitLinkGetLinkedLTOIR(linker *l, void *code) {
  REAL(nvJitLinkGetLinkedLTOIR, void *, void *);
  return real(l->real, code);
}

API int nvJitLinkGetErrorLogSize(linker *l, size_t *bytes) {
  REAL(nvJitLinkGetErrorLogSize, void *, size_t *);
  int result = real(l->real, bytes);
  *bytes += strlen(l->complaint);
  return result;
}

API int nvJitLinkGetErrorLog(linker *l, char *log) {
  REAL(nvJitLinkGetErrorLog, void *, char *);
  size_t ours = strlen(l->complaint);
  memcpy(log, l->complaint, ours);
  return real(l->real, log + ours);
}

API int nvJitLinkGetInfoLogSize(linker *l, size_t *bytes) {
  REAL(nvJitLinkGetInfoLogSize, void *, size_t *);
  return real(l->real, bytes);
}

API int nvJitLinkGetInfoLog(linker *l, char *log) {
  REAL(nvJitLinkGetInfoLog, void *, char *);
  return real(l->real, log);
}
