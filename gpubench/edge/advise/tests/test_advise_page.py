"""What the page *Advise* is made from, and when it is made again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from advise_sample import SIZES, write_scale
from result_files import CommitFiles

from gpubench.edge.advise import page as advise
from gpubench.edge.advise.checks import Prediction, keep, verification_path
from gpubench.edge.advise.page import find_conditions
from gpubench.record import CaseRecord
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Setup, open_table

SETUP = Setup("runner", "virtualenv-py3.11")
KEY = ("scale", "scale")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_scale(tmp_path / "results")
    return tmp_path / "results"


def verify(results: Path, measured: float, count: int = 20) -> None:
    path = verification_path(results, SETUP)
    keep(
        [
            Prediction(
                *KEY, "numpy", "cpu", "", {"n": 2.0**k}, "kernel", "predicted",
                1.0, 0.5, 2.0, 1.0, measured, measured, "2026-03-01T10:00:00",
            )
            for k in range(count)
        ],
        path,
        results,
    )  # fmt: skip


def data(results: Path) -> dict[str, Any]:
    """As the page gets it."""
    site = Site(open_table(results))
    text = advise.script(site.histories[0], KEY, site)
    start, end = "gpubenchAdvice.kernel(", ");\n"
    assert text.startswith(start) and text.endswith(end)
    made: dict[str, Any] = json.loads(text.removeprefix(start).removesuffix(end))
    return made


def test_the_page_gets_every_way_with_the_fastest_launch_of_each_size(results: Path) -> None:
    content = data(results)

    assert content["axes"] == [{"name": "n", "low": SIZES[0], "high": SIZES[-1]}]
    ways = {way["implementation"]: way for way in content["ways"]}
    assert set(ways) == {"numpy", "numba", "cuda", "pool"}
    assert len(content["ways"]) == 6  # three pools
    kernel = ways["cuda"]["times"]["kernel"]
    assert [at for (at,) in kernel["at"]] == list(SIZES)
    assert set(kernel["variant"]) == {"block=256"}
    assert ways["numba"]["once"]["compile"]["seconds"] == pytest.approx(0.4)
    assert not content["refused"]
    assert content["verified"].startswith("not verified: run `gpubench advise --verify scale::")


def test_a_verification_is_told_and_may_refuse(results: Path) -> None:
    verify(results, 1.5)
    content = data(results)
    assert not content["refused"]
    assert content["verified"].startswith(
        "wrong by 33% at the median, 1.5x at most, on 1 March 2026"
    )

    verify(results, 2.5)  # of the same moment: twenty of forty do not hold
    content = data(results)
    assert content["refused"]
    assert content["verified"].startswith("no ranking: wrong by ")
    assert "; 50% of 40 times were within their intervals; " in content["verified"]


def test_pages_are_made_again_after_a_verification(results: Path, tmp_path: Path) -> None:
    def written() -> tuple[str, str]:
        folder = write_report(open_table(results), tmp_path / "html").parent
        (script,) = (folder / "compare-data").glob("advice-*.js")
        return (folder / "advise.html").read_text(), script.read_text()

    before = written()
    assert written() == before
    verify(results, 1.5)
    page, script = written()

    assert "1 kernel of 1 was verified" in page
    assert "on 1 March 2026" in script
    assert "No kernel was verified" in before[0]


def test_a_kernel_with_one_implementation_is_nothing_to_choose_from(tmp_path: Path) -> None:
    CommitFiles(tmp_path, "a" * 40, 86_400).time(
        "suites.add__numpy.time_kernel", "n=8", 1.0
    ).write()
    site = Site(open_table(tmp_path))

    page = advise.build(site.histories[0], site)

    assert page.kernels == ()
    assert page.verdict == "Nothing to ask for: no kernel has two implementations with a time here."
    assert [state.title for state in page.states] == ["Nothing to ask for"]


def test_bandwidth_and_memory_are_of_the_device_of_a_way(results: Path) -> None:
    def on_gpu(files: CommitFiles) -> None:
        rates = {"copy_bytes_per_second": 1e9, "triad_bytes_per_second": 2e9}
        files.lines = [
            replace(line, conditions={**line.conditions, **rates, "gpu_memory_bytes": 1000})
            if isinstance(line, CaseRecord) and line.device == "cuda:0"
            else line
            for line in files.lines
        ]
        files.facts(memory_bytes=2000)

    write_scale(results, others=on_gpu)
    site = Site(open_table(results))
    known = find_conditions(site.histories[0], KEY, site)

    devices = ("cuda:0", "cpu", "processes:4", "cpu and cuda:0")
    assert [known.bandwidth(one) for one in devices] == [2e9, None, None, None]
    assert [known.memory(one) for one in devices] == [1000, 2000, 2000, None]
