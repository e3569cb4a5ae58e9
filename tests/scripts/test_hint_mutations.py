"""``scripts/hint_mutations.py`` tells hints that an edit causes from those it only uncovers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
from hint_mutations import COUNTS_OF_RULES, KINDS, outcome_of  # noqa: E402

sys.path.remove(str(SCRIPTS))


@pytest.mark.parametrize(
    ("caused", "others", "said"),
    [
        ((), (), "exactly"),
        (
            (),
            ("signed indices",),
            "exactly: signed indices by its share, while its count does not grow",
        ),
        (("bank conflicts",), (), "both: bank conflicts, whose count grows too"),
    ],
)
def test_a_hint_is_an_edits_where_its_count_grows(
    caused: tuple[str, ...], others: tuple[str, ...], said: str
) -> None:
    assert outcome_of({*caused}, {*others}) == said


def test_every_rule_that_an_edit_calls_for_has_counts_that_have_to_grow() -> None:
    from softcuda.counts import COUNTS

    names = {one.name for one in COUNTS}
    assert {kind.rule for kind in KINDS.values()} <= COUNTS_OF_RULES.keys()
    assert {name for counts in COUNTS_OF_RULES.values() for name in counts} <= names
