"""LLVM's remarks in plain words, and hooks of Numba that are not what they were."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from gpubench.counts.hooks import NotCountable, refuse_other_hooks
from gpubench.counts.remarks import ADVICE, UNKNOWN_ADVICE, LoopRemark, advice_for, parse_remarks
from gpubench.tables.cpu_counts import loop_lines

WORDS = """\
remark: sums.py:25:1: loop not vectorized: cannot prove it is safe to reorder
remark: sums.py:24:1: loop not vectorized
remark: sums.py:29:1: vectorized loop (vectorization width: 4, interleaved count: 2)
remark: sums.py:40:1: the cost-model indicates that interleaving is not beneficial
something that a kernel printed
remark: <unknown>:0:0: loop not vectorized
"""


def test_a_reason_belongs_to_the_loop_that_is_named_after_it() -> None:
    assert parse_remarks(WORDS.encode().splitlines()) == [
        LoopRemark("sums.py", 24, "cannot prove it is safe to reorder", 25),
        LoopRemark("sums.py", 29, None, width=4),
        LoopRemark("<unknown>", 0, "LLVM gives no reason", 0),
    ]


def test_the_first_of_several_reasons_counts() -> None:
    words = """\
remark: calls.py:15:1: loop not vectorized: call instruction cannot be vectorized
remark: calls.py:15:1: loop not vectorized: Cannot vectorize early exit loop with complex writes
remark: calls.py:15:1: loop not vectorized: instruction cannot be vectorized
remark: calls.py:15:1: loop not vectorized
remark: calls.py:19:1: loop not vectorized: instruction cannot be vectorized
remark: calls.py:19:1: loop not vectorized
"""
    reasons = [one.reason for one in parse_remarks(words.encode().splitlines())]
    assert reasons == ["call instruction cannot be vectorized", "instruction cannot be vectorized"]


def test_a_loop_that_is_vectorized_at_last_has_no_reason() -> None:
    words = """\
remark: sums.py:25:1: loop not vectorized: call instruction cannot be vectorized
remark: sums.py:24:1: loop not vectorized
remark: sums.py:24:1: vectorized loop (vectorization width: 8, interleaved count: 4)
remark: sums.py:24:1: loop not vectorized: vectorization and interleaving are explicitly \
disabled, or the loop has already been vectorized
remark: sums.py:24:1: loop not vectorized
"""
    assert parse_remarks(words.encode().splitlines()) == [LoopRemark("sums.py", 24, None, width=8)]


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.pattern)
def test_every_reason_says_what_to_do_and_what_that_costs(advice: Any) -> None:
    assert advice_for(f"{advice.pattern} and more") == advice
    assert advice.plain and advice.remedy and advice.cost


def test_a_reason_that_nobody_knows_stays_in_its_words() -> None:
    assert advice_for("a reason of a later LLVM") == UNKNOWN_ADVICE
    shown = [*loop_lines(LoopRemark("sums.py", 24, "a reason of a later LLVM", 25))]
    assert shown[1] == "    LLVM, at line 25: a reason of a later LLVM"


def test_another_hook_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_module(self: object, module: object, flags: object) -> None: ...

    codegen = import_module("numba.core.codegen").JITCPUCodegen
    monkeypatch.setattr(codegen, "_add_module", add_module)
    with pytest.raises(NotCountable) as error:
        refuse_other_hooks()
    assert str(error.value).startswith(
        "not counted: numba.core.codegen.JITCPUCodegen._add_module(self, module) takes (self, "
        "module, flags) in numba "
    )
    assert "\n" not in str(error.value)


def test_a_hook_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(import_module("numba.core.caching").Cache, "save_overload")
    monkeypatch.setattr(import_module("numba.core.caching")._Cache, "save_overload", None)
    with pytest.raises(NotCountable, match="save_overload\\(self, sig, data\\) is missing"):
        refuse_other_hooks()
