/* What softcuda is told from outside (options.c). */
#pragma once
#include "base.h"

enum sc_order { SC_ASCENDING, SC_DESCENDING, SC_PERMUTED };

/* A fault on command: `what` happens at the nth time that it could (0: each time), where the name
 * of the kernel contains `match` (empty: any). See sc_options_read for the words. */
typedef struct sc_command {
  enum sc_command_what {
    SC_OUT_OF_MEMORY, /* an allocation of at least `value` bytes fails */
    SC_ILLEGAL,       /* a launch ends with CUDA_ERROR_ILLEGAL_ADDRESS */
    SC_LOST,          /* a launch loses the device: CUDA_ERROR_DEVICE_UNAVAILABLE from then on */
    SC_HANG,          /* a launch never ends */
    SC_SLOW_COPY,     /* a copy takes `value` microseconds longer */
    SC_DELAY          /* work on the stream number `value2` starts `value` microseconds late */
  } what;
  uint64_t nth, seen, value, value2;
  char match[128];
} sc_command;

typedef struct sc_options {
  int devices;            /* 1; of these, those that CUDA_VISIBLE_DEVICES leaves */
  int physical[SC_MAX_DEVICES]; /* the number of each among all */
  int capability;         /* 80: compute capability 8.0 */
  int driver_version;     /* what cuDriverGetVersion tells; CUDA_VERSION of the header */
  uint64_t memory;        /* bytes of a device; 4 GiB */
  int multiprocessors;    /* 4 */
  int block_limit;        /* most threads of a block; 1024 */
  uint64_t shared_limit;  /* most shared bytes of a block without opting in; 49152 */
  enum sc_order order;    /* of threads and of blocks */
  uint64_t seed;          /* of SC_PERMUTED */
  bool sanitize;          /* find races, uninitialised reads and unmatched barriers */
  bool count;             /* keep what launches do, of modules that tell it */
  double kernel_timeout;  /* seconds until a kernel ends with LAUNCH_TIMEOUT; 0: never */
  sc_command commands[32];
  int command_count;
  bool leaks;             /* report what is alive when its context ends */
  char log[1024];         /* path of the call log; empty: none */
  char complaint[256];    /* why the environment cannot be used (cuInit says it); empty: it can */
} sc_options;

extern sc_options sc_option;

/* Reads the environment: SOFTCUDA_DEVICES, _CC, _VERSION, _MEMORY, _SMS, _BLOCK, _SHARED, _ORDER
 * (ascending, descending, or a seed), _SANITIZE, _COUNT, _TIMEOUT, _LEAKS, _LOG and _FAULTS. */
void sc_options_read(void);
/* Sets one option by its name in lower case ("order", "7"), also while programs run; false where
 * name or text mean nothing. Exported, for Python. */
API int softcuda_set(const char *name, const char *text);
/* The command of this kind that applies now, or NULL; counts each time that it could. */
sc_command *sc_commanded(enum sc_command_what what, const char *name, uint64_t value);
