"""`gpubench compare` of counted work: exact figures, their allowances and exit codes."""

# ruff: noqa: RUF001 (the command writes multiplication signs)

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from result_files import CommitFiles, launch

from gpubench.analysis.costs import COST_NAMES
from gpubench.cli import main
from gpubench.cli.console import OUT
from gpubench.record import ORDER_DEPENDENT, HintRecord, LaunchRecord, LineRecord

CUDA = "suites.add__numba_cuda.time_kernel"
CASE = "n=1024 block=256"
FINE = {
    "warps": 32, "threads": 1024, "ptx_instructions": 320, "ptx_thread_instructions": 10_240,
    "global_load_requests": 32, "global_load_sectors": 128, "global_load_ideal_sectors": 128,
}  # fmt: skip


def work(**counts: int) -> LaunchRecord:
    return launch(resources={"registers": 18}, **FINE | counts)


def write(folder: Path, commit: str, *launches: LaunchRecord, **how: object) -> CommitFiles:
    """Write one commit with one case on the device in software, counted unless there is no
    launch."""
    files = CommitFiles(folder, commit * 40, 86_400 * (1 + ord(commit) - ord("a")))
    files.facts(**how.pop("facts", {}))  # type: ignore[arg-type]
    files.versions[CUDA] = str(how.pop("version", "v1"))
    files.not_applicable(CUDA, CASE).record(CUDA, CASE, str(how.pop("status", "verified")))
    if launches or how:
        files.counts(CUDA, CASE, *launches, **how)  # type: ignore[arg-type]
    return files.write()


def compare(*arguments: str, code: int = 0) -> Result:
    command = ["compare", "aaaa", "bbbb", *arguments]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # COLUMNS counts only where it is set before the console is made
    monkeypatch.setattr(OUT.rich, "_width", 140)
    return tmp_path / ".asv/results"


HASWELL = {"target": "cpu", "made_by": "numba 0.68.1, LLVM 22.1.0, haswell"}
VECTORS = {"flops_float64": 4096, "flops_lanes_4": 4096}
SCALARS = {"flops_float64": 4096, "flops_lanes_1": 4096}


def on_cpu(**counts: int) -> LaunchRecord:
    base = {"ir_instructions": 10_000, "load_bytes": 8192, "store_bytes": 4096, **VECTORS}
    return launch("kernels.add", grid=1, block=1, **base | counts)


def grown(results: Path, *pairs: tuple[LaunchRecord, LaunchRecord], **how: str) -> list[bool]:
    """Tell whether a cost grew from the first to the second of each pair: each is a case of its
    own, and all are in one comparison."""
    cases = [f"n={number} block=256" for number in range(1, len(pairs) + 1)]
    for side, commit in enumerate("ab"):
        files = CommitFiles(results, commit * 40, 86_400 * (1 + side)).facts()
        files.versions[CUDA] = "v1"
        for case, pair in zip(cases, pairs, strict=True):
            files.not_applicable(CUDA, case).record(CUDA, case, "verified")
            files.counts(CUDA, case, pair[side], **how)  # type: ignore[arg-type]
        files.write()
    (found,) = json.loads(compare("--json", "--fail-on", "counts", code=1).stdout)
    rows = found["counted"]["rows"]
    return [any((row["case"], row["verdict"]) == (case, "grew") for row in rows) for case in cases]


def lines_after_title(result: Result) -> list[list[str]]:
    lines = result.stdout.splitlines()
    start = lines.index("Counted work: exact figures, and no times")
    return [line.split() for line in lines[start + 1 :]]


def test_a_count_that_grew_is_shown_with_difference_and_ratio(results: Path) -> None:
    write(results, "a", work())
    write(results, "b", work(global_load_sectors=1024))

    heads, grew, excess, total = lines_after_title(compare("--fail-on", "counts", code=1))

    assert heads == ["case", "count", "before", "after", "change"]
    assert grew == [
        "▼", "grew", "add", "numba_cuda", *CASE.split(), "global", "load", "sectors",
        "128", "1,024", "+896", "(8.00×)",
    ]  # fmt: skip
    assert excess[-5:] == ["0", "896", "+896", "(from", "0)"]
    assert " ".join(total) == "2 grew; equal counts in 0 of 1 case"


