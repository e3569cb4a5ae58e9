/* Modules and libraries: PTX becomes a shared library of functions (Driver API, Module
 * Management and Library Management).
 *
 * A module belongs to the context that loaded it. A library belongs to none: for each context
 * that uses it, it gets a copy with variables and functions of that context.
 */
#include "contexts.h"
#include "images.h"
#include "lock.h"
#include "modules.h"
#include "streams.h"

#include <dlfcn.h>

static sc_library *libraries; /* modules and libraries, without the copies */

/* ---- loading and unloading ------------------------------------------------------------------- */

static sc_library *root_of(sc_library *library) { return library->of ? library->of : library; }

/* Variables of the module space live from loading to unloading (PTX ISA, 5.1.4 and 5.4.4). */
static CUresult make_variables(sc_library *library, CUcontext context) {
  const sc_module *module = library->module;
  library->globals = calloc(module->global_count + 1, sizeof *library->globals);
  library->allocations = calloc(module->global_count + 1, sizeof *library->allocations);
  for (uint32_t i = 0; i < module->global_count; i++) {
    const sc_variable *variable = &module->globals[i];
    sc_allocation *made;
    CUresult error = sc_allocate(context, variable->bytes ? variable->bytes : 1,
                                 SC_MODULE_MEMORY, &made);
    if (error) return error;
    if (variable->initial) memcpy((void *)made->at, variable->initial, variable->bytes);
    else memset((void *)made->at, 0, made->size);
    made->constant = variable->constant;
    snprintf(made->name, sizeof made->name, "%s", variable->name);
    library->allocations[i] = made;
    library->globals[i] = (char *)made->at;
  }
  return CUDA_SUCCESS;
}

static void free_variables(sc_library *library) {
  if (library->allocations)
    for (uint32_t i = 0; i < library->module->global_count; i++)
      if (library->allocations[i] && !library->allocations[i]->freed)
        sc_release(library->allocations[i]);
  free(library->allocations);
  free(library->globals);
  library->allocations = NULL;
  library->globals = NULL;
}

static void make_functions(sc_library *library) {
  const sc_module *module = library->module;
  library->functions = calloc(module->kernel_count + 1, sizeof *library->functions);
  for (uint32_t i = 0; i < module->kernel_count; i++) {
    sc_function *function = sc_object_new(SC_KERNEL, sizeof *function, library->home);
    function->kernel = &module->kernels[i];
    function->library = library;
    library->functions[i] = function;
  }
}

static void end_functions(sc_library *library) {
  library->object.alive = false;
  for (uint32_t i = 0; i < library->module->kernel_count; i++)
    library->functions[i]->object.alive = false;
}

/* When it is unloaded and no launch needs it any more. Objects stay in memory (handles.c). */
static void free_if_unused(sc_library *library) {
  if (library->object.alive || library->users || !library->handle) return;
  free_variables(library);
  for (sc_library *copy = library->copies; copy; copy = copy->next) free_variables(copy);
  for (sc_library **at = &libraries; *at; at = &(*at)->next)
    if (*at == library) {
      *at = library->next;
      break;
    }
  dlclose(library->handle);
  library->handle = NULL;
}

void sc_library_use(sc_library *library) { root_of(library)->users++; }

void sc_library_leave(sc_library *library) {
  library = root_of(library);
  library->users--;
  free_if_unused(library);
}

static void end_library(sc_library *library) {
  end_functions(library);
  for (sc_library *copy = library->copies; copy; copy = copy->next) end_functions(copy);
  free_if_unused(library);
}

static CUresult open_library(const sc_compiled *made, CUcontext home, sc_library **out,
                             char *log, size_t room) {
  void *handle = dlopen(made->path, RTLD_NOW | RTLD_LOCAL);
  const sc_module *module = handle ? dlsym(handle, SC_MODULE_SYMBOL) : NULL;
  if (!module || module->abi != SC_ABI) {
    snprintf(log, room, "%s cannot be loaded: %s", made->path,
             module ? "it was made for another softcuda" : dlerror());
    if (handle) dlclose(handle);
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  }
  sc_library *library = sc_object_new(SC_LIBRARY, sizeof *library, home);
  library->handle = handle;
  library->module = module;
  library->home = home;
  library->ptx_version = made->ptx_version;
  library->target = made->target;
  library->next = libraries;
  libraries = library;
  make_functions(library);
  CUresult error = home ? make_variables(library, home) : CUDA_SUCCESS;
  if (error) end_library(library);
  else *out = library;
  return error;
}

static CUresult load(const char *image, CUcontext home, const sc_jit_options *jit,
                     sc_library **out) {
  sc_compiled *made = malloc(sizeof *made);
  CUresult error = sc_compile_image(image, made);
  if (!error) {
    sc_lock();
    error = open_library(made, home, out, made->log, sizeof made->log);
    sc_unlock();
  }
  sc_write_logs(jit, error ? made->log : "");
  free(made);
  return error;
}

