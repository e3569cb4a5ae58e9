"""The kernel library: NumPy, Numba CPU and CUDA forms, one file for each family of kernels.

Arrays enter, and results in arrays leave. It imports nothing of the engine, which reads it as it
reads the kernels of any project.
"""
