/* Functions that softcuda lacks and that programs which link against the driver name: PyCUDA needs
 * an address for each to be loaded at all. One that is called says its name, as those do that are
 * asked for by name (entry.c). Their parameters do not matter, so cuda.h is left out.
 *
 * Arrays, textures and surfaces; launches of CUDA 3 and older; events between processes. */
#include "entry.h"

#define REFUSED(name)                                                                              \
  __attribute__((visibility("default"))) int name(void);                                           \
  int name(void) { return sc_refuse(#name); }

REFUSED(cuArray3DCreate_v2)
REFUSED(cuArray3DGetDescriptor_v2)
REFUSED(cuArrayCreate_v2)
REFUSED(cuArrayDestroy)
REFUSED(cuArrayGetDescriptor_v2)
REFUSED(cuCtxAttach)
REFUSED(cuCtxDetach)
REFUSED(cuCtxGetSharedMemConfig)
REFUSED(cuCtxSetSharedMemConfig)
REFUSED(cuFuncSetSharedSize)
REFUSED(cuIpcGetEventHandle)
REFUSED(cuIpcOpenEventHandle)
REFUSED(cuLaunch)
REFUSED(cuLaunchGrid)
REFUSED(cuLaunchGridAsync)
REFUSED(cuMemcpy3DPeer)
REFUSED(cuMemcpy3DPeerAsync)
REFUSED(cuMemcpyAtoA_v2)
REFUSED(cuMemcpyAtoD_v2)
REFUSED(cuMemcpyAtoH_v2)
REFUSED(cuMemcpyDtoA_v2)
REFUSED(cuMemcpyHtoA_v2)
REFUSED(cuModuleGetSurfRef)
REFUSED(cuModuleGetTexRef)
REFUSED(cuParamSetSize)
REFUSED(cuParamSetTexRef)
REFUSED(cuParamSetf)
REFUSED(cuParamSeti)
REFUSED(cuParamSetv)
REFUSED(cuProfilerInitialize)
REFUSED(cuSurfRefGetArray)
REFUSED(cuSurfRefSetArray)
REFUSED(cuTexRefCreate)
REFUSED(cuTexRefDestroy)
REFUSED(cuTexRefGetAddressMode)
REFUSED(cuTexRefGetAddress_v2)
REFUSED(cuTexRefGetArray)
REFUSED(cuTexRefGetFilterMode)
REFUSED(cuTexRefGetFlags)
REFUSED(cuTexRefGetFormat)
REFUSED(cuTexRefSetAddress2D_v3)
REFUSED(cuTexRefSetAddressMode)
REFUSED(cuTexRefSetAddress_v2)
REFUSED(cuTexRefSetArray)
REFUSED(cuTexRefSetFilterMode)
REFUSED(cuTexRefSetFlags)
REFUSED(cuTexRefSetFormat)
