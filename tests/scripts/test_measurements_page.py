"""The page of measurements shows the newest of what the data say, and scripts add to them."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from types import ModuleType

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = CHECKOUT / "docs/measurements.md"
RUN = """
- group: speed
  date: {date}
  commit: 0123abc
  machine: {machine}
  versions: Python 3.11.7
  command: python scripts/speed.py
  rows:
{rows}
"""


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # which an import takes away
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    import figures  # type: ignore[import-not-found]

    assert isinstance(figures, ModuleType)
    return figures


@pytest.fixture
def maker(figures: ModuleType) -> ModuleType:
    import measurements_page  # type: ignore[import-not-found]

    assert isinstance(measurements_page, ModuleType)
    return measurements_page


def data(tmp_path: Path, *runs: str) -> Path:
    path = tmp_path / "measurements.yaml"
    path.write_text("".join(runs))
    return path


def run(*rows: str, date: str = "2026-11-25", machine: str = "two cores") -> str:
    return RUN.format(date=date, machine=machine, rows="\n".join(f"  - {row}" for row in rows))


def test_the_page_is_what_the_data_say(figures: ModuleType, maker: ModuleType) -> None:
    text = PAGE.read_text()
    is_current = text == maker.page(text, figures.read_runs())
    assert is_current, "write it again with `.venv/bin/python scripts/measurements_page.py`"


def test_the_words_of_the_page_are_of_no_day(maker: ModuleType) -> None:
    words = maker.BLOCK.sub("", PAGE.read_text())
    days = r"20\d\d|\bNovember\b|\bXeon\b|\b(?:other|same) (?:day|hour)s?\b|\bday before\b"
    assert re.findall(days, words) == []


def test_a_table_shows_the_newest_of_each_figure(
    figures: ModuleType, maker: ModuleType, tmp_path: Path
) -> None:
    newer = run("{what: sum, ratio: [1.10, 1.05, 1.20]}", date="2026-11-26", machine="four cores")
    older = run("{what: sum, ratio: 1.000, s: 2}", "{what: sort, ratio: 0.950}")
    runs = figures.read_runs(data(tmp_path, newer, older))

    page = maker.page(f"A\n<!-- figures: speed -->\nold\n{maker.END}\nB\n", runs)

    assert page == (
        "A\n<!-- figures: speed -->\n\n"
        "| what | ratio | s | run |\n| --- | --- | --- | --- |\n"
        "| sum | 1.10 (1.05–1.20) | 2 | 1, 2 |\n"  # noqa: RUF001
        "| sort | 0.950 |  | 2 |\n\n"
        "1. 2026-11-26, four cores, `0123abc`: `python scripts/speed.py`, Python 3.11.7\n"
        "2. 2026-11-25, two cores, `0123abc`: `python scripts/speed.py`, Python 3.11.7\n\n"
        f"{maker.END}\nB\n"
    )
    assert maker.page(page, runs) == page


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nothing", "figures of speed: the page has no mark `<!-- figures: speed -->`"),
        (
            "<!-- figures: speed -->\n<!-- end of figures -->"
            "<!-- figures: size -->\n<!-- end of figures -->",
            "figures of size: docs/measurements.yaml has no run of them",
        ),
    ],
)
def test_a_group_in_one_place_alone_is_refused(
    text: str, fault: str, figures: ModuleType, maker: ModuleType, tmp_path: Path
) -> None:
    runs = figures.read_runs(data(tmp_path, run("{what: sum, ratio: 1}")))
    with pytest.raises(SystemExit, match=re.escape(fault)):
        maker.page(text, runs)


def test_a_fault_of_the_data_is_named_with_its_place(figures: ModuleType, tmp_path: Path) -> None:
    path = data(tmp_path, run("{what: sum, ratio: 1}"), run("{what: sum}", date="yesterday"))
    with pytest.raises(SystemExit, match=r"measurements\.yaml: run 1\.date: String should match"):
        figures.read_runs(path)


def test_what_a_script_records_is_read_back(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data(tmp_path, run("{what: sum, ratio: 1.000}", date="2026-01-01"))
    outside = tmp_path / "somewhere/suite.yaml"
    monkeypatch.setattr(sys, "argv", ["/home/me/scripts/speed.py", "--record", str(outside)])
    monkeypatch.setattr(figures, "_commit", lambda: "fedcba9")
    parser = ArgumentParser()
    figures.add_option(parser)
    given, _ = parser.parse_known_args()

    with figures.recording(given, data=path):
        figures.record("speed", "sum", {"ratio": ["1.500", "1.4", "1.6"]})
        figures.record("size", "files, of all kinds", {"MB": "12"})

    first, speed, size = figures.read_runs(path)
    assert first.rows == [{"what": "sum", "ratio": "1.000"}]
    assert speed.rows == [{"what": "sum", "ratio": ["1.500", "1.4", "1.6"]}]
    assert size.rows == [{"what": "files, of all kinds", "MB": "12"}]
    assert (speed.commit, speed.command) == ("fedcba9", "python scripts/speed.py suite.yaml")
    assert speed.versions.startswith("Python 3.") and "threads" in speed.machine
    (figure,) = figures.newest([first, speed, size], "speed")
    assert figure.cell == ["1.500", "1.4", "1.6"]


@pytest.mark.parametrize("ends", [False, True])
def test_nothing_is_written_unless_asked_or_after_an_error(
    ends: bool, figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = data(tmp_path)
    monkeypatch.setattr(figures, "_commit", lambda: "fedcba9")
    parser = ArgumentParser()
    figures.add_option(parser)

    def measure() -> None:
        with figures.recording(parser.parse_args(["--record"] if ends else []), data=path):
            figures.record("speed", "sum", {"ratio": "1"})
            if ends:
                raise KeyboardInterrupt

    if ends:
        with pytest.raises(KeyboardInterrupt):
            measure()
    else:
        measure()
    assert path.read_text() == ""


def test_code_that_differs_from_the_commit_is_not_recorded(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = ["docs/measurements.yaml", "gpubench/names.py"]
    monkeypatch.setattr(figures, "_git", lambda *arguments: changed)
    parser = ArgumentParser()
    figures.add_option(parser)
    with (
        pytest.raises(SystemExit, match=r"gpubench/names\.py differs from the commit"),
        figures.recording(parser.parse_args(["--record"]), data=data(tmp_path)),
    ):
        raise AssertionError


@pytest.mark.parametrize("target", ["figures", "faults"])
def test_every_script_of_figures_can_record(target: str, figures: ModuleType) -> None:
    makefile = (CHECKOUT / "Makefile").read_text()
    recipe = re.search(rf"^{target}: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    scripts = re.findall(r"(scripts/\w+\.py) \$\(RECORDED\)", recipe[1])
    assert len(scripts) >= 5 and len(scripts) == recipe[1].count("\n") - 1  # and the page
    groups = {run.group for run in figures.read_runs()}
    for script in scripts:
        code = (CHECKOUT / script).read_text()
        assert "add_option(parser)" in code and "with recording(" in code, script
        named = set(re.findall(r'\b(?:record|Side)\(\s*"(\w+)"', code))
        assert named and named <= groups, script
