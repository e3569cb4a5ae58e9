"""Damaged results: each is named, and all that is whole is in the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from result_files import CommitFiles
from small_project import as_anybody, ended_after, run

from gpubench.cli import main
from gpubench.edge.advise.checks import Prediction, keep, verification_path, verifications
from gpubench.record import RECORD_FORMAT
from gpubench.report.render import NEW_FOLDER_PREFIX
from gpubench.results import Setup, open_table

NUMPY, NUMBA = "suites.norm__numpy.time_kernel", "suites.norm__numba.time_kernel"
DAY = 86_400
DAMAGED, WHOLE = "a" * 40, "b" * 40
Content = dict[str, Any]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / ".asv" / "results"
    for day, commit in enumerate((DAMAGED, WHOLE), 19_000):
        write_commit(directory, commit, day)
    described = {name: {"name": name, "param_names": ["case"]} for name in (NUMPY, NUMBA)}
    (directory / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    return directory


def write_commit(directory: Path, commit: str, day: int) -> None:
    files = CommitFiles(directory, commit, day * DAY).facts(run=commit)
    for benchmark, seconds in ((NUMPY, 2e-3), (NUMBA, 1e-3)):
        for n in (64, 128):
            files.time(benchmark, f"n={n}", seconds * n)
            files.record(benchmark, f"n={n}", values={"n": n}, sizes=("n",), device="cpu")
    files.write()


def earlier_commits(directory: Path, count: int) -> list[str]:
    """Write so many commits before the others: one report then meets a damage in each."""
    commits = [f"{number:08x}{'c' * 32}" for number in range(count)]
    for day, commit in enumerate(commits, 18_000):
        write_commit(directory, commit, day)
    return commits


def result_of(directory: Path, commit: str = DAMAGED) -> Path:
    return directory / "runner" / f"{commit[:8]}-virtualenv-py3.11.json"


def record_of(directory: Path, commit: str = DAMAGED) -> Path:
    return directory / "runner" / f"{commit[:8]}-virtualenv-py3.11.gpubench.jsonl"


def change(path: Path, change: Callable[[Content], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def column(name: str, values: object) -> Callable[[Content], object]:
    """Put other values into a column of NumPy's benchmark."""

    def changed(content: Content) -> None:
        content["results"][NUMPY][content["result_columns"].index(name)] = values

    return changed


def problems(directory: Path) -> list[str]:
    """Return what is named as left out, by a report that has the other commit whole."""
    result = CliRunner().invoke(main, ["report"])
    assert result.exit_code == 0, result.output
    table = open_table(directory)
    snapshots = (each for setup in table.setups for each in table.snapshots(setup))
    (whole,) = (each for each in snapshots if each.commit.hash == WHOLE)
    times = [row.seconds for row in table.rows(whole).values()]
    assert times == pytest.approx([0.064, 0.128, 0.128, 0.256])
    return [f"{problem.path}: {problem.message}" for problem in table.problems]


DAMAGED_COLUMNS: list[tuple[str, object, str | None]] = [
    ("version", {"a": 1}, None),
    ("version", "\ud800", None),
    ("started_at", "x", "its times hold what is no number"),
    ("started_at", 1e308, None),
    ("stats_number", [1e308, -5], "stats_number holds 1e+308, which is no count"),
    ("stats_number", [0.5, 1], "stats_number holds 0.5, which is no count"),
    ("stats_repeat", [-1, 10], "stats_repeat holds -1.0, which is no count"),
    ("stats_q_25", "x", "its times hold what is no number"),
    ("stats_q_75", [[], {}], "its times hold what is no number"),
    ("result", [1e308, 1.0], "1e+308 s is no time"),
    ("result", [1e-320, 1.0], "is no time"),
    ("result", ["1", True], "its times hold what is no number"),
    ("params", [["'\\ud800'", "'n=1'"]], "its cases are no identities"),
    ("params", [["(" * 5000, "'n=1'"]], "is left out"),
    ("params", [[1, 2]], "is left out"),
    ("params", [[f"'n={'9' * 5000}'", "'n=\u00b2'"]], None),
    ("stats_ci_99_a", [1e3, 1e-3], "n=64: no interval, since the stored one does not hold"),
    ("stats_ci_99_b", [1e-9, 1e-9], "n=64 and 1 more: no interval, since the stored one"),
]
"""A column of a result file, values that are none, and what is said of them."""


