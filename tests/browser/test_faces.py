"""What pages looked like when they were wrong: each face was seen on real results."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from opened_pages import Open, draw_charts
from result_files import CommitFiles

from gpubench.report.render import write_report
from gpubench.results import open_table

pytestmark = pytest.mark.browser

DAY = 86_400
COMMITS = 40
NUMPY = "suites.add__numpy.time_kernel"
CANDIDATES = [f"suites.add__a_candidate_{letter}.time_kernel" for letter in "abcdefgh"]

NOTES = """() => [...document.querySelectorAll("#chart-history .annotation")].map((note) => {
  const { left, right, top, bottom } = note.getBoundingClientRect();
  return { left, right, top, bottom };
})"""
CHART = "() => document.querySelector('#chart-history').getBoundingClientRect().toJSON()"
SPARKS = """() => [...document.querySelectorAll("#list-cases .spark path")]
  .map((path) => path.getBoundingClientRect().width)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight candidates, of which each changes a commit after the one before, the last at the newest
    commit; the first is measured at the ten newest commits alone."""
    folder = tmp_path_factory.mktemp("faces")
    for index in range(COMMITS):
        files = CommitFiles(folder / "results", f"{index:08x}{0:032x}", (index + 1) * DAY)
        files.time(NUMPY, "n=4", 4.0)
        for place, name in enumerate(CANDIDATES):
            changed = index >= (COMMITS - 1 if place == 7 else 20 + place)
            factor = 25.0 if place < 7 else 30.0
            if place or index >= COMMITS - 10:
                files.time(name, "n=4", 1.0 * (factor if changed else 1.0) * (1 + index % 3 / 1e5))
            else:
                files.missing(name, "n=4")
            files.record(name, "n=4", baseline_benchmark=NUMPY, baseline_case="n=4")
        files.write()
    return write_report(open_table(folder / "results"), folder / "html").parent


def overlap(one: dict[str, float], other: dict[str, float]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across > 1 and down > 1


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_of_neighbouring_steps_lie_beside_each_other_inside_the_chart(
    site: Path, open_page: Open, width: int
) -> None:
    page = open_page(site / "index.html").page
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((site / "kernel-add.html").as_uri())
    draw_charts(page)

    notes, chart = page.evaluate(NOTES), page.evaluate(CHART)

    assert len(notes) == 6
    assert not any(overlap(*pair) for pair in combinations(notes, 2))
    assert all(chart["left"] <= note["left"] < note["right"] <= chart["right"] for note in notes)


def test_a_series_that_begins_late_begins_late_on_the_axis_of_all(
    site: Path, open_page: Open
) -> None:
    page = open_page(site / "kernel-add.html").page

    widths = page.evaluate(SPARKS)

    assert len(widths) == 9
    assert min(widths) < max(widths) / 3


def test_a_change_of_the_newest_commit_says_that_it_rests_on_one(
    site: Path, open_page: Open
) -> None:
    page = open_page(site / "kernel-add.html").page
    draw_charts(page)
    said = "one commit alone, to be checked: slower by 30.0\N{MULTIPLICATION SIGN} at 00000027"
    assert said in page.inner_text("#history ~ figure .sentences")
    label = "a_candidate_h slower 30.0\N{MULTIPLICATION SIGN} (1 commit)"
    assert label in page.inner_text("#chart-history")

    page.goto((site / "changes.html").as_uri())
    assert "to be checked" in page.inner_text("main")


def write_pairs(folder: Path) -> Any:
    """A table of two benchmarks of an asv project, whose parameter is a class."""
    from gpubench.results import Pair

    pair = Pair("sums", "norm", "linalg.time_numpy", "linalg.time_numba")
    described: dict[str, Any] = {"version": 2}
    for name in (pair.baseline, pair.candidate):
        described[name] = {
            "name": name, "type": "time", "param_names": ["dtype"],
            "params": [["<class 'bool'>", "<class 'numpy.float64'>"]],
        }  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "benchmarks.json").write_text(json.dumps(described))
    (folder / "box").mkdir()
    (folder / "box" / "machine.json").write_text('{"machine": "box", "version": 1}')
    results = {
        name: [[seconds] * 2, described[name]["params"], "v1", 1, 1.0, [seconds * 0.99] * 2,
               [seconds * 1.01] * 2, [seconds] * 2, [seconds] * 2, [1] * 2, [10] * 2]
        for name, seconds in ((pair.baseline, 4.0), (pair.candidate, 1.0))
    }  # fmt: skip
    columns = [
        "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
        "stats_q_25", "stats_q_75", "stats_number", "stats_repeat",
    ]  # fmt: skip
    content = {
        "version": 2, "commit_hash": "a" * 40, "env_name": "py3.11", "date": DAY * 1000,
        "params": {"machine": "box"}, "python": "3.11", "requirements": {}, "env_vars": {},
        "result_columns": columns, "results": results, "durations": {},
    }  # fmt: skip
    (folder / "box" / "aaaaaaaa-py3.11.json").write_text(json.dumps(content))
    return open_table(folder, pairs=[pair])


def test_pairs_are_headed_once_and_classes_read_as_their_names(
    tmp_path: Path, open_page: Open
) -> None:
    site = write_report(write_pairs(tmp_path / "results"), tmp_path / "site").parent
    page = open_page(site / "index.html").page

    heads = page.locator(".matrix thead th").all_inner_texts()
    assert heads == ["Kernel", "baseline", "candidate"], "of one commit"

    page.goto((site / "kernel-sums.norm.html").as_uri())
    assert "dtype=bool" in page.inner_text("main")
    assert "dtype=numpy.float64" in page.inner_text("main")
    assert "class" not in page.inner_text("#list-cases")
