"""gpubench: declarative benchmarks of Numba kernels against NumPy, on airspeed velocity."""

__version__ = "0.1.0"
