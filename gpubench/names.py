"""Names of benchmarks and identities of cases: all that the two halves of gpubench share with asv.

Everything left of asv writes these names; everything right of asv reads them. Nothing else may
build or take apart such a string.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Value = int | float | bool | str
"""One value of an axis, as YAML gives it."""

MAX_NUMBER = 2**128
"""Largest magnitude of a number, and of a fraction's numerator and denominator: beyond every size
and seed of NumPy (64 bits), and still a few words of memory."""

CPU = "cpu"
"""The device of an ordinary function; an identity does not name it."""

SECONDS = "seconds"
"""Unit of times."""

BANDWIDTHS = ("triad_bytes_per_second", "copy_bytes_per_second")
"""Facts of a device that tell what its memory was measured to do."""

PEAK_BANDWIDTH = "peak_bytes_per_second"
"""The fact that tells what its memory does by the datasheet."""

IN_PROCESS_DEVICES = (CPU, "threads")
"""Kinds of devices whose work is done in the process that measures."""

TOGETHER = "together"
"""Backend of implementations whose parts do the work at once."""

GPU_DEVICES = ("cuda", "cl")
"""Kinds of devices with a memory of their own, whose calls return before the work is done."""

Time = Literal["kernel", "end_to_end", "transfer", "launch", "compile", "cold", "start"]


KernelKey = tuple[str, str]
"""Suite and kernel, as stored results have them."""


@dataclass(frozen=True, slots=True)
class LabelledTime:
    """What is to be known of a labelled time; ``measure/times.py`` has how it is taken."""

    name: Time
    is_compared: bool = False
    """A speedup over the baseline is stated for it, and its samples may be taken in pairs."""
    is_resident: bool = False
    """The device's memory holds the arrays before and after, so that its bandwidth is a bound."""
    has_curve: bool = False
    """It grows with the size, so that it can be estimated between two measured ones."""
    is_fresh: bool = False
    """Each sample is a process of its own: few are taken, and none of a size of its own."""
    is_once: bool = False
    """A process has it once, so that it differs more from run to run."""


DECLARED_TIMES: tuple[LabelledTime, ...] = (
    LabelledTime("kernel", is_compared=True, is_resident=True, has_curve=True),
    LabelledTime("end_to_end", is_compared=True, has_curve=True),
    LabelledTime("transfer", has_curve=True),
    LabelledTime("launch"),
    LabelledTime("compile", is_fresh=True, is_once=True),
    LabelledTime("cold", is_compared=True, is_resident=True, is_once=True),
    LabelledTime("start", is_fresh=True, is_once=True),
)
"""The labelled times, in the order in which they are shown. All else that is known of them is
derived from this list."""

TIMES: tuple[str, ...] = tuple(time.name for time in DECLARED_TIMES)
COMPARED_TIMES: tuple[str, ...] = tuple(time.name for time in DECLARED_TIMES if time.is_compared)
RESIDENT_TIMES: tuple[str, ...] = tuple(time.name for time in DECLARED_TIMES if time.is_resident)
CURVE_TIMES: tuple[str, ...] = tuple(time.name for time in DECLARED_TIMES if time.has_curve)
FRESH_TIMES: tuple[str, ...] = tuple(time.name for time in DECLARED_TIMES if time.is_fresh)
ONCE_TIMES: tuple[str, ...] = tuple(time.name for time in DECLARED_TIMES if time.is_once)

QUANTITIES = ("memory", "peak_memory", "tracked")
"""What asv's ``mem``, ``peakmem`` and ``track`` benchmarks give in place of a time: the bytes of an
object, the most bytes of a process, and any number."""

LABELS = (*TIMES, *QUANTITIES)
"""Labels of everything that a benchmark gives, in the order in which they are shown."""

NAME_PATTERN = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""Names of suites, kernels and implementations: lower-case, no double underscore."""

_BENCHMARK = re.compile(r"(?P<module>[\w.]+)\.(?P<cls>[a-z0-9_]+)\.time_(?P<time>\w+)")
_TRACKED = re.compile(r"[\w.]+\.(?P<cls>[a-z0-9_]+)\.track_\w+")

MAX_PATTERN_CHARACTERS = 500
"""Characters of a pattern of pairs, several times those of a benchmark's name."""


@dataclass(frozen=True, order=True, slots=True)
class BenchmarkName:
    """What one asv benchmark measures: an implementation of a kernel, and which time of it."""

    suite: str
    kernel: str
    implementation: str
    time: str
    """One of ``LABELS``."""

    @property
    def class_name(self) -> str:
        """Name of the class that asv discovers, ``vector_add__numba_cuda`` for example."""
        parts = [self.suite, self.kernel, self.implementation]
        if self.suite == self.kernel:
            del parts[0]
        return "__".join(parts)

    @property
    def asv_name(self) -> str:
        """The benchmark's name in asv: ``suites.vector_add__numba_cuda.time_kernel``."""
        return f"suites.{self.class_name}.time_{self.time}"


def device_kind(device: str) -> str:
    """Return the part of a device's name before its number or address: ``cuda`` of ``cuda:0``."""
    return device.partition(":")[0]


def is_gpu(device: str) -> bool:
    """Return whether it is a device of ``GPU_DEVICES``."""
    return device_kind(device) in GPU_DEVICES


_RATE = re.compile(
    r"/ ?s(ec(onds?)?)?$|per second|\b[kmgtp]?flops?\b|\b[kmg]?hz\b|\bpoints?\b|\bfps\b",
    re.IGNORECASE,
)


