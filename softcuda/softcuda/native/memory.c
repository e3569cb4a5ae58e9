/* Memory: where allocations lie, which one an address means, and what becomes of freed ones. The
 * calls of the API are in allocations.c and pointers.c.
 *
 * Each has pages without access before and behind it. The end lies at the guard as nearly as the
 * alignment allows, so that the host's own accesses out of bounds fault too; kernels are checked
 * to the byte. Freed memory stays mapped without access for a while, so that its use is named. */
#include "contexts.h"
#include "lock.h"
#include "memory.h"
#include "options.h"
#include "reports.h"
#include "shadow.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
  ALIGNMENT = 256,            /* Guide, "Device Memory Accesses": "aligned to at least 256 bytes" */
  MOST_FILLED = 64 << 20,     /* bytes of fresh memory that are filled; all of it would take long */
  FRESH = 0xA5,
  MOST_QUARANTINED = 1024,    /* allocations */
};
static const uint64_t QUARANTINE_BYTES = 8ull << 30; /* of address space */

/* Guards all below; taken last, and nothing else is taken under it. */
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static sc_allocation **all; /* ascending by address, freed ones too; none is ever deleted */
static int count, room;
static sc_allocation *quarantine[MOST_QUARANTINED]; /* a ring, oldest first */
static int quarantine_first, quarantine_count;
static uint64_t quarantine_bytes;
static uint64_t used[SC_MAX_DEVICES], numbers;

/* Lists for kernels, and shadows that wait until no kernel reads any. */
static _Atomic uint64_t generation = 1;
static sc_list *newest;
static int list_users;
static sc_allocation **retired;
static int retired_count, retired_room;

/* ---- the table of allocations -------------------------------------------------------------- */