/* ---- copies of a library --------------------------------------------------------------------- */

static CUresult copy_in(sc_library *library, CUcontext context, sc_library **out) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  for (sc_library *copy = library->copies; copy; copy = copy->next)
    if (copy->home == context && copy->object.alive) {
      *out = copy;
      return CUDA_SUCCESS;
    }
  sc_library *copy = sc_object_new(SC_LIBRARY, sizeof *copy, NULL);
  copy->module = library->module;
  copy->home = context;
  copy->of = library;
  copy->ptx_version = library->ptx_version;
  copy->target = library->target;
  make_functions(copy);
  for (uint32_t i = 0; i < library->module->kernel_count; i++)
    copy->functions[i]->dynamic_limit = library->functions[i]->dynamic_limit;
  copy->next = library->copies;
  library->copies = copy;
  CUresult error = make_variables(copy, context);
  if (error) {
    end_functions(copy);
    free_variables(copy);
    return error;
  }
  *out = copy;
  return CUDA_SUCCESS;
}

void sc_context_modules_end(CUcontext context) {
  for (sc_library *library = libraries, *next; library; library = next) {
    next = library->next;
    if (library->home == context) {
      end_library(library);
      free_variables(library); /* what graphs still hold cannot run any more */
    }
    for (sc_library *copy = library->copies; copy; copy = copy->next)
      if (copy->home == context && copy->object.alive) {
        end_functions(copy);
        free_variables(copy);
      }
  }
}

CUresult sc_function_in(CUfunction handle, CUcontext context, const char *call,
                        sc_function **out) {
  if (!sc_object_ok(handle, SC_KERNEL, call)) return CUDA_ERROR_INVALID_HANDLE;
  sc_function *function = (sc_function *)handle;
  sc_library *library = function->library, *copy;
  if (library->home) {
    *out = function;
    /* "The CUDA context associated with this stream must match that associated with function f" */
    return library->home == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  sc_lock();
  CUresult error = copy_in(library, context, &copy);
  if (!error) *out = copy->functions[function->kernel - library->module->kernels];
  sc_unlock();
  return error;
}

/* ---- modules (Driver API, Module Management) ------------------------------------------------- */

static CUresult load_module(CUmodule *made, const char *image, const sc_jit_options *jit) {
  CUcontext context = sc_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!made || !image) return CUDA_ERROR_INVALID_VALUE;
  UNCAPTURED;
  return load(image, context, jit, (sc_library **)made);
}

API CUresult cuModuleLoadData(CUmodule *made, const void *image) {
  ENTER;
  return load_module(made, image, &(sc_jit_options){0});
}

API CUresult cuModuleLoadDataEx(CUmodule *made, const void *image, unsigned count,
                                CUjit_option *options, void **values) {
  ENTER;
  sc_jit_options jit = {0};
  sc_read_jit_options(&jit, count, options, values);
  return load_module(made, image, &jit);
}

API CUresult cuModuleLoadFatBinary(CUmodule *made, const void *image) {
  ENTER;
  return load_module(made, image, &(sc_jit_options){0});
}

API CUresult cuModuleLoad(CUmodule *made, const char *path) {
  ENTER;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  char *image = sc_read_file(path);
  if (!image) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult error = load_module(made, image, &(sc_jit_options){0});
  free(image);
  return error;
}

/* Launches that are queued still run; the library goes when the last one has. Handles are given
 * back after an error too. */
static CUresult unload(sc_library *library, bool module, const char *call) {
  CUresult sticky = sc_enter(call);
  if (sticky == CUDA_ERROR_NOT_INITIALIZED || sticky == CUDA_ERROR_NOT_PERMITTED) return sticky;
  sc_lock();
  CUresult error = CUDA_ERROR_INVALID_HANDLE;
  if (sc_object_ok(library, SC_LIBRARY, call)) {
    /* cuModuleUnload: "a module which was obtained from the Library Management API [...] will
     * return CUDA_ERROR_NOT_PERMITTED" */
    error = module && !library->home        ? CUDA_ERROR_INVALID_HANDLE
            : module && library->of         ? CUDA_ERROR_NOT_PERMITTED
            : !module && library->home      ? CUDA_ERROR_INVALID_HANDLE
                                            : sc_object_end(library, SC_LIBRARY, call);
    if (!error) end_library(library);
  }
  sc_unlock();
  return error ? error : sticky;
}

API CUresult cuModuleUnload(CUmodule module) {
  return unload((sc_library *)module, true, __func__);
}

API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
  ENTER;
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

static sc_function *find_function(const sc_library *library, const char *name) {
  for (uint32_t i = 0; i < library->module->kernel_count; i++)
    if (!strcmp(library->module->kernels[i].name, name)) return library->functions[i];
  return NULL;
}

