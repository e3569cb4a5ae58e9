/* What the requests of one access of the code have in common (facts.c). */
#pragma once
#include "requests.h"

/* Whether a number was the same in all requests that have it. */
enum sc_known { SC_UNKNOWN, SC_FIXED, SC_VARIES };
typedef struct known {
  enum sc_known state;
  int64_t value; /* of SC_FIXED */
} known;

/* Sectors by pages of 4096 bytes: a bit for each of 128. Those of an older epoch are forgotten. */
typedef struct page_bits {
  uint64_t key, epoch; /* key 0: empty */
  uint64_t bits[2];
} page_bits;

typedef struct sector_set {
  page_bits *pages, *last;
  uint64_t room, used;
  uint64_t count; /* sectors that were new in their epoch, of all epochs */
} sector_set;

typedef struct facts {
  uint64_t uniform;        /* requests whose lanes have one place */
  uint64_t uneven;         /* requests in which the step of threadIdx.x changes at most lanes */
  known step_x, step_y;    /* bytes for one step of threadIdx.x, and of threadIdx.y */
  known pitch;             /* of shared memory: bytes from row to row of a column */
  bool conflicts;          /* a request has taken more passes than the ideal */
  uint64_t padded;         /* passes; from the first conflict on, of rows with a pad */
  sector_set all, by_block; /* different sectors of global memory: in all, and in each block */
} facts;

/* The place of the first lane in the requests of a warp, to compare rows of a block by. */
typedef struct lead {
  uint64_t count, sum, weighted, weights;
} lead;

struct sc_facts {
  facts (*of_accesses)[SC_SPACES];
  uint64_t *off;     /* lanes of an access that come to it, and whose guard is off */
  lead (*leads)[SC_WARP]; /* of the requests in one space of each access */
  uint8_t *lead_spaces;
  uint64_t lead_block;
  uint32_t next_x[SC_WARP], next_y[SC_WARP]; /* lanes of each warp with a neighbour in it */
  sector_set loaded; /* sectors that any load of a block asks for */
  bool failed;
  struct sc_pool facts_pool, off_pool, lead_pool, space_pool;
};

/* Takes what is needed for a launch; false: no memory. */
bool sc_facts_begin(struct sc_facts *facts, const sc_grid *grid);
/* Adds a request of a warp, whose passes were counted, and those that would do. */
void sc_facts_add(struct sc_facts *facts, const sc_block *block, uint32_t number,
                  const request *one, enum sc_code_space space, uint64_t passes, uint64_t ideal);
/* Compares the rows of the last block. */
void sc_facts_settle(struct sc_facts *facts, const sc_grid *grid);
/* Gives back what grew. */
void sc_facts_end(struct sc_facts *facts, const sc_grid *grid);
void sc_facts_forget(struct sc_facts *facts);
