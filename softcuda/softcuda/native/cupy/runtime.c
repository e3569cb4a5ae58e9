/* What CuPy asks of the CUDA runtime, answered by the driver.
 *
 * CuPy's module cupy_backends.cuda.api.runtime has NVIDIA's runtime linked into it, which asks a
 * driver to prove that it is NVIDIA's; softcuda neither is nor claims to be. CuPy's other modules
 * call that module by pointers to its functions, each with the text of its type beside it
 * (__pyx_capi__). This library has functions of the same names and types, and cupy.py puts them in
 * place. Their rules are those of the CUDA Runtime API's documentation; errors have the driver's
 * numbers, which are the runtime's too (cudaError_t, since CUDA 10.1).
 *
 * The last argument of most (`skip`) is Cython's: whether a subclass may stand before it. Where an
 * exception is set, -1 is returned for an int, and 0 for an address, a handle or a float: that is
 * where CuPy's callers look for one. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cuda.h>

#include <stdbool.h>
#include <string.h>

#define API __attribute__((visibility("default")))

/* ---- errors ---------------------------------------------------------------------------------*/

/* CuPy's classes CUDARuntimeError and PointerAttributes. Set once, by cupy.py. */
static PyObject *runtime_error, *pointer_attributes;

API void softcuda_cupy_begin(PyObject *error, PyObject *attributes) {
  Py_INCREF(error);
  Py_INCREF(attributes);
  runtime_error = error;
  pointer_attributes = attributes;
}

/* True where the driver has failed; the exception is then set. */
static bool failed(CUresult result) {
  if (result == CUDA_SUCCESS) return false;
  PyObject *error = PyObject_CallFunction(runtime_error, "i", (int)result);
  if (error) PyErr_SetObject(runtime_error, error);
  Py_XDECREF(error);
  return true;
}

