"""``gpubench advise`` and what ``--verify`` keeps, from the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from advise_sample import write_divided, write_scale
from click.testing import CliRunner, Result
from result_files import CommitFiles

from gpubench.analysis.advice_checks import Prediction, keep, verification_path, verifications
from gpubench.cli import main
from gpubench.report.render import view_models
from gpubench.results import Setup, open_table

RESULTS = Path(".asv/results")
SETUP = Setup("runner", "virtualenv-py3.11")
AT = "2026-03-01T10:00:00+00:00"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_scale(RESULTS)
    return tmp_path


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["advise", *arguments])
    assert result.exit_code == code, result.output
    return result


def shown(*arguments: str) -> list[str]:
    return run(*arguments).stdout.replace("\N{NARROW NO-BREAK SPACE}", " ").splitlines()


def predictions(error: float, count: int = 10) -> list[Prediction]:
    return [
        Prediction(
            "scale", "scale", name, "cpu", "", {"n": 2.0**k}, "kernel", "predicted",
            1.0, 0.9, 1.1, 1.0, 1.0 + error, 1.0 + error, AT,
        )
        for name in ("numpy", "numba")
        for k in range(count)
    ]  # fmt: skip


def test_it_ranks_all_ways_with_their_parts(project: Path) -> None:
    lines = shown("scale::scale", "-a", "n=3000000", "--calls", "20", "--warm")

    assert lines[0] == ("scale, n = 3,000,000, 20 calls, arrays on the host, a running process:")
    assert lines[1].startswith("   1 cuda on cuda:0 ")
    assert "first call with copies" in lines[2] and "19 calls" in lines[2]
    assert lines[2].endswith("; block=256")
    assert any(line.startswith("  from n = ") and " at 20 calls" in line for line in lines)
    assert any("a bound from their speeds" in line for line in lines)
    assert lines[-1].startswith("not verified: run `gpubench advise --verify scale::scale`; each")


def test_beyond_the_sizes_it_says_that_it_extrapolates(project: Path) -> None:
    lines = shown("scale", "-a", "n=50000000")

    assert sum(line.endswith("extrapolated") or "extrapolated," in line for line in lines) >= 6


@pytest.mark.parametrize(
    ("n", "how", "words"),
    [
        (2**14, "--warm", "204 \N{MICRO SIGN}s, 31.1x the time of cuda on cuda:0 alone: it loses"),
        (2**20, "--warm", "452 \N{MICRO SIGN}s, 1.08x the time of cuda on cuda:0 alone: no clear"),
        (2**23, "--warm", "2.21 ms, 0.660x the time of cuda on cuda:0 alone: it gains"),
        (2**23, "--cached", "2.21 ms without start"),
    ],
)
def test_it_says_what_dividing_the_work_took(project: Path, n: int, how: str, words: str) -> None:
    write_scale(RESULTS, others=write_divided)

    lines = shown("divided", "-a", f"n={n}", "--from", "device", how)

    (bound,) = [line for line in lines if line.endswith("at best, a bound from their speeds")]
    assert bound.startswith("  cuda on cuda:0 and numpy on cpu at once: ")
    said = f"  dividing the work was measured: together on cpu and cuda:0 takes {words}"
    assert any(line.startswith(said) for line in lines), lines


def test_dividing_needs_all_of_its_devices_and_costs_what_they_cost(project: Path) -> None:
    write_scale(RESULTS, others=write_divided)
    Path("prices.yaml").write_text("per_hour: {cpu: 3600, cuda: 7200}\n")
    asked = ("divided", "-a", "n=8388608", "--from", "device", "--warm", "--json")

    def totals(*how: str) -> dict[str, Any]:
        (one,) = json.loads(run(*asked, *how).stdout)["advice"]
        return {total["implementation"]: total for total in one["totals"]}

    assert set(totals("--have", "cpu")) == {"numpy"}
    assert set(totals("--have", "cpu,cuda:0")) == {"numpy", "cuda", "together"}
    priced = totals("--cost", "prices.yaml")
    for name, hourly in (("numpy", 3600), ("cuda", 7200), ("together", 10_800)):
        assert priced[name]["price"] == pytest.approx(priced[name]["seconds"] * hourly / 3600)


def test_json_has_everything(project: Path) -> None:
    content = json.loads(run("scale", "-a", "n=3000000", "--have", "cpu", "--json").stdout)

    (one,) = content["advice"]
    assert content["sizes"] == {"n": 3_000_000.0}
    assert [total["implementation"] for total in one["totals"]] == ["numpy", "numba"]
    assert one["totals"][1]["parts"][0]["name"] == "compile"
    assert one["over_calls"][0]["after"] == "numba on cpu"


def test_prices_come_from_a_file(project: Path) -> None:
    Path("prices.yaml").write_text("currency: EUR\nper_hour: {cpu: 3600, 'cuda:0': 7200}\n")

    lines = shown("scale", "-a", "n=3000000", "--warm", "--cost", "prices.yaml")

    (line,) = [line for line in lines if "numpy on cpu  " in line and " EUR" in line]
    assert "0.00300 EUR" in line


@pytest.mark.parametrize(
    "content", ["currency: EUR", "per_hour: {cpu: much}", "per_hour: {cpu: -1}", "{", "[" * 2000]
)
def test_a_file_without_prices_is_refused(project: Path, content: str) -> None:
    Path("prices.yaml").write_text(content)

    error = run("scale", "-a", "n=3000000", "--cost", "prices.yaml", code=2).stderr

    assert "prices.yaml" in error and "write currency: EUR, per_hour:" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scale"], "give every size of scale: -a n=..., n (1,024 to 16,777,216)"),
        (["scale", "-a", "m=3"], "scale has no axis 'm'; it has n (1,024 to 16,777,216)"),
        (["scale", "-a", "n=0"], "-a n=0: a size is a number above 0"),
        (["scale", "-a", "n=many"], "-a n=many: a size is a number above 0"),
        (["scale", "-a", "n=1,2"], "-a n=1,2: one value is needed, as in -a n=50000000"),
        (["scal", "-a", "n=1"], "there are no results of scal: measured are scale::scale"),
        (["scale", "-a", "n=8", "--have", "cuda:7"], "scale: nothing is left of what was measured"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line(
    project: Path, arguments: list[str], message: str
) -> None:
    result = run(*arguments, code=2)

    assert result.stderr.startswith(f"gpubench: {message}")
    assert len(result.stderr.splitlines()) == 1


def test_an_advice_says_what_verification_found(project: Path) -> None:
    keep(predictions(0.05), verification_path(RESULTS, SETUP), RESULTS)

    (line,) = [one for one in shown("scale", "-a", "n=3000000") if one.startswith("verified")]

    assert line.startswith(
        "verified 2026-03-01 10:00: of 20 estimates between sizes the median error was 4.8%, and "
        "100% were within their intervals"
    )


def test_there_is_no_advice_where_intervals_held_too_few(project: Path) -> None:
    some = [*predictions(0.05, count=8), *predictions(0.5, count=2)]
    keep(some, verification_path(RESULTS, SETUP), RESULTS)

    error = run("scale", "-a", "n=3000000", code=2).stderr

    assert "its intervals held 80% of 20 times, and 90% are needed; measure more sizes" in error
    page = view_models(open_table(RESULTS))["advise.html"]
    assert "1 kernel of 1 was verified" in page["details"]
    assert "the intervals of 0 held 90% of the times or more" in page["details"]


SUITE = """\
version: 1
suite: sums
backend: numpy
kernels:
  sums:
    sizes: {n: [1024, 2048, 4096, 8192, 16384]}
    arrays:
      x: {shape: [n], dtype: float64, fill: ones}
      out: {shape: [n], dtype: float64, intent: out}
    call: [x, out]
    implementations:
      numpy: {function: "sums_functions:double", backend: numpy}
      numba: {function: "sums_functions:double_slowly", backend: numpy}
    sampling: {rounds: 1, repeat: 5, sample_time: 0.0005, warmup_time: 0}