/* How many allocations begin at or below an address. */
static int index_behind(uint64_t address) {
  int low = 0, high = count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (all[middle]->at <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static sc_allocation *holder(uint64_t address) {
  int behind = index_behind(address);
  sc_allocation *below = behind ? all[behind - 1] : NULL;
  return below && address - below->at < below->size ? below : NULL;
}

sc_allocation *sc_find(uint64_t address) {
  pthread_mutex_lock(&memory_lock);
  sc_allocation *found = holder(address);
  pthread_mutex_unlock(&memory_lock);
  return found;
}

static void insert(sc_allocation *allocation) {
  if (count == room) {
    room = 2 * room + 64;
    all = realloc(all, (size_t)room * sizeof *all);
  }
  int at = index_behind(allocation->at);
  memmove(&all[at + 1], &all[at], (size_t)(count - at) * sizeof *all);
  all[at] = allocation;
  count++;
  generation++;
}

static void erase(const sc_allocation *allocation) {
  int at = index_behind(allocation->at) - 1;
  memmove(&all[at], &all[at + 1], (size_t)(count - at - 1) * sizeof *all);
  count--;
  generation++;
}

/* ---- lists that kernels read without the lock ---------------------------------------------- */

static void free_list(sc_list *list) {
  if (!list || list->users) return;
  free(list->items);
  free(list);
}

static sc_list *make_list(void) {
  sc_list *list = malloc(sizeof *list);
  *list = (sc_list){malloc(((size_t)count + 1) * sizeof *all), count, generation, 0};
  memcpy(list->items, all, (size_t)count * sizeof *all);
  return list;
}

sc_list *sc_take_list(void) {
  pthread_mutex_lock(&memory_lock);
  if (!newest || newest->generation != generation) {
    sc_list *old = newest;
    newest = make_list();
    free_list(old);
  }
  newest->users++;
  list_users++;
  sc_list *list = newest;
  pthread_mutex_unlock(&memory_lock);
  return list;
}

/* Shadows of freed memory go when no kernel can be using them. Needs memory_lock. */
static void free_retired(void) {
  if (list_users) return;
  for (int i = 0; i < retired_count; i++) sc_shadow_free(retired[i]);
  retired_count = 0;
}

void sc_release_list(sc_list *list) {
  if (!list) return;
  pthread_mutex_lock(&memory_lock);
  list->users--;
  list_users--;
  if (list != newest) free_list(list);
  free_retired();
  pthread_mutex_unlock(&memory_lock);
}

uint64_t sc_generation(void) { return generation; }

/* ---- pools ---------------------------------------------------------------------------------- */

bool sc_pool_reachable(CUmemoryPool pool, int device) { return pool->reachable >> device & 1; }

static void give_back_to_pool(CUmemoryPool pool, uint64_t bytes) {
  sc_lock();
  pool->used -= bytes;
  sc_unlock();
}

/* ---- making and releasing memory ----------------------------------------------------------- */

static uint64_t rounded_up(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

static uint64_t page_size(void) {
  static uint64_t size;
  if (!size) size = (uint64_t)sysconf(_SC_PAGESIZE);
  return size;
}

/* Only what cuMemAlloc and modules take counts against the device's memory: managed memory may be
 * evicted to the host (Driver API, cuMemAllocManaged), and the heap is one reservation. */
static bool counts(enum sc_memory kind) {
  return kind == SC_DEVICE_MEMORY || kind == SC_MODULE_MEMORY;
}

static CUresult map(sc_allocation *allocation) {
  uint64_t page = page_size(), data = rounded_up(allocation->size, page);
  uint64_t bytes = data + 2 * page;
  char *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  if (mprotect(base + page, data, PROT_READ | PROT_WRITE)) {
    munmap(base, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  bool fresh = allocation->kind == SC_DEVICE_MEMORY || allocation->kind == SC_HEAP_MEMORY;
  if (fresh && data <= MOST_FILLED) memset(base + page, FRESH, data);
  allocation->mapped_at = (uint64_t)(uintptr_t)base;
  allocation->mapped_size = bytes;
  uint64_t last = allocation->mapped_at + page + data - allocation->size;
  allocation->at = last / ALIGNMENT * ALIGNMENT;
  return CUDA_SUCCESS;
}

CUresult sc_allocate(CUcontext context, uint64_t bytes, enum sc_memory kind,
                     sc_allocation **made) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  int device = context->device;
  if (kind == SC_DEVICE_MEMORY && sc_commanded(SC_OUT_OF_MEMORY, NULL, bytes)) {
    sc_log("  out of memory on command, %llu bytes", (unsigned long long)bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (bytes > UINT64_MAX >> 16) return CUDA_ERROR_OUT_OF_MEMORY;
  sc_allocation *allocation = calloc(1, sizeof *allocation);
  allocation->size = bytes;
  allocation->kind = kind;
  allocation->context = context;
  allocation->device = device;
  pthread_mutex_lock(&memory_lock);
  bool full = counts(kind) && (bytes > sc_option.memory || used[device] > sc_option.memory - bytes);
  CUresult wrong = full ? CUDA_ERROR_OUT_OF_MEMORY : map(allocation);
  if (!wrong) {
    allocation->number = ++numbers;
    if (counts(kind)) {
      used[device] += bytes;
      context->used += bytes;
    }
    insert(allocation);
    *made = allocation;
  }
  pthread_mutex_unlock(&memory_lock);
  if (wrong) free(allocation);
  return wrong;
}

/* Gives the address space of the oldest freed allocation back. */
static void end_quarantine(void) {
  sc_allocation *oldest = quarantine[quarantine_first];
  quarantine_first = (quarantine_first + 1) % MOST_QUARANTINED;
  quarantine_count--;
  quarantine_bytes -= oldest->mapped_size;
  erase(oldest);
  munmap((void *)(uintptr_t)oldest->mapped_at, oldest->mapped_size);
}

static void begin_quarantine(sc_allocation *allocation) {
  /* Mapped anew, so that the system gets its pages back. */
  mmap((void *)(uintptr_t)allocation->mapped_at, allocation->mapped_size, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (quarantine_count == MOST_QUARANTINED) end_quarantine();
  int last = (quarantine_first + quarantine_count++) % MOST_QUARANTINED;
  quarantine[last] = allocation;
  quarantine_bytes += allocation->mapped_size;
  while (quarantine_bytes > QUARANTINE_BYTES) end_quarantine();
}

static void retire_shadow(sc_allocation *allocation) {
  if (!allocation->shadow) return;
  if (retired_count == retired_room) {
    retired_room = 2 * retired_room + 64;
    retired = realloc(retired, (size_t)retired_room * sizeof *retired);
  }
  retired[retired_count++] = allocation;
  free_retired();
}

CUresult sc_release(sc_allocation *allocation) {
  pthread_mutex_lock(&memory_lock);
  bool twice = allocation->freed;
  if (!twice) {
    allocation->freed = true;
    if (counts(allocation->kind)) {
      used[allocation->device] -= allocation->size;
      allocation->context->used -= allocation->size;
    }
    generation++;
    retire_shadow(allocation);
    if (allocation->kind == SC_REGISTERED_MEMORY) erase(allocation); /* the program's own memory */
    else begin_quarantine(allocation);
  }
  pthread_mutex_unlock(&memory_lock);
  if (!twice && allocation->pool) give_back_to_pool(allocation->pool, allocation->size);
  return twice ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult sc_register(CUcontext context, uint64_t at, uint64_t bytes, sc_allocation **made) {
  sc_allocation *allocation = calloc(1, sizeof *allocation);
  *allocation = (sc_allocation){.at = at, .size = bytes, .mapped_at = at, .mapped_size = bytes,
                                .kind = SC_REGISTERED_MEMORY, .context = context,
                                .device = context->device};
  pthread_mutex_lock(&memory_lock);
  int behind = index_behind(at + bytes - 1);
  bool overlaps = behind && all[behind - 1]->at + all[behind - 1]->size > at;
  if (!overlaps) {
    allocation->number = ++numbers;
    insert(allocation);
    *made = allocation;
  }
  pthread_mutex_unlock(&memory_lock);
  if (overlaps) free(allocation);
  return overlaps ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_SUCCESS;
}

uint64_t sc_memory_left(int device) {
  pthread_mutex_lock(&memory_lock);
  uint64_t taken = used[device];
  pthread_mutex_unlock(&memory_lock);
  return taken < sc_option.memory ? sc_option.memory - taken : 0;
}

/* ---- names --------------------------------------------------------------------------------- */

const char *sc_allocation_name(const sc_allocation *allocation, char *text, size_t bytes) {
  if (allocation->name[0]) snprintf(text, bytes, "%s", allocation->name);
  else snprintf(text, bytes, "allocation %llu", (unsigned long long)allocation->number);
  return text;
}

int softcuda_name(uint64_t address, const char *name) {
  pthread_mutex_lock(&memory_lock);
  sc_allocation *allocation = holder(address);
  if (allocation) {
    size_t length = strlen(name), most = sizeof allocation->name - 1;
    if (length > most) /* cut between characters of UTF-8 */
      for (length = most; length && (name[length] & 0xC0) == 0x80;) length--;
    memcpy(allocation->name, name, length);
    allocation->name[length] = 0;
  }
  pthread_mutex_unlock(&memory_lock);
  return allocation != NULL;
}

/* ---- what Python does on the host in place of NVIDIA's libraries ----------------------------- */

int softcuda_holds(uint64_t address, uint64_t bytes) {
  const sc_allocation *allocation = sc_find(address);
  return allocation && !allocation->freed && bytes <= allocation->size - (address - allocation->at);
}

void softcuda_written(uint64_t address, uint64_t bytes) {
  sc_allocation *allocation = sc_find(address);
  if (allocation && !allocation->freed)
    sc_shadow_written(allocation, address - allocation->at, bytes);
}

/* ---- the end of a context ------------------------------------------------------------------ */

/* Memory that ends with its context: that of pools does not (Driver API, cuCtxDestroy). It has no
 * context here. */
static bool ends_with(const sc_allocation *allocation, CUcontext context) {
  CUcontext owner = allocation->pool ? NULL : allocation->context;
  return !allocation->freed && owner == context;
}

/* The first allocation behind a number that ends with the context, or NULL. */
static sc_allocation *next_of(CUcontext context, uint64_t number) {
  sc_allocation *next = NULL;
  pthread_mutex_lock(&memory_lock);
  for (int i = 0; i < count; i++)
    if (ends_with(all[i], context) && all[i]->number > number &&
        (!next || all[i]->number < next->number))
      next = all[i];
  pthread_mutex_unlock(&memory_lock);
  return next;
}

void sc_report_memory_leaks(CUcontext context) {
  static const char *const ends[] = {
      [SC_DEVICE_MEMORY] = "cuMemFree",
      [SC_MANAGED_MEMORY] = "cuMemFree",
      [SC_HOST_MEMORY] = "cuMemFreeHost",
      [SC_REGISTERED_MEMORY] = "cuMemHostUnregister",
      [SC_HEAP_MEMORY] = NULL, /* that and modules' memory is not the program's to free */
  };
  for (sc_allocation *each = next_of(context, 0); each; each = next_of(context, each->number)) {
    const char *end = each->kind < sizeof ends / sizeof *ends ? ends[each->kind] : NULL;
    if (each->pool) end = "cuMemFreeAsync";
    if (!end || each->freeing) continue;
    char name[80];
    sc_report report = {.kind = "leak", .has_array = true, .length = each->size};
    report.array = sc_allocation_name(each, name, sizeof name);
    snprintf(report.text, sizeof report.text,
             "%s of %llu bytes was alive when its %s ended; %s ends it", name,
             (unsigned long long)each->size, each->pool ? "process" : "context", end);
    sc_report_add(&report);
  }
}

void sc_memory_end(CUcontext context) {
  for (sc_allocation *each = next_of(context, 0); each; each = next_of(context, each->number))
    sc_release(each);
}
