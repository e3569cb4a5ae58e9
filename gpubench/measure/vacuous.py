"""What a comparison proves: it must fail for zeros, for what was there before, and for a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.measure.check import Tolerance, compare_one, fields_of, passes, pieces_of, same_bits
from gpubench.measure.scores import Outputs, OwnRule, Scorer
from gpubench.suite.sampling import Check


def why_vacuous(
    expected: Outputs,
    started: Outputs,
    check: Check,
    own_rule: OwnRule | None = None,
    dtypes: Mapping[str, np.dtype[Any]] | None = None,
) -> str | None:
    """Return why a comparison with ``expected`` would prove nothing; ``None`` where it proves
    something.

    ``started`` has by name what outputs held before the baseline ran, where they held anything. In
    place of an expected output, neither that nor zeros may pass, unless that is just what is
    expected: then another output has to prove that anything was computed. Nor may half of it by a
    tolerance. A score must not take all outputs together for that either. ``dtypes``: of outputs
    that are compared by the tolerance of another dtype than the expected one.
    """
    dtypes = dtypes or {}
    # One zero, seen everywhere: it takes no memory.
    zeros = {n: np.broadcast_to(np.zeros((), a.dtype), a.shape) for n, a in expected.items()}
    if isinstance(own_rule, Scorer):
        whole: dict[str, Outputs] = {"zeros": zeros}
        if started.keys() >= expected.keys():
            whole[UNCHANGED] = started
        if reason := own_rule.why_vacuous(expected, whole):
            return reason
    if expected and not any(reference.size for reference in expected.values()):
        return "no output has an element, and anything is right; `exclude` this size"
    alike: dict[str, str] = {}
    for name, reference in expected.items():
        impostors = {"zeros": zeros[name]}
        if name in started:
            impostors = {UNCHANGED: started[name], **impostors}
        if own_rule is None and (half := _halved(reference)) is not None:
            impostors[HALF] = half
        for what, impostor in impostors.items():
            dtype = dtypes.get(name, reference.dtype)
            with np.errstate(over="ignore"):
                rounded = impostor if dtype == reference.dtype else impostor.astype(dtype)
            if not passes(name, rounded, expected, check, own_rule):
                continue
            if not same_bits(impostor, reference) and not np.all(impostor == reference):
                return _cannot_tell(name, what, rounded, expected, check, own_rule)
            if what != HALF:  # of zeros and infinities, which say what is said below
                alike.setdefault(name, what)
        if name not in alike and _says_nothing(reference):
            return (
                f"{name}: the baseline gives only NaN and infinities, which say nothing of what "
                f"else was computed; look at its inputs (`fill`), or {_uncompared(name)}"
            )
    if len(alike) < len(expected):
        return None
    if all(what == UNCHANGED for what in alike.values()):
        names = (f"{name}, only NaN" if _says_nothing(expected[name]) else name for name in alike)
        return (
            "the baseline leaves every output as it found it (outputs: "
            f"{'; '.join(names) or 'none declared'}); give the arrays that it writes "
            "`intent: out` or `inout`, or name what it returns in `returns`"
        )
    return (
        "the baseline's outputs are what a kernel that does nothing may give too "
        f"({'; '.join(f'{name}: {what}' for name, what in alike.items())}); "
        "choose inputs (`fill`) whose result differs from that, or `exclude` this size"
    )


def why_copies_pass(expected: Outputs, inputs: Outputs) -> str | None:
    """Return why a copy of an input would pass for every output; ``None`` where some output tells.

    A copy is the right result of a kernel that copies. But where input and output are one number
    throughout, sorting, turning and copying all come to the same.
    """
    constant = {(array.size, _only_number(array)): name for name, array in inputs.items()}
    copied = []
    for name, reference in expected.items():
        number = _only_number(reference)
        if number is None or (source := constant.get((reference.size, number))) is None:
            return None
        copied.append(f"{name} is {number} everywhere, as {source} is")
    if not copied:
        return None
    return (
        f"{'; '.join(copied)}: a copy would pass for the result; "
        "choose inputs (`fill`) whose values differ"
    )


def _halved(array: AnyArray) -> AnyArray | None:
    """Return an array of numbers with half of each, in all its fields; ``None`` where a field is of
    something else, which has to be equal."""
    if array.dtype.names is None:
        return array / 2 if array.dtype.kind in "fc" else None
    half = array.copy()
    for (_, part), (_, whole) in zip(fields_of("", half), fields_of("", array), strict=True):
        if part.dtype.kind not in "fc":
            return None
        part[...] = whole / 2
    return half


def _only_number(array: AnyArray) -> Any:
    """Return what all elements are, of two and more; ``None`` where they differ."""
    if array.size < 2 or array.dtype.kind not in "biufc":
        return None
    first = array.flat[0]
    return first if bool(np.all(array == first)) else None


def _cannot_tell(
    name: str,
    what: str,
    impostor: AnyArray,
    expected: Outputs,
    check: Check,
    own_rule: OwnRule | None,
) -> str:
    """Return why a check is refused that takes an impostor for the expected output."""
    if isinstance(own_rule, Scorer):
        reason = own_rule.cannot_tell(name, what, {**expected, name: impostor}, expected)
        return f"{reason}, or {_uncompared(name)}"
    if check.function is not None:
        return (
            f"{name}: the check {check.function} takes {what} for the right result; have it look "
            f"at {name}, or {_uncompared(name)}"
        )
    reference = expected[name]
    rule = check.of(name)
    largest = compare_one(name, impostor, reference, rule, any_dtype=True).max_abs_error
    parts = zip(fields_of(name, reference), fields_of(name, impostor), strict=True)
    numbers = ((part, other.dtype) for (_, part), (_, other) in parts if part.dtype.kind in "fc")
    allowed = " or ".join(sorted({str(Tolerance.of(part, rule, one)) for part, one in numbers}))
    norm = ", as a whole in the l2 norm," if rule.norm == "l2" else ""
    return (
        f"{name}: the check cannot tell the right result from {what}: they differ by at most "
        f"{largest:.2g}, and {allowed}{norm} is allowed; set smaller tolerances "
        "(`check: {rtol: ..., atol: ...}`), choose inputs (`fill`) whose result differs more, or "
        f"{_uncompared(name)}"
    )


def _says_nothing(array: AnyArray) -> bool:
    """Return whether an array is of numbers and has only NaN and infinities."""
    return array.size > 0 and all(
        part.dtype.kind in "fc" and not np.isfinite(piece).any()
        for _, part in fields_of("", array)
        for _, piece, _ in pieces_of(part, part)
    )


HALF = "half of it"

UNCHANGED = "what was there before"
"""An impostor, in the words of a reason: what an output held before the baseline ran."""


def _uncompared(name: str) -> str:
    return f"say `compare: false` of {name} in `check: {{outputs: ...}}`, with a reason"
