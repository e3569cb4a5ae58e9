/* Runs one kernel as told on the command line, and prints what came of it.
 *
 *   execution kernel=add grid=2 block=32 a=<hex> b=<hex> c_bytes=256 order=descending sanitize=1
 */
#include "harness.h"

#include <signal.h>
#include <sys/mman.h>

/* Kernels whose threads wait for nothing, and those whose threads wait for each other. */
#define IN_TURN(X) \
    X(add) X(halve) \
    X(trace) X(clocks) X(past_the_end) X(just_past_the_end) X(before_the_beginning) \
    X(across_the_end) X(nowhere) X(null) X(misaligned) X(touches_c) X(writes_c) X(in_a_gap) \
    X(past_dynamic) X(past_local) X(after_leaving) X(endless_recursion) X(endless_frames) \
    X(endless_loop) X(endless_prints) X(divides) X(is_illegal) X(traps) X(asserts) \
    X(reads_lost_memory) X(prints) X(uses_the_heap) X(exhausts_the_heap) X(frees_twice) \
    X(uses_freed_heap) X(reads_what_nothing_wrote) X(reverse_without_barrier) \
    X(neighbours_within_a_word) X(all_write_one) X(all_write_their_own_number) \
    X(all_add_atomically) X(adds_and_reads) X(blocks_overlap) X(reads_the_next) X(locks) \
    X(locks_without_fence) X(passes_by_flag) \
    X(passes_by_flag_without_fence) X(passes_by_plain_flag)
#define WAITING(X) \
    X(trace_twice) X(reverse) X(reductions_of_a_barrier) X(producer) X(half_leave) X(grid_sum) \
    X(yields) X(warp_operations) X(active) X(ended_lanes_vote) X(branches_meet) X(never_meet) \
    X(not_a_member) X(reads_an_absent_lane) X(frames) X(neighbours_frame) \
    X(endless_recursion_beside_others) \
    X(endless_loop_beside_others) X(endless_barriers) X(endless_yields) X(two_barriers) \
    X(reads_shared_that_nothing_wrote) X(broadcast_after_syncwarp) X(broadcast_after_vote) \
    X(syncwarp_is_for_one_warp) X(last_block_adds) X(last_block_without_fence) \
    X(last_block_without_barrier) X(last_thread_adds) X(some_meet) \
    X(some_meet_and_one_reads_more) X(barrier_in_both_branches)

#define DECLARE(name) void name(sc_thread *, char *);
IN_TURN(DECLARE)
WAITING(DECLARE)

static const sc_kernel kernels[] = {
#define OF_TURN(of) {.name = #of, .run = of},
#define OF_WAIT(of) {.name = #of, .run = of, .waits = 1},
    IN_TURN(OF_TURN) WAITING(OF_WAIT)};

/* 24 floats, a gap, 512 bytes; then dynamic shared memory. */
static const sc_variable shared_variables[] = {
    {.name = "s", .bytes = 96, .align = 4, .at = S},
    {.name = "doubles", .bytes = 512, .align = 8, .at = DOUBLES},
};
static const char *const files[] = {"", "kernels.py"};
static const sc_module module = {
    .abi = SC_ABI, .kernels = kernels, .kernel_count = sizeof kernels / sizeof *kernels,
    .shared = shared_variables, .shared_count = 2, .shared_window = DOUBLES + 512 + GAP,
    .files = files, .file_count = 2,
};

static int argument_count;
static char **arguments;

static const char *option(const char *name, const char *otherwise) {
  size_t length = strlen(name);
  for (int i = 1; i < argument_count; i++)
    if (!strncmp(arguments[i], name, length) && arguments[i][length] == '=')
      return arguments[i] + length + 1;
  return otherwise;
}
static unsigned long number(const char *name, unsigned long otherwise) {
  const char *text = option(name, NULL);
  return text ? strtoul(text, NULL, 10) : otherwise;
}

/* An array named "a": its contents from a=<hex>, else a_bytes of memory that nothing has
 * written. */
