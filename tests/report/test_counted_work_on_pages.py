"""Counted work on the pages: cells, the section Work, Changes; and nowhere read as a time."""

# ruff: noqa: RUF001 (pages write multiplication signs)

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from counted_store import CODE, NAIVE, TILED, naive, tiled, write_counted, write_repository
from result_files import CommitFiles, launch

from gpubench.cli import main
from gpubench.cli.console import OUT
from gpubench.record import HintRecord, LaunchRecord, LineRecord
from gpubench.report.render import view_models, write_report
from gpubench.results import Table, open_table

FILL = "suites.fill__cuda.time_kernel"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder = tmp_path_factory.mktemp("counted")
    hashes = write_repository(folder / "repository")
    write_counted(folder / "results", hashes)
    return open_table(folder / "results", folder / "repository")


@pytest.fixture(scope="module")
def models(store: Table) -> dict[str, Any]:
    return view_models(store)


@pytest.fixture(scope="module")
def pages(store: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(store, tmp_path_factory.mktemp("pages") / "html").parent


def page(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


def section(markup: str, name: str) -> str:
    match = re.search(rf'<section aria-labelledby="{name}".*?</section>', markup, re.DOTALL)
    assert match, name
    return match[0]


def words_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def write(folder: Path, *commits: list[LaunchRecord], **how: Any) -> Table:
    """One kernel without a baseline, counted at each commit; an empty list is a commit without."""
    for number, launches in enumerate(commits):
        files = CommitFiles(folder, f"{number + 1:x}" * 40, 86_400 * (20_000 + number))
        files.facts(**how.get("facts", [{}] * len(commits))[number])
        status = how.get("statuses", ["verified"] * len(commits))[number]
        files.not_applicable(FILL, "n=4").record(
            FILL, "n=4", status, reason="no times", values={"n": 4}, sizes=("n",)
        )
        if launches:
            model = how.get("models", [1] * len(commits))[number]
            files.counts(FILL, "n=4", *launches, model=model)
        files.write()
    return open_table(folder)


def cell(table: Table) -> dict[str, Any]:
    (row,) = view_models(table)["index.html"]["matrix"]["rows"]
    found: dict[str, Any] = row["cells"][0]
    return found


# --- the overview


def test_a_cell_without_a_gpu_says_what_was_counted(models: dict[str, Any], pages: Path) -> None:
    (row,) = models["index.html"]["matrix"]["rows"]
    _, counted, wrong = row["cells"]

    assert (counted["status"], counted["work"]) == ("verified", "32.0 sectors a load, 100 % lanes")
    assert (wrong["status"], wrong["work"]) == ("wrong", "")
    shown = words_of(section(page(pages, "index.html"), "kernels"))
    assert "right, 32.0 sectors a load, 100 % lanes" in shown
    assert "skipped" not in shown
    assert "right, no time" not in shown


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"global_load_requests": 8, "global_load_sectors": 30}, "3.8 sectors a load"),
        ({"global_store_requests": 8, "global_store_sectors": 32}, "4.0 sectors a store"),
        ({"global_atomic_requests": 1, "global_atomic_sectors": 1}, "1.0 sectors an atomic"),
        ({"barriers": 1}, "no access of global memory"),
        ({"ptx_instructions": 1, "ptx_thread_instructions": 2},
         "no access of global memory, 6.2 % lanes"),
        ({"ptx_instructions": 100_000, "ptx_thread_instructions": 3_199_999},
         "no access of global memory, 99.9 % lanes"),
    ],
)  # fmt: skip
def test_a_cell_names_what_the_kernel_accesses(
    tmp_path: Path, counts: dict[str, int], words: str
) -> None:
    assert cell(write(tmp_path, [launch(**counts)]))["work"] == words


def test_the_overview_lists_counted_work_that_grew(models: dict[str, Any], pages: Path) -> None:
    (found,) = models["index.html"]["growth"]

    assert (found["name"]["implementation"], found["count"], found["change"]) == (
        "cuda_naive", "global load sectors", "+57,344 (8.00×)",
    )  # fmt: skip
    said = sentences(section(page(pages, "index.html"), "changes"))
    assert "▼ global load sectors" in said
    assert [text for text in said if TIME.search(text) or SPEED.search(text)] == []


