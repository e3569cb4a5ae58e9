/* Fibers: switching between them, and their stacks. */
#include "fibers.h"

#include <sys/mman.h>

/* initial-exec: found without a call, which could take memory inside a handler. */
__thread sc_worker *sc_worker_of_thread __attribute__((tls_model("initial-exec")));

/* Room for the registers of a translated kernel and of functions that call themselves. Only touched
 * pages take memory. The guard is wider than the frame of any one function, so that none skips
 * it. */
static const size_t STACK_BYTES = (size_t)192 << 10, GUARD_BYTES = (size_t)64 << 10;
enum { STACKS_OF_CHUNK = 32 };

typedef struct sc_chunk {
  sc_stack stacks[STACKS_OF_CHUNK];
  struct sc_chunk *next;
} sc_chunk;

/* Stacks belong to launches while they run, and to the process between them: a system allows a
 * process some 65,000 mappings (vm.max_map_count), and each stack is two of them, or three. */
static pthread_mutex_t stacks_lock = PTHREAD_MUTEX_INITIALIZER;
static sc_stack *unused_stacks;
static uint32_t stack_count;
static sc_chunk *chunks; /* of all stacks; none is ever freed, so that reading needs no lock */

/* void sc_switch(void **save, void *to): saves what a function must preserve on the stack in use,
 * writes the stack pointer to *save, and goes on with the stack `to`, saved in the same way. The
 * modes of floating point go along: fibers have the default ones, whatever the program has set in
 * its threads, since PTX keeps subnormal numbers where it does not say .ftz (PTX ISA, 9.7.3). */
void sc_switch(void **save, void *to) __attribute__((visibility("hidden")));

#if defined(__x86_64__)
/* System V ABI for AMD64, 3.2.1: rbx, rbp, r12-r15, the control bits of mxcsr and the x87 word. */
__asm__(
    ".text\n"
    ".globl sc_switch\n"
    ".hidden sc_switch\n"
    ".type sc_switch, @function\n"
    "sc_switch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  subq $8, %rsp\n"
    "  stmxcsr (%rsp)\n"
    "  fnstcw 4(%rsp)\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  ldmxcsr (%rsp)\n"
    "  fldcw 4(%rsp)\n"
    "  addq $8, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  ret\n"
    ".size sc_switch, .-sc_switch\n");

/* A stack on which sc_switch "returns" into `begin`, as if that had just been called. */
static void *prepare(char *top, void (*begin)(void)) {
  const uint64_t mxcsr = 0x1F80, x87 = 0x37F; /* at the start of a process (3.4.1) */
  uint64_t *at = (uint64_t *)top;
  *--at = 0; /* no caller; where a function begins, the stack is 16-aligned plus 8 (3.2.2) */
  *--at = (uint64_t)(uintptr_t)begin;
  for (int i = 0; i < 6; i++) *--at = 0;
  *--at = mxcsr | x87 << 32;
  return at;
}

#elif defined(__aarch64__)
/* Procedure Call Standard for AArch64, 6.1: x19-x30, d8-d15; and FPCR. */
__asm__(
    ".text\n"
    ".globl sc_switch\n"
    ".hidden sc_switch\n"
    ".type sc_switch, %function\n"
    "sc_switch:\n"
    "  sub sp, sp, #176\n"
    "  stp x19, x20, [sp, #0]\n"
    "  stp x21, x22, [sp, #16]\n"
    "  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n"
    "  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mrs x9, fpcr\n"
    "  str x9, [sp, #160]\n"
    "  mov x9, sp\n"
    "  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldr x9, [sp, #160]\n"
    "  msr fpcr, x9\n"
    "  ldp x19, x20, [sp, #0]\n"
    "  ldp x21, x22, [sp, #16]\n"
    "  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n"
    "  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n"
    "  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #176\n"
    "  ret\n"
    ".size sc_switch, .-sc_switch\n");

static void *prepare(char *top, void (*begin)(void)) {
  uint64_t *at = (uint64_t *)(top - 176);
  memset(at, 0, 176); /* 0 in FPCR is the default mode */
  at[11] = (uint64_t)(uintptr_t)begin; /* x30, the address that `ret` goes to */
  return at;
}
#else
#error "softcuda runs on x86-64 and aarch64"
#endif

/* ---- memory that is used again -------------------------------------------------------------- */

void *sc_pool_take(struct sc_pool *pool, size_t bytes, bool clear) {
  if (pool->bytes < bytes) {
    free(pool->at);
    *pool = (struct sc_pool){0};
    size_t room = bytes + bytes / 2;
    if (posix_memalign(&pool->at, 256, room)) return NULL;
    pool->bytes = room;
  }
  if (clear) memset(pool->at, 0, bytes);
  return pool->at;
}

