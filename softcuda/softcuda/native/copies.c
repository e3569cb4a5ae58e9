/* Copies and fills (Driver API, "Memory Management"). What a call names is checked at the call,
 * to the byte; which calls wait follows "API synchronization behavior" of the Driver API. */
#include "contexts.h"
#include "lock.h"
#include "memory.h"
#include "queue.h"
#include "reports.h"

/* One side of a copy: rows of `width` bytes, each `pitch` bytes after the one before. */
typedef struct side {
  uint64_t at, pitch;
  bool device;          /* said to be memory of the device; else of the host, or of either */
  sc_allocation *memory; /* what is there; NULL: pageable memory of the host */
} side;

typedef struct shape {
  uint64_t width, height; /* bytes of a row, rows */
} shape;

enum { SYNCHRONOUS, ASYNCHRONOUS };

/* ---- checks -------------------------------------------------------------------------------- */

static uint64_t extent(shape shape, uint64_t pitch) {
  return (shape.height - 1) * pitch + shape.width;
}

static CUresult refuse(const char *call, const char *verb, uint64_t at, uint64_t bytes,
                       const sc_allocation *memory) {
  char name[80];
  sc_report report = {.kind = "copy", .size = bytes};
  if (!memory) {
    snprintf(report.text, sizeof report.text,
             "%s would %s %llu bytes at %#llx, where no memory of the device is", call, verb,
             (unsigned long long)bytes, (unsigned long long)at);
  } else {
    report.array = sc_allocation_name(memory, name, sizeof name);
    report.has_array = true;
    report.offset = at - memory->at;
    report.length = memory->size;
    if (memory->freed)
      snprintf(report.text, sizeof report.text, "%s would %s %s, which was freed", call, verb,
               name);
    else
      snprintf(report.text, sizeof report.text,
               "%s would %s %llu bytes at offset %llu of %s, which has %llu", call, verb,
               (unsigned long long)bytes, (unsigned long long)report.offset, name,
               (unsigned long long)memory->size);
  }
  sc_report_add(&report);
  return CUDA_ERROR_INVALID_VALUE;
}

/* Finds the memory of one side, and whether all that is touched lies in it. */
static CUresult check_side(side *side, shape shape, const char *call, const char *verb) {
  uint64_t bytes = extent(shape, side->pitch);
  if (!side->at || side->at + bytes < side->at) return CUDA_ERROR_INVALID_VALUE;
  sc_allocation *memory = side->memory = sc_find(side->at);
  if (!memory && !side->device) return CUDA_SUCCESS;
  bool good = memory && !memory->freed && bytes <= memory->at + memory->size - side->at;
  return good ? CUDA_SUCCESS : refuse(call, verb, side->at, bytes, memory);
}

static bool is_pageable(const side *side) { return !side->memory; }

static bool is_host(const side *side) {
  return is_pageable(side) || side->memory->kind == SC_HOST_MEMORY ||
         side->memory->kind == SC_REGISTERED_MEMORY;
}

/* ---- queueing a copy ----------------------------------------------------------------------- */

/* Whether the call returns only when the copy is done (Driver API, "API synchronization behavior",
 * "Memcpy"). */
static bool waits(const side *to, const side *from, int how, CUcontext context) {
  if (is_host(to) && is_host(from)) return true;
  if (how == ASYNCHRONOUS) return is_pageable(to);
  if (is_host(to)) return true;
  if (is_pageable(from)) return false; /* staged; "the DMA [...] may not have completed" */
  if (is_host(from)) return true;
  /* "from device memory to device memory, no host-side synchronization is performed", unless asked
   * for by CU_CTX_SYNC_MEMOPS or CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
  return context->flags & CU_CTX_SYNC_MEMOPS || to->memory->synchronous ||
         from->memory->synchronous;
}

static char *copy_rows(const side *from, shape shape) {
  char *staged = malloc(shape.width * shape.height);
  for (uint64_t y = 0; staged && y < shape.height; y++)
    memcpy(staged + y * shape.width, (const char *)(uintptr_t)(from->at + y * from->pitch),
           shape.width);
  return staged;
}

static bool is_capturing(CUstream stream) {
  sc_lock();
  bool capturing = stream->capture != SC_NOT_CAPTURING;
  sc_unlock();
  return capturing;
}

static CUresult queue_copy(const side *to, const side *from, shape shape, CUstream stream,
                           int how) {
  sc_work work = {.kind = SC_WORK_COPY, .to = to->at, .from = from->at, .bytes = shape.width};
  if (shape.height > 1) {
    work.pitch_to = to->pitch;
    work.pitch_from = from->pitch;
    work.width = shape.width;
    work.height = shape.height;
    work.bytes = shape.width * shape.height;
  }
  bool capturing = is_capturing(stream);
  if (!capturing && is_pageable(from) && !is_host(to)) {
    /* "For transfers from pageable host memory to device memory, a stream sync is performed before
     * the copy is initiated"; the asynchronous ones stage without it. */
    CUresult failed = how == SYNCHRONOUS ? sc_drain(stream) : CUDA_SUCCESS;
    if (failed) return failed;
    work.staged = copy_rows(from, shape);
    if (!work.staged) return CUDA_ERROR_OUT_OF_MEMORY;
    work.pitch_from = shape.width;
  }
  bool wait = !capturing && waits(to, from, how, stream->object.context);
  CUresult failed = sc_queue(stream, &work);
  return failed || !wait ? failed : sc_drain(stream);
}

