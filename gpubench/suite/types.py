"""Leaf types of the format: what one value may be, checked with one message each."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetPydanticSchema,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError, core_schema

from gpubench.errors import did_you_mean
from gpubench.names import NAME_PATTERN, Value, format_value, parse_value
from gpubench.suite.expressions import (
    CONSTANTS,
    FUNCTION_NAMES,
    MAX_LENGTH,
    Expression,
    ExpressionError,
)
from gpubench.suite.fills import FILLS

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
"""NumPy's names of the element types that arrays may have."""
ORDERS = ("C", "F")
"""How the elements of an array may lie in memory: the last index changes fastest, or the first."""
TEXTS = ("text", "category")
"""Types of a table's column beside these: words, and words of which few are distinct."""
COLUMN_DTYPES = (*(name for name in DTYPES if not name.startswith("complex")), *TEXTS)
FILL_FORMS = (
    f"{', '.join(FILLS)}, a number, {{formula: ...}}, {{like: ARRAY}} or {{function: module:name}}"
)
INDICES = ("i", "j", "k", "l")
"""Names of an array's indices in the formula that fills it, first dimension first, where it names
none itself."""
DEVICE_FACTS = (
    *("sm_count", "shared_memory_per_block", "global_memory", "compute_capability", "device"),
)
"""Names of facts about a device that only ``skip`` may use."""
RULE_NAMES = ("implementation", "threads", "threads_per_block", "blocks")
"""Names that ``exclude`` and ``skip`` may use beside the axes."""
RESERVED = frozenset((*RULE_NAMES, *DEVICE_FACTS, "block", "grid"))
"""Names that no axis may have: rules and identities use them."""
TARGET_FIELDS = ("function", "factory", "launcher", "source", "parts")
"""Fields of an implementation that name what is called; it has exactly one of them."""


class Model(BaseModel):
    """Base of every part of the format: immutable, and nothing but the declared fields."""

    # What each field means is read by `gpubench.suite.schema` alone, and validators are made of the
    # whole suite at once: pydantic would do both for each part whenever a command starts.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def expected(allowed: str) -> PydanticCustomError:
    """Return the error of a value that is not what is ``allowed`` at its place."""
    return PydanticCustomError("expected", "{allowed}", {"allowed": allowed})


def problem(message: str, at: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """Return an error that says all itself; ``at`` leads from the validated value to the place."""
    return PydanticCustomError("problem", "{message}", {"message": message, "at": at})


def suggestion(name: str, candidates: Iterable[str]) -> str:
    """``; did you mean 'x'?``, or what is allowed when nothing is near."""
    # Both may come from a hostile file, and comparing costs their product.
    names = tuple(candidates)[:500]
    more = ", ..." if len(names) > 20 else ""
    allowed = f"; allowed: {', '.join(names[:20])}{more}" if names else ""
    return did_you_mean(name[:80], names) or allowed


def unknown(kind: str, name: object, candidates: Iterable[str]) -> str:
    """``unknown dtype 'flaot64'; did you mean 'float64'?``, and 2 without quotes."""
    return f"unknown {kind} {name!r}{suggestion(str(name), candidates)}"


def _checked(check: Callable[[Any], Any], schema: dict[str, Any]) -> GetPydanticSchema:
    """Return a check as part of an annotation, with the JSON Schema of what it accepts.

    The function gives the value, or raises ``expected`` or ``problem``.
    """
    return GetPydanticSchema(
        lambda source, handler: core_schema.no_info_plain_validator_function(check),
        # A copy, since pydantic writes a field's default and description into it.
        lambda core, handler: dict(schema),
    )


def _is_number(value: object, kind: type[float] = float) -> bool:
    """Return whether it is a number, or a whole one, and no boolean; the reader has bounded it."""
    return isinstance(value, int | kind) and not isinstance(value, bool)


_FORMULA_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH}


def _formula(value: object, allowed: str = "a formula") -> Expression:
    if not isinstance(value, str):
        raise expected(allowed)
    try:
        return Expression(value)
    except ExpressionError as error:
        context = {"problem": error.problem, "offset": error.offset}
        raise PydanticCustomError("expression", "{problem}", context) from error


def _allowed(words: str) -> WrapValidator:
    """Put its own words into the place of pydantic's where a value is refused."""

    def check(value: object, validate: ValidatorFunctionWrapHandler) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise expected(words) from None

    return WrapValidator(check)


def _extent(least: int) -> GetPydanticSchema:
    """Whole numbers, or formulas beside them."""

    def check(value: Any) -> int | Expression:
        if _is_number(value, int) and value >= least:
            return int(value)
        return _formula(value, f"a whole number from {least}, or a formula")

    return _checked(check, {"anyOf": [{"type": "integer", "minimum": least}, _FORMULA_SCHEMA]})


