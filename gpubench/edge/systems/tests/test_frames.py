"""Tables: pandas, Polars, NumPy and Numba; what is handed over, compared and refused."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import frame_functions
import numpy as np
import pytest

from gpubench import arrow
from gpubench.backends.protocol import Target
from gpubench.backends.registry import get
from gpubench.errors import BackendError, KernelError
from gpubench.measure.bound_case import opened
from gpubench.measure.conditions import why_not
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.tables import comparable, fitted, why_ambiguous
from gpubench.measure.times import end_to_end, transfer
from gpubench.measure.verify_cases import Manner, Verified, Verifier
from gpubench.plan.case import Case
from gpubench.plan.plan import build_plan
from gpubench.suite.loading import load_suite

pa = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

SUITE = Path(__file__).parents[1] / "suites/frames.yaml"
ABSENT = ("modin", "cudf", "cudf_pandas")


def verify_case(case: Case) -> Verified:
    return Verifier(Manner())((0, case))


# --- the suite


def cases_on_the_cpu() -> list[Any]:
    cases = build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases()
    return [
        pytest.param(case, id=f"{case.kernel_name}-{case.implementation_name}")
        for case in cases
        if case.device == "cpu"
    ]


@pytest.mark.parametrize("case", cases_on_the_cpu())
def test_every_answer_of_the_suite_is_right(case: Case) -> None:
    result = verify_case(case)
    assert (result.status, result.reason) == ("right", None)
    # Threads add up in whatever order they come to it.
    in_any_order = "two runs differ" if case.backend == "polars" else "none"
    assert [warning for warning in result.warnings if in_any_order not in warning] == []


def test_the_suite_asks_ten_questions_of_groups_and_five_of_joins() -> None:
    kernels = load_suite(SUITE).suite.kernels
    assert [f"group_{i}" for i in range(1, 11)] == [
        k for k in kernels if k[-1].isdecimal() and "group" in k
    ]
    assert [f"join_{i}" for i in range(1, 6)] == [k for k in kernels if k.startswith("join")]


def test_pandas_modin_and_cudf_run_one_source() -> None:
    for name, kernel in load_suite(SUITE).suite.kernels.items():
        if not name.startswith("read_"):
            functions = {kernel.implementations[system].function for system in ("pandas", *ABSENT)}
            assert len(functions) == 1


def test_what_needs_a_gpu_or_modin_is_skipped_with_its_reason() -> None:
    cases = build_plan([load_suite(SUITE, "smoke")], gpu_count=0).cases()
    by_name = {
        f"{c.implementation_name} {c.device}": c for c in cases if c.kernel_name == "group_1"
    }
    on_a_gpu = ("cudf cuda:0", "cudf_pandas cuda:0", "polars cuda:0")
    for name in (*on_a_gpu, "modin dask:2:1", "modin ray:2"):
        assert why_not(by_name[name]) is not None
    assert why_not(by_name["polars_lazy cuda:0"]) == "this engine computes on the CPU"


# --- what is compared

SUMS = """
sizes: {n: [64]}
tables:
  x:
    rows: n
    columns:
      word: {dtype: category, fill: {function: frame_functions:few}}
      v: {dtype: float64}
      c: {dtype: int32}
  answer: {intent: out, key: [word]}
call: [x]
returns: [answer]
baseline: pandas
implementations:
  pandas: {function: frame_functions:sums}
"""

PRESENT = """
sizes: {n: [64]}
tables:
  x:
    rows: n
    columns:
      row: {dtype: text, fill: {function: frame_functions:unique}}
      i: {dtype: int32, nulls: 0.5}
      f: {dtype: float32, nulls: 0.25}
      b: {dtype: bool, nulls: 0.25}
      s: {dtype: text, nulls: 0.25, fill: {function: frame_functions:few}}
      k: {dtype: category, nulls: 0.25, fill: {function: frame_functions:few}}
  answer: {intent: out, key: [row]}
