/* The calls that launch kernels (Driver API, Execution Control). */
#include "contexts.h"
#include "launches.h"
#include "queue.h"
#include "reports.h"

static CUresult launch(const CUDA_KERNEL_NODE_PARAMS *what, CUstream handle, bool cooperative,
                       const char *call) {
  CUstream stream;
  CUresult error = sc_stream_of(handle, call, &stream);
  if (error) return error;
  sc_launch *made;
  error = sc_launch_new(what, stream->object.context, cooperative, call, &made);
  if (error) return error;
  sc_log("launch %.100s grid %u,%u,%u block %u,%u,%u shared %u stream %llu",
         made->function->kernel->name, made->grid[0], made->grid[1], made->grid[2],
         made->block[0], made->block[1], made->block[2], made->dynamic_shared,
         (unsigned long long)stream->number);
  return sc_queue(stream, &(sc_work){.kind = SC_WORK_KERNEL, .launch = made});
}

API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            CUstream stream, void **parameters, void **extra) {
  ENTER;
  CUDA_KERNEL_NODE_PARAMS what = {
    .func = function, .gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z,
    .blockDimX = block_x, .blockDimY = block_y, .blockDimZ = block_z, .sharedMemBytes = shared,
    .kernelParams = parameters, .extra = extra,
  };
  return launch(&what, stream, false, __func__);
}

API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned shared, CUstream stream,
                                       void **parameters) {
  ENTER;
  CUDA_KERNEL_NODE_PARAMS what = {
    .func = function, .gridDimX = grid_x, .gridDimY = grid_y, .gridDimZ = grid_z,
    .blockDimX = block_x, .blockDimY = block_y, .blockDimZ = block_z, .sharedMemBytes = shared,
    .kernelParams = parameters,
  };
  return launch(&what, stream, true, __func__);
}

/* CUlaunchAttributeID: hints are taken and have no effect; what would change the order of work, and
 * clusters of more than one block, are refused. */
static CUresult read_attribute(const CUlaunchAttribute *attribute, bool *cooperative) {
  switch ((int)attribute->id) {
  case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    *cooperative = attribute->value.cooperative != 0;
    return CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
  case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    return attribute->value.clusterDim.x == 1 && attribute->value.clusterDim.y == 1 &&
                   attribute->value.clusterDim.z == 1
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_CLUSTER_SIZE;
  case CU_LAUNCH_ATTRIBUTE_IGNORE:
  case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
  case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
  case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* it allows overlap, no more */
  case CU_LAUNCH_ATTRIBUTE_PRIORITY:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
  case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: return CUDA_SUCCESS;
  default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                              void **extra) {
  ENTER;
  if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  bool cooperative = false;
  CUresult error = CUDA_SUCCESS;
  for (unsigned i = 0; i < config->numAttrs && !error; i++)
    error = read_attribute(&config->attrs[i], &cooperative);
  if (error) return error;
  CUDA_KERNEL_NODE_PARAMS what = {
    .func = function, .gridDimX = config->gridDimX, .gridDimY = config->gridDimY,
    .gridDimZ = config->gridDimZ, .blockDimX = config->blockDimX, .blockDimY = config->blockDimY,
    .blockDimZ = config->blockDimZ, .sharedMemBytes = config->sharedMemBytes,
    .kernelParams = parameters, .extra = extra,
  };
  return launch(&what, config->hStream, cooperative, __func__);
}
