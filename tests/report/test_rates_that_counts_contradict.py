"""Rates by a suite's formulas are marked where counted work contradicts these."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from result_files import CommitFiles, launch, write_machine

from gpubench.analysis.declared_work import find_doubts
from gpubench.report.exports import _case_records
from gpubench.report.render import files_of, view_models, write_report
from gpubench.report.site import Site
from gpubench.results import Table, open_table
from gpubench.tables import times

NUMPY, CUDA, OTHER = (
    f"suites.add__{name}.time_kernel" for name in ("numpy", "numba_cuda", "cuda_other")
)
RIGHT = {"global_load_sectors": 256, "global_store_sectors": 128, "flops_float32": 1024}
"""What an addition of 1,024 numbers of float32 does: 12 bytes and one operation each."""
HALF = {**RIGHT, "flops_float32": 512}
FEW_BYTES = {**RIGHT, "global_load_sectors": 0}


def timed(folder: Path, *implementations: str, number: int = 1) -> None:
    files = CommitFiles(folder, f"{number:x}" * 40, 86_400 * (20_000 + number), "gpu")
    for name in (NUMPY, *implementations):
        files.time(name, "n=1024", 1e-6).record(
            name, "n=1024", values={"n": 1024}, sizes=("n",), device="cpu", bytes=12_288,
            flops=1_024, conditions={"copy_bytes_per_second": 1e11},
        )  # fmt: skip
    files.write()


def counted(folder: Path, number: int = 1, size: int = 1024, **of: Mapping[str, int]) -> None:
    files = CommitFiles(folder, f"{number:x}" * 40, 86_400 * (20_000 + number), "runner")
    for implementation, counts in of.items():
        name, case = f"suites.add__{implementation}.time_kernel", f"n={size}"
        files.not_applicable(name, case).record(
            name, case, "verified", reason="no times", values={"n": size}, sizes=("n",),
            device="cuda:0", bytes=12 * size, flops=size,
        ).counts(name, case, launch(**counts))  # fmt: skip
    files.write()


def kernel_page(table: Table, machine: str = "gpu") -> dict[str, Any]:
    (model,) = (
        model
        for address, model in view_models(table).items()
        if address.startswith("kernel-") and any(r["row"]["seconds"] for r in model["cases"])
    )
    found: dict[str, Any] = model
    return found


WORDS = (
    "GFLOP/s does not rest on counted work: add numba_cuda n=1024: "
    "`flops` declares 1,024 operations, 2.00× as many: 512 are counted"  # noqa: RUF001
)


def test_counts_of_another_machine_mark_rates_with_their_reason(tmp_path: Path) -> None:
    timed(tmp_path, CUDA)
    counted(tmp_path, numba_cuda=HALF)
    table = open_table(tmp_path)

    notes = kernel_page(table)["rate_notes"]

    # NumPy shares the formula, and nothing that was counted agrees with it.
    assert notes == {
        "sentences": [WORDS], "numbers": {"numba_cuda": {"flops": 1}, "numpy": {"flops": 1}},
    }  # fmt: skip
    folder = write_report(table, tmp_path / "html").parent
    (markup,) = (
        text
        for path in folder.glob("kernel-*.html")
        if "GFLOP/s does not" in (text := path.read_text(encoding="utf-8"))
    )
    for section in ("roofline", "cases"):
        (part,) = re.findall(rf'<section aria-labelledby="{section}".*?</section>', markup, re.S)
        assert re.search(r"[0-9.]+<sup>1</sup></td>", part)
        assert "512 are counted" in html.unescape(part)
    assert "by a formula that counts contradict (note 1)" in markup


def test_where_counts_agree_nothing_changes(tmp_path: Path) -> None:
    timed(tmp_path / "one", CUDA)
    timed(tmp_path / "two", CUDA)
    counted(tmp_path / "two", numba_cuda=RIGHT)

    plain, agreed = (kernel_page(open_table(tmp_path / name)) for name in ("one", "two"))

    assert agreed["rate_notes"] == {"sentences": [], "numbers": {}}
    assert agreed["rooflines"] == plain["rooflines"]


def test_one_counted_form_that_agrees_clears_those_that_nobody_counted(tmp_path: Path) -> None:
    timed(tmp_path, CUDA, OTHER)
    counted(tmp_path, numba_cuda=FEW_BYTES, cuda_other=RIGHT)

    notes = kernel_page(open_table(tmp_path))["rate_notes"]

    assert notes["numbers"] == {"numba_cuda": {"bytes": 1}}
    assert "`bytes` declares 12,288 bytes, and its accesses touch 4,096" in notes["sentences"][0]


def test_the_newest_count_of_the_largest_case_decides(tmp_path: Path) -> None:
    timed(tmp_path, CUDA, number=2)
    counted(tmp_path, numba_cuda=HALF)
    assert find_doubts(open_table(tmp_path))[("add", "add")].of("numba_cuda").flops

    counted(tmp_path, number=2, numba_cuda=RIGHT)

    assert not find_doubts(open_table(tmp_path))[("add", "add")].of("numba_cuda").flops


def test_a_page_is_made_again_when_another_machine_counts(tmp_path: Path) -> None:
    timed(tmp_path, CUDA)
    write_machine(tmp_path, "runner")

    def digests() -> dict[str, str]:
        site = Site(open_table(tmp_path))
        (history,) = (one for one in site.histories if one.setup.machine == "gpu")
        return {file.address: file.digest for file in files_of(history, site)}

    before = {name: one for name, one in digests().items() if name.startswith("kernel-")}
    counted(tmp_path, numba_cuda=HALF)
    after = {name: one for name, one in digests().items() if name.startswith("kernel-")}

    assert [*before.values()] != [*after.values()]


def test_downloads_and_the_terminal_say_it_too(tmp_path: Path) -> None:
    timed(tmp_path, CUDA)
    counted(tmp_path, numba_cuda=HALF)
    table = open_table(tmp_path)
    site = Site(table)
    (history,) = (one for one in site.histories if one.setup.machine == "gpu")

    records = [*_case_records(history, site)]
    assert {record["flops_doubt"] for record in records} == {WORDS}
    assert {record["bytes_doubt"] for record in records} == {None}

    rows = [*site.rows(history.snapshots[-1]).values()]
    shown = [str(part) for part in times.report(rows, None, find_doubts(table))]
    assert f"  [1] {WORDS}" in shown
    assert times.time_row(rows[0], find_doubts(table))["rate_doubts"] == [WORDS]
    assert times.time_row(rows[0])["rate_doubts"] == []
