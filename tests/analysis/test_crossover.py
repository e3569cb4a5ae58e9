"""From which size on a candidate wins."""

from __future__ import annotations

from gpubench.analysis.choice import Crossover, crossover
from gpubench.results import Ratio

FASTER, SLOWER, UNCLEAR = Ratio(2, 1.9, 2.1), Ratio(0.5, 0.4, 0.6), Ratio(1.1, 0.9, 1.3)


def test_it_is_the_first_size_that_wins_with_all_larger_ones() -> None:
    points = [(64, FASTER), (1, SLOWER), (4, FASTER), (16, FASTER)]

    assert crossover(points) == Crossover(4, above=1, slower=1)


def test_an_unclear_size_is_no_win() -> None:
    found = crossover([(1, SLOWER), (4, UNCLEAR), (16, FASTER)])

    assert found == Crossover(16, above=4, slower=1)


def test_unclear_sizes_alone_leave_the_lower_end_open() -> None:
    assert crossover([(4, UNCLEAR), (16, FASTER)]) == Crossover(16, above=4, slower=None)


def test_a_win_everywhere_has_nothing_below() -> None:
    assert crossover([(1, FASTER), (4, FASTER)]) == Crossover(1, above=None)


def test_a_loss_at_the_largest_size_is_no_crossover() -> None:
    assert crossover([(1, FASTER), (4, SLOWER)]) == Crossover(None, largest_win=1)


def test_never_in_this_range() -> None:
    assert crossover([(1, SLOWER), (4, UNCLEAR)]) == Crossover(None)
    assert crossover([]) == Crossover(None)
