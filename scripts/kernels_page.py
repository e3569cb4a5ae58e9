"""Writes docs/kernels.md: every kernel of the suites, and what its CUDA forms need of a GPU.

The list is read from the suites. Registers, shared memory and spills are what nvJitLink says of the
machine code that it makes of numba-cuda's, for each architecture; without them the page is left as
it is.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gpubench.suite.loading import load_suites
from gpubench.suite.model import Kernel, Suite

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "kernels.md"

HEAD = """\
# Kernels

Every kernel of `suites/`, written by `make docs`. A suite's own text says what it teaches and where
the algorithm comes from. Bytes and operations are formulas over the sizes: what has to be moved and
computed at the least, which GB/s and FLOP/s in the report are made of.
"""

RESOURCES = """\
## What the CUDA forms need

Registers of a thread, bytes of static shared memory of a block, and bytes spilled. nvJitLink
{linker} says so of what it makes of numba-cuda {numba_cuda}'s code: link-time optimisation
included, which is what a GPU gets. There is a line for each kernel that is launched and each set
of types. Dynamic shared memory comes on top, because it is part of the launch.

| kernel | launched, with its types | {architectures} | shared bytes | spilled |
| --- | --- | {rule} | --- | --- |
"""


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "kernels"))
    os.environ["GPUBENCH_EVERY_ARCHITECTURE"] = "1"  # before what is imported next
    from cuda_compiler import linker_version, missing
    from library_compiler import compile_library

    if (reason := missing()) is not None:
        sys.exit(reason)
    needs = {title: compiled.needs for title, compiled in compile_library().items()}
    suites = [loaded.suite for loaded in load_suites([ROOT / "suites"])]
    PAGE.write_text(
        "\n".join([HEAD, *map(section, suites), resources_section(needs, linker_version())])
    )


def section(suite: Suite) -> str:
    """Return one suite: what it is about, and its kernels."""
    rows = (row(suite, name, kernel) for name, kernel in suite.kernels.items())
    lines = [
        f"## {suite.suite}\n",
        f"{suite.description}\n",
        "| kernel | what | implementations | bytes | operations |",
        "| --- | --- | --- | --- | --- |",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def row(suite: Suite, name: str, kernel: Kernel) -> str:
    implementations = ", ".join(f"`{one}`" for one in kernel.implementations)
    work = (f"`{formula}`" for formula in (kernel.work.bytes, kernel.work.flops))
    return table_row([f"`{name}`", kernel.title or suite.title or "", implementations, *work])


def resources_section(needs: dict[str, dict[str, Any]], linker: str) -> str:
    architectures = list(next(iter(needs.values())))
    head = RESOURCES.format(
        linker=linker,
        numba_cuda=version("numba-cuda"),
        architectures=" | ".join(architectures),
        rule=" | ".join("---" for _ in architectures),
    )
    return head + "\n".join(resource_rows(needs)) + "\n"


def resource_rows(needs: dict[str, dict[str, Any]]) -> Iterator[str]:
    for title in sorted(needs):
        each = needs[title].values()
        kernel, _, launched = title.partition(" ")
        yield table_row(
            [
                f"`{kernel}`",
                f"`{short(launched)}`",
                *(str(need.registers) for need in each),
                together(need.shared_bytes for need in each),
                together(need.spill_bytes for need in each),
            ]
        )


def short(launched: str) -> str:
    """Arrays as ``float32[:, :]`` in place of ``array(float32,2d,C)``."""

    def array(found: re.Match[str]) -> str:
        return f"{found[1]}[{', '.join(':' * int(found[2]))}]"

    return re.sub(r"array\((\w+),(\d)d,C\)", array, launched)


def together(numbers: Iterable[int]) -> str:
    return " / ".join(map(str, dict.fromkeys(numbers)))


def table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    main()
