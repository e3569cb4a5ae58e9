"""The file of changes that a project knows of."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.errors import GpubenchError
from gpubench.project.acknowledgements import (
    ACKNOWLEDGED_FILE,
    add_acknowledgement,
    read_acknowledgements,
)
from gpubench.results import CaseName, Commit
from gpubench.results.acknowledgement import Acknowledgement, find_acknowledgement

ENTRY = Acknowledgement("0123abc", ("vector_add*", "sort numba"), "checks: its input", "Ada")
ADD = CaseName("vector_add", "vector_add", "numba", "kernel", "n=4")
COMMITS = [Commit(f"{index}123abcd", float(index)) for index in range(9)]


def faults(folder: Path, text: str) -> list[str]:
    (folder / ACKNOWLEDGED_FILE).write_text(text, encoding="utf-8")
    known, said = read_acknowledgements(folder)
    assert known == ()
    return [str(fault) for fault in said]


def test_what_is_added_is_read_again_after_what_stood_there(tmp_path: Path) -> None:
    other = Acknowledgement("89abcdef", ("*",), 'quotes "and" # signs', "")

    for entry in (ENTRY, other):
        path = add_acknowledgement(tmp_path, entry)

    assert path == tmp_path / ACKNOWLEDGED_FILE
    assert read_acknowledgements(tmp_path) == ((ENTRY, other), ())


def test_an_entry_keeps_the_line_ends_of_the_file(tmp_path: Path) -> None:
    path = add_acknowledgement(tmp_path, ENTRY)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = path.read_bytes().count(b"\n")

    add_acknowledgement(tmp_path, ENTRY)

    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") > before


def test_one_written_by_hand_may_name_one_pattern_and_nobody(tmp_path: Path) -> None:
    text = 'version: 1\nchanges:\n- {commit: "0123abc", benchmarks: sort, reason: known}\n'
    (tmp_path / ACKNOWLEDGED_FILE).write_text(text, encoding="utf-8")

    (entry,), said = read_acknowledgements(tmp_path)

    assert (entry.benchmarks, entry.by, said) == (("sort",), "", ())
    assert str(entry) == "acknowledged: known"


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert read_acknowledgements(tmp_path) == ((), ())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("changes: []\n", "version: 1 is missing"),
        ("version: 1\nchange: []\n", "'change' is no field"),
        ("version: 1\nchanges: {a: 1}\n", "changes is a list"),
        ('version: 1\nchanges:\n- {commit: "0123abc", reason: x}\n', "benchmarks is missing"),
        ("version: 1\nchanges:\n- {commit: 12, benchmarks: a, reason: x}\n", "12 is no commit"),
        (
            'version: 1\nchanges:\n- {commit: "0123abc", benchmarks: a, reason: x, bye: y}\n',
            "'bye' is no field of a change",
        ),
        (
            'version: 1\nchanges:\n- {commit: "0123abc", benchmarks: [1], reason: x}\n',
            "a pattern is the text of a benchmark's name",
        ),
    ],
)
def test_each_fault_says_where_and_what_to_write(tmp_path: Path, text: str, words: str) -> None:
    (said,) = faults(tmp_path, text)

    assert words in said
    assert ACKNOWLEDGED_FILE in said


def test_a_file_with_faults_gets_no_entry(tmp_path: Path) -> None:
    faults(tmp_path, "version: 2\n")

    with pytest.raises(GpubenchError, match="fix that first"):
        add_acknowledgement(tmp_path, ENTRY)


def test_a_file_that_ends_in_something_else_stays_as_it_is(tmp_path: Path) -> None:
    text = "changes: []\nversion: 1\n"
    (tmp_path / ACKNOWLEDGED_FILE).write_text(text, encoding="utf-8")

    with pytest.raises(GpubenchError, match="`changes` is not its last field"):
        add_acknowledgement(tmp_path, ENTRY)

    assert (tmp_path / ACKNOWLEDGED_FILE).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("vector_add", True),
        ("vector_add numba", True),
        ("vector_add numba n=4", True),
        ("suites.vector_add__numba.*", True),
        ("vector", False),
        ("vector_add cuda", False),
    ],
)
def test_a_pattern_is_of_the_kernel_the_implementation_the_case_or_asvs_name(
    pattern: str, fits: bool
) -> None:
    assert Acknowledgement("0123abc", (pattern,), "", "").covers(ADD) is fits


@pytest.mark.parametrize(("place", "found"), [(0, True), (2, True), (3, False)])
def test_a_change_may_be_found_two_commits_off(place: int, found: bool) -> None:
    entry = find_acknowledgement([ENTRY], ADD, COMMITS, place)

    assert (entry is ENTRY) is found


def test_a_commit_is_between_two_where_it_follows_the_first() -> None:
    def between(old: int, new: int) -> bool:
        return ENTRY.is_between([*COMMITS[5:], *COMMITS[:5]], COMMITS[old].hash, COMMITS[new].hash)

    assert between(8, 0)
    assert between(5, 4)
    assert not between(0, 4)  # the older side has it
    assert not between(5, 8)