def _text(check: Callable[[str], str], **schema: Any) -> GetPydanticSchema:
    def text(value: object) -> str:
        if isinstance(value, str):
            return check(value)
        raise expected("text")

    return _checked(text, {"type": "string", **schema})


def _computed(value: Any) -> Any:
    if isinstance(value, bool) or _is_number(value):
        return value
    return _formula(value, "a number, true, false, or a formula")


def _grid_extent(value: Any) -> str | int | Expression:
    if value == "cover" or (_is_number(value, int) and value >= 1):
        return value  # type: ignore[no-any-return]  # one of these two
    return _formula(value, "cover, a whole number from 1, a formula, or a list of shapes")


def _axis_value(value: object) -> object:
    if isinstance(value, bool) or _is_number(value):
        return value
    if not isinstance(value, str):
        raise expected("a number, text, true or false")
    if not value or re.search(r"[\s=,]", value):
        raise problem(
            f"{value!r} cannot be part of a case's name; write text without blanks, '=' and ','"
        )
    if not isinstance(parse_value(value), str):
        raise problem(
            f"text {value!r} reads as a number or boolean in a case's name;"
            f" write it without quotes, or another text, 'v{value}' for example"
        )
    return value


def _spelled(pattern: str, allowed: str, what: str = "") -> GetPydanticSchema:
    """Text of this pattern; ``what`` that is, where ``allowed`` says of which characters."""
    whole = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if whole.fullmatch(value):
            return value
        if what:
            raise problem(f"{value!r} is not {what}; allowed are {allowed}")
        raise expected(allowed)

    return _text(check, pattern=f"^{pattern}$")


_IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
_IDENTIFIER_WORDS = "letters, digits and underscores, starting with a letter or underscore"


def _no_word_of_formulas(value: str) -> str:
    if value in FUNCTION_NAMES or keyword.iskeyword(value) or value in CONSTANTS:
        raise problem(f"{value!r} has a meaning in formulas; choose another name")
    return value


def _not_reserved(value: str) -> str:
    if value in RESERVED:
        raise problem(f"{value!r} has a meaning in rules and in names of cases; choose another")
    return value


_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
# Of another backend: one or two numbers (cl:0:0, dask:4:1), or a running cluster (ray:auto,
# ray:127.0.0.1:6379, dask:tcp://127.0.0.1:8786). It becomes part of a case's name.
_ADDRESS = r"([a-z]+://[A-Za-z0-9.-]+|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|localhost):\d{1,5}"
_DEVICE = rf"(cpu|cuda:(\*|\d{{1,3}})|(?!cuda:|cpu:)[a-z]\w*:(\d+(:\d+)?|auto|{_ADDRESS}))"


def _words(value: str) -> str:
    if value.strip():
        return value
    raise expected("text that is not empty")


def is_name_of_code(text: str) -> bool:
    """Return whether it is ``module:name`` or the path of a source, and no name in a suite."""
    return re.search("[:/.]", text) is not None and bool(text.strip())


def _old_target(value: str) -> str:
    """Check an old name of an implementation, function or source file."""
    if NAME_PATTERN.fullmatch(value) or is_name_of_code(value):
        return value
    raise problem(
        f"{value!r} is not a name; allowed are lower-case letters, digits and single underscores, "
        "module:name of a function, or the path of a source"
    )


def _dtype(value: str) -> str:
    if value in DTYPES:
        return value
    raise problem(unknown("dtype", value, DTYPES))


def _fill_word(value: object) -> object:
    if _is_number(value) or (isinstance(value, str) and value in FILLS):
        return value
    if isinstance(value, str):
        hint = "" if value.isidentifier() else "; a formula is written {formula: ...}"
        raise problem(f"{unknown('fill', value, FILLS)}{hint}")
    raise expected(FILL_FORMS)


Words = Annotated[str, _text(_words, minLength=1)]
"""Text for people; not empty."""
_NAME = "lower-case letters, digits and single underscores, starting with a letter"
Name = Annotated[str, _spelled(NAME_PATTERN.pattern, _NAME, "a name")]
PresetName = Annotated[
    str,
    _spelled(
        r"[A-Za-z][A-Za-z0-9_.-]*", "letters, digits and _ . -, starting with a letter", "a name"
    ),
]
"""As people write them: `S`, `large`, `paper-2024`. It becomes no part of a benchmark's name."""
Identifier = Annotated[
    str, _spelled(_IDENTIFIER, _IDENTIFIER_WORDS, "a name"), AfterValidator(_no_word_of_formulas)
]
ColumnName = Annotated[str, _spelled(_IDENTIFIER, _IDENTIFIER_WORDS, "a name of a column")]
"""Formulas do not use it, so that it may be `max` or `sum`."""
AxisName = Annotated[Identifier, AfterValidator(_not_reserved)]
REFERENCE = re.compile(f"{_DOTTED}:{_DOTTED}")


