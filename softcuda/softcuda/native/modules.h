/* Modules and libraries (modules.c), and what their functions take (functions.c). */
#pragma once
#include "memory.h"

#include "device.h"

typedef struct sc_library sc_library;

typedef struct sc_function {
  sc_object object;
  const sc_kernel *kernel;
  sc_library *library;
  uint32_t dynamic_limit; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; 0: default */
} sc_function;

struct sc_library {
  sc_object object;
  void *handle; /* of dlopen */
  const sc_module *module;
  sc_function **functions;
  char **globals;               /* addresses, by number */
  sc_allocation **allocations;  /* of the globals */
  uint64_t users;               /* launches that are queued or kept by graphs */
  CUcontext home;               /* of its variables; NULL: a library, which has copies instead */
  int ptx_version, target;      /* 84 and 80: of ".version 8.4" and ".target sm_80" */
  sc_library *of;               /* the library of which this is the copy for one context */
  sc_library *copies;           /* of a library: its copies, one for each context that uses it */
  sc_library *next;             /* among the copies */
};

/* The function that a CUfunction or a CUkernel means in a context; a kernel of a library gets the
 * variables of that context. NULL, with the error and a report, where the handle is none. */
CUresult sc_function_in(CUfunction handle, CUcontext context, const char *call, sc_function **out);
/* Most dynamic shared bytes of a block, and most threads of one, for this function. */
uint32_t sc_dynamic_limit(const sc_function *function);
uint32_t sc_thread_limit(const sc_function *function);
void sc_library_use(sc_library *library);
void sc_library_leave(sc_library *library);
/* Drops what libraries keep for a context that ends. Needs the lock. */
void sc_context_modules_end(CUcontext context);
/* How many blocks of this size fit on the device at once: the limit of a cooperative launch. */
uint64_t sc_resident_blocks(const sc_function *function, uint64_t threads, uint32_t shared);