def test_damaged_columns_are_named(directory: Path) -> None:
    commits = earlier_commits(directory, len(DAMAGED_COLUMNS))
    for commit, (name, values, _) in zip(commits, DAMAGED_COLUMNS, strict=True):
        change(result_of(directory, commit), column(name, values))

    found = problems(directory)

    for commit, (name, values, said) in zip(commits, DAMAGED_COLUMNS, strict=True):
        of_file = [each for each in found if result_of(directory, commit).name in each]
        assert len(of_file) == (said is not None), (name, values, of_file)
        assert said is None or said in of_file[0]


def test_an_interval_that_does_not_hold_its_median_is_no_interval(directory: Path) -> None:
    change(result_of(directory), column("stats_ci_99_a", [1e3, 0.25]))

    table = open_table(directory)
    history = table.history(table.setups[0])

    (row,) = (
        r
        for name, r in history.rows_of.items()
        if (name.implementation, name.case) == ("numpy", "n=64")
    )
    assert np.isinf(history.times[1:, row, 0]).all()
    assert np.isfinite(history.times[:, row, 1]).all()


DAMAGED_FIELDS: list[tuple[str, object]] = [
    *(("date", value) for value in ("x", 1e308, -1e18, 10**30, 1e15, {})),
    *(("env_name", value) for value in (5, "\ud800", "a\x1b[31m\0b")),
    *(("result_columns", value) for value in ([], "x", [{}], ["class", "a b"], ["result"] * 2)),
    *(("params", value) for value in ({}, [], {"machine": "runner", "python": "\ud800"})),
    *(("results", value) for value in ([], {NUMPY: 5}, {NUMPY: {}}, {"\ud800": []})),
    *(("commit_hash", value) for value in ("zz", 5, None)),
    *(("version", value) for value in (1, 3, "\ud800", None)),
]


def test_damaged_fields_end_nothing(directory: Path) -> None:
    commits = earlier_commits(directory, len(DAMAGED_FIELDS))
    for commit, damage in zip(commits, DAMAGED_FIELDS, strict=True):
        change(
            result_of(directory, commit), lambda content, damage=damage: content.update([damage])
        )

    problems(directory)


SOMETHING_ELSE = [
    b"",
    b"null",
    b"[" * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"version": 2, "x": ' + b"[" * 100_000,
    bytes(range(256)) * 20,
    b'{"version": 2, "machine": "run\\ud800ner", "cpu": "\\udc00"}',
]
CONTENTS = ["empty", "null", "deep", "closed", "inside", "binary", "surrogate"]


def test_results_and_records_of_something_else_are_named(directory: Path) -> None:
    contents = [*zip(CONTENTS, SOMETHING_ELSE, strict=True)]
    damages = [(of, *content) for of in (result_of, record_of) for content in contents]
    paths = [
        of(directory, commit)
        for commit, (of, *_) in zip(earlier_commits(directory, len(damages)), damages, strict=True)
    ]
    for path, (_, _, content) in zip(paths, damages, strict=True):
        path.write_bytes(content)

    found = problems(directory)

    for path, (of, name, _) in zip(paths, damages, strict=True):
        is_harmless = name == "surrogate" or (of is record_of and name == "empty")
        assert is_harmless or any(path.name in each for each in found), (path, name)


@pytest.mark.parametrize("name", ["machine.json", "../benchmarks.json"])
@pytest.mark.parametrize("content", SOMETHING_ELSE, ids=CONTENTS)
def test_a_file_of_something_else_is_named(directory: Path, name: str, content: bytes) -> None:
    path = (directory / "runner" / name).resolve()
    path.write_bytes(content)

    named = [problem for problem in problems(directory) if path.name in problem]

    assert named or b"machine" in content


@pytest.mark.parametrize(
    "name", ["aaaaaaaa-virtualenv-py3.11.json", "machine.json", "../benchmarks.json", "record"]
)
@pytest.mark.parametrize("kind", ["pipe", "device", "loop", "folder", "sparse"])
def test_only_regular_files_are_read(directory: Path, name: str, kind: str) -> None:
    path = record_of(directory) if name == "record" else directory / "runner" / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 2**32)
    else:
        path.symlink_to(path.name if kind == "loop" else "/dev/zero")

    with ended_after():
        table = open_table(directory)

    assert len(table.commits) == 2 or not table.commits[0].hash.startswith("a")
    named = "\n".join(map(str, table.problems))
    assert Path(name).name.removeprefix("record") in named
    reasons = ("at most 67,108,864 are read", "cannot be read", "a symbolic link that leads out of")
    assert any(reason in named for reason in reasons), named


