/* Counting what warps do (counts.c). */
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
