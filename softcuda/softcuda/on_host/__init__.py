"""What CuPy asks of NVIDIA's libraries, done by NumPy on the host in the memory of the device.

cuBLAS, cuFFT, cuRAND and Thrust hold machine code of GPUs, which softcuda cannot run. These modules
stand in their places. A stand-in is no kernel: the device in software counts nothing of it.
"""
