"""What a backend is: the two base classes ``Backend`` and ``Session``, and what they exchange.

A backend is one class in one file, found by its entry point. gpubench looks a backend up by name,
asks which devices the backend serves, and opens a session on one device. The open session turns
host arrays into the backend's own, binds a call, takes samples of it, waits for the device and
brings outputs back.

Methods marked abstract have to be written, all others have a default. ``docs/adding-a-backend.md``
has a whole one in thirty lines. Backends that run on the host's processor start from
``host.HostBackend`` and ``host.HostSession``, where nearly everything is written already.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from gpubench.errors import BackendError, GpubenchError, KernelError
from gpubench.layouts import Layout, refused_layout
from gpubench.names import CPU, IN_PROCESS_DEVICES, Value, device_kind, is_gpu

Native = Any
"""An array, data frame or handle of the backend's own kind."""

Call = Callable[[], Any]
"""One run of the kernel with everything bound; returns what the function returns (native)."""


Capability = Literal["gpu", "cluster", "out_of_core", "in_place", "compiles"]
"""What a backend can do. ``gpu``: compute on GPUs. ``cluster``: use workers on other machines.
``out_of_core``: work through data larger than memory by itself. ``in_place``: let functions write
the arrays that they are given. ``compiles``: make machine code of functions or programs."""


MemoryPlace = Literal["process", "host", "elsewhere"]
"""``process``: that which measures. ``host``: this machine's, in processes that it started too.
``elsewhere``: a device's own, or another machine's."""


class DeviceError(GpubenchError):
    """The device refused or failed a call. The cause is the library's own exception."""


class DeviceMemoryError(DeviceError):
    """The device has no room for an allocation; the session is still usable."""


class LaunchLimitError(DeviceError):
    """A launch over a limit that shows only once the kernel is compiled: the case is skipped."""


class LayoutError(GpubenchError):
    """A backend cannot have an array that lies in memory as one of the suite does: the case is
    skipped."""


class DeviceLostError(DeviceError):
    """The work crashed on the device; only a fresh process can use the device again."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Shape of one launch, checked against the device's limits before it happens."""

    block: tuple[int, int, int]
    """Threads in a block, x first."""
    grid: tuple[int, int, int]
    """Blocks in the grid, x first."""
    shared_bytes: int = 0
    """Dynamic shared memory for each block."""
    cooperative: bool = False
    stream: Any = None
    """The backend's stream or queue, where a launcher queues its work; else ``None``."""

    @property
    def threads_per_block(self) -> int:
        return math.prod(self.block)

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)


ONE_THREAD_LAUNCH = Launch(block=(1, 1, 1), grid=(1, 1, 1))
"""What a launcher is given where the suite gives no launch."""


@dataclass(frozen=True, slots=True)
class Target:
    """What an implementation names, loaded: exactly one of the three kinds."""

    function: Any = None
    """A function or compiled dispatcher, or what a factory returned."""
    launcher: Callable[..., Any] | None = None
    """Called as ``launcher(launch, *arguments)``; queues all its launches on ``launch.stream``."""
    source: str | None = None
    """Text of a program in the backend's own language, with ``entry`` inside it."""
    entry: str | None = None
    constants: Mapping[str, Value] = field(default_factory=dict)
    """Of a ``source``, by name: values that are known when it is compiled."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a device on one launch; counts and bytes."""

    threads_per_block: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes_per_block: int
    source: str
    """Where they come from: ``NVIDIA H200 (compute capability 9.0)`` for example."""
    total_threads: int | None = None
    """Most threads of a whole launch, where something less than the grid limits it."""
    cooperative_blocks: int | None = None
    """Most blocks of a cooperative launch, where that is known before compiling."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a plan may know of a device without running on it."""

    name: str
    limits: Limits | None = None
    """``None`` where launches have no limits or none are known."""
    scope: Mapping[str, Value] = field(default_factory=dict)
    """Names that ``skip`` rules may use: ``sm_count``, ``shared_memory_per_block``,
    ``global_memory`` (bytes), ``compute_capability`` (9.0 as a float) and ``device``."""