def meant_reference(text: str) -> str | None:
    """Return the ``module:name`` that a dotted name or a file's name most likely means:
    ``mine.cpu.add``, ``mine/cpu.py:add``, ``mine.cpu::add``; ``None`` where nothing is near."""
    module, _, name = text.strip().removesuffix("()").replace("::", ":").partition(":")
    module = module.removesuffix(".py").removeprefix("./").replace("/", ".")
    if not name:
        module, _, name = module.rpartition(".")
    meant = f"{module}:{name}"
    return meant if meant != text and REFERENCE.fullmatch(meant) else None


Reference = Annotated[
    str,
    _spelled(
        REFERENCE.pattern,
        "module:name, gpubench.kernels.elementwise:vector_add_numpy for example",
    ),
]
OldTarget = Annotated[str, _text(_old_target, minLength=1)]
DeviceName = Annotated[
    str, _spelled(_DEVICE, "cpu, cuda:0, cuda:*, or another backend's device like cl:0:0")
]
Dtype = Annotated[str, _text(_dtype, enum=list(DTYPES))]

AxisValue = Annotated[
    Value, _checked(_axis_value, {"type": ["integer", "number", "boolean", "string"]})
]
SizeValue = Annotated[int, Field(strict=True, ge=0), _allowed("a whole number from 0")]
Whole = Annotated[int, Field(strict=True), _allowed("a whole number")]
Count = Annotated[int, Field(strict=True, ge=1), _allowed("a whole number from 1")]
Exponent = Annotated[int, Field(strict=True, ge=0, le=62), _allowed("an exponent from 0 to 62")]
"""Of two: 2**62 is the largest power that NumPy's int64, and thus a shape, can hold."""
AbsoluteTolerance = Annotated[float, Field(strict=True, ge=0), _allowed("a number from 0")]
RelativeTolerance = Annotated[
    float,
    Field(strict=True, ge=0, le=1),
    _allowed("a number from 0 to 1, as zeros are right beyond that"),
]
SampleSeconds = Annotated[
    float,
    Field(strict=True, gt=0, le=60),
    _allowed("a number of seconds above 0 and up to 60"),
]
Timeout = Annotated[float, Field(strict=True, ge=0.1), _allowed("a number of seconds from 0.1")]
"""A process takes longer to start than less than that."""
RepeatSeconds = Annotated[float, Field(strict=True, gt=0), _allowed("a number of seconds above 0")]
WarmupSeconds = Annotated[float, Field(strict=True, ge=0), _allowed("a number of seconds from 0")]
_BASELINE = "as the baseline itself has to pass"
AtMost = Annotated[float, Field(strict=True, ge=1), _allowed(f"a number from 1, {_BASELINE}")]
AtLeast = Annotated[
    float,
    Field(strict=True, gt=0, le=1),
    _allowed(f"a number above 0 and up to 1, {_BASELINE}"),
]
"""Factors of the baseline's score."""
Formula = Annotated[Expression, _checked(_formula, _FORMULA_SCHEMA)]
Extent = Annotated[int | Expression, _extent(0)]
"""One extent of a shape, or another whole quantity: a number, or a formula."""
LaunchExtent = Annotated[int | Expression, _extent(1)]
Computed = Annotated[
    int | float | bool | Expression,
    _checked(_computed, {"anyOf": [{"type": ["number", "boolean"]}, _FORMULA_SCHEMA]}),
]
GridExtent = Annotated[
    Literal["cover"] | int | Expression,
    _checked(
        _grid_extent,
        {"anyOf": [{"const": "cover"}, {"type": "integer", "minimum": 1}, _FORMULA_SCHEMA]},
    ),
]
FillWord = Annotated[
    str | int | float, _checked(_fill_word, {"anyOf": [{"enum": list(FILLS)}, {"type": "number"}]})
]

# Alternatives of one field are told apart by how a value is written, so that a fault in it is told
# of that alternative alone. Pydantic puts the tag into the place of an error: "<" starts no name.
LIST, MAPPING, SINGLE = Tag("<list>"), Tag("<mapping>"), Tag("<single>")
ZIP, LIKE, FUNCTION, FORMULA = (Tag(f"<{key}>") for key in ("zip", "like", "function", "formula"))


def by_form(allowed: str, *keys: Tag) -> Discriminator:
    """Chooses among ``LIST``, ``SINGLE``, mappings with one of ``keys``, and other mappings."""

    def form(value: Any) -> str:
        if isinstance(value, list | tuple):
            return LIST.tag
        if isinstance(value, str | int | float | Expression):
            return SINGLE.tag
        for key in keys:
            field = key.tag.strip("<>")
            if field in value if isinstance(value, dict) else hasattr(value, field):
                return key.tag
        return MAPPING.tag

    return Discriminator(form, "expected", allowed)


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
