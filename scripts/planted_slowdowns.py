"""How many of the slow-downs that were planted ``gpubench compare --measure`` finds.

Clones this repository to a temporary folder and commits twice there: the library's kernels on one
and on several threads as they are, and the same kernels that do a tenth of their work again before
the whole of it. Then compares both commits in turn, and prints how many verdicts are *slower*, by
the number of threads: run ``python scripts/planted_slowdowns.py [--time 15m] [--tenths 1]``.
``--tenths 0`` plants nothing, so that each verdict *slower* or *faster* is false.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from figures import add_option, record, recording

REPOSITORY = Path(__file__).parents[1]

PLANTED: Mapping[str, Mapping[str, str]] = {
    "elementwise": {"multiply_parallel": "a[:k], b[:k], c[:k]"},
    "streaming": {"copy_parallel": "a[:k], b[:k]", "triad_parallel": "a[:k], b[:k], c[:k], s"},
    "finance": {
        "black_scholes_parallel": (
            "share[:k], strike[:k], years[:k], rate, spread, call[:k], put[:k]"
        )
    },
    "images": {
        "convolution_parallel": "image[:k], weights, out[:k]",
        "median_parallel": "image[:k], out[:k]",
    },
    "learning": {
        "softmax_parallel": "x[:k], out[:k]",
        "layer_norm_parallel": "x[:k], gain, shift, out[:k]",
    },
    "matrix_vector": {"matvec_parallel": "A[:k], x, y[:k]"},
    "linear_algebra": {"matmul_parallel": "A[:k], B, C[:k]"},
    "reductions": {
        "norm_parallel": "x[:k], out",
        "sum_parallel": "x[:k], parts, out",
        "dot_parallel": "x[:k], y[:k], parts, out",
    },
    "stencils": {"jacobi_2d_parallel": "a[:k], out[:k]"},
    "strings": {
        "crc32_parallel": "messages[:k], tables, out[:k]",
        "edit_distance_parallel": "a[:k], b[:k], out[:k]",
    },
}
"""Kernels whose work is proportional to the length of the first axis, by module and function, with
their arguments for the first ``k`` elements of it. What they write then is written again."""

KERNELS = (
    *("multiply::multiply", "streaming::copy", "streaming::triad", "finance::black_scholes"),
    *("images::convolution", "images::median", "learning::softmax", "learning::layer_norm"),
    *("linear_algebra::matvec", "matmul::matmul", "norm::norm", "reductions::sum"),
    *("reductions::dot", "stencils::jacobi_2d", "strings::crc32", "strings::edit_distance"),
)

WORTH_SECONDS = 20e-6
"""On several threads, cases of less time are told apart: starting threads is most of it."""

AGAIN = '''

_{name}_once = {name}


@njit(cache=True)
def {name}({arguments}):
    """Do {tenths} tenths of the work again, before the whole of it."""
    k = {first}.shape[0] * {tenths} // 10
    _{name}_once({some})
    _{name}_once({arguments})
'''


def make_commits(into: Path, tenths: int) -> None:
    """Clone the repository ``into`` a folder, and commit the kernels as they are and slower."""
    run(REPOSITORY, "git", "clone", "--quiet", str(REPOSITORY), str(into))
    for suite in (into / "suites").glob("*.yaml"):
        suite.write_text(
            re.sub(
                r"^( +)(function: gpubench\.kernels\.\w+:(\w+))$",
                lambda line: (
                    f"{line[0]}\n{line[1]}threads: [1, 2]" if is_planted(line[3]) else line[0]
                ),
                suite.read_text(),
                flags=re.MULTILINE,
            )
        )
    commit(into, "Measure on one and on two threads")
    for module, functions in PLANTED.items():
        path = into / "gpubench" / "kernels" / f"{module}.py"
        text = path.read_text()
        for name, some in functions.items():
            signature = re.search(rf"^def {name}\((.*?)\) -> None:", text, re.DOTALL | re.MULTILINE)
            assert signature is not None, f"{path} has no {name}"
            arguments = re.findall(r"(\w+): ", signature[1])
            if tenths:
                text += AGAIN.format(
                    name=name,
                    arguments=", ".join(arguments),
                    first=some.partition("[")[0],
                    some=some,
                    tenths=tenths,
                )
            else:
                text += f"\n# {name} is as it was.\n"
        path.write_text(text)
    commit(into, f"Do {tenths} tenths of the work again")


def is_planted(function: str) -> bool:
    """Tell whether a kernel's function is made slower."""
    return any(function in functions for functions in PLANTED.values())


def commit(repository: Path, message: str) -> None:
    """Commit each change in a repository."""
    author = ("-c", "user.name=planted", "-c", "user.email=planted@localhost")
    run(repository, "git", *author, "commit", "--quiet", "--all", "--message", message)


def run(folder: Path, *command: str) -> str:
    """Run a command in a folder and return what it prints. Raise CalledProcessError otherwise."""
    done = subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    return done.stdout


def measure(repository: Path, arguments: Sequence[str]) -> list[Mapping[str, Any]]:
    """Compare both commits in turn, and return the cases of the comparison."""
    chosen = ("-a", "implementation=numba_parallel", "--all", "--json")
    command = (sys.executable, "-m", "gpubench", "compare", "--measure", "HEAD~1", "HEAD")
    printed = run(repository, *command, *KERNELS, *chosen, *arguments)
    return [case for comparison in json.loads(printed) for case in comparison["cases"]]


def kind(case: Mapping[str, Any]) -> str:
    """Return the kind of a case: its threads, and whether several of them have enough to do."""
    if "threads=1" in case["case"].split():
        return "one thread"
    seconds = case["old"]["median"]
    return f"two threads, {'below' if seconds and seconds < WORTH_SECONDS else 'from'} 20 µs"


def main() -> None:
    """Plant, compare, and print the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenths", type=int, default=1)
    add_option(parser)
    options, arguments = parser.parse_known_args()
    planted = f"{options.tenths}/10 of the work again" if options.tenths else "nothing planted"
    with recording(options), tempfile.TemporaryDirectory() as folder:
        make_commits(Path(folder, "library"), options.tenths)
        cases = measure(Path(folder, "library"), arguments)
        for case in cases:
            if case["verdict"] != "slower":
                print_verdict(case)
        for of in sorted({*map(kind, cases)}):
            verdicts = Counter(case["verdict"] for case in cases if kind(case) == of)
            print(f"{of}: {verdicts.total()} cases, {dict(verdicts)}")
            figures = {word: str(verdicts[word]) for word in ("slower", "faster", "same")}
            others = verdicts.total() - sum(map(int, figures.values()))
            record("planted", f"{planted}, {of}", figures | {"undecided": str(others)})


def print_verdict(case: Mapping[str, Any]) -> None:
    """Print a case with how many times as long it takes, and the interval of that."""
    ratio = case["ratio"] or {"value": math.nan, "low": math.nan, "high": math.nan}
    value, high, low = (1 / (ratio[end] or math.nan) for end in ("value", "low", "high"))
    words = case["verdict"], case["benchmark"], case["case"], case["note"]
    print(f"{value:6.3f} ({low:.3f} to {high:.3f})", *filter(None, words))


if __name__ == "__main__":
    main()
