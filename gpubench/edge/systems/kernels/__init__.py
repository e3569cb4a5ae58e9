"""Kernels of the suites of other systems, one file for each family."""