/* A variable of a module or of the copy of a library. */
static CUresult find_variable(const sc_library *library, const char *name, CUdeviceptr *address,
                              size_t *bytes) {
  for (uint32_t i = 0; i < library->module->global_count; i++)
    if (!strcmp(library->module->globals[i].name, name)) {
      if (address) *address = (CUdeviceptr)library->globals[i];
      if (bytes) *bytes = library->module->globals[i].bytes;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

static CUresult get_function(sc_function **out, sc_library *library, const char *name,
                             const char *call) {
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, call)) return CUDA_ERROR_INVALID_HANDLE;
  *out = find_function(library, name);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult enumerate(sc_function **out, unsigned room, sc_library *library,
                          const char *call) {
  if (!out || !room) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, call)) return CUDA_ERROR_INVALID_HANDLE;
  for (uint32_t i = 0; i < room && i < library->module->kernel_count; i++)
    out[i] = library->functions[i];
  return CUDA_SUCCESS;
}

static CUresult count_functions(unsigned *count, sc_library *library, const char *call) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, call)) return CUDA_ERROR_INVALID_HANDLE;
  *count = library->module->kernel_count;
  return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  ENTER;
  return get_function((sc_function **)out, (sc_library *)module, name, __func__);
}

API CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  ENTER;
  return count_functions(count, (sc_library *)module, __func__);
}

API CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned room, CUmodule module) {
  ENTER;
  return enumerate((sc_function **)out, room, (sc_library *)module, __func__);
}

API CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule module,
                               const char *name) {
  ENTER;
  if ((!address && !bytes) || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(module, SC_LIBRARY, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return find_variable((sc_library *)module, name, address, bytes);
}

/* ---- libraries (Driver API, Library Management) ---------------------------------------------- */

/* Library options: whether a managed or shared code is kept by the caller; neither matters here,
 * since all is copied. */
static CUresult load_library(CUlibrary *made, const char *image, CUjit_option *options,
                             void **values, unsigned count) {
  if (!made || !image) return CUDA_ERROR_INVALID_VALUE;
  UNCAPTURED;
  sc_jit_options jit = {0};
  sc_read_jit_options(&jit, count, options, values);
  return load(image, NULL, &jit, (sc_library **)made);
}

API CUresult cuLibraryLoadData(CUlibrary *made, const void *image, CUjit_option *options,
                               void **values, unsigned count, CUlibraryOption *library_options,
                               void **library_values, unsigned library_count) {
  ENTER;
  (void)library_options, (void)library_values, (void)library_count;
  return load_library(made, image, options, values, count);
}

API CUresult cuLibraryLoadFromFile(CUlibrary *made, const char *path, CUjit_option *options,
                                   void **values, unsigned count,
                                   CUlibraryOption *library_options, void **library_values,
                                   unsigned library_count) {
  ENTER;
  (void)library_options, (void)library_values, (void)library_count;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  char *image = sc_read_file(path);
  if (!image) return CUDA_ERROR_FILE_NOT_FOUND;
  CUresult error = load_library(made, image, options, values, count);
  free(image);
  return error;
}

API CUresult cuLibraryUnload(CUlibrary library) {
  return unload((sc_library *)library, false, __func__);
}

API CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
  ENTER;
  return get_function((sc_function **)out, (sc_library *)library, name, __func__);
}

API CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  ENTER;
  return count_functions(count, (sc_library *)library, __func__);
}

API CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned room, CUlibrary library) {
  ENTER;
  return enumerate((sc_function **)out, room, (sc_library *)library, __func__);
}

API CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library) {
  ENTER;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  sc_lock();
  CUresult error = copy_in((sc_library *)library, sc_current(), (sc_library **)out);
  sc_unlock();
  return error;
}

API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                const char *name) {
  ENTER;
  if ((!address && !bytes) || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  sc_lock();
  sc_library *copy;
  CUresult error = copy_in((sc_library *)library, sc_current(), &copy);
  if (!error) error = find_variable(copy, name, address, bytes);
  sc_unlock();
  return error;
}

/* PTX has no managed variables and no unified functions that a translation could hold. */
API CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                                 const char *name) {
  ENTER;
  if ((!address && !bytes) || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_ERROR_NOT_FOUND;
}

API CUresult cuLibraryGetUnifiedFunction(void **function, CUlibrary library, const char *symbol) {
  ENTER;
  if (!function || !symbol) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(library, SC_LIBRARY, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_ERROR_NOT_FOUND;
}

API CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel) {
  ENTER;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  return sc_function_in((CUfunction)kernel, sc_current(), __func__, (sc_function **)out);
}

API CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel kernel) {
  ENTER;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_object_ok(kernel, SC_KERNEL, __func__)) return CUDA_ERROR_INVALID_HANDLE;
  *out = (CUlibrary)root_of(((sc_function *)kernel)->library);
  return CUDA_SUCCESS;
}
