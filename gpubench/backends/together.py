"""Several implementations at once, each on a portion of one kernel's work: threads, GPUs, workers.

Arrays are cut along one size, in proportion to how fast each part is, and what is written is joined
again. Every part has a session and a thread of its own, for libraries keep what they use by thread.
The parts, and where arrays are cut, come from the suite as a ``Division``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.backends.host import HostBackend, HostSession
from gpubench.backends.protocol import (
    Call,
    DeviceError,
    Division,
    Launch,
    Native,
    Part,
    Session,
    Target,
    made_at_first_call,
    refuse_layouts,
)
from gpubench.errors import GpubenchError, KernelError
from gpubench.names import Value

PORTION_ROUNDS = 2
"""Times that portions are made as large as parts are fast. How fast one is depends on its portion,
for a launch costs the same for any: where that is up to two thirds of a part's time, and speeds are
up to ten apart, parts end within 2 % of each other after two rounds, and 25 % after one."""

RUNS = 3
"""Runs of which the shortest tells the speed of a part: what else runs on a machine only adds."""


def lengths_of(length: int, speeds: Sequence[float]) -> tuple[int, ...]:
    """Whole portions of a length in proportion to speeds; they add up to it."""
    ends = (round(length * part / sum(speeds)) for part in accumulate(speeds, initial=0.0))
    return tuple(after - before for before, after in pairwise(ends))


@contextmanager
def named(part: Part) -> Iterator[None]:
    """Errors inside say of which part they are. Those of a device stay what they are, for a lost
    one needs a fresh process."""
    try:
        yield
    except DeviceError as error:
        raise type(error)(f"{part.name}: {error}") from error
    except Exception as error:
        kind = "" if isinstance(error, GpubenchError) else f"{type(error).__name__}: "
        raise KernelError(f"{part.name}: {kind}{error}") from error


class Runner:
    """A part with its session, and the one thread that uses them, until ``ending``."""

    def __init__(self, part: Part, ending: ExitStack) -> None:
        self.part = part
        self._released = deque[dict[str, Any]]()
        self._thread = ending.enter_context(ThreadPoolExecutor(1, part.implementation))
        self.session: Session = self.do(part.open)
        ending.callback(self.do, self.session.close)

    def do(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with named(self.part):
            return self.start(function, *arguments).result()

    def start(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._thread.submit(self._work, function, *arguments)

    def release_later(self, held: dict[str, Any]) -> None:
        """Empty a dictionary when the thread has its next work; waits for no lock, as Python may
        collect garbage in any thread at any moment."""
        self._released.append(held)

    def _work(self, function: Callable[..., Any], *arguments: Any) -> Any:
        while self._released:
            self._released.popleft().clear()
        return function(*arguments)


class Piece:
    """A part's portion, on its device. What it holds is used by the part's thread alone, and given
    back there: memory of a GPU cannot be given back by another."""

    def __init__(self, runner: Runner, where: slice) -> None:
        self.runner, self.where = runner, where
        self._native: dict[str, Native] = {}
        self._returned: dict[str, Native] = {}
        """What the last run returned in place of writing it."""

    def __del__(self) -> None:
        held = vars(self)
        held.pop("runner").release_later(held)

    @property
    def length(self) -> int:
        """Of the size that is divided."""
        return int(self.where.stop - self.where.start)

    def bind(self, arrays: Mapping[str, Divided]) -> None:
        part, session = self.runner.part, self.runner.session
        for name in arrays.keys() & part.takes:
            self._native[name] = session.to_native(arrays[name].portion(self))
        self._call = part.bind(session, self.length, self._native)

    def run(self) -> None:
        result = self._call()
        if names := self.runner.part.returns:
            results = result if len(names) > 1 else (result,)
            self._returned.update(zip(names, results, strict=True))

    def seconds(self) -> float:
        """Return the seconds of a run, by the device's own way to time it; the first compiles."""
        self.run()
        self.runner.session.synchronize()
        sampler = self.runner.session.sampler(self._call)
        return min(sampler.seconds(1) for _ in range(RUNS))

    def restore(self, name: str, array: AnyArray) -> None:
        self._returned.pop(name, None)
        if name in self._native:
            session = self.runner.session
            session.restore(self._native[name], session.pristine(array))
            session.synchronize()

    def to_host(self, name: str) -> AnyArray:
        return self.runner.session.to_host({**self._native, **self._returned}[name])


