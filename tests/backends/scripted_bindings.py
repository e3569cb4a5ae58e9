"""The driver's bindings (``cuda.bindings.driver``) without a driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Result(int):
    """As ``CUresult``: an integer with a name."""

    @property
    def name(self) -> str:
        return "CUDA_SUCCESS" if self == 0 else "CUDA_ERROR_NOT_SUPPORTED"


class Bindings:
    """``cuda.bindings.driver``, writing down what it is asked; the call ``refuses`` fails."""

    CU_MEMHOSTALLOC_DEVICEMAP = 2
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_GLOBAL="global")
    CUstreamWaitValue_flags = SimpleNamespace(CU_STREAM_WAIT_VALUE_GEQ=0)

    def __init__(self, *nodes: str, refuses: str = "") -> None:
        self.asked: list[str] = []
        self.nodes, self.refuses = nodes, refuses
        self.word = ctypes.c_uint32(99)
        self.current: int | None = None
        """The device whose context is current."""
        self.address = ctypes.addressof(self.word)

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def ask(*arguments: Any) -> tuple[Any, ...]:
            self.asked.append(" ".join([name, *map(str, arguments)]))
            has_none = name == "cuCtxGetDevice" and self.current is None
            result = Result(has_none or name == self.refuses)
            return (result, *self.answer(name, *arguments))

        return ask

    def answer(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        first = next(iter(arguments), None)
        answers: dict[str, tuple[Any, ...]] = {
            "cuStreamEndCapture": ("graph",),
            "cuGraphInstantiate": ("executable",),
            "cuGraphNodeGetType": (SimpleNamespace(name=f"CU_GRAPH_NODE_TYPE_{first}"),),
            "cuMemHostAlloc": (self.address,),
            "cuMemHostGetDevicePointer": (4711,),
            "cuCtxGetDevice": (self.current,),
        }
        if name == "cuGraphGetNodes":
            return list(self.nodes[: arguments[1]]), len(self.nodes)
        return answers.get(name, ())