call: [x]
returns: [answer]
baseline: pandas
implementations:
  pandas: {function: frame_functions:present}
"""

ORDERED = """
sizes: {n: [64]}
tables:
  x: {rows: n, columns: {v: {dtype: float64}, c: {dtype: int32}}}
  answer: {intent: out}
call: [x]
returns: [answer]
baseline: pandas
implementations:
  pandas: {function: frame_functions:by_c}
"""


def case_of(folder: Path, kernel: str, candidate: str = "") -> Case:
    """Return the case of an implementation beside those of a kernel, or of the baseline."""
    lines = f"{kernel.strip()}\n" + (f"  candidate: {{{candidate}}}\n" if candidate else "")
    path = folder / "sample.yaml"
    body = textwrap.indent(lines, "    ")
    path.write_text(f"version: 1\nsuite: sample\nkernels:\n  sample:\n{body}")
    plan = build_plan([load_suite(path)], gpu_count=0)
    assert plan.faults() == ()
    name = "candidate" if candidate else "pandas"
    return next(case for case in plan.cases() if case.implementation_name == name)


def verified(folder: Path, kernel: str, candidate: str = "") -> Verified:
    return verify_case(case_of(folder, kernel, candidate))


POLARS = "function: frame_functions:sums_polars, backend: polars"


def pandas_candidate(function: str) -> str:
    return f"function: frame_functions:{function}, backend: pandas"


@pytest.mark.parametrize(
    "candidate",
    [
        pandas_candidate("sums_in_another_order"),
        pandas_candidate("sums_of_narrow_integers"),
        pandas_candidate("sums_as_floating_point"),
        pandas_candidate("sums") + ", options: {dtypes: \"'arrow'\"}",
        POLARS,
        POLARS + ", options: {engine: \"'in-memory'\"}",
        POLARS + ", options: {engine: \"'streaming'\"}",
        "function: frame_functions:sums_numpy, backend: numpy",
        "function: frame_functions:sums_numba, backend: numba",
    ],
)
def test_the_same_values_are_right_whatever_their_types_and_order(
    tmp_path: Path, candidate: str
) -> None:
    result = verified(tmp_path, SUMS, candidate)
    assert (result.status, result.reason) == ("right", None)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (
            "sums_without_one",
            "answer: no column 'c', which the baseline gives; columns are v, word",
        ),
        ("sums_with_one_more", "answer: a column 'w', which the baseline does not give; it gives"),
        ("sums_without_a_row", "answer: 4 rows, the baseline gives 5"),
        ("sums_slightly_off", "answer.v: 5 of 5 elements are off by more than"),
        ("sums_one_too_large", "answer.c: 1 of 5 elements differ; first at [2]: "),
        ("sums_with_halves", "answer.c: dtype float64, the baseline gives int64"),
        (
            "sums_with_a_hole",
            "answer.c is null: 1 of 5 elements differ; first at [2]: True instead of False",
        ),
        (
            "sums_of_other_words",
            "answer.word: 5 of 5 elements differ; first at [0]: word 0s instead",
        ),
        ("sums_after_writing", "the run changed x, which the suite declares to be read only"),
        ("sums_after_a_new_column", "the run changed x, which the suite declares"),
        ("sums_after_sorting", "the run changed x, which the suite declares"),
        ("sums_that_differ", "a column 'w', which the baseline does not give"),
    ],
)
def test_other_values_are_wrong_and_the_reason_names_the_column(
    tmp_path: Path, function: str, reason: str
) -> None:
    result = verified(tmp_path, SUMS, pandas_candidate(function))
    assert result.status == "wrong"
    assert reason in str(result.reason)


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (
            pandas_candidate("sums_by_index"),
            "a table came as a Series; allowed: a DataFrame. An in",
        ),
        (pandas_candidate("sums_named_by_numbers"), "a column of a frame is called 7; names are t"),
        (pandas_candidate("sums_of_lists"), "column 'v' is of Arrow's type "),
        (
            "function: frame_functions:sums_as_a_query, backend: polars",
            "a table came as a LazyFrame; allowed: a polars.DataFrame; a query is run where",
        ),
        (
            "function: frame_functions:sums_numpy_as_a_list, backend: numpy",
            "a table came as a list; allowed: a mapping of names to NumPy arrays",
        ),
        (
            "function: frame_functions:sums_numpy_uneven, backend: numpy",
            "columns of a table are of one dimension and one length; found word (5,)",
        ),
    ],
)
def test_what_is_no_table_fails_with_what_is_allowed(
    tmp_path: Path, candidate: str, reason: str
) -> None:
    result = verified(tmp_path, SUMS, candidate)
    assert result.status == "failed"
    assert reason in str(result.reason)


@pytest.mark.parametrize(
    ("candidate", "status"),
    [
        (pandas_candidate("present") + ", options: {dtypes: \"'arrow'\"}", "right"),
        ("function: frame_functions:present_polars, backend: polars", "right"),
        ("function: frame_functions:present_numpy, backend: numpy", "right"),
        (pandas_candidate("filled"), "wrong"),
    ],
)
def test_missing_values_have_to_stand_at_the_same_places(
    tmp_path: Path, candidate: str, status: str
) -> None:
    result = verified(tmp_path, PRESENT, candidate)
    assert result.status == status, result.reason


def test_without_a_key_the_order_of_rows_counts(tmp_path: Path) -> None:
    assert verified(tmp_path, ORDERED).status == "right"
    result = verified(tmp_path, ORDERED, pandas_candidate("by_falling_v"))
    assert result.status == "wrong"
    assert str(result.reason).startswith("differs from the baseline 'pandas': answer.v: ")


def test_sorting_proves_nothing_where_rows_may_come_in_any_order(tmp_path: Path) -> None:
    result = verified(tmp_path, ORDERED.replace("intent: out", "intent: out, key: [c, v]"))
    assert result.status == "failed"
    assert "vacuous check: the baseline leaves every output as it found it" in str(result.reason)


def test_a_key_that_leaves_the_order_of_rows_open_is_refused(tmp_path: Path) -> None:
    result = verified(tmp_path, ORDERED.replace("intent: out", "intent: out, key: [c]"))
    assert result.status == "failed"
    assert "have the `key` of another row and differ from it" in str(result.reason)


def test_rows_that_are_the_same_may_have_the_same_key(tmp_path: Path) -> None:
    kernel = ORDERED.replace("intent: out", "intent: out, key: [c]").replace("by_c", "only_c")
    assert verified(tmp_path, kernel).status == "right"


def test_a_key_that_the_baseline_does_not_give_is_refused(tmp_path: Path) -> None:
    result = verified(tmp_path, ORDERED.replace("intent: out", "intent: out, key: [id]"))
    assert "the baseline gives no column 'id', which is in `key`; it gives c, v" in str(
        result.reason
    )


def test_a_baseline_that_returns_the_table_it_was_given_proves_nothing(tmp_path: Path) -> None:
    result = verified(tmp_path, ORDERED.replace("by_c", "same"))
    assert result.status == "failed"
    assert "vacuous check: the baseline leaves every output as it found it" in str(result.reason)


def test_tolerances_of_a_table_are_those_of_its_columns(tmp_path: Path) -> None:
    candidate = pandas_candidate("sums_slightly_off")
    loose = SUMS.replace("call: [x]", "call: [x]\ncheck: {outputs: {answer: {rtol: 1.0e-3}}}")
    assert verified(tmp_path, loose, candidate).status == "right"


# --- what a case starts from


def test_inputs_are_drawn_alike_every_time_and_otherwise_elsewhere(tmp_path: Path) -> None:
    case = case_of(tmp_path, PRESENT)
    first, again = draw_inputs(case).tables["x"], draw_inputs(case).tables["x"]
    assert first.equals(again)
    assert first.num_rows == 64
    other = draw_inputs(case_of(tmp_path, PRESENT.replace("[64]", "[65]"))).tables["x"]
    assert not first.equals(other.slice(0, 64))


def test_columns_have_their_types_and_their_share_of_nulls(tmp_path: Path) -> None:
    table = draw_inputs(case_of(tmp_path, PRESENT.replace("[64]", "[20000]"))).tables["x"]
    assert {field.name: str(field.type) for field in table.schema} == {
        "row": "large_string",
        "i": "int32",
        "f": "float",
        "b": "bool",
        "s": "large_string",
        "k": "dictionary<values=large_string, indices=int32, ordered=0>",
    }
    shares = {name: table[name].null_count / 20000 for name in table.column_names}
    # Four standard deviations of a binomial share of 20,000.
    assert shares == pytest.approx(
        {"row": 0, "i": 0.5, "f": 0.25, "b": 0.25, "s": 0.25, "k": 0.25}, abs=0.0142
    )
    assert set(table["s"].drop_null().to_pylist()) == {f"word {i}" for i in range(5)}


def test_drawing_imports_no_pandas_which_a_fresh_process_has_to(tmp_path: Path) -> None:
    """``start`` begins when inputs are drawn."""
    case_of(tmp_path, PRESENT)
    program = (
        "import sys; from gpubench.plan.plan import build_plan; "
        "from gpubench.suite.loading import load_suite; "
        "from gpubench.measure.inputs import draw_inputs; "
        f"(case,) = build_plan([load_suite({str(tmp_path / 'sample.yaml')!r})], 0).cases(); "
        "print(len(draw_inputs(case).tables['x']), 'pandas' in sys.modules)"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["64", "False"]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            "{dtype: text, fill: {function: frame_functions:too_long}}",
            "came with 65 rows; the suite",
        ),
        (
            "{dtype: text, fill: {function: frame_functions:numbers_for_text}}",
            "takes text, or a pair",
        ),
        (
            "{dtype: float64, fill: {function: frame_functions:another_dtype}}",
            "column x.c came as float32 (64,); the suite declares float64 (64,)",
        ),
    ],
)
def test_a_function_that_fills_a_column_otherwise_fails(
    tmp_path: Path, column: str, reason: str
) -> None:
    result = verified(tmp_path, ORDERED.replace("c: {dtype: int32}", f"c: {column}"))
    assert result.status == "failed"
    assert reason in str(result.reason)


# --- what is timed


class Calls:
    """A session that notes what crosses its border."""

    def __init__(self, session: Any) -> None:
        self.names: list[str] = []
        for name in ("table_to_native", "table_to_host"):
            setattr(session, name, self.noting(name, getattr(session, name)))

    def noting(self, name: str, function: Any) -> Any:
        def noted(argument: Any) -> Any:
            self.names.append(name)
            return function(argument)

        return noted


@pytest.mark.parametrize("label", [end_to_end, transfer])
def test_tables_are_carried_there_and_an_answer_or_themselves_back(
    tmp_path: Path, label: Any
) -> None:
    case = case_of(tmp_path, SUMS)
    with opened(case, draw_inputs(case)) as execution:
        calls = Calls(execution.session)
        label(execution).sample()
    runs = len(calls.names) // 2
    assert runs and calls.names == runs * ["table_to_native", "table_to_host"]


def test_a_query_is_run_as_part_of_the_call() -> None:
    table = pa.table({"word": pa.array(["a", "b", "a"]), "v": [1.0, 2.0, 3.0], "c": [1, 1, 1]})
    with get("polars").open("cpu", None, {"engine": "streaming"}) as session:
        seen = []

        def watched(x: Any) -> Any:
            seen.append(type(x).__name__)
            return frame_functions.sums_polars(x)

        native = session.table_to_native(table)
        returned = session.bind(Target(function=watched), None, [native])()
        assert seen == ["LazyFrame"]
        assert type(returned).__name__ == "DataFrame"
        both = session.bind(Target(function=lambda x: (x, x.select("v"))), None, [native])()
        assert [type(each).__name__ for each in both] == ["DataFrame", "DataFrame"]


# --- backends

MIXED = {
    "i": pa.array([3, None, 1], pa.int32()),
    "u": pa.array([3, None, 2**64 - 1], pa.uint64()),
    "f": pa.array([1.5, None, -2.0]),
    "b": pa.array([True, None, False]),
    "s": pa.array(["é", None, ""], pa.large_string()),
    "k": pa.array(["x", None, "x"], pa.large_string()).dictionary_encode(),
}
OPENED = [
    ("numpy", {}),
    ("numba", {}),
    ("pandas", {}),
    ("pandas", {"dtypes": "arrow"}),
    ("polars", {}),
]


@pytest.mark.parametrize(("backend", "options"), OPENED)
@pytest.mark.parametrize("rows", [3, 1, 0])
def test_a_table_comes_back_as_it_went(backend: str, options: dict[str, str], rows: int) -> None:
    sent = pa.table(MIXED).slice(0, rows)
    if backend == "pandas" and not options:  # whose float64 does not hold it
        sent = sent.drop_columns(["u"])
    with get(backend).open("cpu", None, options) as session:
        back = session.table_to_host(session.table_to_native(sent))
    expected = comparable("t", sent, ())
    assert sorted(back.column_names) == sorted(sent.column_names)
    found = fitted(comparable("t", back, ()), expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, strict=rows > 0)


@pytest.mark.parametrize(("backend", "options"), OPENED)
def test_writing_a_frame_leaves_the_table_that_it_came_from(
    backend: str, options: dict[str, str]
) -> None:
    sent = pa.table({"f": pa.array([1.0, 2.0, 3.0])})
    with get(backend).open("cpu", None, options) as session:
        native = session.table_to_native(sent)
        if backend == "polars":
            native[0, "f"] = 9.0
        elif backend == "pandas":
            native.loc[0, "f"] = 9.0
        else:
            native["f"][0] = 9.0
        assert session.table_to_host(native)["f"][0].as_py() == 9.0
    assert sent["f"].to_pylist() == [1.0, 2.0, 3.0]


def test_facts_name_versions_threads_and_engines() -> None:
    with get("pandas").open("cpu", None, {"dtypes": "arrow"}) as session:
        facts = session.facts()
        assert (facts["pandas"], facts["pandas_dtypes"]) == (pandas.__version__, "arrow")
    with get("polars").open("cpu", None, {"engine": "in-memory"}) as session:
        facts = session.facts()
        assert (facts["polars"], facts["polars_engine"]) == (polars.__version__, "in-memory")
        assert facts["polars_threads"] == polars.thread_pool_size()


def test_threads_that_a_library_does_not_take_are_refused() -> None:
    with pytest.raises(BackendError, match=r"^threads of 2: pandas computes on one thread"):
        get("pandas").open("cpu", 2)
    with get("pandas").open("cpu", 1):
        pass
    used = polars.thread_pool_size()
    with get("polars").open("cpu", used):
        pass
    with pytest.raises(BackendError, match=rf"^threads of {used + 1}: Polars has {used}; set POL"):
        get("polars").open("cpu", used + 1)


def test_an_engine_is_refused_on_a_gpu() -> None:
    with pytest.raises(BackendError, match="'eager'; allowed on cuda:0: none; the GPU has its own"):
        get("polars").start("cuda:0", None, engine="eager")


@pytest.mark.parametrize(
    ("backend", "device", "module"),
    [
        ("pandas", "cpu", "pandas"),
        ("polars", "cpu", "polars"),
        ("modin", "dask:2:1", "modin"),
        ("modin", "ray:2", "modin"),
    ],
)
def test_a_library_that_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, backend: str, device: str, module: str
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    reason = get(backend).unavailable(device)
    assert reason is not None
    assert reason.startswith(
        f"{device}: the module {module!r} is not installed; pip install 'gpubench-suite[{backend}]'"
    )


def test_cudf_needs_a_gpu_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = get("cudf")
    assert [*map(backend.serves, ("cuda:0", "cuda:12", "cpu", "ray:2"))] == [
        True,
        True,
        False,
        False,
    ]
    monkeypatch.setattr("gpubench.backends.host.no_such_gpu", lambda device: f"{device}: none")
    assert backend.unavailable("cuda:0") == "cuda:0: none"
    monkeypatch.setattr("gpubench.backends.host.no_such_gpu", lambda device: None)
    assert "'cudf' is not installed" in str(backend.unavailable("cuda:0"))


def test_without_pyarrow_a_case_with_tables_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(tmp_path, SUMS, "function: frame_functions:sums_numpy, backend: numpy")
    assert why_not(case) is None
    monkeypatch.setattr(arrow, "find_spec", lambda name: None)
    reason = why_not(case)
    assert reason is not None and "pip install 'gpubench-suite[tables]'" in reason
    with pytest.raises(KernelError, match="tables need the module 'pyarrow'"):
        arrow.pyarrow()


def test_a_session_without_tables_says_so() -> None:
    with get("scripted").open("cpu") as session:
        for method in (session.table_to_native, session.table_to_host):
            with pytest.raises(KernelError, match=r"^this backend takes no tables"):
                method(None)


# --- columns


def test_columns_of_numpy_are_what_is_written_of_them() -> None:
    columns = arrow.to_columns(pa.table(MIXED))
    assert list(columns) == [
        *("i is null", "i", "u is null", "u", "f", "b is null", "b"),
        *("s", "s is null", "k", "k categories"),
    ]
    np.testing.assert_array_equal(columns["i is null"], [False, True, False])
    np.testing.assert_array_equal(columns["f"], [1.5, np.nan, -2.0])
    assert columns["s"].tolist()[::2] == ["é", ""]
    np.testing.assert_array_equal(columns["k"], np.array([0, -1, 0], np.int32), strict=True)
    assert columns["k categories"].tolist() == ["x"]
    assert all(array.flags.writeable for array in columns.values())


def test_pieces_of_a_category_may_have_dictionaries_of_their_own() -> None:
    pieces = [pa.array(words).dictionary_encode() for words in (["a", "b"], ["b", "c", None])]
    columns = arrow.to_columns(pa.table({"k": pa.chunked_array(pieces)}))
    words = columns["k categories"]
    assert [None if code < 0 else words[code] for code in columns["k"]] == [
        "a",
        "b",
        "b",
        "c",
        None,
    ]


def test_dates_and_times_are_compared_in_nanoseconds() -> None:
    wide = pa.table({"t": pa.array([0, None, 10**9], pa.timestamp("us"))})
    narrow = pa.table({"t": pa.array([0, None, 1000], pa.timestamp("s"))})
    a, b = (comparable("x", table, ()) for table in (wide, narrow))
    for name, values in a.items():
        np.testing.assert_array_equal(values, b[name], strict=True)


def test_two_columns_of_one_name_cannot_be_compared() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(KernelError, match="columns of the same name: a, a"):
        comparable("x", table, ())


def test_rows_with_missing_keys_are_told_apart() -> None:
    keys = pa.array([1, None, 0, None])
    alike = comparable("x", pa.table({"k": keys, "v": [1, 2, 3, 2]}), ["k"])
    assert why_ambiguous("x", alike, ["k"]) is None
    open_order = comparable("x", pa.table({"k": keys, "v": [1, 2, 3, 4]}), ["k"])
    assert str(why_ambiguous("x", open_order, ["k"])).startswith("x: 1 rows have the `key`")


def test_large_whole_numbers_are_not_taken_for_floating_point() -> None:
    whole = comparable("x", pa.table({"c": pa.array([2**53 + 1])}), ())
    rounded = comparable("x", pa.table({"c": pa.array([float(2**53 + 2)])}), ())
    assert fitted(rounded, whole)["x.c"].dtype == np.float64
    assert fitted(whole, rounded)["x.c"].dtype == np.float64