LINE = {
    "format": RECORD_FORMAT,
    "kind": "case",
    "benchmark": NUMPY,
    "case": "n=64",
    "status": "failed",
    "at": "2026-03-01T10:00:00+00:00",
}


DAMAGED_LINES: list[Content] = [
    {"reason": "a\ud800b"},
    {"\ud800": 5},
    {"reason": "a\x00\x1b[31m\x07</script>"},
    {"reason": "x" * 3_000_000},
    {"status": "\ud800"},
    {"status": "odd"},
    {"kind": {}},
    {"kind": ["case"]},
    {"format": {"a": "\ud800"}},
    {"at": "9999-12-31T23:59:59-23:59"},
    {"at": "\ud800"},
    {"case": "\ud800"},
    {"benchmark": "\udfff"},
    {"status": "ok", "values": {"n": "\ud800", "\udfff": 1}},
    {"status": "ok", "values": {"n": 1e308, "m": 1e308}, "sizes": ["n", "m"]},
    {"status": "ok", "values": {"n": 10**30}, "sizes": ["n"]},
    {"status": "ok", "values": {"n": -5}, "sizes": ["n"]},
    {"status": "ok", "values": {"n": "x"}, "sizes": ["n"]},
    {"status": "ok", "bytes": 10**400},
    {"status": "ok", "bytes": -1, "flops": -(10**30)},
    {"status": "ok", "block": [0, 0, 0], "grid": [1]},
    {"status": "ok", "block": [1] * 9, "grid": []},
    {"status": "ok", "pair_ratios": [0, -1, 1e308, 1e-308] * 5},
    {"status": "ok", "pair_ratios": [1] * 10, "pair_rounds": [30, -1]},
    {"status": "ok", "max_abs_error": -1e308, "max_rel_error": 1e308},
    {"status": "ok", "conditions": {"\ud800": "\ud800"}, "warnings": ["\ud800"]},
    {"status": "ok", "title": "\ud800<script>", "device": "\ud800", "backend": "\ud800"},
    {"status": "started", "timeout": -1e308},
    {"kind": "run", "facts": {"cpu": "\ud800"}, "concerns": {"\ud800": ["\ud800"]}},
    {"kind": "run", "facts": {"cpu": {"a": [1]}}},
    {"kind": "rounds", "rounds": [-1, 0, 1e308, 1e308, 1e308, 1e308]},
    {"kind": "rounds", "rounds": []},
    {
        "kind": "rounds",
        "rounds": [1] * 6,
        "disturbance": {"disturbed": 1e308, "waiting": [1e308] * 3, "again": -3},
    },
]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_damaged_lines_of_records_end_nothing(directory: Path) -> None:
    commits = earlier_commits(directory, len(DAMAGED_LINES))
    for commit, fields in zip(commits, DAMAGED_LINES, strict=True):
        with record_of(directory, commit).open("a") as record:
            record.write(json.dumps(LINE | fields) + "\n")

    problems(directory)


def test_a_name_that_is_no_utf8_is_named(directory: Path) -> None:
    path = result_of(directory)
    path.write_bytes(path.read_bytes().replace(b"stats_number", b"stats_n\x88"))

    assert any("it cannot be read: 'utf-8' codec" in problem for problem in problems(directory))


def test_a_folder_and_a_file_that_may_not_be_read_are_named(directory: Path) -> None:
    (directory / "closed").mkdir()
    for path, mode in ((directory / "closed", 0), (result_of(directory), 0)):
        path.chmod(mode)
    try:
        code, _, said = run(
            Path.cwd(), ["query", "select count(*) from results"], how={"preexec_fn": as_anybody}
        )
    finally:
        (directory / "closed").chmod(0o755)

    assert code == 0, said
    assert "closed: it cannot be read: [Errno 13] Permission denied" in said
    assert "runner/aaaaaaaa-virtualenv-py3.11.json: it cannot be read: [Errno 13]" in said