API PyObject *check_status(int status, int skip) {
  (void)skip;
  if (failed((CUresult)status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *none_unless(CUresult result) {
  if (failed(result)) return NULL;
  Py_RETURN_NONE;
}

/* ---- the current device (Runtime API, 5.1; Driver API, primary contexts) ----------------------*/

enum { DEVICES = 64 };
static CUcontext primary[DEVICES];
static __thread int current_device;

/* "the primary context for the device"; it is kept until the process ends, as the runtime does. */
static CUresult make_current(int device) {
  int count = 0;
  CUresult result = cuInit(0);
  if (!result) result = cuDeviceGetCount(&count);
  if (result) return result;
  if (device < 0 || device >= count || device >= DEVICES) return CUDA_ERROR_INVALID_DEVICE;
  if (!primary[device]) result = cuDevicePrimaryCtxRetain(&primary[device], device);
  if (!result) result = cuCtxSetCurrent(primary[device]);
  if (!result) current_device = device;
  return result;
}

/* A context that is current, whoever made it, is used as it is. */
static CUresult ensure(void) {
  CUcontext context = NULL;
  if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context) return CUDA_SUCCESS;
  return make_current(current_device);
}

/* RUN(call): the call without Python's lock, in a context. */
#define RUN(call)                                                                                  \
  ({                                                                                               \
    CUresult result_;                                                                              \
    Py_BEGIN_ALLOW_THREADS;                                                                        \
    result_ = ensure();                                                                            \
    if (!result_) result_ = (call);                                                                \
    Py_END_ALLOW_THREADS;                                                                          \
    result_;                                                                                       \
  })

API PyObject *_ensure_context(void) { return none_unless(RUN(CUDA_SUCCESS)); }

API int getDevice(int skip) {
  (void)skip;
  CUdevice device = 0;
  return failed(RUN(cuCtxGetDevice(&device))) ? -1 : device;
}

API PyObject *setDevice(int device, int skip) {
  (void)skip;
  return none_unless(make_current(device));
}

API int getDeviceCount(int skip) {
  (void)skip;
  int count = 0;
  CUresult result = cuInit(0);
  if (!result) result = cuDeviceGetCount(&count);
  return failed(result) ? -1 : count;
}

/* cudaDeviceAttr has the numbers of CUdevice_attribute. */
API int deviceGetAttribute(int attribute, int device, int skip) {
  (void)skip;
  int value = 0;
  return failed(RUN(cuDeviceGetAttribute(&value, (CUdevice_attribute)attribute, device))) ? -1
                                                                                          : value;
}

static const struct {
  const char *name;
  CUdevice_attribute attribute;
} properties[] = {
#define HAS(name, attribute) {name, CU_DEVICE_ATTRIBUTE_##attribute}
    HAS("sharedMemPerBlock", MAX_SHARED_MEMORY_PER_BLOCK),
    HAS("regsPerBlock", MAX_REGISTERS_PER_BLOCK),
    HAS("warpSize", WARP_SIZE),
    HAS("maxThreadsPerBlock", MAX_THREADS_PER_BLOCK),
    HAS("totalConstMem", TOTAL_CONSTANT_MEMORY),
    HAS("major", COMPUTE_CAPABILITY_MAJOR),
    HAS("minor", COMPUTE_CAPABILITY_MINOR),
    HAS("multiProcessorCount", MULTIPROCESSOR_COUNT),
    HAS("l2CacheSize", L2_CACHE_SIZE),
    HAS("maxThreadsPerMultiProcessor", MAX_THREADS_PER_MULTIPROCESSOR),
    HAS("sharedMemPerMultiprocessor", MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    HAS("sharedMemPerBlockOptin", MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    HAS("concurrentKernels", CONCURRENT_KERNELS),
    HAS("unifiedAddressing", UNIFIED_ADDRESSING),
#undef HAS
};

/* What softcuda knows of a device; CuPy's own has more. */
API PyObject *getDeviceProperties(int device, int skip) {
  (void)skip;
  char name[256] = "";
  size_t bytes = 0;
  CUresult result = RUN(cuDeviceGetName(name, sizeof name, device));
  if (!result) result = cuDeviceTotalMem(&bytes, device);
  if (failed(result)) return NULL;
  PyObject *found = Py_BuildValue("{s:y,s:n}", "name", name, "totalGlobalMem", (Py_ssize_t)bytes);
  for (size_t i = 0; found && i < sizeof properties / sizeof *properties; i++) {
    int value = 0;
    PyObject *number = NULL;
    if (!failed(cuDeviceGetAttribute(&value, properties[i].attribute, device)))
      number = PyLong_FromLong(value);
    if (!number || PyDict_SetItemString(found, properties[i].name, number)) Py_CLEAR(found);
    Py_XDECREF(number);
  }
  return found;
}

API int driverGetVersion(int skip) {
  (void)skip;
  int version = 0;
  return failed(cuDriverGetVersion(&version)) ? -1 : version;
}

API PyObject *deviceSynchronize(int skip) {
  (void)skip;
  return none_unless(RUN(cuCtxSynchronize()));
}

API PyObject *deviceGetPCIBusId(int device, int skip) {
  (void)skip;
  char text[32] = "";
  if (failed(RUN(cuDeviceGetPCIBusId(text, sizeof text, device)))) return NULL;
  return PyUnicode_FromString(text);
}

API int deviceCanAccessPeer(int device, int other, int skip) {
  (void)skip;
  int can = 0;
  return failed(RUN(cuDeviceCanAccessPeer(&can, device, other))) ? -1 : can;
}

/* ---- memory (Runtime API, 5.9) ---------------------------------------------------------------*/

API PyObject *memGetInfo(int skip) {
  (void)skip;
  size_t unused = 0, total = 0;
  if (failed(RUN(cuMemGetInfo(&unused, &total)))) return NULL;
  return Py_BuildValue("(nn)", (Py_ssize_t)unused, (Py_ssize_t)total);
}

API intptr_t malloc_device(size_t size, int skip) {
  (void)skip;
  CUdeviceptr address = 0;
  if (!size) return 0; /* the driver refuses what the runtime takes */
  return failed(RUN(cuMemAlloc(&address, size))) ? 0 : (intptr_t)address;
}

API intptr_t mallocAsync(size_t size, intptr_t stream, int skip) {
  (void)skip;
  CUdeviceptr address = 0;
  return failed(RUN(cuMemAllocAsync(&address, size, (CUstream)stream))) ? 0 : (intptr_t)address;
}

API PyObject *freeAsync(intptr_t address, intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(cuMemFreeAsync((CUdeviceptr)address, (CUstream)stream)));
}

/* "If devPtr is 0, no operation is performed." */
API PyObject *free_device(intptr_t address, int skip) {
  (void)skip;
  return none_unless(RUN(address ? cuMemFree((CUdeviceptr)address) : CUDA_SUCCESS));
}

API intptr_t hostAlloc(size_t size, unsigned flags, int skip) {
  (void)skip;
  void *address = NULL;
  return failed(RUN(cuMemHostAlloc(&address, size, flags))) ? 0 : (intptr_t)address;
}

API PyObject *freeHost(intptr_t address, int skip) {
  (void)skip;
  return none_unless(RUN(address ? cuMemFreeHost((void *)address) : CUDA_SUCCESS));
}

API PyObject *hostRegister(intptr_t address, size_t size, unsigned flags, int skip) {
  (void)skip;
  return none_unless(RUN(cuMemHostRegister((void *)address, size, flags)));
}

API PyObject *hostUnregister(intptr_t address, int skip) {
  (void)skip;
  return none_unless(RUN(cuMemHostUnregister((void *)address)));
}

/* cudaMemcpyKind */
enum { HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, ANY };

static CUresult copy(intptr_t to, intptr_t from, size_t size, int kind) {
  if (!size) return CUDA_SUCCESS;
  switch (kind) {
  case HOST_TO_HOST: memmove((void *)to, (void *)from, size); return CUDA_SUCCESS;
  case HOST_TO_DEVICE: return cuMemcpyHtoD((CUdeviceptr)to, (void *)from, size);
  case DEVICE_TO_HOST: return cuMemcpyDtoH((void *)to, (CUdeviceptr)from, size);
  case DEVICE_TO_DEVICE: return cuMemcpyDtoD((CUdeviceptr)to, (CUdeviceptr)from, size);
  case ANY: return cuMemcpy((CUdeviceptr)to, (CUdeviceptr)from, size);
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult copy_later(intptr_t to, intptr_t from, size_t size, int kind, CUstream stream) {
  if (!size) return CUDA_SUCCESS;
  switch (kind) {
  case HOST_TO_DEVICE: return cuMemcpyHtoDAsync((CUdeviceptr)to, (void *)from, size, stream);
  case DEVICE_TO_HOST: return cuMemcpyDtoHAsync((void *)to, (CUdeviceptr)from, size, stream);
  case DEVICE_TO_DEVICE:
    return cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, size, stream);
  case HOST_TO_HOST:
  case ANY: return cuMemcpyAsync((CUdeviceptr)to, (CUdeviceptr)from, size, stream);
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

API PyObject *memcpy_device(intptr_t to, intptr_t from, size_t size, int kind, int skip) {
  (void)skip;
  return none_unless(RUN(copy(to, from, size, kind)));
}

API PyObject *memcpyAsync(intptr_t to, intptr_t from, size_t size, int kind, intptr_t stream,
                          int skip) {
  (void)skip;
  return none_unless(RUN(copy_later(to, from, size, kind, (CUstream)stream)));
}

API PyObject *memset_device(intptr_t to, int value, size_t size, int skip) {
  (void)skip;
  return none_unless(
      RUN(size ? cuMemsetD8((CUdeviceptr)to, (unsigned char)value, size) : CUDA_SUCCESS));
}

API PyObject *memsetAsync(intptr_t to, int value, size_t size, intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(size ? cuMemsetD8Async((CUdeviceptr)to, (unsigned char)value, size,
                                                (CUstream)stream)
                              : CUDA_SUCCESS));
}

/* cudaMemoryType: 0 is memory that was never registered, 1 the host's, 2 the device's, 3 managed */
enum { UNREGISTERED, HOST, DEVICE, MANAGED };

static int memory_type(intptr_t address) {
  unsigned type = 0, managed = 0;
  CUdeviceptr at = (CUdeviceptr)address;
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at)) return UNREGISTERED;
  if (!cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) && managed)
    return MANAGED;
  return type == CU_MEMORYTYPE_HOST ? HOST : DEVICE;
}

API int pointerGetMemoryType(intptr_t address, int skip) {
  (void)skip;
  return failed(RUN(CUDA_SUCCESS)) ? -1 : memory_type(address);
}

API PyObject *pointerGetAttributes(intptr_t address, int skip) {
  (void)skip;
  if (failed(RUN(CUDA_SUCCESS))) return NULL;
  int type = memory_type(address), device = 0;
  CUdeviceptr on_device = 0;
  void *on_host = NULL;
  cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)address);
  if (type == DEVICE || type == MANAGED) on_device = (CUdeviceptr)address;
  if (type != DEVICE) on_host = (void *)address;
  return PyObject_CallFunction(pointer_attributes, "iLLi", device, (long long)on_device,
                               (long long)(intptr_t)on_host, type);
}

