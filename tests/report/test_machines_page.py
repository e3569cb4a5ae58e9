"""The page on machines and data, and the files that stand beside it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from full_kernel import write_full_kernel
from result_files import CommitFiles

from gpubench.analysis.noise import RECENT
from gpubench.report import exports, machines
from gpubench.report.machines import MachinesPage
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Table, open_table

NARROW = "\N{NARROW NO-BREAK SPACE}"


def page_of(results: Table) -> MachinesPage:
    return machines.build(Site(results))


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_verdict_counts_where_the_numbers_come_from(sample: Table) -> None:
    assert page_of(sample).verdict == (
        "2 machines, 2 environments, 12 commits: 14 result files, nothing left out."
    )


def test_every_setup_has_its_facts_and_its_noise(sample: Table) -> None:
    runner, gpu = page_of(sample).setups

    assert (gpu.panel.name, runner.panel.name) == ("gpu-box", "runner")
    assert ("GPU", "NVIDIA H200") in gpu.panel.facts
    assert runner.commits == 12
    assert [*runner.noise] == [
        "Half of the intervals are narrower than \N{PLUS-MINUS SIGN}2.0 % (68 times at the newest "
        "commit).",
        "From one commit to the next a time typically differs by 0.78 % (784 pairs of neighbours).",
    ]


def test_noise_is_of_the_newest_commits(tmp_path: Path) -> None:
    for day in range(RECENT + 9):
        files = CommitFiles(tmp_path, f"{day:08x}" * 5, 86_400 * (day + 1))
        files.time("suites.add__numpy.time_kernel", "n=4", 1.0 + (day < 9) * (day % 2))
        if day < 9:
            files.time("suites.gone__numpy.time_kernel", "n=4", 1.0 + day)
        files.write()

    (setup,) = page_of(open_table(tmp_path)).setups

    assert setup.noise[1] == (
        f"From one commit to the next a time typically differs by 0 % ({RECENT - 1} pairs of "
        "neighbours)."
    )


def test_readings_of_a_device_are_shown_with_their_units_and_range(tmp_path: Path) -> None:
    write_full_kernel(tmp_path)

    (setup,) = page_of(open_table(tmp_path)).setups
    facts = {device.device: dict(device.facts) for device in setup.devices}

    assert facts["cuda:0"] == {
        "Copy bandwidth": f"3,600{NARROW}GB/s",
        "Triad bandwidth": f"3,900{NARROW}GB/s",
        "Datasheet bandwidth": f"4,800{NARROW}GB/s",
        "Floor: an empty kernel": f"2.10{NARROW}µs",
        "GPU clock": f"1,972{NARROW}MHz to 1,980{NARROW}MHz",
        "L2 cache": f"50.0{NARROW}MiB",
    }


def test_one_commit_says_from_when_scatter_shows(tmp_path: Path) -> None:
    write_full_kernel(tmp_path)

    (setup,) = page_of(open_table(tmp_path)).setups

    assert setup.noise[1] == "Scatter from commit to commit shows from the second commit on."


def test_files_that_were_left_out_are_named(tmp_path: Path) -> None:
    write_full_kernel(tmp_path)
    (tmp_path / "gpu-box" / "half.json").write_text('{"version": 2')

    page = page_of(open_table(tmp_path))

    assert page.verdict.endswith("1 result file, 1 part left out.")
    assert page.problems[0].path == "gpu-box/half.json"


def test_results_without_a_record_say_what_is_not_known(tmp_path: Path) -> None:
    files = CommitFiles(tmp_path, "a" * 40, 86_400)
    files.time("suites.add__numpy.time_kernel", "n=8", 1.0).write()

    assert [s.title for s in page_of(open_table(tmp_path)).states] == ["No facts recorded"]


def test_the_files_hold_every_case_and_are_linked(sample: Table, tmp_path: Path) -> None:
    site = write_report(sample, tmp_path).parent
    cases = rows_of((site / "cases.csv").read_text(encoding="utf-8"))

    assert len(cases) == sum(
        len(now.cases) for h in Site(sample).histories for now in Site(sample).current(h).values()
    )
    assert json.loads((site / "cases.json").read_text())[0]["kernel"] == cases[0]["kernel"]
    html = (site / "machines.html").read_text(encoding="utf-8")
    assert all(f'href="{file.address}"' in html for file in exports.FILES)
    assert {path.name for path in site.iterdir()} >= {file.address for file in exports.FILES}


def test_no_wrong_case_has_a_time_or_speedup_in_the_files(sample: Table, tmp_path: Path) -> None:
    exports.write(Site(sample), tmp_path)
    rows = rows_of((tmp_path / "cases.csv").read_text(encoding="utf-8"))
    rows = [row for row in rows if row["status"] != "ok"]

    assert rows
    assert {(row["seconds"], row["speedup"], row["verdict"]) for row in rows} == {("", "", "")}


def as_csv(*records: dict[str, Any]) -> str:
    csv_file, json_file = io.StringIO(newline=""), io.StringIO()
    exports.write_records(records, csv_file, json_file)
    assert json.loads(json_file.getvalue()) == list(records)
    return csv_file.getvalue()


def test_csv_follows_rfc_4180_and_json_has_the_same() -> None:
    text = as_csv({"a": 'say "x", y', "b": "two\nlines\u2028"}, {"a": 1.5, "b": None})

    assert text == 'a,b\r\n"say ""x"", y","two\nlines\u2028"\r\n1.5,\r\n'


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1"])
def test_a_text_that_a_spreadsheet_would_run_is_marked_as_text(text: str) -> None:
    (row,) = rows_of(as_csv({"a": text}))

    assert row["a"] == f"'{text}"


def test_numbers_stay_numbers() -> None:
    assert as_csv({"a": -1.5}) == "a\r\n-1.5\r\n"


def test_without_any_record_the_files_are_empty() -> None:
    assert as_csv() == ""


def test_a_machine_row_tells_one_fact(tmp_path: Path) -> None:
    write_full_kernel(tmp_path)
    exports.write(Site(open_table(tmp_path)), tmp_path)
    csv_text, json_text = ((tmp_path / f"machines.{kind}").read_text() for kind in ("csv", "json"))

    rows = {(r["kind"], r["name"]): r["value"] for r in rows_of(csv_text)}

    assert rows["fact", "driver"] == "580.65"
    assert float(rows["noise", "within"]) == pytest.approx(0.02, rel=0.2)
    assert json.loads(json_text)[0]["machine"] == "gpu-box"