def test_any_growth_of_a_cost_fails(results: Path) -> None:
    of_sides: list[tuple[dict[str, int], dict[str, int], bool]] = [
        ({}, {}, False),
        ({}, {"global_load_sectors": 129}, True),
        ({"global_load_sectors": 129}, {}, False),
        ({}, {"global_store_sectors": 1}, True),
        ({}, {"global_atomic_sectors": 1}, True),
        ({}, {"shared_load_wavefronts": 64, "shared_load_ideal_wavefronts": 32}, True),
        ({}, {"ptx_instructions": 321, "ptx_thread_instructions": 10_272}, True),
        ({}, {"ptx_thread_instructions": 10_239}, True),
        ({}, {"divergent_branches": 1}, True),
        ({}, {"barriers": 1}, True),
        ({"flops_float32": 9}, {"flops_float64": 9}, True),
        ({}, {"special_functions": 1}, True),
        ({}, {"local_load_sectors": 1}, True),
        ({}, {"local_store_sectors": 1}, True),
        ({}, {"global_atomic_same_address": 1}, True),
        ({}, {"shared_atomic_same_address": 1}, True),
        ({}, {"ptx_move": 3}, False),
        ({}, {"a_count_of_a_later_release": 3}, False),
    ]

    found = grown(results, *((work(**before), work(**after)) for before, after, _ in of_sides))

    assert [*zip(of_sides, found, strict=True)] == [(one, one[-1]) for one in of_sides]
    compare(code=0)


def test_what_the_compiler_made_of_it_counts(results: Path) -> None:
    grows = {
        ("registers", 19): True,
        ("registers", 17): False,
        ("spill_store_bytes", 8): True,
        ("spill_load_bytes", 8): True,
        ("local_bytes", 8): True,
        ("shared_bytes", 8): False,
    }

    found = grown(
        results,
        *(
            (work(), launch(resources={"registers": 18, name: after}, **FINE))
            for name, after in grows
        ),
    )

    assert dict(zip(grows, found, strict=True)) == grows


def test_each_kernel_of_a_case_has_its_own_registers(results: Path) -> None:
    few, many = {"registers": 10}, {"registers": 40}
    write(results, "a", launch("k.one", resources=few), launch("k.two", resources=many))
    write(results, "b", launch("k.renamed", resources={"registers": 11}),
          launch("k.two", resources=many))  # fmt: skip

    shown = compare("--fail-on", "counts", code=1).stdout

    assert "registers a thread of kernel 1" in shown
    assert "+1 (1.10×)" in shown


def test_a_kernel_more_adds_no_registers(results: Path) -> None:
    write(results, "a", launch("k.one", resources={"registers": 40}))
    write(results, "b", launch("k.one", resources={"registers": 30}),
          launch("k.two", resources={"registers": 20}))  # fmt: skip

    assert "1 improved" in compare("--fail-on", "counts").stdout


def test_resources_of_one_side_alone_do_not_compare(results: Path) -> None:
    write(results, "a", launch(**FINE))
    write(results, "b", work())

    assert "equal counts in 1 of 1 case" in compare("--fail-on", "counts").stdout


@pytest.mark.parametrize(
    ("after", "allowed", "code"),
    [
        (129, "sectors=1%", 0),
        (130, "sectors=1%", 1),
        (129, "global_load_sectors=1%", 0),
        (129, "global_store_sectors=1%", 1),
        (256, "sectors=100%", 0),
        (129, "sectors=0%", 1),
    ],
)
def test_a_count_may_grow_by_what_is_allowed(
    results: Path, after: int, allowed: str, code: int
) -> None:
    write(results, "a", work())
    write(results, "b", work(global_load_sectors=after, global_load_ideal_sectors=after))

    compare("--fail-on", "counts", "--allow", allowed, code=code)


