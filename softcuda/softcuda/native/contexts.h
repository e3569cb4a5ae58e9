/* Where calls come in (calls.c), contexts (contexts.c) and devices (devices.c). */
#pragma once
#include "base.h"

/* ---- calls.c --------------------------------------------------------------------------------- */

/* Logs a call by its name, and answers why it may not be made: the driver is not initialised, or
 * the calling thread runs a function of the host for a stream. */
CUresult sc_begin_call(const char *name);
/* The calling thread runs a function of the host for a stream from now on, or does no more. */
void sc_set_calling_host(bool calling);

/* ---- contexts.c ------------------------------------------------------------------------------ */

struct CUctx_st {
  int device;
  int retained;       /* of the primary context */
  bool alive;
  CUresult sticky;    /* the error that every further call answers */
  uint32_t peers;     /* bit n: may reach the memory of device n */
  uint64_t used;      /* bytes of device memory */
  struct CUstream_st *legacy; /* its default stream */
  bool primary, was_reset;
  unsigned flags;     /* CU_CTX_SCHED_SPIN ... */
  uint64_t id;
  size_t limits[16];  /* by CUlimit */
  struct CUctx_st *next;
};

/* The current context of the calling thread, or NULL. */
CUcontext sc_current(void);
/* Gives a context the error that all further calls answer; wakes those who wait. */
void sc_set_sticky(CUcontext context, CUresult error);
/* Has a context that lives answer no error any more; one whose device is lost keeps it. Needs the
 * lock. */
void sc_forget_sticky(CUcontext context);
/* The primary context of a device, whether it is alive or not. */
CUcontext sc_primary(int device);
/* Whether there is a device of this number. */
bool sc_is_device(CUdevice device);
/* Whether a context lives: CUDA_ERROR_INVALID_CONTEXT or CUDA_ERROR_CONTEXT_IS_DESTROYED if not. */
CUresult sc_context_usable(CUcontext context);
/* Takes a context from the calling thread's stack where it is the current one. */
void sc_leave_context(CUcontext context);
/* Calls `visit` for every context, those that have ended too. */
void sc_contexts_each(void (*visit)(CUcontext));

/* Begins every call of the API: logs its name, and answers what lies in the way: not initialised,
 * or the sticky error of the current context (Driver API, 6.1 CUresult: "leaves the process in an
 * inconsistent state and any further CUDA work will return the same error"). */
CUresult sc_enter(const char *name);
#define ENTER                                                                                      \
  do {                                                                                             \
    CUresult entered_ = sc_enter(__func__);                                                        \
    if (entered_) return entered_;                                                                 \
  } while (0)

/* The same for calls that a sticky error does not stop: queries of devices, and those that make a
 * context current or end it. */
#define ENTER_ANYWAY                                                                               \
  do {                                                                                             \
    CUresult entered_ = sc_enter(__func__);                                                        \
    if (entered_ == CUDA_ERROR_NOT_INITIALIZED || entered_ == CUDA_ERROR_NOT_PERMITTED)            \
      return entered_;                                                                             \
  } while (0)

/* ---- devices.c ------------------------------------------------------------------------------- */

/* An attribute of a device; 0 where it has no such thing. */
int sc_attribute(CUdevice_attribute attribute, int device);
