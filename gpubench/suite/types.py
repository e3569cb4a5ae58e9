"""Leaf types of the format: what one value may be, checked with one message each."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    PlainValidator,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from gpubench.names import NAME, Value, format_value
from gpubench.suite.arithmetic import LIMIT
from gpubench.suite.expressions import CONSTANTS, FUNCTION_NAMES, MAX_LENGTH, Expression

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
"""NumPy's names of the element types that arrays may have."""
FILLS = ("normal", "uniform", "zeros", "ones", "arange")
DEVICE_FACTS = (
    *("sm_count", "shared_memory_per_block", "global_memory", "compute_capability", "device"),
)
"""Names of facts about a device that only ``skip`` may use."""
RULE_NAMES = ("implementation", "threads", "threads_per_block", "blocks")
"""Names that ``exclude`` and ``skip`` may use beside the axes."""
RESERVED = frozenset((*RULE_NAMES, *DEVICE_FACTS, "block", "grid"))
"""Names that no axis may have: rules and identities use them."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_REFERENCE = re.compile(rf"{_DOTTED}:{_DOTTED}", re.ASCII)
_DEVICE = re.compile(r"cpu|cuda:(\*|\d{1,3})|(?!cuda:|cpu:)[a-z]\w*:\d+(:\d+)?")


class Model(BaseModel):
    """Base of every part of the format: immutable, and nothing but the declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def expected(allowed: str) -> PydanticCustomError:
    """The error of a value that is not what is ``allowed`` at its place."""
    return PydanticCustomError("expected", "{allowed}", {"allowed": allowed})