static sc_allocation *make_array(CUcontext context, const char *name) {
  char key[32];
  snprintf(key, sizeof key, "%s_kind", name);
  enum sc_memory kind = (enum sc_memory)number(key, SC_DEVICE_MEMORY);
  snprintf(key, sizeof key, "%s_bytes", name);
  const char *hex = option(name, "");
  sc_allocation *made;
  sc_allocate(context, *hex ? strlen(hex) / 2 : number(key, 4096), kind, &made);
  snprintf(made->name, sizeof made->name, "%s", name);
  for (size_t i = 0; i < strlen(hex) / 2; i++)
    sscanf(hex + 2 * i, "%2hhx", (unsigned char *)(uintptr_t)made->at + i);
  snprintf(key, sizeof key, "%s_written", name);
  if (*hex || number(key, 0)) sc_shadow_written(made, 0, made->size);
  snprintf(key, sizeof key, "%s_constant", name);
  made->constant = number(key, 0);
  snprintf(key, sizeof key, "%s_freed", name);
  made->freed = number(key, 0);
  snprintf(key, sizeof key, "%s_device", name);
  made->device = (int)number(key, 0);
  return made;
}

static void print_array(const sc_allocation *array) {
  char key[80];
  snprintf(key, sizeof key, "%s_show", array->name);
  printf("%s", array->name);
  for (uint64_t i = 0; i < number(key, 0); i++)
    printf("\t%u", ((const uint32_t *)(uintptr_t)array->at)[i]);
  printf("\n");
}

static void *run(void *data) {
  const sc_launch *launch = data;
  for (unsigned long i = 0; i < number("repeat", 1); i++) {
    CUresult result = sc_execute(launch);
    flockfile(stdout);
    if (result || !number("quiet", 0)) printf("result\t%d\n", (int)result);
    funlockfile(stdout);
  }
  return NULL;
}

/* As a library does that was built with -ffast-math; new threads inherit it. */
static void flush_subnormals(void) {
#ifdef __x86_64__
  uint32_t modes = 0x9FC0;
  __asm__ volatile("ldmxcsr %0" : : "m"(modes));
#endif
}

static void read_options(void) {
  const char *order = option("order", "ascending");
  sc_option.sanitize = number("sanitize", 0);
  sc_option.kernel_timeout = atof(option("timeout", "20"));
  if (!strcmp(order, "descending")) {
    sc_option.order = SC_DESCENDING;
  } else if (strcmp(order, "ascending")) {
    sc_option.order = SC_PERMUTED;
    sc_option.seed = strtoul(order, NULL, 10);
  }
}

int main(int count, char **given) {
  argument_count = count;
  arguments = given;
  read_options();
  if (number("flush", 0)) flush_subnormals();
  struct CUctx_st context = {.alive = true, .peers = (uint32_t)number("peers", 0)};
  sc_allocation *a = make_array(&context, "a"), *b = make_array(&context, "b");
  sc_allocation *c = make_array(&context, "c");
  if (number("c_lost", 0)) /* the host takes its memory back and does not say so */
    mprotect((void *)(uintptr_t)((c->at + 4095) / 4096 * 4096), 4096, PROT_NONE);
  arrays parameters = {a->at, b->at, c->at};
  sc_library library = {.module = &module};
  sc_function function = {.library = &library};
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (!strcmp(kernels[i].name, option("kernel", ""))) function.kernel = &kernels[i];
  if (!function.kernel) return 2;
  sc_launch launch = {
      .function = &function, .context = &context, .parameters = (char *)&parameters,
      .grid = {(uint32_t)number("grid", 1), (uint32_t)number("grid_y", 1), 1},
      .block = {(uint32_t)number("block", 1), (uint32_t)number("block_y", 1), 1},
      .dynamic_shared = (uint32_t)number("dynamic", 0),
      .cooperative = number("cooperative", 0),
  };
  pthread_t threads[16];
  unsigned long streams = number("streams", 1);
  for (unsigned long i = 0; i < streams; i++) pthread_create(&threads[i], NULL, run, &launch);
  for (unsigned long i = 0; i < streams; i++) pthread_join(threads[i], NULL);
  print_array(b);
  print_array(c);
  if (number("crash", 0)) raise(SIGSEGV); /* no kernel's fault */
  return 0;
}