/* ---- streams and events (Runtime API, 5.4 and 5.5) -------------------------------------------*/

API intptr_t streamCreateWithFlags(unsigned flags, int skip) {
  (void)skip;
  CUstream stream = NULL;
  return failed(RUN(cuStreamCreate(&stream, flags))) ? 0 : (intptr_t)stream;
}

API intptr_t streamCreate(int skip) { return streamCreateWithFlags(CU_STREAM_DEFAULT, skip); }

API intptr_t streamCreateWithPriority(unsigned flags, int priority, int skip) {
  (void)skip;
  CUstream stream = NULL;
  return failed(RUN(cuStreamCreateWithPriority(&stream, flags, priority))) ? 0
                                                                            : (intptr_t)stream;
}

API PyObject *streamDestroy(intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(cuStreamDestroy((CUstream)stream)));
}

API PyObject *streamSynchronize(intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(cuStreamSynchronize((CUstream)stream)));
}

/* CuPy's callers ask for the number itself: cudaErrorNotReady is an answer. */
API PyObject *streamQuery(intptr_t stream, int skip) {
  (void)skip;
  return PyLong_FromLong((long)RUN(cuStreamQuery((CUstream)stream)));
}

struct streamWaitEvent_options {
  int given;
  unsigned flags;
};

API PyObject *streamWaitEvent(intptr_t stream, intptr_t event, int skip,
                              struct streamWaitEvent_options *options) {
  (void)skip;
  unsigned flags = options && options->given ? options->flags : 0;
  return none_unless(RUN(cuStreamWaitEvent((CUstream)stream, (CUevent)event, flags)));
}