@pytest.mark.parametrize("status", ["wrong", "failed", "timed_out", "killed"])
def test_a_case_that_is_not_right_says_so(tmp_path: Path, status: str) -> None:
    found = cell(write(tmp_path, [launch(barriers=1)], statuses=[status]))

    assert (found["status"], found["work"]) == (status, "")


def test_a_case_that_was_not_counted_is_right_without_a_time(tmp_path: Path) -> None:
    assert (cell(write(tmp_path, []))["status"], cell(write(tmp_path, []))["work"]) == (
        "verified", "",
    )  # fmt: skip


def test_cases_beside_it_that_were_skipped_are_told(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400).not_applicable(FILL, "n=4")
    files.record(FILL, "n=4", "verified", values={"n": 4}, sizes=("n",))
    files.counts(FILL, "n=4", launch(barriers=1))
    files.not_applicable(FILL, "n=8")
    files.record(FILL, "n=8", "skipped", reason="too large", values={"n": 8}, sizes=("n",)).write()

    found = cell(open_table(tmp_path))

    assert (found["work"], found["note"]) == ("no access of global memory", "n = 4; 1 skipped")


def test_a_time_goes_before_counts(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400).time(FILL, "n=4", 1e-3)
    files.record(FILL, "n=4", values={"n": 4}, sizes=("n",))
    files.counts(FILL, "n=4", launch(barriers=1)).write()

    assert cell(open_table(tmp_path))["work"] == ""


# --- a kernel's page


def test_work_shows_what_changed_since_which_commit(models: dict[str, Any]) -> None:
    changes = models["kernel-transpose.html"]["work"]["changes"]

    assert [
        (one["name"]["case"], one["others"], *(one[key] for key in ("count", "before", "after")),
         one["change"])
        for one in changes
    ] == [
        ("n=256 block=256", 3, "global load sectors", "8,192", "65,536", "+57,344 (8.00×)"),
        ("n=256 block=256", 3, "excess sectors", "0", "57,344", "+57,344 (from 0)"),
    ]  # fmt: skip
    assert {one["since"]["subject"] for one in changes} == {"Change 1"}


def test_work_has_a_map_of_launches_with_occupancy(models: dict[str, Any]) -> None:
    (shown,) = models["kernel-transpose.html"]["work"]["maps"]

    assert (shown["corner"], shown["columns"], [*shown["rows"]]) == (
        "block \\ size", ["n=64", "n=256"], ["64", "256"],
    )  # fmt: skip
    found = shown["rows"]["64"][1]
    assert (found["sectors"], found["occupancy"]) == (
        "18.0 sectors",
        ["occupancy 100 %, by warps and blocks: T4, A100, RTX 4090, H100 and B200"],
    )  # fmt: skip


def test_the_source_is_that_of_the_commit(models: dict[str, Any], pages: Path) -> None:
    (source,) = models["kernel-transpose.html"]["work"]["sources"]

    assert (source["file"], source["has_text"]) == ("kernels/transposes.py", True)
    by_number = {line["number"]: line for line in source["lines"]}
    assert [*by_number] == [5, 6, 7, 8, 9, 10]
    assert by_number[8]["code"] == CODE.splitlines()[7]
    assert by_number[8]["sectors"] == "73,728 (18.0 a request)"
    assert (by_number[8]["instruction_bar"], by_number[7]["instruction_bar"]) == (100.0, 75.0)
    assert (by_number[8]["sector_bar"], by_number[8]["excess_bar"]) == (100.0, 77.8)
    markup = section(page(pages, "kernel-transpose.html"), "work")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in markup
    assert "<script" not in markup


def test_a_hint_stands_beside_its_line(tmp_path: Path) -> None:
    hint = HintRecord("reuse", "9 <of> 10", "read again", "a tile", 0.5, "sectors")
    line = LineRecord("kernels/a.py", 7, {"barriers": 2}, hints=(hint,))
    table = write(tmp_path, [replace(launch(barriers=2), lines=(line,))])

    (source,) = view_models(table)["kernel-fill.html"]["work"]["sources"]

    words = "reuse, 50 % of the sectors: 9 <of> 10. Cause: read again. Change: a tile."
    assert [each["notes"] for each in source["lines"]] == [[words]]


def test_a_file_that_git_does_not_have_shows_its_numbers_alone(tmp_path: Path) -> None:
    table = write(tmp_path, [launch(lines={7: {"barriers": 2}}, barriers=2)])

    (source,) = view_models(table)["kernel-fill.html"]["work"]["sources"]

    assert (source["has_text"], [line["number"] for line in source["lines"]]) == (False, [7])