@dataclass(eq=False)
class Divided:
    """An array: the host's until a call divides it, which nothing writes, then its pieces."""

    host: AnyArray
    name: str = ""
    dimension: int | None = None
    pieces: Sequence[Piece] = ()

    def cut(self, array: AnyArray, piece: Piece) -> AnyArray:
        """Return a piece's part of values of the same shape."""
        if self.dimension is None:
            return array
        return array[(*[slice(None)] * self.dimension, piece.where)]

    def portion(self, piece: Piece) -> AnyArray:
        """Return what a piece starts from. It has gaps only where the whole has them."""
        portion = self.cut(self.host, piece)
        return portion.copy(order="K") if self.host.flags.forc else portion

    def joined(self) -> AnyArray:
        if not self.pieces:
            return self.host.copy()
        values = np.empty(self.host.shape, self.host.dtype)
        for piece in self.pieces:  # what is not cut is the same in all
            self.cut(values, piece)[...] = piece.runner.do(piece.to_host, self.name)
        return values

    def restore(self, array: AnyArray) -> None:
        self.host = array
        for piece in self.pieces:
            piece.runner.do(piece.restore, self.name, self.cut(array, piece))


class TogetherSession(HostSession):
    """The sessions of the parts. Portions are found at the first call, and then stay."""

    def __init__(self) -> None:
        super().__init__("together")
        self._runners: list[Runner] = []
        self._lengths: tuple[int, ...] = ()

    def to_native(self, array: AnyArray) -> Divided:
        """Not copied before a call divides it: the host's values must stay until then."""
        return Divided(array)

    def to_host(self, native: Divided) -> AnyArray:
        return native.joined()

    def view(self, native: Divided) -> AnyArray:
        return native.joined()

    def restore(self, native: Divided, pristine: AnyArray) -> None:
        native.restore(pristine)

    def empty(self) -> None:
        return None

    def bind(self, target: Target, launch: Launch | None, arguments: Sequence[Any]) -> Call:
        division = target.function
        if not isinstance(division, Division):
            raise KernelError("the backend together runs `parts` of an implementation: name them")
        for part in division.parts[len(self._runners) :]:
            self._runners.append(Runner(part, self._ending))
        self.simulated = any(runner.session.simulated for runner in self._runners)
        arrays = {
            name: native
            for name, native in zip(division.arguments, arguments, strict=True)
            if isinstance(native, Divided)
        }
        for name, native in arrays.items():
            native.name, native.dimension = name, division.dimensions.get(name)
        for runner in self._runners:
            taken = {name: arrays[name].host for name in runner.part.takes if name in arrays}
            refuse_layouts(runner.part.name, runner.session, taken)
        return made_at_first_call(partial(self._divided, division.length, arrays))

    def _divided(self, length: int, arrays: Mapping[str, Divided]) -> Call:
        if not self._lengths:
            self._lengths = self._balanced(length, arrays)
        pieces = self._pieces(self._lengths, arrays)
        for native in arrays.values():
            native.pieces = pieces
        # Those that only queue come first: a function that holds Python's lock would keep them.
        queueing = [piece for piece in pieces if piece.runner.part.queues]
        others = [piece for piece in pieces if not piece.runner.part.queues]

        def run() -> None:
            for piece in queueing:
                piece.runner.do(piece.run)
            waiting = [(p.runner.part, p.runner.start(p.run)) for p in others]
            for piece in pieces:
                done = piece.runner.start(piece.runner.session.synchronize)
                waiting.append((piece.runner.part, done))
            failed = [(part, future) for part, future in waiting if future.exception()]
            for part, future in failed:  # raises the first, when all have ended
                with named(part):
                    future.result()

        return run

    def _pieces(self, lengths: Sequence[int], arrays: Mapping[str, Divided]) -> list[Piece]:
        ends = pairwise(accumulate(lengths, initial=0))
        portions = zip(self._runners, (slice(*each) for each in ends), strict=True)
        pieces = [Piece(runner, where) for runner, where in portions if where.start < where.stop]
        for piece in pieces:
            piece.runner.do(piece.bind, arrays)
        return pieces

    def _balanced(self, length: int, arrays: Mapping[str, Divided]) -> tuple[int, ...]:
        """Portions in proportion to the speeds of the parts; even where there are no times."""
        lengths = lengths_of(length, [1.0] * len(self._runners))
        for _ in range(0 if self.simulated else PORTION_ROUNDS):
            pieces = self._pieces(lengths, arrays)  # of copies; each is timed alone
            speeds = {one.runner: one.length / one.runner.do(one.seconds) for one in pieces}
            lengths = lengths_of(length, [speeds.get(runner, 0.0) for runner in self._runners])
        return lengths

    def facts(self) -> Mapping[str, Value]:
        """Return the portion of each part (``0.62 numba_parallel on cpu, ...``), and the devices of
        all (``cpu and cuda:0``)."""
        total = sum(self._lengths) or 1
        parts = [
            f"{length / total:.2f} {runner.part.name}"
            for runner, length in zip(self._runners, self._lengths, strict=False)
        ]
        devices = dict.fromkeys(runner.part.device for runner in self._runners)
        return {**super().facts(), "parts": ", ".join(parts), "devices": " and ".join(devices)}


class TogetherBackend(HostBackend):
    name = "together"
    title = "Several implementations at once"
    times = ("kernel", "end_to_end")
    capabilities = ("in_place",)
    requires = ("numpy",)
    takes_launch = False

    def start(self, device: str, threads: int | None) -> TogetherSession:
        return TogetherSession()
