/* What requests of warps take (requests.c). */
#pragma once
#include "fibers.h"

/* What all requests of one access of the code did in one space. */
typedef struct sums {
  uint64_t requests, lanes;
  uint64_t passes; /* sectors; of shared memory, wavefronts */
  uint64_t ideal;  /* what as many lanes side by side would take; not of local memory */
  uint64_t same;   /* lanes of atomic operations whose address a lane before them has */
} sums;

/* Lanes of one warp that do an access together, ascending. */
typedef struct request {
  uint32_t count, warp; /* lanes; number of the warp in its block */
  uint8_t lanes[SC_WARP];
  uint64_t places[SC_WARP]; /* addresses; in shared and local memory, offsets */
} request;

/* Adds a request in a space to the sums. */
void sc_add_request(sums *sum, const request *one, const sc_code_access *access,
                    enum sc_code_space space);