@pytest.mark.parametrize("file", ["../../etc/passwd", "/etc/passwd", "--all", "HEAD:x", "a\0b", ""])
def test_a_hostile_file_reads_nothing(store: Table, file: str) -> None:
    assert store.committed(store.commits[-1], file) is None


def test_a_case_without_counts_says_why(tmp_path: Path) -> None:
    table = write(tmp_path, [])
    record = next(tmp_path.glob("*/*.jsonl"))
    with record.open("a") as file:
        line = {"format": 1, "kind": "counts", "benchmark": FILL, "case": "n=4", "model": 1,
                "missing": "<b>an atomic decides</b>"}  # fmt: skip
        file.write(json.dumps(line) + "\n")
    table = open_table(tmp_path)
    pages = write_report(table, tmp_path / "html").parent

    assert view_models(table)["kernel-fill.html"]["work"]["missing"] == [
        ["fill cuda n=4", "<b>an atomic decides</b>"]
    ]
    assert "&lt;b&gt;an atomic decides" in section(page(pages, "kernel-fill.html"), "work")


def test_nothing_counted_has_no_section(tmp_path: Path) -> None:
    table = write(tmp_path, [])
    pages = write_report(table, tmp_path / "html").parent

    assert view_models(table)["kernel-fill.html"]["work"] is None
    assert 'aria-labelledby="work"' not in page(pages, "kernel-fill.html")


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    one = launch(evil, lines={1: {evil: 3, "ptx_instructions": 1}}, file=evil, ptx_instructions=32)
    table = write(tmp_path, [one], [launch(evil, ptx_instructions=64)])
    pages = write_report(table, tmp_path / "html").parent

    for path in pages.glob("*.html"):
        assert "<img" not in page(pages, path.name)


def test_damaged_launches_make_a_page(tmp_path: Path) -> None:
    none = LaunchRecord("k", (0, 0, 0), (0, 0, 0), 0, resources={"registers": 10**6})
    table = write(tmp_path, [none], [launch(block=4096, resources={"registers": 999}, barriers=1)])

    assert view_models(table)["kernel-fill.html"]["work"]["rows"]


# --- the page of changes


def changed(table: Table) -> list[dict[str, Any]]:
    commits = view_models(table)["changes.html"]["commits"]
    return [row for commit in commits for row in commit["counted"]]


def test_a_count_that_grew_is_a_change_of_its_commit(models: dict[str, Any], pages: Path) -> None:
    shown = models["changes.html"]
    (commit,) = (one for one in shown["commits"] if one["counted"])
    claims = [row["claim"] for one in shown["commits"] for row in one["statuses"]]
    assert claims == ["wrong, before right, no time"]
    (row,) = commit["counted"]

    assert (commit["commit"]["subject"], commit["counts"]) == ("Change 1", "1 with more work")
    assert (row["grew"], row["others"], row["facts"]) == (True, 3, [])
    assert row["costs"] == [
        ["global load sectors", "8,192", "65,536", "+57,344 (8.00×)"],
        ["excess sectors", "0", "57,344", "+57,344 (from 0)"],
    ]
    assert shown["verdict"] == (
        "No change of a time was found in 10 cases over 3 commits. "
        "4 cases without a time since: wrong, failed or skipped."
    )
    assert "more work, counted" in words_of(page(pages, "changes.html"))


def test_one_sector_more_is_a_change_and_so_is_one_less(tmp_path: Path) -> None:
    commits = [[launch(global_load_sectors=n)] for n in (100_000, 100_001, 100_001, 100_000)]

    rows = changed(write(tmp_path, *commits))

    assert [(row["grew"], row["costs"][0][3]) for row in rows] == [
        (False, "-1 (1.00×)"), (True, "+1 (1.00×)"),
    ]  # fmt: skip


def test_what_grew_and_what_fell_are_two_rows(tmp_path: Path) -> None:
    rows = changed(write(tmp_path, [launch(barriers=2)], [launch(special_functions=2)]))

    assert {(row["grew"], row["costs"][0][0]) for row in rows} == {
        (True, "special functions"), (False, "barriers"),
    }  # fmt: skip