def test_several_are_allowed_and_none_allows_growth_from_0(results: Path) -> None:
    write(results, "a", work(barriers=100))
    write(results, "b", work(barriers=101, global_load_sectors=129))
    allowed = "--allow", "sectors=1%", "--allow", "barriers=5%"

    compare("--fail-on", "counts", *allowed, "--allow", "excess_sectors=900%", code=1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("sectors", "is no share"),
        ("sectors=1", "is no share"),
        ("sectors=-1%", "is no share"),
        ("sectors=nan%", "is no share"),
        ("sectors=inf%", "is no share"),
        ("sectors=many%", "is no share"),
        ("seconds=1%", "'seconds' is no count; give one of sectors"),
        ("=1%", "'' is no count"),
    ],
)
def test_an_allowance_names_a_count_and_a_share(results: Path, given: str, words: str) -> None:
    assert words in compare("--allow", given, code=2).stderr


def test_what_other_rules_counted_is_not_judged(results: Path) -> None:
    write(results, "a", work())
    write(results, "b", work(barriers=9), model=2)
    words = "counted by version 1 of the rules before, by 2 after"

    assert f"not judged, 1 count: {words}" in compare(code=2).stdout
    error = compare("--fail-on", "counts", code=2).stderr
    assert error == f"gpubench: no counts of aaaa and bbbb compare: {words}\n"


def test_another_version_of_the_benchmark_is_not_judged(results: Path, tmp_path: Path) -> None:
    write(results, "a", work())
    write(results, "b", work(barriers=9), version="v2")
    compare("--fail-on", "counts", code=2)

    write(tmp_path / "elsewhere", "b", work(barriers=9), version="v2")
    write(results, "b", work())
    command = ["compare", str(results), str(tmp_path / "elsewhere")]
    result = CliRunner().invoke(main, command)
    words = "not judged, 1 count: what it measures has changed between the two"
    assert words in result.stdout


def test_another_architecture_is_not_judged(results: Path) -> None:
    write(results, "a", launch(architecture=(8, 0), **FINE))
    write(results, "b", launch(architecture=(9, 0), **FINE))

    words = "counted for compute capability 8.0 before, for compute capability 9.0 after"
    assert words in compare("--fail-on", "counts", code=2).stderr


@pytest.mark.parametrize("name", ["numba", "numba_cuda", "llvmlite", "nvidia_nvjitlink"])
def test_another_compiler_is_named_as_the_cause(results: Path, name: str) -> None:
    write(results, "a", work(), facts={name: "1.0", "cpu": "EPYC"})
    write(results, "b", work(barriers=9), facts={name: "1.1", "cpu": "Xeon"})

    result = compare("--fail-on", "counts", code=2)

    assert f"another compiler: {name} 1.0 → 1.1" in result.stdout
    assert lines_after_title(result)[1][:2] == ["not", "judged"]


@pytest.mark.parametrize(
    ("name", "old", "new", "code"),
    [("cpu", "EPYC", "Xeon", 1), ("python", "3.11.2", "3.11.9", 1),
     ("python", "3.11.2", "3.12.0", 2)],
)  # fmt: skip
def test_what_compiles_nothing_is_no_cause(
    results: Path, name: str, old: str, new: str, code: int
) -> None:
    write(results, "a", work(), facts={name: old})
    write(results, "b", work(barriers=9), facts={name: new})

    compare("--fail-on", "counts", code=code)


def test_another_compiler_of_equal_counts_changes_nothing(results: Path) -> None:
    write(results, "a", work(), facts={"numba": "1.0"})
    write(results, "b", work(), facts={"numba": "1.1"})

    assert "equal counts in 1 of 1 case" in compare("--fail-on", "counts").stdout


