"""gpubench: declarative benchmarks of Numba kernels against NumPy, on airspeed velocity.

For notebooks: ``gpubench.results()`` gives stored results as a table, ``gpubench.chart("kernel")``
a chart. Both are imported when they are asked for.
"""

from typing import TYPE_CHECKING, Any

from gpubench.backends.software import start_early

if TYPE_CHECKING:
    from gpubench.notebook import Chart as Chart
    from gpubench.notebook import chart as chart
    from gpubench.notebook import results as results

__version__ = "0.1.0"

start_early()


def __getattr__(name: str) -> Any:
    """Import what a notebook asks for."""
    from importlib import import_module

    if name == "results":  # the package of that name, which can be called like the function
        return import_module("gpubench.results")
    if name in ("Chart", "chart"):
        return getattr(import_module("gpubench.notebook"), name)
    raise AttributeError(f"module 'gpubench' has no attribute {name!r}")