def test_commits_without_counts_stand_between_neighbours(tmp_path: Path) -> None:
    table = write(
        tmp_path, [launch(barriers=1)], [], [launch(barriers=2)],
        statuses=["verified", "wrong", "verified"],
    )  # fmt: skip

    (row,) = changed(table)

    assert (row["before"]["short"], row["after"]["short"]) == ("1" * 8, "3" * 8)


def test_counts_of_another_model_are_no_change(tmp_path: Path) -> None:
    table = write(tmp_path, [launch(barriers=1)], [launch(barriers=2)], models=[1, 2])

    assert changed(table) == []


def test_counts_by_the_rules_of_another_architecture_are_no_change(tmp_path: Path) -> None:
    table = write(tmp_path, [launch(barriers=1)], [launch(barriers=2, architecture=(9, 0))])

    assert changed(table) == []


def test_another_compiler_is_the_cause(tmp_path: Path) -> None:
    facts = [{"numba_cuda": "0.30", "cpu": "A"}, {"numba_cuda": "0.31", "cpu": "B"}]
    table = write(tmp_path, [launch(barriers=1)], [launch(barriers=2)], facts=facts)

    (row,) = changed(table)

    assert row["why"].startswith("another compiler: ")
    assert [(fact["old"], fact["new"]) for fact in row["facts"]] == [("0.30", "0.31")]


def test_equal_counts_are_no_change(tmp_path: Path) -> None:
    one = launch("kernels.add", lines={7: {"barriers": 1}}, barriers=1)
    same = launch("kernels.renamed", lines={9: {"barriers": 1}}, barriers=1)

    assert changed(write(tmp_path, [one], [same])) == []


# --- nothing of it is a time

TIME = re.compile(r"[0-9][0-9.,]*[\s\u202f]?(?:ns|µs|us|ms|s|seconds?)\b")
"""A number with a unit of time."""

SPEED = re.compile(r"\b(?:faster|slower|speedup|takes|took|median|runtime|seconds)\b")
"""Words that are said of times."""


def sentences(markup: str) -> list[str]:
    """Texts of a page's elements that hold no others of their kind."""
    blocks = re.split(r"</?(?:li|p|td|th|h\d|caption|summary|tr|figcaption)\b[^>]*>", markup)
    return [text for text in map(words_of, blocks) if text]


def test_in_the_section_work_only_a_bound_has_a_unit_of_time(pages: Path) -> None:
    said = sentences(section(page(pages, "kernel-transpose.html"), "work"))

    bounds = [text for text in said if TIME.search(text)]
    assert len(bounds) == 5
    for text in bounds:
        assert re.fullmatch(r"bound [0-9.]+\s(ns|µs|ms|s) on .*, by .*", text)
    assert [text for text in said if SPEED.search(text)] == []


def test_counts_on_other_pages_have_no_unit_of_time(pages: Path) -> None:
    changes = page(pages, "changes.html")
    (table,) = re.findall(r'<table class="work">.*?</table>', changes, re.DOTALL)
    counted = re.findall(r'<td class="plain counted">.*?</td>', page(pages, "index.html"))

    assert len(counted) == 1
    for markup in (table, *counted):
        assert [t for t in sentences(markup) if TIME.search(t) or SPEED.search(t)] == []
    for path in pages.glob("*.html"):
        for text in sentences(page(pages, path.name)):
            if "bound" in text and TIME.search(text):
                assert text.startswith("bound ")
    for path in pages.glob("*.md"):
        _, _, counts = path.read_text().partition("#### Counted work")
        for line in counts.partition("Slower and faster: ")[0].splitlines():  # the rule of times
            assert not TIME.search(line) and not SPEED.search(line)