def test_lost_counts_fail_with_their_reason(results: Path) -> None:
    write(results, "a", work())
    write(results, "b", missing="its counts depend on the order of threads")

    result = compare("--fail-on", "counts", code=1)

    assert "! lost, 1 count: its counts depend on the order of threads" in result.stdout


def test_a_case_that_is_no_longer_counted_fails_where_others_are(results: Path) -> None:
    other = "n=2048 block=256"
    for commit in "ab":
        files = write(results, commit, work())
        files.not_applicable(CUDA, other).record(CUDA, other, "verified")
        if commit == "a":
            files.counts(CUDA, other, work())
        files.write()

    shown = compare("--fail-on", "counts", code=1).stdout

    assert "! lost, 1 count: it ran on the device in software and was not counted" in shown


def test_a_case_that_a_gpu_measured_loses_nothing(results: Path) -> None:
    other = "n=2048 block=256"
    for commit in "ab":
        files = write(results, commit, work())
        if commit == "a":
            files.not_applicable(CUDA, other).record(CUDA, other, "verified")
            files.counts(CUDA, other, work())
        else:
            files.time(CUDA, other, 1.0).record(CUDA, other)
        files.write()

    compare("--fail-on", "counts")


def test_the_documentation_names_every_cost() -> None:
    text = (Path(__file__).parents[2] / "docs/reading-the-report.md").read_text(encoding="utf-8")

    assert [name for name in COST_NAMES if f"`{name}`" not in text] == []


def test_counts_that_were_missing_before_are_not_judged(results: Path) -> None:
    write(results, "a", missing="it launched no kernel")
    write(results, "b", work())

    words = "no counts before: it launched no kernel"
    assert words in compare("--fail-on", "counts", code=2).stderr


def test_work_that_depends_on_the_order_of_threads_fails_nothing(results: Path) -> None:
    reason = f"{ORDER_DEPENDENT}: barriers is 1 in one and 2 in another"
    write(results, "a", work())
    write(results, "b", missing=reason)
    others = {"model": 1}
    for commit in "ab":  # something has to compare
        files = CommitFiles(
            results, commit * 40, 86_400 * (1 + ord(commit) - ord("a")), "another machine"
        )
        files.not_applicable(CUDA, CASE).record(CUDA, CASE, "verified")
        files.counts(CUDA, CASE, work(), **others).write()

    shown = compare("--fail-on", "counts").stdout

    assert f"not judged, 1 count: {reason}" in shown
    assert "lost" not in shown


def test_nothing_counted_is_no_success(results: Path) -> None:
    write(results, "a")
    write(results, "b")

    result = compare("--fail-on", "counts", code=2)

    assert result.stderr == (
        "gpubench: no counts of aaaa and bbbb compare: no case was counted on both sides; "
        "counts come from `GPUBENCH_SOFTCUDA=1 asv run`\n"
    )
    assert "Counted work" not in result.stdout


def test_a_case_that_became_wrong_fails(results: Path) -> None:
    write(results, "a", work())
    write(results, "b", work(), status="wrong")

    compare("--fail-on", "counts", code=1)


def test_json_holds_counts_apart_from_times(results: Path) -> None:
    write(results, "a", work(barriers=2))
    write(results, "b", work(barriers=1, special_functions=32))

    (found,) = json.loads(compare("--json").stdout)

    counted = found["counted"]
    assert (counted["verdicts"], counted["compared"], counted["same"]) == (
        {"grew": 1, "improved": 1}, 1, 0,
    )  # fmt: skip
    assert counted["rows"] == [
        {"benchmark": CUDA, "case": CASE, "verdict": "grew", "count": "special_functions",
         "kernel": None, "old_count": 0, "new_count": 32, "ratio_of_counts": None, "note": ""},
        {"benchmark": CUDA, "case": CASE, "verdict": "improved", "count": "barriers",
         "kernel": None, "old_count": 2, "new_count": 1, "ratio_of_counts": 0.5, "note": ""},
    ]  # fmt: skip