def problem(message: str, at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """An error that says all itself; ``at`` leads from the validated value to the place."""
    return PydanticCustomError("problem", "{message}", {"message": message, "at": at})


def suggestion(name: str, known: tuple[str, ...]) -> str:
    """``; did you mean 'x'?``, or what is allowed when nothing is near."""
    if close := get_close_matches(name[:80], known[:500], 1):
        return f"; did you mean {close[0]!r}?"
    more = ", ..." if len(known) > 20 else ""
    return f"; allowed: {', '.join(known[:20])}{more}" if known else ""


def is_number(value: object) -> bool:
    """Whether it is a finite number within the format's bounds, and no boolean."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LIMIT
    return whole or (isinstance(value, float) and math.isfinite(value))


def _whole(minimum: int | None, allowed: str) -> Callable[[object], int]:
    def validate(value: object) -> int:
        if isinstance(value, int) and is_number(value) and (minimum is None or value >= minimum):
            return value
        raise expected(allowed)

    return validate


def _number(allowed: str, above: bool = False) -> Callable[[object], float]:
    def validate(value: Any) -> float:
        if is_number(value) and (value > 0 if above else value >= 0):
            return float(value)
        raise expected(allowed)

    return validate


def _exponent(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 62:
        return value
    raise expected("an exponent from 0 to 62")


def _extent(minimum: int) -> Callable[[object], int | Expression]:
    def validate(value: object) -> int | Expression:
        if isinstance(value, int) and is_number(value) and value >= minimum:
            return value
        return _formula(value, f"a whole number from {minimum}, or a formula")

    return validate


def _formula(value: object, allowed: str) -> Expression:
    if isinstance(value, Expression):
        return value
    if not isinstance(value, str):
        raise expected(allowed)
    return Expression.validated(value)


def _computed(value: object) -> int | float | bool | Expression:
    if isinstance(value, int | float) and (isinstance(value, bool) or is_number(value)):
        return value
    return _formula(value, "a number, true, false, or a formula")


def _grid(value: object) -> Literal["cover"] | int | Expression:
    if value == "cover":
        return "cover"
    if isinstance(value, int) and is_number(value) and value >= 1:
        return value
    return _formula(value, "cover, a whole number from 1, a formula, or a list of shapes")


def _value(value: object) -> Value:
    if isinstance(value, str):
        return _identity_text(value)
    if isinstance(value, int | float) and (isinstance(value, bool) or is_number(value)):
        return value
    raise expected("a number, text, true or false")


def _identity_text(value: str) -> str:
    if not value or re.search(r"[\s=,]", value):
        raise problem(
            f"{value!r} cannot be part of a case's name; write text without blanks, '=' and ','"
        )
    if value in CONSTANTS or re.fullmatch(r"[-+]?[\d.].*|[-+]?(inf|nan|infinity)", value, re.I):
        raise problem(
            f"text {value!r} reads as a number or boolean in a case's name;"
            " write it without quotes, or let it start with a letter"
        )
    return value


def _name(value: str) -> str:
    if NAME.fullmatch(value):
        return value
    raise problem(
        f"{value!r} is not a name; allowed are lower-case letters, digits and single underscores,"
        " starting with a letter"
    )


def _identifier(value: str) -> str:
    if not _IDENTIFIER.fullmatch(value):
        raise problem(
            f"{value!r} is not a name; allowed are letters, digits and underscores,"
            " starting with a letter or underscore"
        )
    if value in FUNCTION_NAMES or keyword.iskeyword(value) or value in CONSTANTS:
        raise problem(f"{value!r} has a meaning in formulas; choose another name")
    return value


def _axis_name(value: str) -> str:
    if value in RESERVED:
        raise problem(f"{value!r} has a meaning in rules and in names of cases; choose another")
    return _identifier(value)


def _reference(value: str) -> str:
    if _REFERENCE.fullmatch(value):
        return value
    raise expected("module:name, gpubench.kernels.elementwise:vector_add_numpy for example")


def _device(value: str) -> str:
    if _DEVICE.fullmatch(value):
        return value
    if value == "cudasim":  # Numba's simulator, which earlier releases ran
        raise problem(
            "'cudasim' is no device any more; write cuda:0, and run `gpubench verify` to check"
            " results without a GPU"
        )
    raise expected("cpu, cuda:0, cuda:*, or another backend's device like cl:0:0")


def _word(value: str) -> str:
    if value.strip():
        return value
    raise expected("text that is not empty")


def _dtype(value: str) -> str:
    if value in DTYPES:
        return value
    raise problem(f"unknown dtype {value!r}{suggestion(value, DTYPES)}")


def _fill_name(value: object) -> str | int | float:
    if isinstance(value, int | float) and is_number(value):
        return value
    if isinstance(value, str) and value in FILLS:
        return value
    if isinstance(value, str):
        raise problem(f"unknown fill {value!r}{suggestion(value, FILLS)}")
    raise expected(FILL_FORMS)


FILL_FORMS = f"{', '.join(FILLS)}, a number, {{like: ARRAY}} or {{function: module:name}}"

_TEXT = {"type": "string", "minLength": 1}
_FORMULA = {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH}
_IDENTIFIER_SCHEMA = {"type": "string", "pattern": f"^{_IDENTIFIER.pattern}$"}

Words = Annotated[str, AfterValidator(_word), WithJsonSchema(_TEXT)]
"""Text for people; not empty."""
Name = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$"})
]
Identifier = Annotated[str, AfterValidator(_identifier), WithJsonSchema(_IDENTIFIER_SCHEMA)]
AxisName = Annotated[str, AfterValidator(_axis_name), WithJsonSchema(_IDENTIFIER_SCHEMA)]
Reference = Annotated[
    str,
    AfterValidator(_reference),
    WithJsonSchema({"type": "string", "pattern": f"^{_REFERENCE.pattern}$"}),
]
DeviceName = Annotated[
    str,
    AfterValidator(_device),
    WithJsonSchema({"type": "string", "pattern": f"^({_DEVICE.pattern})$"}),
]
Dtype = Annotated[
    str, AfterValidator(_dtype), WithJsonSchema({"type": "string", "enum": list(DTYPES)})
]

AxisValue = Annotated[
    Value,
    PlainValidator(_value),
    WithJsonSchema({"type": ["integer", "number", "boolean", "string"]}),
]
SizeValue = Annotated[
    int,
    PlainValidator(_whole(0, "a whole number from 0")),
    WithJsonSchema({"type": "integer", "minimum": 0}),
]
Whole = Annotated[
    int, PlainValidator(_whole(None, "a whole number")), WithJsonSchema({"type": "integer"})
]
Count = Annotated[
    int,
    PlainValidator(_whole(1, "a whole number from 1")),
    WithJsonSchema({"type": "integer", "minimum": 1}),
]
Exponent = Annotated[
    int,
    PlainValidator(_exponent),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": 62}),
]
Tolerance = Annotated[
    float,
    PlainValidator(_number("a number from 0")),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Seconds = Annotated[
    float,
    PlainValidator(_number("a number of seconds above 0", above=True)),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
WarmupSeconds = Annotated[
    float,
    PlainValidator(_number("a number of seconds from 0")),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Extent = Annotated[
    int | Expression,
    PlainValidator(_extent(0)),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, _FORMULA]}),
]
"""One extent of a shape, or another whole quantity: a number, or a formula."""
LaunchExtent = Annotated[
    int | Expression,
    PlainValidator(_extent(1)),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _FORMULA]}),
]
Computed = Annotated[
    int | float | bool | Expression,
    PlainValidator(_computed),
    WithJsonSchema({"anyOf": [{"type": ["number", "boolean"]}, _FORMULA]}),
]
GridExtent = Annotated[
    Literal["cover"] | int | Expression,
    PlainValidator(_grid),
    WithJsonSchema({"anyOf": [{"const": "cover"}, {"type": "integer", "minimum": 1}, _FORMULA]}),
]
FillWord = Annotated[
    str | int | float,
    PlainValidator(_fill_name),
    WithJsonSchema({"anyOf": [{"enum": list(FILLS)}, {"type": "number"}]}),
]

LIST, MAPPING, SINGLE = Tag("<list>"), Tag("<mapping>"), Tag("<single>")
ZIP, LIKE, FUNCTION = Tag("<zip>"), Tag("<like>"), Tag("<function>")
_SINGLE = (str, int, float, Expression)


def _form(value: object) -> str:
    if isinstance(value, list | tuple):
        return LIST.tag
    return SINGLE.tag if isinstance(value, _SINGLE) else MAPPING.tag


def _has(value: Any, field: str) -> bool:
    return field in value if isinstance(value, dict) else hasattr(value, field)


def _size_form(value: object) -> str:
    form = _form(value)
    return ZIP.tag if form == MAPPING.tag and _has(value, "zip") else form


def _fill_form(value: object) -> str | None:
    if _form(value) == SINGLE.tag:
        return SINGLE.tag
    forms = [tag.tag for tag in (LIKE, FUNCTION) if _has(value, tag.tag.strip("<>"))]
    return forms[0] if forms else None


def _by(form: Callable[[Any], str | None], allowed: str) -> Discriminator:
    return Discriminator(form, "expected", allowed)


def by_form(allowed: str) -> Discriminator:
    """Chooses among ``LIST``, ``MAPPING`` and ``SINGLE`` by how a value is written."""
    return _by(_form, allowed)


by_size_form = _by(_size_form, "a list of whole numbers, a range, or zip")
by_fill_form = _by(_fill_form, FILL_FORMS)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    seen = set()
    for index, value in enumerate(values):
        text = format_value(value)
        if text in seen:
            raise problem(f"{text} is there twice", (index,))
        seen.add(text)
    return values


Distinct = AfterValidator(_distinct)
"""Of a list: no value is there twice."""


def _version(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and value != 1:
        raise problem(f"version {value} of the format; this release reads version 1")
    if value is True:
        raise expected("1")
    return value


Version = BeforeValidator(_version)
