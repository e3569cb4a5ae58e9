"""gpubench: declarative benchmarks of Numba kernels against NumPy, on airspeed velocity."""

from gpubench.backends.software import start_early

__version__ = "0.1.0"

start_early()
