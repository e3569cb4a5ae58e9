/* Stands in for memory.c, options.c, reports.c and lock.c where only the running of kernels is
 * tested: allocations in an array, and reports on the standard output. */
#include "harness.h"

sc_options sc_option = {.order = SC_ASCENDING, .kernel_timeout = 20};

static sc_allocation *allocations[256];
static int allocation_count;
static uint64_t generation = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sc_lock(void) { pthread_mutex_lock(&lock); }
void sc_unlock(void) { pthread_mutex_unlock(&lock); }
void sc_log(const char *format, ...) { (void)format; }
uint64_t sc_generation(void) { return generation; }

static int by_address(const void *a, const void *b) {
  uint64_t x = (*(sc_allocation *const *)a)->at, y = (*(sc_allocation *const *)b)->at;
  return x < y ? -1 : x > y;
}

sc_list *sc_take_list(void) {
  sc_lock();
  sc_list *list = calloc(1, sizeof *list);
  list->count = allocation_count;
  list->items = malloc(sizeof allocations);
  memcpy(list->items, allocations, sizeof allocations);
  qsort(list->items, (size_t)list->count, sizeof *list->items, by_address);
  list->generation = generation;
  sc_unlock();
  return list;
}

void sc_release_list(sc_list *list) {
  free(list->items);
  free(list);
}

sc_allocation *sc_find(uint64_t address) {
  for (int i = 0; i < allocation_count; i++)
    if (address - allocations[i]->at < allocations[i]->size) return allocations[i];
  return NULL;
}

CUresult sc_allocate(CUcontext context, uint64_t bytes, enum sc_memory kind, sc_allocation **made) {
  void *at;
  if (posix_memalign(&at, 256, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  memset(at, 0xA5, bytes);
  sc_lock();
  sc_allocation *one = calloc(1, sizeof *one);
  *one = (sc_allocation){.at = (uint64_t)(uintptr_t)at, .size = bytes, .kind = kind};
  one->context = context;
  one->device = context->device;
  one->number = (uint64_t)allocation_count + 1;
  allocations[allocation_count++] = one;
  generation++;
  sc_unlock();
  *made = one;
  return CUDA_SUCCESS;
}

CUresult sc_release(sc_allocation *allocation) {
  allocation->freed = true;
  return CUDA_SUCCESS;
}

const char *sc_allocation_name(const sc_allocation *allocation, char *room, size_t bytes) {
  if (allocation->name[0]) return allocation->name;
  snprintf(room, bytes, "allocation %llu", (unsigned long long)allocation->number);
  return room;
}

static void print_place(const char *name, const uint32_t block[3], const uint32_t thread[3]) {
  printf("\t%s=%u,%u,%u/%u,%u,%u", name, block[0], block[1], block[2], thread[0], thread[1],
         thread[2]);
}

void sc_report_add(const sc_report *report) {
  flockfile(stdout);
  printf("report\tkind=%s\tkernel=%s", report->kind, report->kernel);
  print_place("at", report->block, report->thread);
  if (report->has_other) print_place("other", report->other_block, report->other_thread);
  if (report->space) printf("\tspace=%s", report->space);
  if (report->array) printf("\tarray=%s", report->array);
  if (report->has_array) printf("\toffset=%llu", (unsigned long long)report->offset);
  printf("\tsize=%llu\tfile=%s", (unsigned long long)report->size,
         report->file ? report->file : "");
  printf("\tline=%u\tother_line=%u\ttext=%s\n", report->line, report->other_line, report->text);
  funlockfile(stdout);
}

const char *sc_error_name(CUresult error) {
  (void)error;
  return "an error";
}

void sc_write_string(FILE *out, const char *text) { fprintf(out, "\"%s\"", text); }

bool sc_pool_reachable(CUmemoryPool pool, int device) {
  (void)pool;
  (void)device;
  return true;
}
