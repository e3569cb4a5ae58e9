"""Unquoted scalars: what they stand for, and the spellings that YAML's versions read differently.

YAML 1.1 (PyYAML) and YAML 1.2 (editors) agree on everything that is accepted here.
"""

from __future__ import annotations

import math
import re

from gpubench.suite.arithmetic import LIMIT
from gpubench.suite.tree import Scalar

_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False}
_BOOLEANS["FALSE"] = False
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?")
_SWITCH = re.compile(r"(on|off|yes|no)", re.IGNORECASE)
_EXPONENT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")
_POINT = re.compile(r"[-+]?\.[0-9]+")
_BASES = re.compile(r"[-+]?0([xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)")
_OCTAL = re.compile(r"[-+]?0[0-9_]+")
_UNDERSCORES = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_MAX_DIGITS = 40


def read_plain(text: str) -> tuple[Scalar, str | None]:
    """Value of an unquoted scalar, and what is wrong with its spelling (``None``: nothing).

    The value of a wrong spelling is the one that was most likely meant.
    """
    if text in _BOOLEANS:
        return _BOOLEANS[text], None
    if text in _NULLS:
        return None, "there is no value here; write one, or leave the field out"
    if not text[0].isdigit() and text[0] not in "+-." and text[0] not in "oOyYnN":
        return text, None
    if _INT.fullmatch(text):
        return _whole(text)
    if _FLOAT.fullmatch(text):
        return _real(text)
    return _trap(text)


def _whole(text: str) -> tuple[Scalar, str | None]:
    if len(text) <= _MAX_DIGITS and abs(int(text)) <= LIMIT:
        return int(text), None
    return 1, f"{_short(text)} is too large; numbers go up to 2**128"


def _real(text: str) -> tuple[Scalar, str | None]:
    value = float(text)
    if math.isfinite(value):
        return value, None
    return 1.0, f"{_short(text)} is too large for a number"


def _trap(text: str) -> tuple[Scalar, str | None]:
    if _SWITCH.fullmatch(text):
        meant = text.lower() in ("on", "yes")
        return meant, (
            f"{text!r} is a boolean in YAML 1.1 and text in YAML 1.2; "
            f'write {str(meant).lower()}, or "{text}" for the text'
        )
    for pattern, read in _NUMBERS:
        if pattern.fullmatch(text):
            return read(text)
    if _DATE.fullmatch(text):
        return text, f'{_short(text)} is a date in YAML 1.1; write "{text[:30]}" for the text'
    return text, None


def _exponent(text: str) -> tuple[Scalar, str]:
    value = float(text)
    if not math.isfinite(value):
        return 1.0, f"{_short(text)} is too large for a number"
    return value, (
        f"{_short(text)} is text in YAML 1.1 and a number in YAML 1.2; write {_decimal(value)}"
    )


def _point(text: str) -> tuple[Scalar, str | None]:
    if text[0] == ".":
        return float(text), None
    meant = _decimal(float(text))
    return float(text), f"{_short(text)} is text in YAML 1.1; write {meant}"


def _base(text: str) -> tuple[Scalar, str]:
    return _meant(text, "is not the same in YAML 1.1 and YAML 1.2", int(text.replace("_", ""), 0))


def _octal(text: str) -> tuple[Scalar, str]:
    digits = text.replace("_", "")
    return _meant(text, "is octal in YAML 1.1 and decimal in YAML 1.2", int(digits[:_MAX_DIGITS]))


def _underscored(text: str) -> tuple[Scalar, str]:
    digits = text.replace("_", "")
    value = float(digits) if "." in digits else int(digits[:_MAX_DIGITS])
    return _meant(text, "is a number in YAML 1.1 and text in YAML 1.2", value)


def _sexagesimal(text: str) -> tuple[Scalar, str]:
    return text, (
        f"{_short(text)} is a number to the base 60 in YAML 1.1 and text in YAML 1.2; "
        f'write "{text[:30]}" for the text'
    )


def _special(text: str) -> tuple[Scalar, str]:
    return 1.0, f"{_short(text)} is not a finite number; a finite one is needed"


def _meant(text: str, problem: str, value: int | float) -> tuple[Scalar, str]:
    if isinstance(value, int) and abs(value) > LIMIT:
        return 1, f"{_short(text)} is too large; numbers go up to 2**128"
    return value, f'{_short(text)} {problem}; write {value}, or "{text[:30]}" for the text'


_NUMBERS = (
    (_EXPONENT, _exponent),
    (_POINT, _point),
    (_BASES, _base),
    (_OCTAL, _octal),
    (_UNDERSCORES, _underscored),
    (_SEXAGESIMAL, _sexagesimal),
    (_SPECIAL, _special),
)


def _decimal(value: float) -> str:
    """``value`` in a spelling that every YAML reads as the same number."""
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    mantissa, exponent, power = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{exponent}{power}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