API int streamIsCapturing(intptr_t stream, int skip) {
  (void)skip;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (failed(RUN(cuStreamIsCapturing((CUstream)stream, &status)))) return -1;
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

API intptr_t eventCreateWithFlags(unsigned flags, int skip) {
  (void)skip;
  CUevent event = NULL;
  return failed(RUN(cuEventCreate(&event, flags))) ? 0 : (intptr_t)event;
}

API intptr_t eventCreate(int skip) { return eventCreateWithFlags(CU_EVENT_DEFAULT, skip); }

API PyObject *eventDestroy(intptr_t event, int skip) {
  (void)skip;
  return none_unless(RUN(cuEventDestroy((CUevent)event)));
}

API PyObject *eventRecord(intptr_t event, intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(cuEventRecord((CUevent)event, (CUstream)stream)));
}

API PyObject *eventSynchronize(intptr_t event, int skip) {
  (void)skip;
  return none_unless(RUN(cuEventSynchronize((CUevent)event)));
}

API PyObject *eventQuery(intptr_t event, int skip) {
  (void)skip;
  return PyLong_FromLong((long)RUN(cuEventQuery((CUevent)event)));
}

API float eventElapsedTime(intptr_t begin, intptr_t end, int skip) {
  (void)skip;
  float milliseconds = 0;
  return failed(RUN(cuEventElapsedTime(&milliseconds, (CUevent)begin, (CUevent)end)))
             ? 0
             : milliseconds;
}

