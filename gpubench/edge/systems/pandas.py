"""pandas on the CPU: functions over data frames, on one thread."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

from gpubench.arrow import pyarrow
from gpubench.backends.host import HostBackend, HostSession
from gpubench.backends.protocol import Native
from gpubench.distribution import require_extra
from gpubench.errors import BackendError, KernelError

DTYPE_BACKENDS = ("numpy", "arrow")


class PandasSession(HostSession):
    """Frames of pandas's own types, or of Arrow's (``dtypes``).

    Raises ``BackendError`` where ``cudf.pandas`` stands for pandas.
    """

    def __init__(self, dtypes: str) -> None:
        super().__init__("pandas")
        if is_accelerated():
            raise BackendError(
                "cudf.pandas is switched on in this process and would compute this too; leave "
                "`python -m cudf.pandas` and cudf.pandas.install() out"
            )
        self.pandas = import_module("pandas")

        self._dtypes = dtypes
        self._facts = {
            "pandas": str(self.pandas.__version__),
            "pyarrow": str(pyarrow().__version__),
            "pandas_dtypes": dtypes,
        }

    def table_to_native(self, table: Any) -> Native:
        """Return a frame with an index from 0. Missing values of integers and booleans make
        floating-point numbers and objects of them, unless types are Arrow's."""
        if self._dtypes == "arrow":
            return table.to_pandas(types_mapper=self.pandas.ArrowDtype)
        return table.to_pandas()

    def table_to_host(self, native: Native) -> Any:
        return to_arrow(native)


class PandasBackend(HostBackend):
    name = "pandas"
    title = "pandas"
    times = ("kernel", "end_to_end", "transfer", "cold", "start")
    requires = (require_extra("pandas"),)
    modules = ("pandas", "pyarrow")
    software = ("pandas", "pyarrow")
    concerns = ("pandas",)
    takes_tables = True
    # No `preload`: pandas imports pyarrow, which starts a thread, and that does not survive a fork.
    options: ClassVar[Mapping[str, str]] = {
        "dtypes": "'numpy', pandas's own types, or 'arrow'; absent: 'numpy'"
    }

    def too_many_threads(self, threads: int) -> str | None:
        if threads == 1:
            return None
        return f"threads of {threads}: pandas computes on one thread; leave out 'threads'"

    def start(self, device: str, threads: int | None, dtypes: object = "numpy") -> PandasSession:
        if threads is not None and (reason := self.too_many_threads(threads)):
            raise BackendError(reason)
        if dtypes not in DTYPE_BACKENDS:
            raise BackendError(
                f"the option dtypes is {dtypes!r}; allowed: {', '.join(DTYPE_BACKENDS)}"
            )
        return PandasSession(str(dtypes))


def is_accelerated() -> bool:
    """Return whether ``cudf.pandas`` stands for pandas in this process."""
    return bool(getattr(sys.modules.get("cudf.pandas"), "LOADED", False))


def to_arrow(frame: Any) -> Any:
    """Return a frame of pandas without its index, as a ``pyarrow.Table``; raises ``KernelError``
    for anything else, and for columns that Arrow cannot hold."""
    if not isinstance(frame, import_module("pandas").DataFrame):
        raise KernelError(
            f"a table came as a {type(frame).__name__}; allowed: a DataFrame. An index is left out:"
            " return frame.reset_index()"
        )
    pa = pyarrow()
    if strange := [column for column in frame.columns if not isinstance(column, str)]:
        raise KernelError(f"a column of a frame is called {strange[0]!r}; names are text")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    except (pa.ArrowException, TypeError) as error:
        raise KernelError(f"the frame cannot be brought to Arrow: {error}") from error
