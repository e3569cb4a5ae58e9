"""Holds the instructions of x86-64 that our counters count to those that callgrind counts.

Counts each of the library's Numba cases on the CPU in two processes: one has counters in its
machine code, the other runs under valgrind. Both compile all code. Of callgrind's counts those are
taken whose addresses lie in no file, which is what Numba compiled. Prints a line for each case;
exit code 1 where two numbers differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from figures import add_option, record, recording

from gpubench.collecting import without_collecting
from gpubench.counts.hooks import hook_caches
from gpubench.counts.machine import MACHINE_INSTRUCTIONS, MACHINE_PADDING
from gpubench.counts.processor import counting_variables
from gpubench.measure.bound_case import opened
from gpubench.measure.counted_calls import Callgrind
from gpubench.measure.cpu_counting import is_counted_on_cpu, why_not_with_one_thread
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.verify_cases import Manner, Verified, verified
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suites

SUITES = Path(__file__).parent.parent / "suites"
MAPPED = "mapped.json"
PROGRAM = (
    *("valgrind", "--tool=callgrind", "--quiet", "--vgdb=no", "--smc-check=all-non-file"),
    *("--instr-atstart=no", "--collect-atstart=no", "--dump-line=no", "--dump-instr=yes"),
)
WARM_CALLS = 2
"""Calls before the one that is counted: the first compiles, and Numba looks functions up by name
when they are called first."""

Range = tuple[int, int]
"""The first address and the one behind the last."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suites", nargs="*", type=Path, default=[SUITES], help="files or folders")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    add_option(parser)
    given = parser.parse_args()
    if given.child is not None:
        count_in_this_process(cases_of(given.suites, given.only), given.child)
        return 0
    with recording(given):
        print(f"{'machine':>12} {'of it padding':>13} {'callgrind':>12} {'difference':>10}  case")
        files = [path for one in given.suites for path in sorted(one.glob("*.yaml")) or [one]]
        alike = [same for file in files for same in compare(file, given.only)]
        what = "cases of the library whose instructions of x86-64 are callgrind's, to the last"
        print(f"{what}: {sum(alike)} of {len(alike)}")
        record("counts_on_the_cpu", what, {"figure": f"{sum(alike)} of {len(alike)}"})
    return int(not all(alike))


def cases_of(files: Sequence[Path], only: str = "") -> list[Case]:
    """Return the cases of the preset `smoke` that are counted, in the order of suites."""
    return [
        case
        for case in build_plan(load_suites(list(files), "smoke"), 0).cases()
        if is_counted_on_cpu(case) and not why_not_with_one_thread(case) and only in name_of(case)
    ]


def name_of(case: Case) -> str:
    return f"{case.group.title} {case.identity}"


def compare(file: Path, only: str = "") -> list[bool]:
    """Print a line for each case of a suite, and return whether its two numbers are one."""
    cases = cases_of([file], only)
    if not cases:
        return []
    ours = count_by_counters(cases)
    theirs = count_by_callgrind(file, only)
    alike = []
    for place, case in enumerate(cases):
        found, expected = ours[place], theirs.get(place)
        if isinstance(found, str):
            print(f"{'not counted':>12}  {name_of(case)}: {found}")
            alike.append(False)
            continue
        count, padding = found[MACHINE_INSTRUCTIONS], found.get(MACHINE_PADDING, 0)
        difference = "" if expected is None else f"{expected - count:,}"
        shown = f"{count:12,} {padding:13,} {expected or 0:12,} {difference:>10}"
        print(f"{shown}  {name_of(case)}", flush=True)
        alike.append(count == expected)
    return alike


def count_by_counters(cases: Sequence[Case]) -> list[Mapping[str, int] | str]:
    """Return what counters in machine code count of each case, or why they do not."""
    outcomes = dict(verified(cases, Manner(count_on_cpu=True, counter="machine", processes=1)))
    return [_totals(outcomes[place]) for place in range(len(cases))]


def _totals(outcome: Verified) -> Mapping[str, int] | str:
    if outcome.counts is None or outcome.counts.missing:
        missing = outcome.counts.missing if outcome.counts else None
        return f"{outcome.status}: {outcome.reason or missing}"
    return outcome.counts.totals


def count_by_callgrind(file: Path, only: str = "") -> dict[int, int]:
    """Return what callgrind counts in compiled code, by the place of the case in its suite."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(file), "--only", only, "--child", folder]
        subprocess.run(
            [*PROGRAM, f"--callgrind-out-file={folder}/counts", *command],
            env={**os.environ, **counting_variables()},
            check=True,
        )
        in_files = [(begin, end) for begin, end in json.loads(Path(folder, MAPPED).read_text())]
        return dict(read_dumps(Path(folder), in_files))


def count_in_this_process(cases: Sequence[Case], folder: Path) -> None:
    """Have callgrind write the counts of each case, and write which addresses are no code of
    Numba's."""
    hook_caches(set())
    counter = Callgrind()
    for place, case in enumerate(cases):
        with opened(case, draw_inputs(case)) as bound, without_collecting():
            for _ in range(WARM_CALLS):
                bound.restore()
                bound.call()
            bound.restore()
            counter.prepare()
            counter.start()
            bound.call()
            counter.stop(str(place))
            counter.finish()
    (folder / MAPPED).write_text(json.dumps([*_mapped_files(), counter.page]))


def _mapped_files() -> Iterable[Range]:
    """Yield where files lie in this process (``proc(5)``, ``/proc/pid/maps``)."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, *_between, name = [*line.split(maxsplit=5), ""][:6]
        if name.startswith(("/", "[v")):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            yield begin, end


def read_dumps(folder: Path, elsewhere: Sequence[Range]) -> Iterable[tuple[int, int]]:
    """Yield of each dump its label, and what was executed in no file and not elsewhere.

    https://valgrind.org/docs/manual/cl-format.html: files have a number, and their name where they
    come first; ``???`` is code that callgrind knows no file of, jumps between libraries among it.
    An address may be relative to the one before; the line behind ``calls=`` is what the callee
    took.
    """
    names: dict[str, str] = {}
    dumps = sorted(folder.glob("counts.*"), key=lambda path: int(path.suffix[1:]))
    for file in dumps:
        text = file.read_text(encoding="utf-8", errors="replace")
        executed: Counter[int] = Counter()
        here, address, is_callee = "", 0, False
        for line in text.splitlines():
            if match := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line):
                names.setdefault(match[2], match[3])
                here = here if match[1] else match[2]
            elif line.startswith("calls="):
                is_callee = True
            elif match := re.match(r"(?:0x([0-9a-f]+)|([-+]\d+)|\*) (\d+)$", line):
                address = int(match[1], 16) if match[1] else address + int(match[2] or 0)
                if names.get(here) == "???" and not is_callee:
                    executed[address] += int(match[3])
                is_callee = False
        if label := re.search(r"^desc: Trigger: Client Request: (\d+)$", text, re.MULTILINE):
            yield (
                int(label[1]),
                sum(count for address, count in executed.items() if not _is_in(elsewhere, address)),
            )


def _is_in(ranges: Sequence[Range], address: int) -> bool:
    return any(begin <= address < end for begin, end in ranges)


if __name__ == "__main__":
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed (Debian: apt install valgrind)")
    sys.exit(main())