/* ---- stacks --------------------------------------------------------------------------------- */

/* More unused ones; the lock is held. */
static void make_stacks(void) {
  const size_t each = GUARD_BYTES + STACK_BYTES;
  sc_chunk *chunk = calloc(1, sizeof *chunk);
  if (!chunk) return;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *at = mmap(NULL, STACKS_OF_CHUNK * each, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) {
    free(chunk);
    return;
  }
  for (int i = STACKS_OF_CHUNK - 1; i >= 0; i--) {
    sc_stack *stack = &chunk->stacks[i];
    stack->guard = at + (size_t)i * each;
    stack->low = stack->guard + GUARD_BYTES;
    /* Tops a whole number of pages apart would all compete for the same lines of a cache. */
    stack->top = stack->low + STACK_BYTES - (size_t)(stack_count++ % 48) * 320;
    if (mprotect(stack->low, STACK_BYTES, PROT_READ | PROT_WRITE)) continue;
    stack->next = unused_stacks;
    unused_stacks = stack;
  }
  chunk->next = chunks;
  __atomic_store_n(&chunks, chunk, __ATOMIC_RELEASE);
}

static void keep_stack(sc_worker *worker, sc_stack *stack) {
  if (!worker->free_stacks) worker->last_stack = stack;
  stack->next = worker->free_stacks;
  worker->free_stacks = stack;
}

/* Some of the process's, so that not each of them needs the lock. */
static void take_stacks(sc_worker *worker) {
  pthread_mutex_lock(&stacks_lock);
  if (!unused_stacks) make_stacks();
  for (int i = 0; i < STACKS_OF_CHUNK && unused_stacks; i++) {
    sc_stack *stack = unused_stacks;
    unused_stacks = stack->next;
    keep_stack(worker, stack);
  }
  pthread_mutex_unlock(&stacks_lock);
}

void sc_stacks_leave(sc_worker *worker) {
  if (!worker->free_stacks) return;
  pthread_mutex_lock(&stacks_lock);
  worker->last_stack->next = unused_stacks;
  unused_stacks = worker->free_stacks;
  pthread_mutex_unlock(&stacks_lock);
  worker->free_stacks = NULL;
}

static sc_stack *take_stack(sc_worker *worker) {
  if (!worker->free_stacks) take_stacks(worker);
  if (!worker->free_stacks) return NULL;
  sc_stack *stack = worker->free_stacks;
  worker->free_stacks = stack->next;
  return stack;
}

void sc_fiber_drop(sc_worker *worker, sc_fiber *fiber) {
  if (!fiber->stack) return;
  keep_stack(worker, fiber->stack);
  fiber->stack = NULL;
}

/* ---- switching ------------------------------------------------------------------------------ */

/* What every fiber begins with. */
static void begin(void) {
  sc_worker *worker = sc_worker_of_thread;
  sc_fiber *fiber = worker->starting;
  worker->current = fiber;
  worker->start(fiber);
  fiber->status = SC_ENDED;
  sc_fiber_leave(worker);
}

bool sc_fiber_resume(sc_worker *worker, sc_fiber *fiber, void (*start)(sc_fiber *)) {
  void *to = fiber->saved;
  if (!fiber->stack) {
    fiber->stack = take_stack(worker);
    if (!fiber->stack) return false;
    fiber->local_used = fiber->local_newest = 0;
    worker->starting = fiber;
    worker->start = start;
    to = prepare(fiber->stack->top, begin);
  }
  sc_switch(&worker->scheduler, to);
  return true;
}

/* `current` is changed on the fiber's own stack, so that a signal between two stacks finds NULL. */
void sc_fiber_suspend(sc_fiber *fiber) {
  sc_worker *worker = sc_worker_of(fiber);
  worker->current = NULL;
  sc_switch(&fiber->saved, worker->scheduler);
  worker->current = fiber;
}

void sc_fiber_leave(sc_worker *worker) {
  void *unused;
  worker->current = NULL;
  sc_switch(&unused, worker->scheduler);
  __builtin_unreachable();
}

/* ---- local memory --------------------------------------------------------------------------- */

const sc_stack *sc_local_owner(uint64_t address) {
  const sc_chunk *chunk = __atomic_load_n(&chunks, __ATOMIC_ACQUIRE);
  for (; chunk; chunk = chunk->next) {
    for (const sc_stack *stack = chunk->stacks; stack < chunk->stacks + STACKS_OF_CHUNK; stack++) {
      uint64_t offset = address - (uint64_t)(uintptr_t)stack->local;
      if (stack->local && offset < SC_LOCAL_ROOM) return stack;
    }
  }
  return NULL;
}
