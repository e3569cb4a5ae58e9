/* What a program may ask and advise about memory (Driver API, "Unified Addressing"). */
#include "contexts.h"
#include "lock.h"
#include "memory.h"
#include "options.h"
#include "queue.h"
#include "reports.h"

/* ---- memory of the host -------------------------------------------------------------------- */

/* The live pinned memory at an address of the host, or NULL. */
static sc_allocation *pinned_at(const void *address) {
  sc_allocation *allocation = sc_find((uint64_t)(uintptr_t)address);
  bool pinned = allocation && !allocation->freed &&
                (allocation->kind == SC_HOST_MEMORY || allocation->kind == SC_REGISTERED_MEMORY);
  return pinned ? allocation : NULL;
}

/* With unified addressing all pinned memory is mapped, at its own address (Driver API,
 * cuMemHostAlloc: "automatically be immediately accessible to all contexts"). */
API CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *address, unsigned flags) {
  ENTER;
  if (!out || flags || !pinned_at(address)) return CUDA_ERROR_INVALID_VALUE;
  *out = (uint64_t)(uintptr_t)address;
  return CUDA_SUCCESS;
}

API CUresult cuMemHostGetFlags(unsigned *flags, void *address) {
  ENTER;
  sc_allocation *allocation = pinned_at(address);
  if (!flags || !allocation) return CUDA_ERROR_INVALID_VALUE;
  /* Under unified addressing memory is portable and mapped whatever was asked for. */
  *flags = allocation->flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

/* ---- asking about memory ------------------------------------------------------------------- */

API CUresult cuMemGetInfo(size_t *free_bytes, size_t *total) {
  ENTER;
  if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_current()) return CUDA_ERROR_INVALID_CONTEXT;
  *total = sc_option.memory;
  *free_bytes = sc_memory_left(sc_current()->device);
  return CUDA_SUCCESS;
}

API CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
  ENTER;
  sc_allocation *allocation = sc_find(address);
  if (!allocation || allocation->freed) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = allocation->at;
  if (bytes) *bytes = allocation->size;
  return CUDA_SUCCESS;
}

static bool is_host_memory(const sc_allocation *allocation) {
  return allocation->kind == SC_HOST_MEMORY || allocation->kind == SC_REGISTERED_MEMORY;
}

/* One attribute of a pointer; `allocation` is NULL for what is no memory of CUDA. */
static CUresult get_attribute(void *out, CUpointer_attribute attribute, uint64_t address,
                              const sc_allocation *allocation) {
  static const sc_allocation nowhere;
  bool known = allocation != NULL;
  const sc_allocation *it = known ? allocation : &nowhere;
  bool host = known && is_host_memory(it);
  bool reachable_by_host = known && (host || it->kind == SC_MANAGED_MEMORY);
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)out = it->pool ? NULL : it->context; break;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)out = !known ? 0 : host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    break;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)out = known ? address : 0; break;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    *(void **)out = reachable_by_host ? (void *)(uintptr_t)address : NULL;
    return known && !reachable_by_host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)out = it->synchronous; break;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(unsigned long long *)out = it->number; break;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)out = it->kind == SC_MANAGED_MEMORY; break;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = known ? it->device : -2; break;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)out = it->at; break;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = it->size; break;
  case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned *)out = known; break;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)out = it->pool; break;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: /* nothing is shared between processes */
  case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
  case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: *(unsigned *)out = 0; break;
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *(unsigned long long *)out = 0; break;
  case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    *(unsigned *)out = known ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE : 0;
    break;
  default:
    sc_log("  unknown attribute %d of a pointer", attribute);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

static const sc_allocation *live_at(uint64_t address) {
  const sc_allocation *allocation = sc_find(address);
  return allocation && !allocation->freed ? allocation : NULL;
}

API CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address) {
  ENTER;
  const sc_allocation *allocation = live_at(address);
  if (!out || !allocation) return CUDA_ERROR_INVALID_VALUE;
  return get_attribute(out, attribute, address, allocation);
}

/* Driver API, cuPointerGetAttributes: for what is no memory of CUDA "the attributes are assigned
 * default NULL values and CUDA_SUCCESS is returned". */
API CUresult cuPointerGetAttributes(unsigned number, CUpointer_attribute *attributes, void **out,
                                    CUdeviceptr address) {
  ENTER;
  if (!number || !attributes || !out) return CUDA_ERROR_INVALID_VALUE;
  const sc_allocation *allocation = live_at(address);
  for (unsigned i = 0; i < number; i++) {
    CUresult wrong = get_attribute(out[i], attributes[i], address, allocation);
    if (wrong && wrong != CUDA_ERROR_INVALID_VALUE) return wrong;
  }
  return CUDA_SUCCESS;
}

API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                   CUdeviceptr address) {
  ENTER;
  sc_allocation *allocation = sc_find(address);
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !allocation || allocation->freed)
    return CUDA_ERROR_INVALID_VALUE;
  allocation->synchronous = *(const unsigned *)value != 0;
  return allocation->synchronous ? sc_drain_context(allocation->context) : CUDA_SUCCESS;
}

/* ---- advice about managed memory, which has one place here --------------------------------- */

static CUresult check_managed(uint64_t address, size_t bytes) {
  const sc_allocation *allocation = live_at(address);
  bool good = bytes && allocation && allocation->kind == SC_MANAGED_MEMORY &&
              bytes <= allocation->at + allocation->size - address;
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool is_place(CUmemLocation location) {
  switch (location.type) {
  case CU_MEM_LOCATION_TYPE_DEVICE: return location.id >= 0 && location.id < sc_option.devices;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return true;
  default: return false;
  }
}

API CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                         CUmemLocation location) {
  ENTER;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  bool of_a_place = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                    advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                    advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (of_a_place && !is_place(location)) return CUDA_ERROR_INVALID_DEVICE;
  return check_managed(address, bytes);
}

/* Stream-ordered work that moves nothing. */
API CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                unsigned flags, CUstream handle) {
  ENTER;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!is_place(location)) return CUDA_ERROR_INVALID_DEVICE;
  CUresult wrong = check_managed(address, bytes);
  if (wrong) return wrong;
  CUstream stream = sc_stream(handle, __func__);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  return sc_queue(stream, &(sc_work){.kind = SC_WORK_NOTHING});
}

/* ---- sharing with other processes: CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED is 0 ------------ */

API CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
  ENTER;
  return handle && live_at(address) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags) {
  ENTER;
  (void)handle, (void)flags;
  return out ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  ENTER;
  (void)address;
  return CUDA_ERROR_INVALID_VALUE; /* no such memory was ever opened */
}