/* A copy on a stream; synchronous ones go through the default stream. */
static CUresult copy(side to, side from, shape shape, CUstream handle, int how, const char *call) {
  if (!sc_current() && how == SYNCHRONOUS) return CUDA_ERROR_INVALID_CONTEXT;
  if (!shape.width || !shape.height) return CUDA_SUCCESS;
  CUstream stream;
  CUresult wrong = sc_stream_of(handle, call, &stream);
  if (!wrong) wrong = check_side(&to, shape, call, "write");
  if (!wrong) wrong = check_side(&from, shape, call, "read");
  if (wrong) return wrong;
  if (how == SYNCHRONOUS) UNCAPTURED;
  return queue_copy(&to, &from, shape, stream, how);
}

static CUresult copy_bytes(side to, side from, size_t bytes, CUstream handle, int how,
                           const char *call) {
  to.pitch = from.pitch = bytes;
  return copy(to, from, (shape){bytes, 1}, handle, how, call);
}

#define DEVICE(address) ((side){.at = (address), .device = true})
#define HOST(address) ((side){.at = (uint64_t)(uintptr_t)(address)})
#define EITHER(address) ((side){.at = (address)})

/* ---- plain copies -------------------------------------------------------------------------- */

API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes) {
  ENTER;
  return copy_bytes(DEVICE(to), HOST(from), bytes, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  ENTER;
  return copy_bytes(HOST(to), DEVICE(from), bytes, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  ENTER;
  return copy_bytes(DEVICE(to), DEVICE(from), bytes, NULL, SYNCHRONOUS, __func__);
}

/* "infers the type of the transfer [...] from the pointer values" */
API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  ENTER;
  return copy_bytes(EITHER(to), EITHER(from), bytes, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  ENTER;
  return copy_bytes(DEVICE(to), HOST(from), bytes, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER;
  return copy_bytes(HOST(to), DEVICE(from), bytes, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER;
  return copy_bytes(DEVICE(to), DEVICE(from), bytes, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  ENTER;
  return copy_bytes(EITHER(to), EITHER(from), bytes, stream, ASYNCHRONOUS, __func__);
}

/* Driver API, cuMemcpyBatchAsync: with ..._DURING_API_CALL "all accesses must be complete before
 * the API call returns"; with ..._ANY the source may be read at any time, so also when the copy
 * runs. */
static CUresult copy_with(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                          const CUmemcpyAttributes *attributes, CUstream handle,
                          const char *call) {
  if (attributes->srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
      attributes->srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = copy_bytes(EITHER(to), EITHER(from), bytes, handle, ASYNCHRONOUS, call);
  if (wrong || attributes->srcAccessOrder != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)
    return wrong;
  CUstream stream = sc_stream(handle, call);
  return is_capturing(stream) ? CUDA_SUCCESS : sc_drain(stream);
}

API CUresult cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                         CUmemcpyAttributes *attributes, CUstream stream) {
  ENTER;
  if (!attributes) return CUDA_ERROR_INVALID_VALUE;
  return copy_with(to, from, bytes, attributes, stream, __func__);
}

/* The attributes numbered k are for the copies from first[k] on. "Must not be legacy NULL
 * stream." */
API CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *first,
                                size_t attribute_count, CUstream stream) {
  ENTER;
  if (!to || !from || !sizes || !count || !attributes || !first || !attribute_count || first[0] ||
      attribute_count > count || !stream || stream == CU_STREAM_LEGACY)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t k = 1; k < attribute_count; k++)
    if (first[k] <= first[k - 1] || first[k] >= count) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = CUDA_SUCCESS;
  for (size_t i = 0, k = 0; i < count && !wrong; i++) {
    if (k + 1 < attribute_count && i == first[k + 1]) k++;
    wrong = copy_with(to[i], from[i], sizes[i], &attributes[k], stream, __func__);
  }
  return wrong;
}

/* ---- copies between devices: possible with and without peer access (Guide, "Peer-to-Peer Memory
 * Copy") ---- */

static CUresult check_peers(CUcontext to, CUcontext from) {
  CUdevice ignored;
  CUresult wrong = cuCtxGetDevice_v2(&ignored, to);
  return wrong ? wrong : cuCtxGetDevice_v2(&ignored, from);
}

/* "This copy is serialized with respect to all pending and future asynchronous work in to the
 * current context, the copy's source context, and the copy's destination context." */
API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t bytes) {
  ENTER;
  CUresult wrong = check_peers(to_context, from_context);
  if (wrong) return wrong;
  UNCAPTURED;
  wrong = sc_drain_context(to_context);
  if (!wrong) wrong = sc_drain_context(from_context);
  if (!wrong) wrong = copy_bytes(DEVICE(to), DEVICE(from), bytes, NULL, SYNCHRONOUS, __func__);
  return wrong ? wrong : sc_drain_context(sc_current());
}

API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                               CUcontext from_context, size_t bytes, CUstream stream) {
  ENTER;
  CUresult wrong = check_peers(to_context, from_context);
  if (wrong) return wrong;
  return copy_bytes(DEVICE(to), DEVICE(from), bytes, stream, ASYNCHRONOUS, __func__);
}

/* ---- copies of rows and of slices ---------------------------------------------------------- */

/* One side of a 2-D or 3-D copy, from the words that its structure has for it. */
static CUresult read_side(CUmemorytype type, const void *host, CUdeviceptr device, uint64_t pitch,
                          shape shape, uint64_t x, side *out) {
  switch (type) {
  case CU_MEMORYTYPE_HOST: *out = HOST(host); break;
  case CU_MEMORYTYPE_DEVICE: *out = DEVICE(device); break;
  case CU_MEMORYTYPE_UNIFIED: *out = EITHER(device); break;
  case CU_MEMORYTYPE_ARRAY: return CUDA_ERROR_NOT_SUPPORTED; /* there are no textures */
  default: return CUDA_ERROR_INVALID_VALUE;
  }
  if (!out->at) return CUDA_ERROR_INVALID_VALUE;
  /* "cuMemcpy2D() returns an error if any pitch is greater than the maximum allowed" or smaller
   * than a row; 0 stands for rows without gaps. */
  if (!pitch) pitch = x + shape.width;
  if (pitch > INT32_MAX || (shape.height > 1 && pitch < x + shape.width))
    return CUDA_ERROR_INVALID_VALUE;
  out->pitch = pitch;
  return CUDA_SUCCESS;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *what, CUstream stream, int how, const char *call) {
  if (!what) return CUDA_ERROR_INVALID_VALUE;
  shape shape = {what->WidthInBytes, what->Height};
  if (!shape.width || !shape.height) return CUDA_SUCCESS;
  side to, from;
  CUresult wrong = read_side(what->dstMemoryType, what->dstHost, what->dstDevice, what->dstPitch,
                             shape, what->dstXInBytes, &to);
  if (!wrong)
    wrong = read_side(what->srcMemoryType, what->srcHost, what->srcDevice, what->srcPitch, shape,
                      what->srcXInBytes, &from);
  if (wrong) return wrong;
  to.at += what->dstY * to.pitch + what->dstXInBytes;
  from.at += what->srcY * from.pitch + what->srcXInBytes;
  return copy(to, from, shape, stream, how, call);
}

API CUresult cuMemcpy2D(const CUDA_MEMCPY2D *what) {
  ENTER;
  return copy_2d(what, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *what) {
  ENTER;
  return copy_2d(what, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *what, CUstream stream) {
  ENTER;
  return copy_2d(what, stream, ASYNCHRONOUS, __func__);
}

/* A copy for each slice. */
static CUresult copy_3d(const CUDA_MEMCPY3D *what, CUstream stream, int how, const char *call) {
  if (!what || what->srcLOD || what->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  shape shape = {what->WidthInBytes, what->Height};
  if (!shape.width || !shape.height) return CUDA_SUCCESS;
  side to, from;
  CUresult wrong = read_side(what->dstMemoryType, what->dstHost, what->dstDevice, what->dstPitch,
                             shape, what->dstXInBytes, &to);
  if (!wrong)
    wrong = read_side(what->srcMemoryType, what->srcHost, what->srcDevice, what->srcPitch, shape,
                      what->srcXInBytes, &from);
  if (wrong) return wrong;
  uint64_t to_rows = what->dstHeight ? what->dstHeight : what->dstY + shape.height;
  uint64_t from_rows = what->srcHeight ? what->srcHeight : what->srcY + shape.height;
  to.at += (what->dstZ * to_rows + what->dstY) * to.pitch + what->dstXInBytes;
  from.at += (what->srcZ * from_rows + what->srcY) * from.pitch + what->srcXInBytes;
  for (size_t z = 0; z < what->Depth && !wrong; z++) {
    wrong = copy(to, from, shape, stream, how, call);
    to.at += to_rows * to.pitch;
    from.at += from_rows * from.pitch;
  }
  return wrong;
}

API CUresult cuMemcpy3D(const CUDA_MEMCPY3D *what) {
  ENTER;
  return copy_3d(what, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *what, CUstream stream) {
  ENTER;
  return copy_3d(what, stream, ASYNCHRONOUS, __func__);
}

/* ---- fills --------------------------------------------------------------------------------- */

/* Driver API, cuMemsetD2D32: "vector of Height rows of Width elements"; addresses and pitches
 * are multiples of an element. "The synchronous memset functions are asynchronous with respect
 * to the host except when the target is pinned host memory or a Unified Memory region". */
static CUresult fill(CUdeviceptr at, size_t pitch, uint64_t value, uint32_t element, size_t width,
                     size_t height, CUstream handle, int how, const char *call) {
  if (!sc_current() && how == SYNCHRONOUS) return CUDA_ERROR_INVALID_CONTEXT;
  if (!width || !height) return CUDA_SUCCESS;
  shape shape = {width * element, height};
  if (at % element || (height > 1 && (pitch % element || pitch < shape.width)))
    return CUDA_ERROR_INVALID_VALUE;
  CUstream stream;
  CUresult wrong = sc_stream_of(handle, call, &stream);
  side to = DEVICE(at);
  to.pitch = pitch;
  if (!wrong) wrong = check_side(&to, shape, call, "fill");
  if (wrong) return wrong;
  if (how == SYNCHRONOUS) UNCAPTURED;
  sc_work work = {.kind = SC_WORK_FILL, .to = at, .bytes = width * height, .value = value,
                  .element = element};
  if (height > 1) {
    work.pitch_to = pitch;
    work.width = width;
    work.height = height;
  }
  wrong = sc_queue(stream, &work);
  bool wait = how == SYNCHRONOUS && (is_host(&to) || to.memory->kind == SC_MANAGED_MEMORY ||
                                     to.memory->synchronous);
  return wrong || !wait ? wrong : sc_drain(stream);
}

API CUresult cuMemsetD8(CUdeviceptr at, unsigned char value, size_t count) {
  ENTER;
  return fill(at, count, value, 1, count, 1, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemsetD16(CUdeviceptr at, unsigned short value, size_t count) {
  ENTER;
  return fill(at, count, value, 2, count, 1, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemsetD32(CUdeviceptr at, unsigned value, size_t count) {
  ENTER;
  return fill(at, count, value, 4, count, 1, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t count, CUstream stream) {
  ENTER;
  return fill(at, count, value, 1, count, 1, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t count, CUstream stream) {
  ENTER;
  return fill(at, count, value, 2, count, 1, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t count, CUstream stream) {
  ENTER;
  return fill(at, count, value, 4, count, 1, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemsetD2D8(CUdeviceptr at, size_t pitch, unsigned char value, size_t width,
                          size_t height) {
  ENTER;
  return fill(at, pitch, value, 1, width, height, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemsetD2D16(CUdeviceptr at, size_t pitch, unsigned short value, size_t width,
                           size_t height) {
  ENTER;
  return fill(at, pitch, value, 2, width, height, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemsetD2D32(CUdeviceptr at, size_t pitch, unsigned value, size_t width,
                           size_t height) {
  ENTER;
  return fill(at, pitch, value, 4, width, height, NULL, SYNCHRONOUS, __func__);
}

API CUresult cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream) {
  ENTER;
  return fill(at, pitch, value, 1, width, height, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemsetD2D16Async(CUdeviceptr at, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream stream) {
  ENTER;
  return fill(at, pitch, value, 2, width, height, stream, ASYNCHRONOUS, __func__);
}

API CUresult cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned value, size_t width,
                                size_t height, CUstream stream) {
  ENTER;
  return fill(at, pitch, value, 4, width, height, stream, ASYNCHRONOUS, __func__);
}
