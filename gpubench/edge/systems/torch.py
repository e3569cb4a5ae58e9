"""PyTorch: functions over tensors, on the CPU and on CUDA devices.

Functions write in place or return tensors; they get tensors that never require gradients. A
function that compiles itself (``torch.compile``) has a time ``compile``.

On the CPU a call returns when it is done, and memory of tensors is the host's. On CUDA a call only
queues, on PyTorch's current stream, and events on that stream tell the time. PyTorch allocates
inside a call, so that most calls cannot be captured into a graph: a batch is plain events.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module, metadata
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from gpubench.backends import devices
from gpubench.backends.cuda_sampling import STARVED, warm_up
from gpubench.backends.cuda_session import LOST_DEVICE_ERRORS
from gpubench.backends.host import CPU_AND_CUDA, HostBackend, HostSession
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    DeviceLostError,
    DeviceMemoryError,
    Errors,
    Native,
    Sampler,
)
from gpubench.distribution import require_extra
from gpubench.errors import BackendError, KernelError
from gpubench.layouts import Layout, refused_layout
from gpubench.names import CPU, Value


class EventSampler:
    """Times batches between two events on PyTorch's current stream. Making it runs the call until
    its time is steady, so that the first sample is as good as the last."""

    method = "event loop"

    def __init__(
        self, call: Call, synchronize: Call, event: Callable[[], Any], *, warm: bool
    ) -> None:
        """``event`` makes one that keeps time. ``warm``: the same call has just run on other
        arrays, so that one run is enough."""
        self._call, self._synchronize = call, synchronize
        self._begin, self._end = event(), event()
        self.warnings: tuple[str, ...] = ()
        call()  # compiles and loads, which a window of warming up should not measure
        if not warm:
            warm_up(self.seconds)

    def seconds(self, runs: int) -> float:
        call = self._call
        self._synchronize()
        self._begin.record()
        start = time.perf_counter()
        for _ in repeat(None, runs):
            call()
        queueing = time.perf_counter() - start
        self._end.record()
        self._synchronize()
        seconds = float(self._begin.elapsed_time(self._end)) * 1e-3  # events tell milliseconds
        late = "launch-bound: the host takes longer to queue a run than the device to run it"
        self.warnings = (late,) if queueing >= STARVED * seconds else ()
        return seconds


class TorchSession(HostSession):
    """Tensors on the CPU; ``threads`` is how many PyTorch uses until the session is closed.

    ``compiled``: functions go through ``torch.compile`` as a whole, and only for the shapes that
    they are given. In parts, torch would silently leave out what it cannot compile. What the
    process keeps of that (it compiles a function only so many times, and for any size from the
    second on) is forgotten when the session is closed, so that a case does not depend on those
    before it.

    Raises ``BackendError`` where PyTorch does not take that many threads.
    """

    layouts: ClassVar[tuple[Layout, ...]] = ("C", "F", "strided")

    def __init__(self, threads: int | None, *, compiled: bool = False, device: str = CPU) -> None:
        super().__init__("torch", device)
        self.torch = import_module("torch")
        self._errors = Errors(lambda error: translated(error, self.device))
        compile_ = partial(self.torch.compile, fullgraph=True, dynamic=False)
        self._compile = cache(compile_) if compiled else None  # a case binds one several times
        with self.opening() as ending:
            ending.callback(self.torch.set_num_threads, int(self.torch.get_num_threads()))
            if threads is not None:
                self.torch.set_num_threads(threads)
                used = int(self.torch.get_num_threads())
                if used != threads:
                    raise BackendError(
                        f"threads of {threads}: PyTorch uses {used} all the same; use {used}"
                    )

    def close(self) -> None:
        super().close()
        if self._compile and self._compile.cache_info().currsize:
            self.torch.compiler.reset()
            self._compile.cache_clear()

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Return a tensor in memory of PyTorch's own, which is aligned as its loops like it.

        Raises ``KernelError`` for a dtype that PyTorch has not.
        """
        if array.flags.forc or refused_layout(array, self.layouts):
            strides = np.empty_like(array, order="K" if array.flags.forc else "C").strides
        else:
            strides = array.strides
        dtype = self._tensor(np.empty(0, array.dtype)).dtype
        steps = [stride // array.itemsize for stride in strides]
        with self._errors:
            native = self.torch.empty_strided(array.shape, steps, dtype=dtype)
        np.copyto(native.numpy(), array)
        return native

    def _tensor(self, array: np.ndarray[Any, Any]) -> Any:
        """Over the same memory."""
        try:
            return self.torch.from_numpy(array)
        except TypeError as error:
            raise KernelError(
                f"PyTorch has no dtype like {array.dtype}: {error}; use a number of 8 to 64 bits, "
                "or another backend"
            ) from error

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        return np.array(self.view(native))

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        if not isinstance(native, self.torch.Tensor):
            return np.asarray(native)
        with self._errors:
            host: np.ndarray[Any, Any] = native.numpy(force=True)
        return host

    def restore(self, native: Native, pristine: Native) -> None:
        np.copyto(native.numpy(), np.asarray(pristine))

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        return super().call_of(self._compile(function) if self._compile else function, arguments)

    def facts(self) -> Mapping[str, Value]:
        """``torch_cpu_capability``: the vector instructions that PyTorch chose its code for."""
        return {
            **super().facts(),
            "torch": str(self.torch.__version__),
            "torch_threads": int(self.torch.get_num_threads()),
            "torch_cpu_capability": str(self.torch.backends.cpu.get_cpu_capability()),
        }


class TorchCudaSession(TorchSession):
    """Tensors on a CUDA device; calls queue on its current stream.

    Raises ``BackendError`` where PyTorch cannot use the device.
    """

    def __init__(self, device: str, threads: int | None, *, compiled: bool = False) -> None:
        super().__init__(threads, compiled=compiled, device=device)
        self._cuda = self.torch.cuda
        with self.opening() as ending, self._errors:
            if not self._cuda.is_available():
                raise BackendError(
                    f"{device}: this PyTorch ({self.torch.__version__}) finds no CUDA device that "
                    "it can use; install a build for the driver's version of CUDA"
                )
            ending.callback(self._leave, self._cuda.current_device())
            self._cuda.set_device(device)
            properties = self._cuda.get_device_properties(device)
            self._l2_bytes = int(properties.L2_cache_size)
            self._facts = {
                "torch_cuda": str(self.torch.version.cuda),
                "torch_device": str(properties.name),
                "l2_bytes": self._l2_bytes,
            }

    def _leave(self, device_before: int) -> None:
        """Give back the memory that PyTorch keeps; silent on a lost device."""
        with suppress(RuntimeError):
            self._cuda.empty_cache()
            self._cuda.set_device(device_before)

    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        # PyTorch warns of memory that must not be written, whatever it does with it.
        if array.flags.forc:
            tensor = self._tensor(array if array.flags.writeable else array.copy(order="K"))
            with self._errors:
                return tensor.to(self.device)
        tensor = super().to_native(array)
        with self._errors:  # copies of tensors with gaps have none, where nothing is said
            native = self.torch.empty_strided(
                tensor.shape, tensor.stride(), dtype=tensor.dtype, device=self.device
            )
            native.copy_(tensor)
        return native

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        return self.to_native(array)

    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        is_copied = getattr(native, "is_cuda", False)
        return self.view(native) if is_copied else super().to_host(native)

    def restore(self, native: Native, pristine: Native) -> None:
        with self._errors:
            native.copy_(pristine)

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        return self._errors.around(super().call_of(function, arguments))

    def sampler_again(self, call: Call) -> Sampler:
        return self.sampler(call, warm=True)

    def sampler(self, call: Call, *, warm: bool = False) -> Sampler:
        event = partial(self._cuda.Event, enable_timing=True)
        return EventSampler(call, self.synchronize, event, warm=warm)

    def synchronize(self) -> None:
        with self._errors:
            self._cuda.synchronize(self.device)

    def flush(self) -> None:
        """Queue a write of a tensor of twice the size of L2: caches that are not strictly
        least-recently-used keep lines of one of their own size."""
        with self._errors:
            if self._scratch is None:
                twice, dtype = 2 * self._l2_bytes, self.torch.uint8
                self._scratch = self.torch.empty(twice, dtype=dtype, device=self.device)
            self._scratch.zero_()

    def peak_bytes(self, run: Call) -> int:
        """Return the most bytes that PyTorch's pool has handed out."""
        self._cuda.reset_peak_memory_stats(self.device)
        before = int(self._cuda.memory_allocated(self.device))
        run()
        return int(self._cuda.max_memory_allocated(self.device)) - before


class TorchBackend(HostBackend):
    """Of its times ``launch`` means something on CUDA alone, and ``compile`` for functions that are
    compiled. On the CPU ``end_to_end`` and ``transfer`` hold a copy in each direction, as
    ``torch.tensor`` makes it; who may give an array away saves it with ``torch.from_numpy``."""

    name = "torch"
    title = "PyTorch"
    times = ("kernel", "end_to_end", "transfer", "launch", "compile", "cold", "start")
    capabilities = ("gpu", "in_place", "compiles")
    device_names = CPU_AND_CUDA
    runs_on = "cpu, cuda:0, cuda:1 ..."
    requires = (require_extra("torch"),)
    modules = ("torch",)
    preloads = "torch"  # its threads start with the first operation
    software = ("torch",)
    concerns = ("torch", "no_gpu", *devices.STEADY_FACTS)
    caches = (
        *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR"),
        "CUDA_CACHE_PATH",
    )

    def unavailable(self, device: str) -> str | None:
        if reason := super().unavailable(device):
            return reason
        if device == CPU or not metadata.version("torch").endswith("+cpu"):
            return None
        return (
            f"{device}: the installed PyTorch is built without CUDA; install a build with it "
            "(https://pytorch.org/get-started/locally)"
        )

    def start(self, device: str, threads: int | None) -> TorchSession:
        return TorchSession(threads) if device == CPU else TorchCudaSession(device, threads)


def translated(error: Exception, device: str) -> DeviceError | None:
    """Return what PyTorch raised, in gpubench's words; ``None`` for an error of the function."""
    if not isinstance(error, RuntimeError):
        return None
    torch, text = import_module("torch"), str(error).strip()
    first = text.partition("\n")[0]
    if isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in first:
        return DeviceMemoryError(f"{device} is out of memory: {first}; use smaller sizes")
    if "CUDA error" not in text:  # what all messages of its CUDA part begin with
        return None
    if any(words in text.lower() for words in LOST_DEVICE_ERRORS.values()):
        return DeviceLostError(
            f"the work crashed on {device}: {first}; only a fresh process can use the device again"
        )
    return DeviceError(f"{device} failed: {first}")
