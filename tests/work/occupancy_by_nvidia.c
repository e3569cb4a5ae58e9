/* Reads configurations, one a line, and writes what NVIDIA's cuda_occupancy.h makes of each. */
#include <cuda_occupancy.h>
#include <stdio.h>

int main(void) {
  int major, minor, sm_threads, sm_shared, block_shared, reserved;
  int threads, registers, fixed, dynamic, barriers;
  while (scanf("%d %d %d %d %d %d %d %d %d %d %d", &major, &minor, &sm_threads, &sm_shared,
               &block_shared, &reserved, &threads, &registers, &fixed, &dynamic, &barriers) == 11) {
    cudaOccDeviceProp device = {0};
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = sm_threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.numSms = 1;
    device.sharedMemPerBlock = 48 << 10;
    device.sharedMemPerMultiprocessor = (size_t)sm_shared;
    device.sharedMemPerBlockOptin = (size_t)block_shared;
    device.reservedSharedMemPerBlock = (size_t)reserved;
    cudaOccFuncAttributes kernel = {0};
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = (size_t)fixed;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = (size_t)dynamic;
    kernel.numBlockBarriers = barriers;
    cudaOccDeviceState state = {0};
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    cudaOccResult result = {0};
    int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads,
                                                        (size_t)dynamic);
    printf("%d %d %u\n", error, result.activeBlocksPerMultiprocessor, result.limitingFactors);
  }
}
