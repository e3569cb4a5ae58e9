"""``gpubench advise`` and what ``--verify`` keeps, from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from advise_sample import SIZES, write_divided, write_scale
from click.testing import CliRunner, Result
from result_files import CommitFiles, launch

from gpubench.cli import main
from gpubench.edge.advise.answering import BOUNDS_ARE
from gpubench.edge.advise.checks import Prediction, keep, verification_path, verifications
from gpubench.record import Disturbance, RoundsRecord
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

    assert lines[0] == "not verified: run `gpubench advise --verify scale::scale`"
    assert lines[1].startswith("hiding each stored size in turn, wrong by ")
    assert lines[2] == "scale, n = 3,000,000, 20 calls, arrays on the host, a running process:"
    assert lines[3].startswith("   1 cuda on cuda:0 ")
    assert "first call with copies" in lines[4] and "19 calls" in lines[4]
    assert lines[4].endswith("; block=256")
    assert any(line.startswith("  n from ") and line.endswith(", at 20 calls") for line in lines)


def test_bounds_of_counted_work_stand_apart_from_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    counted = launch(grid=4096, global_load_requests=32768, global_load_sectors=131072)
    case = f"n={SIZES[-1]} block=256"
    write_scale(
        RESULTS, others=lambda files: files.counts("suites.scale__cuda.time_kernel", case, counted)
    )

    lines = shown("scale", "-a", f"n={SIZES[-1]}", "--warm")
    here = lines.index(BOUNDS_ARE)
    assert lines[here + 1].startswith("  cuda: bound ") and " on H100, by " in lines[here + 1]
    assert not any("bound" in line for line in lines[:here])
    content = json.loads(run("scale", "-a", f"n={SIZES[-1]}", "--warm", "--json").stdout)
    (said,) = content["bounds"].values()
    # The terminal has plain spaces.
    assert [text.replace("\u202f", " ") for text in said] == [lines[here + 1].strip()]

    assert BOUNDS_ARE not in shown("scale", "-a", f"n={SIZES[0]}", "--warm")  # not counted there


def test_near_beyond_the_sizes_it_says_so(project: Path) -> None:
    lines = shown("scale", "-a", "n=50000000", "--warm")

    assert sum("beyond the measured sizes" in line for line in lines) == 6


def test_far_beyond_the_sizes_there_is_no_ranking(project: Path) -> None:
    error = run("scale", "-a", "n=1000000000000000000", "--calls", "3", code=2).stderr

    lines = error.splitlines()
    assert lines[0] == "gpubench: no ranking of scale at n = 1,000,000,000,000,000,000"
    assert lines[1] == "cuda on cuda:0: a size is more than 4x from every measured one"
    assert lines[-2] == "measured: n from 1,024 to 16,777,216"
    assert lines[-1] == (
        "measure it now: `gpubench advise scale -a n=1000000000000000000 --measure`"
    )
    assert max(map(len, lines)) < 100


def test_what_divides_the_work_is_ranked_among_the_others(project: Path) -> None:
    write_scale(RESULTS, others=write_divided)

    lines = shown("divided", "-a", "n=8388608", "--from", "device", "--warm")

    assert lines[3].startswith("   1 together on cpu and cuda:0  2.21 ms")


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
    assert one["left_out"] == {"start": ["numba on cpu", "numpy on cpu"]}
    assert one["over_calls"][-1]["label"] == "numba on cpu"
    (verified,) = content["verification"].values()
    assert verified[0].startswith("not verified")


def test_prices_come_from_a_file_and_unknown_names_are_told(project: Path) -> None:
    prices = "currency: EUR\nper_hour: {cpu: 3600, 'cuda:0': 7200, 'tpu:0': 1}\n"
    Path("prices.yaml").write_text(prices)

    lines = shown("scale", "-a", "n=3000000", "--warm", "--cost", "prices.yaml")

    (line,) = [line for line in lines if "numpy on cpu  " in line and " EUR" in line]
    assert "0.00300 EUR" in line
    assert any("pool on processes:1" in line and "no price" in line for line in lines)
    names = "cuda:0, cpu, processes:1, processes:2, processes:4 and runner"
    assert lines[-1] == f"prices of tpu:0 are of no way here; names are {names}"


def test_devices_that_were_not_measured_are_told_with_those_that_were(project: Path) -> None:
    asked = ("scale", "-a", "n=3000000", "--warm", "--have")

    lines = shown(*asked, "cpu,processes:8,cuda:7")
    assert "processes:8 was not measured; measured: processes:1, processes:2 and processes:4" in (
        lines
    )
    every = "cpu, cuda:0, processes:1, processes:2 and processes:4"
    assert lines[-1] == f"cuda:7 was not measured; measured: {every}"
    assert any("pool on processes:4" in line for line in lines)
    assert f"tpu was not measured; measured: {every}" in run(*asked, "tpu", code=2).stderr


def test_parts_that_are_missing_are_told_with_the_command_that_measures_them(
    project: Path,
) -> None:
    lines = shown("scale", "-a", "n=3000000")

    labels = "cuda on cuda:0, numba on cpu and numpy on cpu"
    assert f"  start is added to no way: it was not measured of {labels}" in lines
    command = "`asv run --bench scale__`"
    assert lines[-1] == f"to count start: list it under `measure` in the suite, {command}"
    assert "start" not in " ".join(shown("scale", "-a", "n=3000000", "--warm"))


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
        (["scale"], "give every size of scale\n-a n=..., measured: 1,024 to 16,777,216\n"),
        (["scale", "-a", "m=3"], "scale has no axis 'm'\nit has n (1,024 to 16,777,216)\n"),
        (["scale", "-a", "n=0"], "-a n=0: a size is a whole number above 0\n"),
        (["scale", "-a", "n=1.5"], "-a n=1.5: a size is a whole number above 0\n"),
        (["scale", "-a", "n=many"], "-a n=many: a size is a whole number above 0\n"),
        (["scale", "-a", "n=1,2"], "-a n=1,2: one value is needed, as in -a n=50000000\n"),
        (["scal", "-a", "n=1"], "there are no results of 'scal'; did you mean 'scale'?\n"),
        (["scale", "-a", "n=8192", "--have", "cuda:7"], "no ranking of scale at n = 8,192\n"),
    ],
)
def test_what_cannot_be_asked_for_comes_first_in_short_lines(
    project: Path, arguments: list[str], message: str
) -> None:
    result = run(*arguments, code=2)

    assert result.stderr.startswith(f"gpubench: {message}")
    assert max(map(len, result.stderr.splitlines())) < 100


def test_an_error_comes_before_the_warnings_of_suites(project: Path) -> None:
    (project / "suites").mkdir()
    (project / "suites/broken.yaml").write_text("pairs: 5\n")

    first, *others = run("scale", "-a", "n=0", code=2).stderr.splitlines()

    assert first == "gpubench: -a n=0: a size is a whole number above 0"
    assert any("broken.yaml" in line for line in others)


def test_disturbed_times_are_left_out_and_told(project: Path) -> None:
    def disturbed(files: CommitFiles) -> None:
        files.lines = [
            replace(line, disturbance=Disturbance(1.0, (0.0,) * 10))
            if isinstance(line, RoundsRecord) and "numba" in line.benchmark
            else line
            for line in files.lines
        ]

    def with_rounds(files: CommitFiles) -> None:
        for benchmark, cases in files.values.items():
            for case, samples in cases.items():
                assert isinstance(samples, list)
                files.rounds(benchmark, case, *samples)
        disturbed(files)

    write_scale(RESULTS, others=with_rounds)
    lines = shown("scale", "-a", "n=3000000", "--warm")

    assert not any("numba on cpu" in line for line in lines)
    assert lines[-1] == (
        "16 stored times left out, because other work disturbed them: "
        "`asv run --bench scale__` on a quiet machine"
    )


def test_what_verification_found_stands_first(project: Path) -> None:
    keep(predictions(0.05), verification_path(RESULTS, SETUP), RESULTS)

    lines = shown("scale", "-a", "n=3000000")

    assert lines[0] == "wrong by 5% at the median, 1.1x at most, on 1 March 2026"
    assert lines[1] == "100% of 20 times were within their intervals"
    assert lines[2].startswith("the chosen way took 1.00x the time of the best at the median")


def test_there_is_no_ranking_where_intervals_held_too_few(project: Path) -> None:
    some = [*predictions(0.05, count=8), *predictions(0.5, count=2)]
    keep(some, verification_path(RESULTS, SETUP), RESULTS)

    error = run("scale", "-a", "n=3000000", code=2).stderr

    assert error.startswith("gpubench: no ranking: wrong by 5% at the median, 1.5x at most, on 1 ")
    assert "80% of 20 times were within their intervals\n" in error
    assert "90% within are needed, and less than 2x of the best\n" in error
    page = view_models(open_table(RESULTS))["advise.html"]
    assert "1 kernel of 1 was verified" in page["details"]
    assert "0 may be ranked" in page["details"]


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
    """Make a project whose results can be measured again here."""
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


@pytest.mark.parametrize("n", [3000, 16_384, 1_000_000])
def test_the_size_that_is_asked_for_is_measured_beside_its_prediction(sums: Path, n: int) -> None:
    """Also one that no suite declares; on a busy machine the times are told to be disturbed."""
    lines = shown("sums", "-a", f"n={n}", "--warm", "--measure")

    after = lines[lines.index("measured now:") + 1 :]
    measured = [line for line in after if " numpy on cpu " in line or " numba on cpu " in line]
    assert len(measured) == 2
    if n == 1_000_000:
        assert all(line.endswith("no prediction") for line in measured)
    else:
        assert all("predicted " in line and "x off, " in line for line in measured)
        assert any("the way that was chosen, numpy on cpu, took" in line for line in after) != any(
            line.startswith("other work disturbed ") for line in after
        )


@pytest.mark.parametrize("how", [["--verify"], ["--measure", "-a", "n=3000"]])
def test_results_of_another_machine_are_not_measured_again_here(
    project: Path, how: list[str]
) -> None:
    write_project(project)

    error = run(*how, "scale", code=2).stderr

    assert "the results are of another machine (Example EPYC)" in error
    assert not verification_path(RESULTS, SETUP).exists()
