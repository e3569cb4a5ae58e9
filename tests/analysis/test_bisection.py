"""The posterior over the place of a change, by known values and simulated searches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpubench.analysis.bisection import Bisection, Range


def measured(commits: int, **logs: list[float]) -> Bisection:
    """Logs by place: ``p3=[...]``."""
    return Bisection(commits, logs={int(name[1:]): its for name, its in logs.items()})


def test_places_are_alike_before_anything_but_the_bad_end_is_measured() -> None:
    np.testing.assert_allclose(Bisection(4).probabilities(), 0.25)
    np.testing.assert_allclose(measured(4, p3=[-0.7] * 4).probabilities(), 0.25)


def test_a_place_that_reads_none_rules_out_all_before_it() -> None:
    shares = measured(6, p5=[-0.7] * 3, p2=[0.0] * 3).probabilities()
    assert shares[:3].sum() < 0.01
    np.testing.assert_allclose(shares[3:], shares[3])


def test_a_place_that_reads_the_change_rules_out_all_behind_it() -> None:
    shares = measured(6, p5=[-0.7] * 3, p2=[-0.7] * 3).probabilities()
    assert shares[3:].sum() < 0.01
    assert measured(6, p5=[-0.7] * 3, p2=[-0.7] * 3, p1=[0.0] * 3).likeliest().last == 2


def test_the_next_place_is_nearest_to_the_middle_of_what_is_left() -> None:
    assert measured(9, p8=[-0.7] * 4).choose() in (3, 4)
    assert measured(9, p8=[-0.7] * 4, p4=[0.0] * 4).choose() in (5, 6)
    assert Bisection(9, skipped={3, 4}).choose() in (2, 5)
    assert Bisection(3, skipped={0, 1}).choose() is None
    assert Bisection(1).choose() is None


def test_where_installing_is_dear_a_place_is_measured_until_it_tells_little() -> None:
    search = measured(9, p8=[-0.7, -0.6, -0.8], p4=[-0.3])
    assert search.choose(at=4, move_cost=50.0) == 4
    for _ in range(4):
        search.add(4, -0.7)
    assert search.choose(at=4, move_cost=50.0) != 4


def test_places_that_cannot_be_measured_share_the_answer_with_the_next() -> None:
    search = measured(6, p5=[-0.7] * 4, p1=[0.0] * 5, p4=[-0.7] * 5)
    search.skipped |= {2, 3}
    (one,) = [each for each in search.ranges() if each.probability > 0.5]
    assert (one.first, one.last) == (2, 4)
    assert [(each.first, each.last) for each in search.ranges()] == [(0, 0), (1, 1), (2, 4), (5, 5)]
    assert search.likeliest() == one
    assert search.choose() is None


def test_the_shortest_range_that_is_sure() -> None:
    search = measured(8, p7=[-0.7] * 4, p3=[0.0] * 5)
    one = search.narrowest(0.95)
    assert (one.first, one.last) == (4, 7)
    assert Bisection(8).narrowest(0.95) == Range(0, 7, pytest.approx(1.0))


def test_another_change_is_seen_on_either_side() -> None:
    logs = {9: [-1.1] * 4, 5: [-0.7] * 4, 4: [-0.2] * 4, 1: [0.0] * 3}
    search = Bisection(10, logs=logs)
    found = search.likeliest()
    assert found.last == 5
    assert search.changes_elsewhere(found)[1]
    ratio = search.factor_of(5)
    assert ratio is not None
    assert ratio.value == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize(("factor", "scatter"), [(2.0, 0.05), (1.3, 0.05)])
def test_simulated_searches_name_the_right_commit(factor: float, scatter: float) -> None:
    random = np.random.default_rng(11)
    right = 0
    pairs = []
    for _ in range(6):
        changed = int(random.integers(32))
        search = Bisection(32)

        def take(place: int, changed: int = changed) -> float:
            change = -math.log(factor) if place >= changed else 0.0
            return change + scatter * float(random.standard_t(4))

        for _ in range(5):
            search.add(31, take(31))
        while search.likeliest().probability < 0.95:
            place = search.choose()
            assert place is not None
            search.add(place, take(place))
        right += search.likeliest().last == changed
        pairs.append(search.pairs)
    assert right >= 5
    assert np.median(pairs) <= (15 if factor == 2 else 40)
