/* Counting what warps do (counts.c, requests.c). */
#pragma once
#include "fibers.h"

/* Takes what is needed to count a launch; false: no memory. */
bool sc_counts_begin(sc_grid *grid);
/* Keeps what a launch did, unless it has failed. */
void sc_counts_end(sc_grid *grid);
/* Keeps a launch that was not counted: its kernel is empty, or does not tell what it does. */
void sc_counts_absent(const sc_launch *launch);
void sc_counts_forget(sc_worker *worker);
void sc_counts_begin_warp(sc_block *block, uint32_t number);
void sc_counts_begin_thread(sc_fiber *fiber);
void sc_counts_end_thread(sc_fiber *fiber);
/* Counts what a warp, or all of a block, did as far as its lanes have come. */
void sc_counts_warp(sc_block *block, uint32_t number);
void sc_counts_block(sc_block *block);
/* All that can run did so once; `idle`: and did nothing but wait. */
void sc_counts_pass(sc_grid *grid, bool idle);
void sc_counts_trace(sc_thread *thread, uint32_t places);
/* Keeps that a launch has no counts, since it ended with an error. */
void sc_counts_missing(const sc_launch *launch, CUresult error);
/* What launches did, as a JSON object for each line, oldest first, and forgets it; see
 * softcuda_reports. Exported, for Python. */
API size_t softcuda_counts(char *out, size_t room);

/* ---- requests.c ----------------------------------------------------------------------------- */

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