@dataclass(frozen=True, slots=True)
class Description:
    """One line of ``gpubench devices``."""

    device: str
    """``cpu``, ``cuda:0`` ...; ``cuda`` where there is no GPU."""
    name: str
    facts: Mapping[str, Value]
    unavailable: str | None = None
    """Why it cannot be used, with the next step."""


class Sampler(Protocol):
    """Takes samples of one bound call: a batch of runs, back to back, by the device's own time."""

    method: str
    """How: ``host loop``, ``event loop``, ``graph replay``, ``held-back stream`` ..."""
    warnings: tuple[str, ...]
    """What a reader of the time has to know, as seen while sampling."""

    def seconds(self, runs: int) -> float:
        """Seconds that ``runs`` runs take together, first start to last end."""


class LoopSampler:
    """For calls that return when they are done: a loop between two readings of a clock, which
    ``now`` gives in seconds."""

    warnings: tuple[str, ...] = ()

    def __init__(self, now: Callable[[], float], call: Call, method: str = "host loop") -> None:
        self._now, self._call, self.method = now, call, method

    def seconds(self, runs: int) -> float:
        call = self._call
        start = self._now()
        for _ in repeat(None, runs):
            call()
        return self._now() - start


class Errors:
    """Raises what goes wrong inside as the ``DeviceError`` that ``translated`` makes of it, with
    its cause; other errors, of which that makes ``None``, as they are."""

    def __init__(self, translated: Callable[[Exception], DeviceError | None]) -> None:
        self._translated = translated

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, Exception) and (told := self._translated(error)):
            raise told from error

    def around(self, run: Call) -> Call:
        """Do the same around each run of a call, for less than entering and leaving costs."""
        translated = self._translated

        def call() -> Any:
            try:
                return run()
            except Exception as error:
                if told := translated(error):
                    raise told from error
                raise

        return call


def made_at_first_call(make: Callable[[], Call]) -> Call:
    """Return a call that is made (compiled, bound) when it is first run."""
    made: Call | None = None

    def run() -> Any:
        nonlocal made
        if made is None:
            made = make()
        return made()

    return run


def watched_once(watched: Call, run: Call) -> Call:
    """``watched``, which raises where the work is not done where it should be, until it has
    returned; from then on ``run``."""
    is_proved = False

    def call() -> Any:
        nonlocal is_proved
        if is_proved:
            return run()
        result = watched()
        is_proved = True
        return result

    return call


