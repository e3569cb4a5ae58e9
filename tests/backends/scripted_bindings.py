"""The driver's bindings (``cuda.bindings.driver``) without a driver."""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Result(int):
    """As ``CUresult``: an integer with a name."""

    refusal = "CUDA_ERROR_NOT_SUPPORTED"

    @property
    def name(self) -> str:
        return "CUDA_SUCCESS" if self == 0 else self.refusal


class Event:
    """When it was reached, once that has been waited for."""

    at, waited_for = 0.0, False


STREAM = 7
"""The handle of the stream that work goes to."""
UUID = uuid.UUID(int=2)
"""Of the device."""


class Bindings:
    """``cuda.bindings.driver``, writing down what it is asked; the call ``refuses`` fails."""

    CU_MEMHOSTALLOC_DEVICEMAP = 2
    CUdevice_attribute = SimpleNamespace(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE="l2")
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_GLOBAL="global")
    CUstreamWaitValue_flags = SimpleNamespace(CU_STREAM_WAIT_VALUE_GEQ=0)
    error = Result.refusal
    """Of the call that is refused."""
    now = 0.0
    """Seconds of the device's own clock, which events tell."""

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
            result.refusal = self.error
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
            "cuDeviceGetAttribute": (640,),
            "cuDeviceGetUuid": (SimpleNamespace(bytes=UUID.bytes),),
            "cuMemAlloc": (f"memory {sum('cuMemAlloc' in line for line in self.asked)}",),
        }
        if name == "cuEventCreate":
            return (Event(),)
        if name == "cuEventRecord" and arguments[1] == STREAM:
            arguments[0].at, arguments[0].waited_for = self.now, False
        if name == "cuEventSynchronize":
            arguments[0].waited_for = True
        if name == "cuEventElapsedTime":
            assert arguments[1].waited_for
            return ((arguments[1].at - arguments[0].at) * 1e3,)
        if name == "cuGraphGetNodes":
            return list(self.nodes[: arguments[1]]), len(self.nodes)
        return answers.get(name, ())
