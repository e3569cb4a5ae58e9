"""The schema for editors: up to date, and of one mind with the loader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from small_suite import SUITE

from gpubench.suite.schema import END, START, reference_markdown, schema_text, suite_schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
VALIDATOR = jsonschema.Draft7Validator(suite_schema())

EXTENSION = "suite: small\nextends: common/base.yaml\nkernels: {add: {sizes: {n: [2]}}}\n"
PAIRS = "version: 1\nsuite: small\npairs: [{name: p, baseline: x, candidate: y}]\n"
ACCEPTED = [
    ("block: [64]", "block: [64]"),
    ("block: [64]", "block: [[8, 8], 'n', [n, 1, 1]], grid: [cover, [n], 4]"),
    ("block: [64]", "block: [64], grid: cover, over: [n], shared_bytes: 8 * n, cooperative: true"),
    ("{n: [4, 8]}", "{n: {pow2: [1, 4]}}"),
    ("{n: [4, 8]}", "{n: {geometric: [1, 8, 2], default: 4}}"),
    ("{n: [4, 8]}", "{s: {zip: {n: [4, 8], m: {linear: [1, 2]}}}}"),
    ("tile: [2, 4]", "tile: {values: [2, 4], default: 2}"),
    ("{n: [4, 8]}", "{s: {zip: {n: [4, 4], x: [0.5, 1.5], mode: {values: [fast, exact]}}}}"),
    (
        "    call: [a, b]\n",
        "    let: {m: n // 2, c: 0.5, on_gpu: true}\n    call: [a, b, m, c, on_gpu]\n",
    ),
    ("intent: inout", "intent: inout, fill: {formula: i * 0.5 / n}"),
    ("intent: inout", "intent: inout, fill: {formula: row % n, indices: [row]}"),
    (
        "[a, b]\n",
        "[a, b]\n    returns: [c]\n    check: {outputs: {c: {rtol: {float32: 0.1}, norm: l2}}}\n",
    ),
    (
        "[a, b]\n",
        "[a, b]\n    returns: [c]\n    check: {outputs: {c: {compare: false, reason: seeds}}}\n",
    ),
    (
        "kernels:\n",
        "presets: {S: {arrays: {a: {fill: ones, shape: [2 * n]}}}, paper-2024.a: {}}\nkernels:\n",
    ),
    ("intent: inout", "intent: inout, fill: 1.5"),
    ("intent: inout", "intent: inout, fill: {like: a}"),
    ("intent: inout", "intent: inout, fill: {function: m:fill}"),
    ("[a, b]\n", "[a, b, s]\n    scalars: {s: {value: 2.0 * n, dtype: dtype}}\n"),
    ("[a, b]\n", "[a, b]\n    check: {rtol: {float32: 0.1}, atol: 0, norm: l2}\n"),
    ("[a, b]\n", "[a, b]\n    sampling: {repeat: [1, 5, 2.5], rounds: 2, warmup_time: 0}\n"),
    ("[a, b]\n", "[a, b]\n    devices: [cpu, 'cuda:*', 'cl:0:1']\n    baseline: cuda\n"),
    ("[a, b]\n", "[a, b]\n    measure: [kernel, cold]\n    work: {bytes: 3 * n, flops: 4}\n"),
    ("[a, b]\n", "[a, b]\n    skip: [{when: n > sm_count, reason: few}]\n"),
    ("[a, b]\n", "[a, b]\n    include: [{implementation: cuda, values: {n: 3}, block: [2, 2]}]\n"),
    ("{function: some.module:add}", "{source: a.cl, entry: add, backend: opencl, with: {x: 1}}"),
    ("{function: some.module:add}", "{source: a.cl, entry: add}"),
    ("suite: small", "suite: small\nbackend: numba"),
    ("{function: some.module:add}", "{launcher: m:go, threads: [1, n], requires: [x], title: T}"),
    (
        "kernels:\n",
        "tags: [x]\npresets: {smoke: {sizes: {n: [1]}, kernels: {add: {}}}}\nkernels:\n",
    ),
    (SUITE, PAIRS),
    (SUITE, EXTENSION),
]
REFUSED = [
    ("version: 1", "version: 2"),
    ("version: 1\n", ""),
    ("suite: small", "suite: Small"),
    ("suite: small", "suite: small\ntitel: x"),
    ("kernels:\n", "pairs: [{name: p, baseline: x, candidate: y}]\nkernels:\n"),
    ("  add:", "  Add:"),
    ("block: [64]", "blocks: [64]"),
    ("block: [64]", "block: 64"),
    ("block: [64]", "block: [0]"),
    ("block: [64]", "block: [[1, 2, 3, 4]]"),
    ("block: [64]", "block: [{x: 1}]"),
    ("block: [64]", "block: [64], cooperative: 1"),
    ("{n: [4, 8]}", "{n: []}"),
    ("{n: [4, 8]}", "{n: [x]}"),
    ("{n: [4, 8]}", "{n: [-1]}"),
    ("{n: [4, 8]}", "{n: 4}"),
    ("{n: [4, 8]}", "{n: {pow2: [1]}}"),
    ("{n: [4, 8]}", "{n: {pow2: [1, 63]}}"),
    ("{n: [4, 8]}", "{n: {pow2: [1, 2], values: [1]}}"),
    ("{n: [4, 8]}", "{n: {default: 4}}"),
    ("{n: [4, 8]}", "{s: {zip: {n: 4}}}"),
    ("{n: [4, 8]}", "{2n: [4, 8]}"),
    ("tile: [2, 4]", "tile: [[2]]"),
    ("intent: inout", "intent: inn"),
    ("intent: inout", "intent: inout, fill: normall"),
    ("intent: inout", "intent: inout, fill: {lik: a}"),
    ("dtype: dtype}", "fill: ones}"),
    ("call: [a, b]", "call: a"),
    ("[a, b]\n", "[a, b]\n    work: 3\n"),
    ("[a, b]\n", "[a, b]\n    measure: [kernels]\n"),
    ("[a, b]\n", "[a, b]\n    measure: []\n"),
    ("[a, b]\n", "[a, b]\n    devices: [cuda]\n"),
    ("[a, b]\n", "[a, b]\n    sampling: {repeat: 0}\n"),
    ("[a, b]\n", "[a, b]\n    sampling: {repeat: [1, 2]}\n"),
    ("[a, b]\n", "[a, b]\n    sampling: {timeout: 0}\n"),
    ("[a, b]\n", "[a, b]\n    check: {rtol: {float3: 0.1}}\n"),
    ("[a, b]\n", "[a, b]\n    skip: [{when: n > 3}]\n"),
    ("[a, b]\n", "[a, b]\n    exclude: {when: n > 3}\n"),
    ("{function: some.module:add}", "{function: add}"),
    ("{function: some.module:add}", "{title: Plain}"),
    ("{function: some.module:add}", "{function: m:add, factory: m:make}"),
    ("{function: some.module:add}", "{function: m:add, entry: add}"),
    ("{function: some.module:add}", "{function: m:add, with: {x: 1}}"),
    ("{function: some.module:add}", "{source: add.cl}"),
    ("suite: small", "suite: small\nbackend: Numba"),
    ("kernels:\n", "presets: {smoke: {size: {n: [1]}}}\nkernels:\n"),
    (SUITE, "version: 1\nsuite: small\n"),
    (SUITE, EXTENSION.replace("sizes", "size")),
    (SUITE, EXTENSION.replace("[2]", "[x]")),
]


@pytest.fixture(autouse=True)
def base(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "base.yaml").write_text(SUITE)


@pytest.mark.parametrize(("old", "new"), ACCEPTED)
def test_schema_and_loader_accept_the_same(
    faults: Callable[[str], list[str]], old: str, new: str
) -> None:
    text = SUITE.replace(old, new, 1)
    assert [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))] == []
    # only the names that a replacement left unused are the loader's business
    assert [fault for fault in faults(text) if "is used by no" not in fault] == []


@pytest.mark.parametrize(("old", "new"), REFUSED)
def test_schema_and_loader_refuse_the_same(
    faults: Callable[[str], list[str]], old: str, new: str
) -> None:
    assert old in SUITE
    text = SUITE.replace(old, new, 1)
    assert not VALIDATOR.is_valid(yaml.safe_load(text))
    assert faults(text) != []


@pytest.mark.parametrize("path", sorted(ROOT.glob("suites/*.yaml")), ids=lambda path: path.stem)
def test_the_schema_accepts_the_suites_of_this_project(path: Path) -> None:
    errors = VALIDATOR.iter_errors(yaml.safe_load(path.read_text()))
    assert [error.message for error in errors] == []


def test_the_schema_is_a_schema_of_the_draft_that_editors_read() -> None:
    jsonschema.Draft7Validator.check_schema(suite_schema())


def test_the_schema_in_docs_is_the_one_of_the_model() -> None:
    assert (DOCS / "suite.schema.json").read_text() == schema_text()


def test_the_reference_in_docs_is_the_one_of_the_model() -> None:
    _, start, after = (DOCS / "suite-format.md").read_text().partition(START)
    reference, end, _ = after.partition(END)
    assert start and end
    assert reference.strip() == reference_markdown().strip()
