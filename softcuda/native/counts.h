/* What counts.c and requests.c share: a request of a warp, and the sums of an access. */
#pragma once
#include "blocks.h"

/* What all requests of one access of the code did in one space. */
typedef struct sums {
  uint64_t requests, lanes;
  uint64_t passes; /* sectors; of shared memory, wavefronts */
  uint64_t ideal;  /* what the same bytes would take at best */
  uint64_t same;   /* lanes whose address a lane before them has */
} sums;

/* Lanes of one warp that do an access together, ascending. */
typedef struct request {
  uint32_t count;
  uint8_t lanes[SC_WARP];
  uint64_t places[SC_WARP]; /* addresses; in shared and local memory, offsets */
} request;

/* Adds a request in a space to the sums; `capability` as in sc_option. */
void sc_add_request(sums *sum, const request *one, const sc_code_access *access,
                    enum sc_code_space space, int capability);
