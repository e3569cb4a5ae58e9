"""The values of every case over commits, and the map of the newest commits."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_asv_project import PAIR, write_benchmarks, write_format_2
from unpacked import floats, unpacked

from gpubench.report import kernel, overview, series
from gpubench.report.site import Site
from gpubench.results import History, open_table

KEY = ("linalg", "Norm.time_numpy")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    write_benchmarks(tmp_path)
    for day in range(1, 5):
        last = None if day == 4 else 4.0
        write_format_2(tmp_path, day, {PAIR.baseline: [1.0 * day, 2.0, 3.0, last]})
    return Site(open_table(tmp_path))


def history(site: Site) -> History:
    return site.histories[0]


def test_a_script_has_every_case_with_its_values_and_where_it_failed(site: Site) -> None:
    charted = kernel.charted_cases(history(site), KEY, site)
    script = unpacked(series.series_script(history(site), KEY, charted, site))
    cases = script["cases"]

    first, *_, last = (one for one in cases)
    assert first["parameters"] == {"n": "64", "dtype": "float32"}
    assert floats(first["values"]).tolist() == [1, 2, 3, 4]
    assert (first["unit"], first["failed"], last["failed"]) == ("seconds", [], [3])


def test_a_page_knows_where_the_values_and_commits_are(site: Site) -> None:
    source = kernel.build(history(site), KEY, site).explored

    assert source.slug == ""
    address = series.series_address(history(site), KEY, site)
    assert address == f"compare-data/series-{source.kernel}.js"
    commits = unpacked(series.commits_script(history(site), site))
    assert [moment for _, moment, *_ in commits] == [86_400 * day for day in range(1, 5)]


def test_commits_with_tags_are_marked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = history(site).commits[-1].hash
    before = series.commits_stamp(history(site), site)
    monkeypatch.setitem(site.table.__dict__, "tags", {newest: ["v1.0"]})

    *others, last = unpacked(series.commits_script(history(site), site))

    assert last[3] == ["v1.0"]
    assert all(len(one) == 3 for one in others)
    assert series.commits_stamp(history(site), site) != before


def test_the_map_has_values_over_their_median(site: Site) -> None:
    (row,) = overview.build(history(site), site).matrix.rows

    assert row.spark is not None
    # Of the two cases at the largest size the one that still has a time.
    assert [(cell.ratio, cell.level, cell.status) for cell in row.recent] == [(1.0, 0, None)] * 4