def is_rate(unit: str) -> bool:
    """Return whether of a value in this unit more is better: what is done in a second (``GFLOPS``,
    ``MB/s``), and points of a score."""
    return bool(_RATE.search(unit))


def kernel_title(suite: str, kernel: str) -> str:
    """Name of a kernel among all: ``vector_add``, or ``suite.kernel`` where the two differ."""
    return kernel if suite == kernel else f"{suite}.{kernel}"


@lru_cache(maxsize=2**14)
def parse_benchmark_name(name: str) -> BenchmarkName | None:
    """Take an asv benchmark name apart; ``None`` for a benchmark that is not gpubench's."""
    match = _BENCHMARK.fullmatch(name)
    if match is None or match["time"] not in TIMES:
        return None
    return _split_class_name(match["cls"], match["time"])


def timed_beside(name: str) -> BenchmarkName | None:
    """Return the ``kernel`` time of the implementation that an asv benchmark tracks a count of;
    ``None`` for the name of any other benchmark."""
    match = _TRACKED.fullmatch(name)
    return None if match is None else _split_class_name(match["cls"], "kernel")


def _split_class_name(class_name: str, time: str) -> BenchmarkName | None:
    parts = class_name.split("__")
    if len(parts) == 2:
        parts.insert(0, parts[0])
    if len(parts) != 3 or not all(NAME_PATTERN.fullmatch(part) for part in parts):
        return None
    suite, kernel, implementation = parts
    return BenchmarkName(suite, kernel, implementation, time)


def pattern_fault(baseline: str, candidate: str) -> str | None:
    """Return what is wrong with a pattern of pairs, a regular expression and what replaces its
    matches; ``None``: nothing."""
    if len(baseline) > MAX_PATTERN_CHARACTERS:
        length = f"{len(baseline):,} characters; at most {MAX_PATTERN_CHARACTERS}"
        return f"a pattern of {length}: write several"
    try:
        groups = re.compile(baseline).groups
    except (re.error, RecursionError, OverflowError) as error:
        return f"{baseline!r} is no regular expression: {error}"
    for number in re.findall(r"\\(.?)", candidate):
        if not (number in tuple("0123456789") and int(number) <= groups):
            return f"{candidate!r} has \\{number}, and {baseline!r} has {groups} groups"
    return None


_SUITE_MARK = "# declared in "
"""Begins the line of a benchmark's source text after which the suite's YAML stands."""


def join_source(code: str, place: str, declaration: str) -> str:
    """Return the text that asv keeps as a benchmark's source: its code, then its kernel in the
    suite."""
    return f"{code.rstrip()}\n\n\n{_SUITE_MARK}{place}\n{declaration.rstrip()}\n"


def split_source(text: str) -> tuple[str, str, str]:
    """Code, place and declaration of such a text; the last two empty for any other text."""
    lines = text.splitlines()
    marks = [i for i, line in enumerate(lines) if line.startswith(_SUITE_MARK)]
    if not marks:
        return text.rstrip(), "", ""
    code, rest = lines[: marks[-1]], lines[marks[-1] + 1 :]
    place = lines[marks[-1]].removeprefix(_SUITE_MARK)
    return "\n".join(code).rstrip(), place, "\n".join(rest).rstrip()


def format_value(value: Value) -> str:
    """Text of a value inside an identity: ``true``, ``1048576``, ``0.5``, ``float32``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def format_shape(shape: Iterable[int]) -> str:
    """Text of a grid or block: ``16x16``, trailing ones left out (``256``, not ``256x1x1``)."""
    extents = list(shape)
    while len(extents) > 1 and extents[-1] == 1:
        extents.pop()
    return "x".join(map(str, extents))


def format_identity(parts: Mapping[str, Value]) -> str:
    """Identity of a case: ``n=1048576 dtype=float32 block=256``, in the mapping's order."""
    return " ".join(f"{name}={format_value(value)}" for name, value in parts.items())


def verify_command(suite: str, kernel: str, implementation: str, identity: str) -> str:
    """Return the command that runs one case again and says what is wrong with it.

    It names the values of the case, which a suite's preset need not have.
    """
    return _command(["verify"], suite, kernel, implementation, identity)


def _command(words: list[str], suite: str, kernel: str, implementation: str, identity: str) -> str:
    kept = [f"implementation={implementation}", *identity.split()]
    options = (word for one in kept for word in ("-a", one))
    return shlex.join(["gpubench", *words, kernel_argument(suite, kernel), *options])


def kernel_argument(suite: str, kernel: str) -> str:
    """Return what a command takes for a kernel."""
    return kernel if suite == kernel else f"{suite}::{kernel}"


def since_command(
    suite: str, kernel: str, implementation: str, identity: str, good: str, bad: str
) -> str:
    """Return the command that finds the commit between two at which a case changed."""
    words = ["since", "--good", good, "--bad", bad]
    return _command(words, suite, kernel, implementation, identity)


def measure_command(
    suite: str, kernel: str, implementation: str, identity: str, old: str, new: str
) -> str:
    """Return the command that measures one case of two commits in turn."""
    words = ["compare", "--measure", old, new]
    return _command(words, suite, kernel, implementation, identity)


def parse_identity(identity: str) -> dict[str, Value]:
    """Take an identity apart; numbers and booleans come back as such."""
    parts = (part.partition("=") for part in identity.split())
    return {name: parse_value(text) for name, _, text in parts}


def parse_value(text: str) -> Value:
    """Read a value as it stands inside an identity; what is no number and no boolean is text."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
