/* Stream-ordered memory and the pools that it comes from (Driver API, "Stream Ordered Memory
 * Allocator").
 *
 * A pool keeps no memory of its own: what is freed goes back at once, so that its use is seen.
 * Memory is there from the call of cuMemAllocAsync on, earlier than a program may use it. */
#include "allocations.h"
#include "contexts.h"
#include "lock.h"
#include "memory.h"
#include "options.h"
#include "queue.h"

/* Guarded by the lock. */
static CUmemoryPool defaults[SC_MAX_DEVICES], currents[SC_MAX_DEVICES];

/* Pools belong to a device, not to a context (Driver API, cuCtxDestroy, note). */
static CUmemoryPool new_pool(int device) {
  CUmemoryPool pool = sc_object_new(SC_POOL, sizeof *pool, NULL);
  pool->device = device;
  pool->reachable = 1u << device;
  for (int i = 0; i < 3; i++) pool->reuse[i] = 1; /* cuMemPoolSetAttribute: "default enabled" */
  return pool;
}

static CUmemoryPool default_pool(int device) {
  sc_lock();
  if (!defaults[device]) {
    defaults[device] = currents[device] = new_pool(device);
    defaults[device]->is_default = true;
  }
  CUmemoryPool pool = defaults[device];
  sc_unlock();
  return pool;
}

static CUmemoryPool current_pool(int device) {
  default_pool(device);
  return currents[device];
}

/* ---- allocating and freeing ---------------------------------------------------------------- */

static CUresult allocate(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  /* A graph would own such memory and allocate it at each launch, at the same address. */
  bool capturing = stream->capture != SC_NOT_CAPTURING;
  bool full = pool->limit && pool->used + bytes > pool->limit;
  sc_unlock();
  if (capturing) return CUDA_ERROR_NOT_SUPPORTED;
  if (full) return CUDA_ERROR_OUT_OF_MEMORY;
  CUcontext owner = stream->object.context;
  if (owner->device != pool->device) owner = sc_primary(pool->device);
  sc_allocation *made;
  CUresult wrong = sc_allocate(owner, bytes, SC_DEVICE_MEMORY, &made);
  if (wrong) return wrong;
  sc_lock();
  made->pool = pool;
  pool->used += bytes;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  sc_unlock();
  *out = made->at;
  return sc_queue(stream, &(sc_work){.kind = SC_WORK_ALLOCATE, .to = made->at, .bytes = bytes});
}

API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle) {
  ENTER;
  CUstream stream;
  CUresult wrong = sc_stream_of(handle, __func__, &stream);
  if (wrong) return wrong;
  return allocate(out, bytes, current_pool(stream->object.context->device), stream);
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                                     CUstream handle) {
  ENTER;
  CUstream stream;
  CUresult wrong = sc_stream_of(handle, __func__, &stream);
  if (wrong) return wrong;
  if (!sc_object_ok(pool, SC_POOL, __func__)) return CUDA_ERROR_INVALID_VALUE;
  return allocate(out, bytes, pool, stream);
}

/* Memory of cuMemAlloc may be freed so too (Guide, "Stream Ordered Memory Allocator", "Interaction
 * with cudaMalloc"). */
API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  ENTER;
  CUstream stream;
  CUresult wrong = sc_stream_of(handle, __func__, &stream);
  if (wrong) return wrong;
  if (!address) return CUDA_SUCCESS;
  sc_lock();
  sc_allocation *allocation;
  wrong = sc_find_to_free(address, 1 << SC_DEVICE_MEMORY, __func__, &allocation);
  if (!wrong && stream->capture != SC_NOT_CAPTURING) wrong = CUDA_ERROR_INVALID_VALUE;
  if (!wrong) allocation->freeing = true;
  sc_unlock();
  return wrong ? wrong : sc_queue(stream, &(sc_work){.kind = SC_WORK_FREE, .to = address});
}

/* ---- pools --------------------------------------------------------------------------------- */

API CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *what) {
  ENTER;
  if (!out || !what || what->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES is 0 */
  if (what->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (what->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!sc_is_device(what->location.id)) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  CUmemoryPool pool = new_pool(what->location.id);
  pool->limit = what->maxSize;
  sc_unlock();
  *out = pool;
  return CUDA_SUCCESS;
}

/* Driver API, cuMemPoolDestroy: "A device's default memory pool cannot be destroyed"; where the
 * pool was current, the default one is from then on. What is allocated from it stays. */
API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  ENTER_ANYWAY;
  if (!sc_object_ok(pool, SC_POOL, __func__) || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  sc_lock();
  CUresult wrong = sc_object_end(pool, SC_POOL, __func__);
  if (currents[pool->device] == pool) currents[pool->device] = defaults[pool->device];
  sc_unlock();
  return wrong;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t least) {
  ENTER;
  (void)least; /* nothing is kept in reserve */
  return sc_object_ok(pool, SC_POOL, __func__) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  ENTER;
  if (!sc_object_ok(pool, SC_POOL, __func__) || !value) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = CUDA_SUCCESS;
  sc_lock();
  switch (attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    pool->reuse[attribute - 1] = *(const int *)value != 0;
    break;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    pool->release_threshold = *(const cuuint64_t *)value;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: /* "a value of 0 resets"; others are no values */
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    if (*(const cuuint64_t *)value) wrong = CUDA_ERROR_INVALID_VALUE;
    else pool->used_high = pool->used;
    break;
  default: wrong = CUDA_ERROR_INVALID_VALUE;
  }
  sc_unlock();
  return wrong;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  ENTER;
  if (!sc_object_ok(pool, SC_POOL, __func__) || !value) return CUDA_ERROR_INVALID_VALUE;
  CUresult wrong = CUDA_SUCCESS;
  sc_lock();
  switch ((int)attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    *(int *)value = pool->reuse[attribute - 1];
    break;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->release_threshold; break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
  case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high; break;
  case CU_MEMPOOL_ATTR_ALLOCATION_TYPE:
    *(CUmemAllocationType *)value = CU_MEM_ALLOCATION_TYPE_PINNED;
    break;
  case CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES:
    *(CUmemAllocationHandleType *)value = CU_MEM_HANDLE_TYPE_NONE;
    break;
  case CU_MEMPOOL_ATTR_LOCATION_ID: *(int *)value = pool->device; break;
  case CU_MEMPOOL_ATTR_LOCATION_TYPE:
    *(CUmemLocationType *)value = CU_MEM_LOCATION_TYPE_DEVICE;
    break;
  case CU_MEMPOOL_ATTR_MAX_POOL_SIZE: *(cuuint64_t *)value = pool->limit; break;
  default: wrong = CUDA_ERROR_INVALID_VALUE;
  }
  sc_unlock();
  return wrong;
}

/* Access of other devices: none, or to read and write. A device always reaches its own pools. */
API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
  ENTER;
  if (!sc_object_ok(pool, SC_POOL, __func__) || !map || !count) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!sc_is_device(map[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    bool reach = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!reach && (map[i].flags || map[i].location.id == pool->device))
      return CUDA_ERROR_INVALID_VALUE;
  }
  sc_lock();
  for (size_t i = 0; i < count; i++) {
    uint32_t bit = 1u << map[i].location.id;
    pool->reachable = map[i].flags ? pool->reachable | bit : pool->reachable & ~bit;
  }
  sc_unlock();
  return CUDA_SUCCESS;
}

API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool,
                                CUmemLocation *location) {
  ENTER;
  if (!flags || !sc_object_ok(pool, SC_POOL, __func__) || !location)
    return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || !sc_is_device(location->id))
    return CUDA_ERROR_INVALID_VALUE;
  *flags = pool->reachable >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                               : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

/* ---- the pools of a device ----------------------------------------------------------------- */

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  ENTER_ANYWAY;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *out = default_pool(device);
  return CUDA_SUCCESS;
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  ENTER_ANYWAY;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *out = current_pool(device);
  return CUDA_SUCCESS;
}

/* Driver API, cuDeviceSetMemPool: "The memory pool must be local to the specified device." */
API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  ENTER_ANYWAY;
  if (!sc_is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!sc_object_ok(pool, SC_POOL, __func__) || pool->device != device)
    return CUDA_ERROR_INVALID_VALUE;
  default_pool(device);
  sc_lock();
  currents[device] = pool;
  sc_unlock();
  return CUDA_SUCCESS;
}

/* The same by location, as CUDA 13 names it; pools of the host and of managed memory are not
 * offered (CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED is 0). */
static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type) {
  if (!location) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  return sc_is_device(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *location,
                                    CUmemAllocationType type) {
  ENTER_ANYWAY;
  CUresult wrong = check_place(location, type);
  return wrong ? wrong : cuDeviceGetDefaultMemPool(out, location->id);
}

API CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *location, CUmemAllocationType type) {
  ENTER_ANYWAY;
  CUresult wrong = check_place(location, type);
  return wrong ? wrong : cuDeviceGetMemPool(out, location->id);
}

API CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
  ENTER_ANYWAY;
  CUresult wrong = check_place(location, type);
  return wrong ? wrong : cuDeviceSetMemPool(location->id, pool);
}
