"""Peak memory and what backends can do: from the record to pages, files and the terminal."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import get_args

import pytest
from result_files import AT, CommitFiles
from rich.text import Text

from gpubench.backends import registry
from gpubench.backends.protocol import Capability
from gpubench.names import TIMES
from gpubench.record import CaseRecord
from gpubench.report import choose, exports, kernel, text
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Row, measured_rows, open_table
from gpubench.results.ratio import NO_ROUNDS
from gpubench.tables import times

SPACE = "\N{NARROW NO-BREAK SPACE}"
PEAK = 3 * 2**19


def add(implementation: str) -> str:
    return f"suites.add__{implementation}.time_kernel"


def write(directory: Path, **fields: object) -> Path:
    """Two implementations of ``add``, on whose records are these fields."""
    files = CommitFiles(directory, "a" * 40, 86_400)
    files.time(add("numpy"), "n=64", 8.0).time(add("polars"), "n=64", 4.0)
    files.record(add("numpy"), "n=64", backend="numpy")
    baseline = {"baseline_benchmark": add("numpy"), "baseline_case": "n=64"}
    files.record(add("polars"), "n=64", backend="polars", **fields, **baseline)
    files.write()
    return directory


def pages(directory: Path) -> tuple[str, str]:
    """HTML of the kernel's page and of *Choose*, without the space between lines."""
    site = write_report(open_table(directory), directory / "html").parent
    names = ("kernel-add.html", "choose.html")
    kernel_page, choose_page = (
        " ".join(unescape((site / name).read_text(encoding="utf-8")).split()) for name in names
    )
    return kernel_page, choose_page


@pytest.mark.parametrize(
    ("nbytes", "words"),
    [
        (None, ""),
        (0, f"0{SPACE}B"),
        (1023, f"1023{SPACE}B"),
        (1024, f"1.00{SPACE}KiB"),
        (PEAK, f"1.50{SPACE}MiB"),
        (3 * 2**30, f"3.00{SPACE}GiB"),
    ],
)
def test_memory_in_words(nbytes: int | None, words: str) -> None:
    assert text.memory(nbytes) == words


def test_a_peak_is_on_the_page_in_the_files_and_in_the_table(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, peak_bytes=PEAK))
    site = Site(table)
    page, _ = pages(tmp_path)

    assert kernel.build(site.histories[0], ("add", "add"), site).with_memory
    assert '<th scope="col" class="number">Memory</th>' in page
    assert '<td class="number">1.50 MiB</td>' in page  # one blank is like another here
    exports.write(site, tmp_path)
    exported = json.loads((tmp_path / "cases.json").read_text())
    assert [row["peak_bytes"] for row in exported] == [None, PEAK]
    assert table.query("select peak_bytes from results order by implementation")[1] == [
        (None,),
        (PEAK,),
    ]


def test_layouts_are_on_the_page_in_the_files_and_in_the_table(tmp_path: Path) -> None:
    layouts = {"a": "F", "b": "strides (1024, 16)"}
    table = open_table(write(tmp_path, layouts=layouts))
    site = Site(table)
    page, _ = pages(tmp_path)

    assert page.count("· a in F, b in strides (1024, 16)</small>") == 1
    exports.write(site, tmp_path)
    exported = json.loads((tmp_path / "cases.json").read_text())
    assert [row["layouts"] for row in exported] == [None, "a in F, b in strides (1024, 16)"]
    of_a = "select layouts->>'a' from results order by implementation"
    assert table.query(of_a)[1] == [(None,), ("F",)]


def test_without_one_there_is_no_column(tmp_path: Path) -> None:
    page, _ = pages(write(tmp_path))
    assert "Memory</th>" not in page


def rows(peak: int | None) -> list[Row]:
    record = CaseRecord(add("numpy"), "n=64", "ok", AT, backend="numpy", peak_bytes=peak)
    return measured_rows([(record, [1.0] * 5, NO_ROUNDS, None)])


def test_the_terminal_has_a_column_where_there_is_one() -> None:
    (shown, *_) = times.report(rows(PEAK))
    assert not isinstance(shown, Text)
    columns = {str(column.header): [*column.cells] for column in shown.columns}
    assert [str(cell) for cell in columns["memory"]] == [f"1.50{SPACE}MiB"]
    (without, *_) = times.report(rows(None))
    assert not isinstance(without, Text)
    assert "memory" not in {str(column.header) for column in without.columns}
    assert times.time_row(rows(PEAK)[0])["peak_bytes"] == PEAK


def test_choose_says_what_the_measured_backends_can_do(tmp_path: Path) -> None:
    write(tmp_path, capabilities=("gpu", "out_of_core"))
    site = Site(open_table(tmp_path))
    page = choose.build(site.histories[0], site)

    assert page.capabilities.columns == ("GPU", "Cluster", "Out of core", "In place", "Compiles")
    # Of numpy no record tells here.
    assert page.capabilities.rows == {"polars": ("yes", "no", "yes", "no", "no")}
    _, html = pages(tmp_path)
    row = '<tr><th scope="row">polars</th><td>yes</td><td>no</td><td>yes</td><td>no</td>'
    assert row in html


def test_records_of_earlier_releases_give_no_table(tmp_path: Path) -> None:
    _, html = pages(write(tmp_path))
    assert "What each backend can do" not in html


def test_every_capability_has_a_column() -> None:
    assert tuple(choose.CAPABILITIES) == get_args(Capability)


@pytest.mark.parametrize("name", [name for name in registry.names() if name != "scripted"])
def test_backends_say_what_their_devices_and_times_say(name: str) -> None:
    backend = registry.get(name)
    said = set(backend.capabilities)

    assert said <= set(get_args(Capability))
    assert ("gpu" in said) == any(map(backend.serves, ("cuda:0", "cl:0:0")))
    assert ("cluster" in said) == any(
        map(backend.serves, ("dask:tcp://10.0.0.1:8786", "ray:10.0.0.1:6379"))
    )
    assert ("compiles" in said) == ("compile" in backend.times)
    assert set(backend.times) <= set(TIMES)
