"""Which snapshots stand on the two sides of a comparison."""

from __future__ import annotations

import pytest
from generated_history import commit_hash, generate, write_files

from gpubench.analysis.comparison import paired
from gpubench.analysis.differences import side_of
from gpubench.errors import ResultsError
from gpubench.results import Table, open_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """24 commits on two machines."""
    results = tmp_path_factory.mktemp("results")
    write_files(generate(1, commits=24, kernels=1, machines=2), results)
    return open_table(results)


def test_a_commit_s_side_has_a_snapshot_of_each_setup(table: Table) -> None:
    side = side_of("HEAD~2", table, commit_hash(21))

    assert [(s.setup.machine, s.commit.hash) for s in side.snapshots] == [
        ("machine-0", commit_hash(21)),
        ("machine-1", commit_hash(21)),
    ]


def test_a_folder_s_side_is_each_setup_at_its_newest_commit(table: Table) -> None:
    side = side_of("here", table)

    assert {s.commit.hash for s in side.snapshots} == {commit_hash(23)}
    assert [s.setup.machine for s in side.snapshots] == ["machine-0", "machine-1"]


def test_sides_are_paired_on_the_same_setup(table: Table) -> None:
    pairs = paired(side_of("old", table, commit_hash(3)), side_of("new", table))

    assert [(old.setup, old.commit.hash) for old, _ in pairs] == [
        (new.setup, commit_hash(3)) for _, new in pairs
    ]
    assert len(pairs) == 2


def test_the_only_setups_of_two_sides_are_paired_though_they_differ(table: Table) -> None:
    sides = [side_of("here", table).on(f"machine-{number}", None) for number in (0, 1)]

    ((old, new),) = paired(*sides)

    assert (old.setup.machine, new.setup.machine) == ("machine-0", "machine-1")


def test_sides_without_a_setup_in_common_say_what_to_narrow(table: Table) -> None:
    here = side_of("here", table)

    with pytest.raises(ResultsError, match="nothing measured against machine-0 virtualenv"):
        paired(here.on("laptop", None), here)