@pytest.mark.parametrize("suffix", [".JSON", ".gpubench.JSONL", ".Json"])
def test_a_name_in_capitals_is_told(directory: Path, suffix: str) -> None:
    path = record_of(directory) if "gpubench" in suffix else result_of(directory)
    odd = path.with_name(path.name.partition(".")[0] + ".11" + suffix)
    path.rename(odd)

    assert [each for each in problems(directory) if each.startswith(f"runner/{odd.name}: ")] == [
        f"runner/{odd.name}: results and records end in .json and .gpubench.jsonl; rename it"
    ]


def test_columns_in_another_order_are_no_other_numbers(directory: Path) -> None:
    def swap(content: Content) -> None:
        columns = content["result_columns"]
        places = columns.index("result"), columns.index("stats_repeat")
        columns[places[0]], columns[places[1]] = columns[places[1]], columns[places[0]]

    change(result_of(directory), swap)

    assert any(" is left out: " in each for each in problems(directory))


@pytest.mark.ci  # test_only_regular_files_are_read has files that are too large
@pytest.mark.parametrize(
    "content",
    [
        b'{"version": 2, "x": "%s"}' % (b"x" * 50_000_000),
        b'{"version": 2, "results": {%s}}' % b",".join(b'"%d": []' % n for n in range(300_000)),
    ],
    ids=["one long text", "very many keys"],
)
def test_a_file_of_50_mb_costs_little(directory: Path, content: bytes) -> None:
    result_of(directory).write_bytes(content)
    script = _LIMITED.format(seconds=20, megabytes=300)

    done = subprocess.run(
        [sys.executable, "-c", script, str(directory)], capture_output=True, text=True, timeout=300
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "aaaaaaaa-virtualenv-py3.11.json" in done.stdout


_LIMITED = """
import resource, sys, pathlib
from gpubench.results import open_table
resource.setrlimit(resource.RLIMIT_CPU, ({seconds},) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table = open_table(pathlib.Path(sys.argv[1]))
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert used < {megabytes} * 1024, used
print(table.problems)
"""


def test_two_reports_at_once_both_succeed(directory: Path) -> None:
    command = [sys.executable, "-m", "gpubench", "report"]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]

    said = [process.communicate(timeout=300)[1] for process in both]

    assert ([process.returncode for process in both], said) == ([0, 0], ["", ""])
    pages = Path("reports/html")
    assert not [*pages.glob(f"{NEW_FOLDER_PREFIX}*")]
    assert "norm" in (pages / "index.html").read_text()


@pytest.mark.parametrize(
    "name", ["index.html", "old.html", "compare-data/index.js", "compare-data/old.js", "text.js"]
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pages_that_are_no_files_are_not_read(directory: Path, name: str, kind: str) -> None:
    path = Path("reports/html", name)
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")

    with ended_after():
        done = CliRunner().invoke(main, ["report"])

    assert (done.exit_code, done.stderr) == (0, "")
    if path.name != "old.html":
        assert path.is_file() != (path.name == "old.js")


@pytest.mark.parametrize("kind", ["folder", "dangling"])
def test_what_stands_where_a_page_goes_is_named_or_replaced(directory: Path, kind: str) -> None:
    page = Path("reports/html/index.html")
    page.parent.mkdir(parents=True)
    if kind == "folder":
        page.mkdir()
    else:
        page.symlink_to("nowhere")

    result = CliRunner().invoke(main, ["report"])

    if kind == "folder":
        assert result.exit_code == 2
        assert "index.html" in result.stderr
        assert "give another folder with --output" in result.stderr
    else:
        assert result.exit_code == 0
        assert page.is_file() and not page.is_symlink()


NO_TIMES: list[Content] = [
    {"measured": 1e300, "stored": 1e-300},
    {"seconds": 0},
    {"fastest": -1.0},
    {"high": "x"},
    {"kind": "guessed"},
    {"place": {"n": "x"}},
]


def test_verifications_of_what_is_no_time_are_left_out(directory: Path) -> None:
    one = Prediction(
        *("norm", "norm", "numpy", "cpu", "", {"n": 64.0}, "kernel", "predicted"),
        *(1.0, 0.5, 2.0, 1.0, 1.0, 1.0, "2026-03-01T10:00:00"),
    )
    path = verification_path(directory, Setup("runner", "virtualenv-py3.11"))
    keep([one], path, directory)
    with path.open("a") as file:
        file.writelines(json.dumps({**asdict(one), **fields}) + "\n" for fields in NO_TIMES)

    assert verifications(path, directory) == {("norm", "norm"): [one]}
    assert problems(directory) == []