class Session(ABC):
    """A backend opened on one device: a context manager that waits for what is queued, unless
    something has gone wrong, and closes."""

    simulated: bool = False
    """True where results mean something and times do not: nothing is sampled there."""
    layouts: ClassVar[tuple[Layout, ...]] = ("C",)
    """Layouts that ``to_native`` keeps. A case with an array in another one is skipped."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()

    @abstractmethod
    def to_native(self, array: np.ndarray[Any, Any]) -> Native:
        """Copy a host array (any shape, dtype and layout) to the device, never an alias. Shape and
        dtype stay, and the layout where it is one of ``layouts``; any other becomes C order. Raises
        ``DeviceMemoryError`` where there is no room."""

    @abstractmethod
    def to_host(self, native: Native) -> np.ndarray[Any, Any]:
        """Copy back to a new host array of the same shape and dtype; waits for the work that writes
        it. Takes scalars that a function returned, too."""

    @abstractmethod
    def restore(self, native: Native, pristine: Native) -> None:
        """Overwrite ``native`` with ``pristine`` (same shape, dtype) without leaving the device,
        after the work that is queued. The two may lie in memory differently, and ``native`` keeps
        its layout."""

    @abstractmethod
    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        """Bind native arrays and scalars once; the returned call only queues or runs the work. Runs
        nothing. Raises ``KernelError`` for a target that is not this backend's, and ``DeviceError``
        for a launch that the device does not allow."""

    def why_wrong(self, target: Target) -> str | None:
        """Return what may have made the results of this target wrong, as far as its library tells;
        ``None`` where nothing is known."""
        return None

    @abstractmethod
    def sampler(self, call: Call) -> Sampler:
        """Return the best way that the device has to time this call without the host in the
        time."""

    def sampler_again(self, call: Call) -> Sampler:
        """Return the same for a call like the one before, on other arrays: what needs doing once
        for a case, such as warming up, is left out."""
        return self.sampler(call)

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything queued has run; raises what went wrong as a ``DeviceError``."""

    @abstractmethod
    def flush(self) -> None:
        """Evict the device's last-level cache (used, untimed, before each ``cold`` run)."""

    def close(self) -> None:  # noqa: B027 (optional)
        """Give back what the session took. Silent, and allowed twice."""

    def table_to_native(self, table: Any) -> Native:
        """Return a ``pyarrow.Table`` as the backend's own frame, where the backend
        ``takes_tables``. Columns are of numbers, booleans, text (``large_string``) or categories (a
        dictionary of text), with nulls where the suite asks for them. Raises ``DeviceMemoryError``
        where there is no room, and ``KernelError`` for what the backend cannot hold."""
        raise KernelError("this backend takes no tables; name another 'backend:'")

    def table_to_host(self, native: Native) -> Any:
        """Return a frame, one that a function returned too, as a ``pyarrow.Table``; waits for the
        work that makes it. Raises ``KernelError`` for what is no frame of this backend."""
        raise KernelError("this backend takes no tables; name another 'backend:'")

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        """Its values on the host, to be read before anything else runs: the array itself where the
        device's memory is the host's."""
        return self.to_host(native)

    def pristine(self, array: np.ndarray[Any, Any]) -> Native:
        """Return what ``restore`` takes: a copy on the device, which no transfer slows down, or the
        array itself where the device's memory is the host's."""
        return self.to_native(array)

    def empty(self) -> Call | None:
        """Return a call that does nothing: its time is the floor under all others of this session.
        ``None`` where there is none, or where the sampler measures the floor itself."""
        return None

    def ceilings(self) -> Mapping[str, float]:
        """Bytes per second that the device's memory reaches, as ``copy_bytes_per_second`` and
        ``triad_bytes_per_second`` (see ``ceilings.py``); empty where that is not measured. May take
        tenths of a second. Raises ``DeviceMemoryError`` where the arrays find no room."""
        return {}

    def peak_bytes(self, run: Call) -> int | None:
        """Return the most bytes of a device's own memory that ``run``, which returns when it is
        done, holds beyond what is held before; ``None`` where the library that allocates it does
        not tell."""
        return None

    def facts(self) -> Mapping[str, Value]:
        """Conditions for the record: versions, device name, driver, threads in use, and
        ``l2_bytes``, the size of the last cache before a device's memory."""
        return {"numpy": np.__version__}


@dataclass(frozen=True, slots=True)
class Part:
    """One implementation on one device, which takes any portion of the work."""

    implementation: str
    device: str
    open: Callable[[], Session]
    bind: Callable[[Session, int, Mapping[str, Native]], Call]
    """Its call for so much of the size that is divided, over native arrays by their names."""
    takes: tuple[str, ...]
    """Names of what its call is given, in order."""
    returns: tuple[str, ...]
    """Arrays that it returns in place of writing them, in order."""

    @property
    def name(self) -> str:
        return f"{self.implementation} on {self.device}"

    @property
    def queues(self) -> bool:
        return is_gpu(self.device)


@dataclass(frozen=True, slots=True)
class Division:
    """How the work is divided: what ``bind`` is given as the target's function."""

    length: int
    """Of the size that is divided."""
    parts: tuple[Part, ...]
    arguments: tuple[str, ...]
    """Names of what the call of the whole is given, in order."""
    dimensions: Mapping[str, int]
    """Of the arrays that are cut, by name, along which dimension; parts get all of the others."""


def refuse_launch(what: str, launch: Launch | None) -> None:
    """Raise ``KernelError`` for a launch of something that chooses its block and grid itself: the
    case would bear the name of a launch that was never made."""
    if launch is not None:
        raise KernelError(f"{what} chooses its block and grid itself: remove `launch`")