def test_markdown_has_the_hints_of_what_grew(results: Path) -> None:
    hint = HintRecord(
        *("coalescing", "1,024 sectors in 32 loads, where 128 would do", "x <chooses> the row"),
        *("exchange x and y", 0.875, "sectors"),
        {"count": "global_load_sectors", "now": 1024, "then": 128},
    )
    line = LineRecord("kernels.py", 7, {"global_load_sectors": 1024}, hints=(hint,))
    write(results, "a", work())
    write(results, "b", replace(work(global_load_sectors=1024), lines=(line,)))

    shown = compare("--markdown").stdout

    assert "- Hint: kernels.py:7: coalescing, 88 % of the sectors: 1,024 sectors" in shown
    assert r"Cause: x \<chooses\> the row. Change: exchange x and y " in shown
    assert "(1,024 sectors become 128)" in shown
    write(results, "b", replace(work(), lines=(line,)))
    assert "Hint" not in compare("--markdown").stdout


def test_markdown_shows_counts_and_escapes_what_results_say(results: Path) -> None:
    write(results, "a", work())
    write(results, "b", work(barriers=32))

    shown = compare("--markdown").stdout

    assert shown.startswith("<!-- gpubench compare -->\n")
    assert "#### Counted work: exact figures, and no times" in shown
    assert (
        r"| ▼ grew | add numba\_cuda n=1024 block=256 | barriers | 0 | 32 | +32 (from 0) |  |  |"
    ) in shown

    write(results, "b", missing="<img src=x> | `a`")
    assert r"| ! lost |" in (shown := compare("--markdown").stdout)
    assert r"\<img src=x\> \| \`a\` |" in shown


def test_costs_on_the_cpu_may_differ_a_little(results: Path) -> None:
    growing: list[tuple[dict[str, int], bool]] = [
        ({}, False),
        ({"ir_instructions": 10_200}, False),  # 2 %
        ({"ir_instructions": 10_201}, True),
        ({"load_bytes": 8192 + 163}, False),
        ({"load_bytes": 8192 + 164}, True),
        ({"divisions": 16}, False),
        ({"divisions": 17}, True),
        ({"integer_divisions": 4096}, True),
        ({"libm_functions": 100}, True),
        ({"calls": 17}, True),
        ({"allocations": 17}, True),
        ({"conditional_branches": 17}, True),
        ({"flops_lanes_4": 4080, "flops_lanes_1": 16}, True),  # a share vectorized that falls
        ({"flops_lanes_4": 0, "flops_lanes_2": 4096}, True),  # narrower vectors
        ({"ir_instructions": 9_000}, False),
        ({"ir_move": 5_000}, False),
    ]

    found = grown(results, *((on_cpu(), on_cpu(**after)) for after, _ in growing), **HASWELL)

    assert [*zip(growing, found, strict=True)] == [(one, one[-1]) for one in growing]


def test_another_compiler_or_processor_begins_a_new_baseline_on_the_cpu(results: Path) -> None:
    write(results, "a", on_cpu(), **HASWELL)
    newer = "numba 0.69.0, LLVM 23.1.0, haswell"
    write(results, "b", on_cpu(**SCALARS, flops_lanes_4=0), **HASWELL | {"made_by": newer})

    words = f"counted for {HASWELL['made_by']} before, for {newer} after"
    assert words in compare("--markdown", code=2).stdout
    compare("--fail-on", "counts", code=2)  # nothing compares


def test_more_is_allowed_on_the_cpu_where_it_is_asked_for(results: Path) -> None:
    write(results, "a", on_cpu(), **HASWELL)
    write(results, "b", on_cpu(ir_instructions=12_000), **HASWELL)

    compare("--fail-on", "counts", code=1)
    compare("--fail-on", "counts", "--allow", "ir_instructions=20%", code=0)