API PyObject *profilerStart(int skip) {
  (void)skip;
  return none_unless(RUN(cuProfilerStart()));
}

API PyObject *profilerStop(int skip) {
  (void)skip;
  return none_unless(RUN(cuProfilerStop()));
}

/* ---- functions with one optional argument: whether it was given, and its value ----------------*/

struct optional {
  int given;
  int value;
};

static int option(const struct optional *options, int otherwise) {
  return options && options->given ? options->value : otherwise;
}

/* "flags [...] defaults to cudaMemAttachGlobal" */
API intptr_t mallocManaged(size_t size, int skip, struct optional *options) {
  (void)skip;
  CUdeviceptr address = 0;
  unsigned flags = (unsigned)option(options, CU_MEM_ATTACH_GLOBAL);
  if (!size) return 0; /* as malloc */
  return failed(RUN(cuMemAllocManaged(&address, size, flags))) ? 0 : (intptr_t)address;
}

API PyObject *streamBeginCapture(intptr_t stream, int skip, struct optional *options) {
  (void)skip;
  CUstreamCaptureMode mode = (CUstreamCaptureMode)option(options, CU_STREAM_CAPTURE_MODE_RELAXED);
  return none_unless(RUN(cuStreamBeginCapture((CUstream)stream, mode)));
}

API intptr_t streamEndCapture(intptr_t stream, int skip) {
  (void)skip;
  CUgraph graph = NULL;
  return failed(RUN(cuStreamEndCapture((CUstream)stream, &graph))) ? 0 : (intptr_t)graph;
}

/* ---- graphs (Runtime API, 5.29) --------------------------------------------------------------*/

API intptr_t graphInstantiate(intptr_t graph, int skip) {
  (void)skip;
  CUgraphExec made = NULL;
  return failed(RUN(cuGraphInstantiate(&made, (CUgraph)graph, 0))) ? 0 : (intptr_t)made;
}

API PyObject *graphLaunch(intptr_t graph, intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(cuGraphLaunch((CUgraphExec)graph, (CUstream)stream)));
}

API PyObject *graphUpload(intptr_t graph, intptr_t stream, int skip) {
  (void)skip;
  return none_unless(RUN(cuGraphUpload((CUgraphExec)graph, (CUstream)stream)));
}

API PyObject *graphDestroy(intptr_t graph, int skip) {
  (void)skip;
  return none_unless(RUN(cuGraphDestroy((CUgraph)graph)));
}

API PyObject *graphExecDestroy(intptr_t graph, int skip) {
  (void)skip;
  return none_unless(RUN(cuGraphExecDestroy((CUgraphExec)graph)));
}

/* ---- functions of the host, which Python's lock lets in one by one ----------------------------*/

struct call {
  PyObject *function; /* or a tuple of it and what it is called with, in place of `argument` */
  intptr_t stream, argument;
  bool has_status; /* a callback: it gets the stream and a status too */
  bool stays;      /* it is part of a graph, which may call it again */
};