def refuse_layouts(name: str, session: Session, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Raise ``LayoutError`` where one of these arrays lies in memory as none of a session's does;
    ``name`` is of what runs in the session."""
    for array_name, array in arrays.items():
        if what := refused_layout(array, session.layouts):
            raise LayoutError(
                f"{name} cannot take `{array_name}` with {what}; give it an array in C order, or "
                "use another backend"
            )


class Backend(ABC):
    """One way to run kernels, made without arguments. Importing its module and everything but
    ``open`` must be cheap and start nothing: no context, no platform, no thread pool."""

    name: ClassVar[str]
    """As in suites and in the entry point: ``numba_cuda``."""
    title: ClassVar[str]
    """For people: ``Numba on the CPU``."""
    times: ClassVar[tuple[str, ...]]
    """Labelled times that mean something here (``gpubench.names.TIMES``): work in host memory has
    no ``transfer``, a function that is not compiled has no ``compile``."""
    device_names: ClassVar[str] = CPU
    """The devices that it serves: a regular expression of their whole names."""
    runs_on: ClassVar[str] = "cpu only; list cpu under 'devices'"
    """The same for people: ``cuda:0, cuda:1 ...``."""
    requires: ClassVar[tuple[str, ...]] = ()
    """Distributions that it needs, as pip takes them: named where it cannot be loaded."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Modules that have to be there besides, without which it is ``unavailable``."""
    pins: ClassVar[str] = ""
    """What its distributions pin, so that it needs an environment of its own."""
    software: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions go on record with a run: a change may explain one of speed."""
    concerns: ClassVar[tuple[str, ...]] = ()
    """Facts of a run that say nothing about backends that do not list them: ``llvmlite``,
    ``driver`` ... A fact that no backend lists concerns all."""
    no_threads: ClassVar[str] = ""
    """Why no number of ``threads`` can be set here, and what to do instead: ``open`` refuses them.
    ``{threads}`` in it is their number. Empty where ``start`` sets them."""
    passes: ClassVar[tuple[str, ...]] = ()
    """What ``bind`` puts before the arguments that the suite names, for ``check``: ``pool`` ..."""
    capabilities: ClassVar[tuple[Capability, ...]] = ()
    """What it can do, for the table of the backends that were measured."""
    takes_launch: ClassVar[bool] = True
    """Whether a suite's ``launch`` means something to it: blocks and grids, or tasks in a batch."""
    needs_launch: ClassVar[bool] = False
    """Whether its decorators make functions that are launched, and whose threads have an index."""
    launches_itself: ClassVar[tuple[str, ...]] = ()
    """Decorators whose functions choose block and grid themselves: a suite's ``launch`` means
    nothing to these."""
    decorators: ClassVar[tuple[str, ...]] = ()
    """Decorators of its functions, as ``njit`` and ``cuda.jit``: `gpubench check` proposes it by
    them."""
    runs_in_caller: ClassVar[bool] = False
    """Whether a call's work is done by the thread that makes it, so that its instructions can be
    counted."""
    takes_tables: ClassVar[bool] = False
    """Whether functions get tables, by ``table_to_native`` and ``table_to_host`` of sessions."""
    options: ClassVar[Mapping[str, str]] = {}
    """What a suite may set under ``options``, with its meaning: keyword arguments of ``start``."""
    caches: ClassVar[tuple[str, ...]] = ()
    """Environment variables that name folders of compiled code. Each measurement gets folders that
    belong to the sources as they are, and ``compile`` empty ones (``measure/caches.py``)."""
    caches_by_content: ClassVar[tuple[str, ...]] = ()
    """Environment variables that name folders where code is found by all that it is made from, and
    which others may share: empty ones for ``compile``, else as the user has them."""
    code_settings: ClassVar[str] = ""
    """Environment variables that change the code it makes, a regular expression of whole names:
    with other values of them, code that is kept is not used."""
    preloads: ClassVar[str] = ""
    """What ``preload`` imports: a module that takes long, and starts no thread meanwhile."""
    compiles_ahead: ClassVar[bool] = False
    """Whether functions that ``keeps`` says keep their code are compiled before a run, on all
    processors."""

    def serves(self, device: str) -> bool:
        """Return whether ``cpu``, ``cuda:1`` ... is a device for this backend, by name alone."""
        return re.fullmatch(self.device_names, device) is not None

    @abstractmethod
    def start(self, device: str, threads: int | None) -> Session:
        """Return what ``open`` does on a device that can be used. Raises ``BackendError`` for a
        number of threads that cannot be had, and for a value of an option that it does not take."""

    def open(
        self, device: str, threads: int | None = None, options: Mapping[str, Value] | None = None
    ) -> Session:
        """Start what must be started there, with ``threads`` and ``options`` where an
        implementation sets them. Raises ``BackendError`` where it cannot run."""
        if reason := self.unavailable_with(device, options or {}):
            raise BackendError(reason)
        if threads is not None and self.no_threads:
            raise BackendError(f"threads of {threads}: {self.no_threads.format(threads=threads)}")
        try:
            return self.start(device, threads, **(options or {}))
        except ImportError as error:  # packages say so that their versions do not fit
            raise BackendError(
                f"{device}: {self.title} cannot be imported: {error}; "
                f"pip install --upgrade {self._wanted()}"
            ) from error

    def _wanted(self) -> str:
        return " ".join(f"'{one}'" for one in self.requires) or "what is missing"

    def unavailable(self, device: str) -> str | None:
        """Return why it cannot run there on this machine, and what to do; ``None`` when it can.
        Devices are counted, not opened."""
        if not self.serves(device):
            return f"{device}: the backend {self.name} runs on {self.runs_on}"
        return not_installed(device, self._wanted(), *self.modules, pins=self.pins)

    def unavailable_with(self, device: str, options: Mapping[str, Value]) -> str | None:
        """Return why a device is unavailable with these options, where an option such as the
        library decides that."""
        return self.unavailable(device)

    def changes_process(self, options: Mapping[str, Value]) -> bool:
        """Return whether a session with these options leaves the process changed for good, for
        other backends too: no other case then follows in it."""
        return False

    def memory_place(self, device: str) -> MemoryPlace:
        """Return where the memory lies that runs hold: what is outside of the measuring process
        cannot be limited there, and what is outside of this machine's host cannot be watched."""
        if device_kind(device) in IN_PROCESS_DEVICES:
            return "process"
        return "host" if device_kind(device) == "processes" else "elsewhere"

    def keeps_memory_limit(self, options: Mapping[str, Value]) -> bool:
        """Return whether its workers have a limit of memory of their own by these options."""
        return "memory" in options

    def lost(self, device: str) -> str | None:
        """Return why the device is no more, with the next step: asked where a process has ended
        that used it. ``None`` where it is still there, or where that cannot be told."""
        return None

    def device_facts(self, device: str) -> DeviceFacts:
        """Limits and facts, from the device where there is one, else from the architecture."""
        return DeviceFacts(device, scope={"device": device})

    def devices(self) -> Sequence[Description]:
        """Return this machine's devices for ``gpubench devices``, or one line that says why there
        is none; of several backends that tell of one device the first counts."""
        return ()

    def machine_facts(self) -> Mapping[str, Value | None]:
        """Facts about its devices that stay the same for a whole run. ``None``: not to be had."""
        return {}

    def hint(self, error: BaseException) -> str | None:
        """Return what a user may do about an error of a kernel's, where the library's own words do
        not say so."""
        return None

    def too_many_threads(self, threads: int) -> str | None:
        """Return why so many threads cannot be measured here; ``None`` when they can, or when only
        ``open`` can tell."""
        return None

    def preload(self) -> None:
        """Import what every case needs, in the process that asv forks for each of them. Starts no
        device and no thread, because these do not survive a fork."""
        if self.preloads:
            importlib.import_module(self.preloads)

    def keeps(self, function: Any) -> bool:
        """Return whether a loaded function's compiled code is kept on disk, so that another process
        may find it; asked where ``compiles_ahead``."""
        return False

    def move_caches(self) -> None:  # noqa: B027 (optional)
        """Have functions that exist already keep their code where ``caches`` name it now."""


def not_installed(device: str, install: str, *modules: str, pins: str = "") -> str | None:
    """Return why a device cannot be used: the first of these modules that is missing, with what pip
    has to install; ``None`` where all are there. Imports at most their parent packages."""
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:  # of the package that it is in
            found = None
        if found is None:
            own = f", in an environment of its own: it pins {pins}" if pins else ""
            return f"{device}: the module {module!r} is not installed; pip install {install}{own}"
    return None
