/* Linking (Driver API, Module Management: cuLink). */
#include "contexts.h"
#include "handles.h"
#include "images.h"
#include "lock.h"

/* Inputs that are PTX are put one after the other; the translation of the whole links them. */
typedef struct linker {
  sc_object object;
  sc_jit_options jit;
  char *text;
  size_t bytes;
  char log[8192];
} linker;

#undef cuLinkCreate
#undef cuLinkAddData
#undef cuLinkAddFile

API CUresult cuLinkCreate_v2(unsigned count, CUjit_option *options, void **values,
                             CUlinkState *made) {
  ENTER;
  if (!sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!made || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  linker *link = sc_object_new(SC_LINK, sizeof *link, sc_current());
  sc_unlock();
  sc_read_jit_options(&link->jit, count, options, values);
  *made = (CUlinkState)link;
  return CUDA_SUCCESS;
}

static CUresult add_input(linker *link, CUjitInputType type, const char *data, size_t bytes,
                          const char *name) {
  if (!name) name = "an input without a name";
  /* What a kernel uses of the device's runtime (synchronising a grid) is built in. */
  if (strstr(name, "cudadevrt")) return CUDA_SUCCESS;
  if (type != CU_JIT_INPUT_PTX) {
    snprintf(link->log, sizeof link->log,
             "softcuda links PTX only, and %s is %s", name,
             type == CU_JIT_INPUT_CUBIN || type == CU_JIT_INPUT_FATBINARY ||
                     type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY
                 ? "machine code of a GPU"
                 : "of another kind");
    sc_write_logs(&link->jit, link->log);
    return type > CU_JIT_INPUT_LIBRARY ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  bytes = strnlen(data, bytes);
  link->text = realloc(link->text, link->bytes + bytes + 8);
  memcpy(link->text + link->bytes, data, bytes);
  link->bytes += bytes;
  memcpy(link->text + link->bytes++, "\n\0\0\0\0\0\0", 8);
  return CUDA_SUCCESS;
}

API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                              const char *name, unsigned count, CUjit_option *options,
                              void **values) {
  ENTER;
  (void)count, (void)options, (void)values; /* of the compiler, for this input */
  if (!data || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(state, SC_LINK, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return add_input((linker *)state, type, data, bytes, name);
}

API CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                              unsigned count, CUjit_option *options, void **values) {
  ENTER;
  (void)count, (void)options, (void)values;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(state, SC_LINK, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  char *data = sc_read_file(path);
  if (!data) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult error = add_input((linker *)state, type, data, SIZE_MAX, path);
  free(data);
  return error;
}

/* The result is PTX in place of a cubin. It is compiled here, so that the errors of a program come
 * from the linker as with a device; loading it finds it compiled. */
API CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
  ENTER;
  if (!image) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(state, SC_LINK, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  linker *link = (linker *)state;
  if (!link->text) return CUDA_ERROR_INVALID_VALUE;
  sc_compiled *made = malloc(sizeof *made);
  CUresult error = sc_compile_image(link->text, made);
  sc_write_logs(&link->jit, error ? made->log : "");
  free(made);
  if (error) return error;
  *image = link->text;
  if (bytes) *bytes = link->bytes + 1;
  return CUDA_SUCCESS;
}

API CUresult cuLinkDestroy(CUlinkState state) {
  CUresult sticky = sc_enter(__func__);
  if (sticky == CUDA_ERROR_NOT_INITIALIZED || sticky == CUDA_ERROR_NOT_PERMITTED) return sticky;
  sc_lock();
  CUresult error = sc_object_end(state, SC_LINK, __func__);
  if (!error) {
    free(((linker *)state)->text);
    ((linker *)state)->text = NULL;
  }
  sc_unlock();
  return error ? error : sticky;
}
