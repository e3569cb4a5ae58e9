/* The calls that make and free memory (Driver API, "Memory Management"). */
#include "allocations.h"
#include "contexts.h"
#include "queue.h"
#include "reports.h"

/* CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT: what rows of cuMemAllocPitch are aligned to. */
enum { PITCH = 512 };

/* ---- allocating ---------------------------------------------------------------------------- */

static CUresult allocate(uint64_t *out, size_t bytes, enum sc_memory kind, unsigned flags) {
  if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUcontext context = sc_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  UNCAPTURED;
  sc_allocation *made;
  CUresult wrong = sc_allocate(context, bytes, kind, &made);
  if (wrong) return wrong;
  made->flags = flags;
  *out = made->at;
  sc_log("  allocation %llu: %zu bytes at %#llx", (unsigned long long)made->number, bytes,
         (unsigned long long)made->at);
  return CUDA_SUCCESS;
}

API CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes) {
  ENTER;
  uint64_t at = 0;
  CUresult wrong = allocate(out ? &at : NULL, bytes, SC_DEVICE_MEMORY, 0);
  if (!wrong) *out = at;
  return wrong;
}

/* Driver API, cuMemAllocPitch: an element is 4, 8 or 16 bytes. */
API CUresult cuMemAllocPitch(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                             unsigned element) {
  ENTER;
  if (!out || !pitch || (element != 4 && element != 8 && element != 16))
    return CUDA_ERROR_INVALID_VALUE;
  size_t row = (width + PITCH - 1) / PITCH * PITCH, bytes;
  if (row < width || __builtin_mul_overflow(row, height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t at = 0;
  CUresult wrong = allocate(&at, bytes, SC_DEVICE_MEMORY, 0);
  if (wrong) return wrong;
  *out = at;
  *pitch = row;
  return CUDA_SUCCESS;
}

API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
  ENTER;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  uint64_t at = 0;
  CUresult wrong = allocate(out ? &at : NULL, bytes, SC_MANAGED_MEMORY, flags);
  if (!wrong) *out = at;
  return wrong;
}

static CUresult allocate_host(void **out, size_t bytes, unsigned flags) {
  uint64_t at = 0;
  CUresult wrong = allocate(out ? &at : NULL, bytes, SC_HOST_MEMORY, flags);
  if (!wrong) *out = (void *)(uintptr_t)at;
  return wrong;
}

API CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  ENTER;
  unsigned known =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  return allocate_host(out, bytes, flags);
}

API CUresult cuMemAllocHost(void **out, size_t bytes) {
  ENTER;
  return allocate_host(out, bytes, 0);
}

/* ---- freeing ------------------------------------------------------------------------------- */

static CUresult refuse_free(const char *call, uint64_t address, const sc_allocation *allocation) {
  char name[80];
  sc_report report = {.kind = "free"};
  if (!allocation) {
    snprintf(report.text, sizeof report.text, "%s was given %#llx, where no memory was allocated",
             call, (unsigned long long)address);
  } else {
    report.array = sc_allocation_name(allocation, name, sizeof name);
    report.has_array = true;
    report.offset = address - allocation->at;
    report.length = allocation->size;
    if (allocation->freed || allocation->freeing)
      snprintf(report.text, sizeof report.text, "%s was given %s, which was freed before", call,
               name);
    else if (report.offset)
      snprintf(report.text, sizeof report.text,
               "%s was given an address %llu bytes behind the beginning of %s", call,
               (unsigned long long)report.offset, name);
    else
      snprintf(report.text, sizeof report.text, "%s was given %s, which another call frees", call,
               name);
  }
  sc_report_add(&report);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult sc_find_to_free(uint64_t address, unsigned kinds, const char *call,
                         sc_allocation **found) {
  sc_allocation *allocation = sc_find(address);
  bool good = allocation && allocation->at == address && kinds >> allocation->kind & 1 &&
              !allocation->freed && !allocation->freeing;
  *found = allocation;
  return good ? CUDA_SUCCESS : refuse_free(call, address, allocation);
}

/* Freeing waits for all work of the context (Driver API, cuMemFree: "may perform implicit
 * synchronization"), except for memory of pools, where it "will not". No context needs to be
 * current: with unified addressing the memory tells its own, and numba.cuda.close() frees when
 * all contexts have been popped. */
static CUresult release(uint64_t address, unsigned kinds, const char *call) {
  UNCAPTURED;
  sc_allocation *allocation;
  CUresult wrong = sc_find_to_free(address, kinds, call, &allocation);
  if (wrong) return wrong;
  CUresult sticky = allocation->pool ? CUDA_SUCCESS : sc_drain_context(allocation->context);
  wrong = sc_release(allocation);
  return sticky ? sticky : wrong;
}

API CUresult cuMemFree(CUdeviceptr address) {
  ENTER;
  if (!address) return CUDA_SUCCESS;
  return release(address, 1 << SC_DEVICE_MEMORY | 1 << SC_MANAGED_MEMORY, __func__);
}

API CUresult cuMemFreeHost(void *address) {
  ENTER;
  if (!address) return CUDA_SUCCESS;
  return release((uint64_t)(uintptr_t)address, 1 << SC_HOST_MEMORY, __func__);
}

/* ---- memory of the host -------------------------------------------------------------------- */

API CUresult cuMemHostRegister(void *address, size_t bytes, unsigned flags) {
  ENTER;
  unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                   CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  uint64_t at = (uint64_t)(uintptr_t)address;
  if (!address || !bytes || at + bytes < at || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
  UNCAPTURED;
  sc_allocation *allocation;
  CUresult wrong = sc_register(sc_current(), at, bytes, &allocation);
  if (wrong) return wrong;
  allocation->flags = flags;
  allocation->constant = flags & CU_MEMHOSTREGISTER_READ_ONLY;
  return CUDA_SUCCESS;
}

/* Driver API, cuMemHostUnregister: "The base address must be the same one". */
API CUresult cuMemHostUnregister(void *address) {
  ENTER;
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  sc_allocation *allocation = sc_find((uint64_t)(uintptr_t)address);
  if (!allocation || allocation->kind != SC_REGISTERED_MEMORY)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  return release((uint64_t)(uintptr_t)address, 1 << SC_REGISTERED_MEMORY, __func__);
}