static void call_python(struct call *call, CUresult status) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *answer =
      PyTuple_Check(call->function)
          ? PyObject_CallOneArg(PyTuple_GetItem(call->function, 0),
                                PyTuple_GetItem(call->function, 1))
      : call->has_status
          ? PyObject_CallFunction(call->function, "nin", (Py_ssize_t)call->stream, (int)status,
                                  (Py_ssize_t)call->argument)
          : PyObject_CallFunction(call->function, "n", (Py_ssize_t)call->argument);
  if (!answer) PyErr_WriteUnraisable(call->function);
  Py_XDECREF(answer);
  if (!call->stays) {
    Py_DECREF(call->function);
    PyMem_RawFree(call);
  }
  PyGILState_Release(state);
}

static void CUDA_CB call_function(void *data) { call_python(data, CUDA_SUCCESS); }

static void CUDA_CB call_back(CUstream stream, CUresult status, void *data) {
  (void)stream;
  call_python(data, status);
}

/* Whether a stream may still call Python, which has to wait for it before it ends. */
static bool calls_python;
API int softcuda_cupy_calls_python(void) { return calls_python; }

static PyObject *queue_call(struct call wanted, unsigned flags) {
  CUstream stream = (CUstream)wanted.stream;
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  struct call *call = PyMem_RawMalloc(sizeof *call);
  if (!call) return PyErr_NoMemory();
  *call = wanted;
  Py_INCREF(call->function);
  CUresult result = RUN(cuStreamIsCapturing(stream, &capturing));
  call->stays = capturing != CU_STREAM_CAPTURE_STATUS_NONE;
  calls_python = true;
  if (!result)
    result = RUN(call->has_status ? cuStreamAddCallback(stream, call_back, call, flags)
                                  : cuLaunchHostFunc(stream, call_function, call));
  if (result) {
    Py_DECREF(call->function);
    PyMem_RawFree(call);
  }
  return none_unless(result);
}

API PyObject *launchHostFunc(intptr_t stream, PyObject *function, intptr_t argument, int skip) {
  (void)skip;
  return queue_call((struct call){.function = function, .stream = stream, .argument = argument}, 0);
}

/* For a stream that is captured: CuPy keeps the tuple of function and argument with the graph. */
API PyObject *_launchHostFuncUnmanaged(intptr_t stream, PyObject *pair, int skip) {
  (void)skip;
  if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
    PyErr_SetString(PyExc_TypeError, "a function of the host comes with its argument");
    return NULL;
  }
  return queue_call((struct call){.function = pair, .stream = stream}, 0);
}

API PyObject *streamAddCallback(intptr_t stream, PyObject *function, intptr_t argument, int skip,
                                struct optional *options) {
  (void)skip;
  return queue_call((struct call){.function = function, .stream = stream, .argument = argument,
                                  .has_status = true},
                    (unsigned)option(options, 0));
}

/* ---- pools of memory (Runtime API, 5.12), and managed memory ---------------------------------*/

API intptr_t deviceGetDefaultMemPool(int device, int skip) {
  (void)skip;
  CUmemoryPool pool = NULL;
  return failed(RUN(cuDeviceGetDefaultMemPool(&pool, device))) ? 0 : (intptr_t)pool;
}

API intptr_t deviceGetMemPool(int device, int skip) {
  (void)skip;
  CUmemoryPool pool = NULL;
  return failed(RUN(cuDeviceGetMemPool(&pool, device))) ? 0 : (intptr_t)pool;
}

API PyObject *deviceSetMemPool(int device, intptr_t pool, int skip) {
  (void)skip;
  return none_unless(RUN(cuDeviceSetMemPool(device, (CUmemoryPool)pool)));
}

API PyObject *memPoolDestroy(intptr_t pool, int skip) {
  (void)skip;
  return none_unless(RUN(cuMemPoolDestroy((CUmemoryPool)pool)));
}

API PyObject *memPoolTrimTo(intptr_t pool, size_t size, int skip) {
  (void)skip;
  return none_unless(RUN(cuMemPoolTrimTo((CUmemoryPool)pool, size)));
}

/* cudaMemPoolAttr has the numbers of CUmemPool_attribute; the first three are an int, the others
 * 64 bits. */
