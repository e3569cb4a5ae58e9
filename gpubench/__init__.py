"""gpubench: declarative benchmarks of Numba kernels against NumPy, on airspeed velocity.

For notebooks: ``gpubench.load_results()`` gives stored results as a table,
``gpubench.chart("kernel")`` a chart. Both are imported when they are asked for.
"""

from typing import TYPE_CHECKING, Any

from gpubench.backends.software import start_early
from gpubench.distribution import VERSION

if TYPE_CHECKING:
    from gpubench.notebook import Chart as Chart
    from gpubench.notebook import chart as chart
    from gpubench.notebook import load_results as load_results

__version__ = VERSION

start_early()


def __getattr__(name: str) -> Any:
    """Import what a notebook asks for."""
    from importlib import import_module

    if name in ("Chart", "chart", "load_results"):
        return getattr(import_module("gpubench.notebook"), name)
    raise AttributeError(f"module 'gpubench' has no attribute {name!r}")