"""
FUNCTIONS = """\
import numpy as np


def double(x, out):
    np.multiply(x, 2, out=out)


def double_slowly(x, out):
    for _ in range(3):
        np.multiply(x, 2, out=out)
"""


def write_sums(directory: Path) -> None:
    files = CommitFiles(directory, "d" * 40, 86_400 * 20_001)
    for name, factor in (("numpy", 1.0), ("numba", 3.0)):
        for n in (1024, 2048, 4096, 8192, 16384):
            benchmark = f"suites.sums__{name}.time_kernel"
            files.time(benchmark, f"n={n}", factor * (5e-7 + n * 3e-10))
            baseline: dict[str, Any] = {}
            if name != "numpy":
                baseline["baseline_benchmark"] = "suites.sums__numpy.time_kernel"
                baseline["baseline_case"] = f"n={n}"
            files.record(
                benchmark, f"n={n}", values={"n": n}, sizes=("n",), device="cpu", backend="numpy",
                **baseline,
            )  # fmt: skip
    files.write()


def write_project(directory: Path) -> None:
    (directory / "suites").mkdir()
    (directory / "suites/sums.yaml").write_text(SUITE)
    (directory / "sums_functions.py").write_text(FUNCTIONS)


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose results can be measured again here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_sums(RESULTS)
    write_project(tmp_path)
    return tmp_path


def test_verifying_hides_measures_and_keeps(sums: Path) -> None:
    # Whether intervals of two sizes hold is left to chance, and to what else the machine does.
    result = CliRunner().invoke(main, ["advise", "--verify", "sums"])

    assert result.exit_code in (0, 1), result.output
    kept = verifications(verification_path(RESULTS, SETUP), RESULTS)
    if kept:  # nothing is kept of times that other work disturbed
        ((key, its),) = kept.items()
        assert key == ("sums", "sums")
        assert {one.place["n"] for one in its} <= {2048.0, 8192.0}
        assert all(one.at and one.measured > 0 for one in its)
    assert "sums::sums" in result.stdout or "disturbed" in result.output


def test_some_sizes_are_measured_again_first(sums: Path) -> None:
    asked = ["sums", "-a", "n=3000", "--warm", "--json"]
    before = seconds_by_implementation(json.loads(run(*asked).stdout))

    result = CliRunner().invoke(main, ["advise", *asked, "--refresh"])

    if result.exit_code:  # on a busy machine
        assert "other work disturbed all times" in result.output
        return
    content = json.loads(result.stdout)
    (words,) = [one for one in content["notes"] if one.startswith("refreshed: ")]
    assert re.match(r"refreshed: ([1-9]|10) times? measured now took .*x to .*x as long as", words)
    after = seconds_by_implementation(content)
    assert before.keys() == after.keys() == {"numpy", "numba"}
    assert before != after


def test_intervals_that_hold_only_once_refreshed_need_refresh(sums: Path) -> None:
    def verified(high: float) -> list[Prediction]:
        of_sums = [replace(one, suite="sums", kernel="sums") for one in predictions(0.5)]
        return [replace(one, refreshed=(1.0, 0.9, high)) for one in of_sums]

    path, asked = verification_path(RESULTS, SETUP), ["sums", "-a", "n=3000"]
    keep(verified(1.1), path, RESULTS)
    assert "its intervals held 0% of 20 times" in run(*asked, "--refresh", code=2).stderr
    path.unlink()
    keep(verified(1.6), path, RESULTS)

    assert "with --refresh they held 100%: ask with it" in run(*asked, code=2).stderr
    result = CliRunner().invoke(main, ["advise", *asked, "--refresh"])
    assert result.exit_code == 0 or "other work disturbed all times" in result.output


def seconds_by_implementation(content: Any) -> dict[str, float]:
    (one,) = content["advice"]
    return {total["implementation"]: total["seconds"] for total in one["totals"]}


def test_what_is_no_case_cannot_be_measured_again(sums: Path) -> None:
    path = sums / "suites/sums.yaml"
    path.write_text(path.read_text().replace("[1024, 2048, 4096, 8192, 16384]", "[100, 200]"))

    error = run("sums", "-a", "n=3000", "--refresh", code=2).stderr

    assert "none of the stored sizes is a case here" in error


@pytest.mark.parametrize("how", [["--verify"], ["--refresh", "-a", "n=3000"]])
def test_results_of_another_machine_are_not_measured_again_here(
    project: Path, how: list[str]
) -> None:
    write_project(project)

    error = run(*how, "sums", code=2).stderr

    assert "the results are of another machine (Example EPYC; this is" in error
    assert not verification_path(RESULTS, SETUP).exists()