enum { LAST_INT_OF_A_POOL = 3 };

API PyObject *memPoolGetAttribute(intptr_t pool, int attribute, int skip) {
  (void)skip;
  union {
    int number;
    cuuint64_t bytes;
  } value = {.bytes = 0};
  if (failed(RUN(cuMemPoolGetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute,
                                       &value))))
    return NULL;
  return attribute <= LAST_INT_OF_A_POOL ? PyLong_FromLong(value.number)
                                         : PyLong_FromUnsignedLongLong(value.bytes);
}

API PyObject *memPoolSetAttribute(intptr_t pool, int attribute, PyObject *given, int skip) {
  (void)skip;
  union {
    int number;
    cuuint64_t bytes;
  } value = {.bytes = PyLong_AsUnsignedLongLong(given)};
  if (PyErr_Occurred()) return NULL;
  if (attribute <= LAST_INT_OF_A_POOL) value.number = (int)value.bytes;
  return none_unless(RUN(cuMemPoolSetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute,
                                               &value)));
}

API intptr_t mallocFromPoolAsync(size_t size, intptr_t pool, intptr_t stream, int skip) {
  (void)skip;
  CUdeviceptr address = 0;
  return failed(RUN(cuMemAllocFromPoolAsync(&address, size, (CUmemoryPool)pool,
                                            (CUstream)stream)))
             ? 0
             : (intptr_t)address;
}

API unsigned streamGetFlags(intptr_t stream, int skip) {
  (void)skip;
  unsigned flags = 0;
  return failed(RUN(cuStreamGetFlags((CUstream)stream, &flags))) ? (unsigned)-1 : flags;
}

API int streamGetPriority(intptr_t stream, int skip) {
  (void)skip;
  int priority = 0;
  return failed(RUN(cuStreamGetPriority((CUstream)stream, &priority))) ? -1 : priority;
}

/* ---- what softcuda has not, by its name -------------------------------------------------------*/

#define REFUSED(type, name, failure)                                                               \
  API type name(void) {                                                                            \
    PyErr_SetString(PyExc_NotImplementedError,                                                     \
                    "softcuda, the CUDA device in software, has no " #name                         \
                    " for CuPy; use a GPU for this call, or do without it");                       \
    return failure;                                                                                \
  }

REFUSED(uintmax_t, createSurfaceObject, 0)
REFUSED(uintmax_t, createTextureObject, 0)
REFUSED(PyObject *, destroySurfaceObject, NULL)
REFUSED(PyObject *, destroyTextureObject, NULL)
REFUSED(PyObject *, deviceEnablePeerAccess, NULL)
REFUSED(PyObject *, freeArray, NULL)
REFUSED(PyObject *, graphDebugDotPrint, NULL)
REFUSED(intptr_t, malloc3DArray, 0)
REFUSED(intptr_t, mallocArray, 0)
REFUSED(PyObject *, memAdvise, NULL)
REFUSED(intptr_t, memPoolCreate, 0)
REFUSED(PyObject *, memPrefetchAsync, NULL)
REFUSED(PyObject *, memcpy2D, NULL)
REFUSED(PyObject *, memcpy2DAsync, NULL)
REFUSED(PyObject *, memcpy2DFromArray, NULL)
REFUSED(PyObject *, memcpy2DFromArrayAsync, NULL)
REFUSED(PyObject *, memcpy2DToArray, NULL)
REFUSED(PyObject *, memcpy2DToArrayAsync, NULL)
REFUSED(PyObject *, memcpy3D, NULL)
REFUSED(PyObject *, memcpy3DAsync, NULL)
REFUSED(PyObject *, memcpyPeer, NULL)
REFUSED(PyObject *, memcpyPeerAsync, NULL)
REFUSED(PyObject *, deviceSetLimit, NULL)
REFUSED(size_t, deviceGetLimit, 0)
REFUSED(int, deviceGetByPCIBusId, -1)
