"""gpubench: declarative benchmarks of Numba kernels against NumPy, on airspeed velocity.

For notebooks: ``gpubench.load_results()`` gives stored results as a table,
``gpubench.chart("kernel")`` a chart. Both are imported when they are asked for.
"""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpubench.distribution import VERSION as VERSION
    from gpubench.notebook import Chart as Chart
    from gpubench.notebook import chart as chart
    from gpubench.notebook import load_results as load_results

    __version__ = VERSION

# Else nothing is imported here: Ctrl-C in it would end a command in a traceback, as `__main__`
# comes later. Whether the device in software is asked for, `start_early` decides.
if os.environ.get("GPUBENCH_SOFTCUDA") or os.environ.get("SOFTCUDA"):
    from gpubench.backends.software import start_early

    start_early()


def __getattr__(name: str) -> Any:
    """Import what a notebook asks for, and the version."""
    from importlib import import_module

    if name in ("Chart", "chart", "load_results"):
        return getattr(import_module("gpubench.notebook"), name)
    if name == "__version__":
        return import_module("gpubench.distribution").VERSION
    raise AttributeError(f"module 'gpubench' has no attribute {name!r}")