def paths_of(value: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        return [each for key, one in value.items() for each in paths_of(one, (*path, key))]
    if isinstance(value, list):
        return [each for one in value for each in paths_of(one, path)]
    return [(path, value)]


TIMES = {"seconds", "time", "median", "low", "high", "q25", "q75", "old", "new", "speedup", "ratio"}
"""Keys of times in JSON."""


def test_json_has_counts_and_bounds_under_names_of_their_own(models: dict[str, Any]) -> None:
    for address, model in models.items():
        for path, value in paths_of(model):
            is_counted = {"work", "counted", "bounds"} & {*path}
            if is_counted and "name" not in path and "facts" not in path:
                assert not TIMES & {*path}, (address, path)
            if isinstance(value, str) and TIME.search(value) and is_counted:
                assert "bounds" in path and value.startswith("bound "), (address, path)


def test_the_terminal_shows_counts_without_units_of_time(
    store: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.folder.parent)
    old, new = (commit.hash[:12] for commit in store.commits[:2])
    command = ["compare", old, new, "--results", str(store.folder)]
    monkeypatch.chdir(store.folder.parent / "repository")

    monkeypatch.setattr(OUT.rich, "_width", 160)
    shown = CliRunner().invoke(main, command).output
    _, title, counted = shown.partition("Counted work: exact figures")

    assert title, shown
    rows = counted.splitlines()[1:]
    assert any("global load sectors" in row for row in rows)
    for row in rows:
        assert not TIME.search(row) and not SPEED.search(row), row
    (found,) = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    for path, _ in paths_of(found["counted"]):
        assert not TIMES & {*path}


def test_the_exports_of_times_hold_no_count(pages: Path) -> None:
    for record in json.loads(page(pages, "cases.json")):
        if "cuda" in record["implementation"]:
            assert (record["seconds"], record["speedup"]) == (None, None)


def test_files_of_counts_have_every_cost_with_its_newest_change(store: Table, pages: Path) -> None:
    records = json.loads(page(pages, "counts.json"))
    newest, first = store.commits[-1].hash, store.commits[0].hash

    assert {record["commit"] for record in records} == {newest}
    naive_cases = {record["case"] for record in records}
    assert naive_cases == {f"n={size} block={block}" for size in (64, 256) for block in (64, 256)}
    by_count = {one["count"]: one for one in records if one["case"] == "n=64 block=64"}
    grew = by_count["global load sectors"]
    assert (grew["value_before"], grew["value"], grew["changed_against"]) == (512, 4096, first)
    assert (
        by_count["registers a thread"]["value"],
        by_count["registers a thread"]["changed_at"],
    ) == (20, None)
    assert page(pages, "counts.csv").splitlines()[0].startswith("machine,environment,branch,commit")
    for record in records:
        assert not TIMES & {*record} - {"time"}


def test_a_count_that_fell_to_nothing_stays_in_the_file(tmp_path: Path) -> None:
    table = write(tmp_path, [launch(barriers=8)], [launch(ptx_instructions=1)])
    pages = write_report(table, tmp_path / "html").parent

    records = {one["count"]: one for one in json.loads(page(pages, "counts.json"))}

    assert (records["barriers"]["value_before"], records["barriers"]["value"]) == (8, 0)


def test_the_page_of_comparisons_has_the_counts_of_two_commits(
    store: Table, models: dict[str, Any], pages: Path, tmp_path: Path
) -> None:
    counted = models["compare.html"]["newest"]["counted"]
    assert (counted["line"], counted["rows"]) == ("equal counts in 4 of 4 cases", [])

    table = write(tmp_path, [launch(barriers=1)], [launch(barriers=33)])
    newest = view_models(table)["compare.html"]["newest"]
    (row,) = newest["counted"]["rows"]
    assert (row["verdict"], row["case"], row["change"]) == (
        "grew", "fill cuda n=4", "+32 (33.0×)",
    )  # fmt: skip
    assert newest["counted"]["line"] == "1 grew; equal counts in 0 of 1 case"
    assert "| ▼ grew | fill cuda n=4 | barriers | 1 | 33 |" in newest["markdown"]
    shown = write_report(table, tmp_path / "html").parent
    markup = page(shown, "compare.html")
    (counts,) = re.findall(r'<table class="differences work">.*?</table>', markup, re.DOTALL)
    assert "+32 (33.0×)" in words_of(counts)
    assert [one for one in sentences(counts) if TIME.search(one) or SPEED.search(one)] == []


def test_the_builders_count_what_they_say() -> None:
    assert naive(64, 64, 32).counts["global_load_sectors"] == 128 * 32
    assert tiled(64, 64).counts["barriers"] == 128
    assert {NAIVE, TILED} == {
        "suites.transpose__cuda_naive.time_kernel", "suites.transpose__cuda_tiled.time_kernel",
    }  # fmt: skip


def test_the_markdown_beside_the_pages_has_the_counts_of_the_newest_commit(tmp_path: Path) -> None:
    table = write(tmp_path, [launch(barriers=1)], [launch(barriers=33)])
    pages = write_report(table, tmp_path / "html").parent

    shown = page(pages, "compare.md")
    assert "| ▼ grew | fill cuda n=4 | barriers | 1 | 33 | +32 (33.0×) |  |" in shown
