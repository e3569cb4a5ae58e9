/* Parameters of nodes (nodes.c). */
#pragma once
#include "graphs.h"

/* What the parameters of a node say, as work. The result is new and belongs to the caller. */
CUresult sc_work_of(const CUgraphNodeParams *what, const char *call, sc_work **made);
/* Parameters of one kind in the form of those of any node. */
CUgraphNodeParams sc_kernel_parameters(const CUDA_KERNEL_NODE_PARAMS *what);
CUgraphNodeParams sc_fill_parameters(const CUDA_MEMSET_NODE_PARAMS *what);
