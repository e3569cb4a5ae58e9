"""The kernel library: NumPy, Numba CPU and CUDA forms, one file for each family of kernels."""
