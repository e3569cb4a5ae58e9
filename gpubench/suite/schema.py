"""JSON Schema of the format for editors (draft 07, which they read best) and its reference for
people, both generated from the model.

The schema says what can be said of one place in a file. Names, formulas and what one field says
about another are checked by the loader alone.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpubench.errors import GpubenchError
from gpubench.suite.arrays import MAX_AXIS_VALUES, RANGE_FORMS
from gpubench.suite.expressions import FUNCTION_NAMES, MAX_FORMULA_DEPTH, MAX_LENGTH
from gpubench.suite.fills import FILLS
from gpubench.suite.folder import MAX_SUITE_BYTES
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_YAML_DEPTH
from gpubench.suite.types import (
    DEVICE_FACTS,
    DTYPES,
    RESERVED,
    RULE_NAMES,
    TARGET_FIELDS,
    TEXTS,
    Model,
)

Schema = dict[str, Any]

FILE = "suite.schema.json"
"""Name of the schema's file in the wheel and in ``docs/``."""


def _one_of(fields: Iterable[str]) -> list[Schema]:
    return [{"required": [field]} for field in fields]


_PART = "Part"
"""Ends the names of definitions in a file that extends another, where no field has to be there."""
_RANGE_SCHEMA: Schema = {"oneOf": _one_of(RANGE_FORMS)}
_RULES: dict[str, Schema] = {
    "Range": _RANGE_SCHEMA,
    "SizeRange": _RANGE_SCHEMA,
    "Implementation": {
        "oneOf": _one_of(TARGET_FIELDS),
        "dependencies": {
            "entry": ["source"],
            "source": ["entry"],
            "with": {"anyOf": _one_of(("factory", "source"))},
            "parts": ["split"],
            "split": ["parts"],
        },
    },
}


def suite_schema() -> Schema:
    """Return the schema of a suite file; raises ``GpubenchError`` where Python left its texts
    out."""
    if Suite.__doc__ is None:
        raise GpubenchError(
            "the meanings of fields are docstrings, which Python leaves out under -OO and "
            "PYTHONOPTIMIZE=2; start it without"
        )
    _describe_fields()
    whole = _clean(Suite.model_json_schema(ref_template="#/definitions/{model}"))
    definitions = whole.pop("definitions")
    for name, rules in _RULES.items():
        definitions[name] |= rules
    parts = {name + _PART: _partial(schema) for name, schema in definitions.items()}
    required = {"required": whole.pop("required"), "oneOf": _one_of(("kernels", "pairs"))}
    properties = whole.pop("properties")
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gpubench suite",
        **whole,
        # What an editor shows for a field, whichever branch it is checked by.
        "properties": {
            name: {"description": field["description"]} for name, field in properties.items()
        },
        "if": {"required": ["extends"]},
        "then": {"properties": _partial(properties)},
        "else": {"properties": properties, **required},
        "definitions": definitions | parts,
    }


@cache
def _describe_fields() -> None:
    """Give every field of the model the text that stands below it in the source."""
    for model in _subclasses(Model):
        for ancestor in reversed(model.__mro__):
            if issubclass(ancestor, Model):
                for name, text in _texts_below(ancestor):
                    model.model_fields[name].description = text
        model.model_rebuild(force=True)  # parts come before what is made of them


def _subclasses(model: type[Model]) -> Iterator[type[Model]]:
    for part in model.__subclasses__():
        yield part
        yield from _subclasses(part)


@cache
def _texts_below(model: type[Model]) -> tuple[tuple[str, str], ...]:
    """Return the fields that a class declares itself, each with the text below it."""
    (declared,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(declared, ast.ClassDef), model
    texts = []
    for statement, below in pairwise(declared.body):
        match statement, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                texts.append((name, inspect.cleandoc(text)))
    return tuple(texts)


def schema_path() -> Path:
    """Return the path of the schema as a file: of the package, or of a checkout."""
    installed = Path(__file__).parents[1] / "data" / FILE
    return installed if installed.is_file() else Path(__file__).parents[2] / "docs" / FILE


def schema_text() -> str:
    """Return the text of ``docs/suite.schema.json``, newline included."""
    return json.dumps(suite_schema(), indent=2, ensure_ascii=False) + "\n"


def _clean(schema: Any) -> Any:
    """Return the generated schema in the words of draft 07, without titles and without ``null``."""
    if isinstance(schema, list):
        return [_clean(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    clean: Schema = {}
    # What the last three become stands at the end, as it does in the schema that is published.
    for key in sorted(schema, key=("prefixItems", "oneOf", "anyOf").__contains__):
        match key, schema[key]:
            case ("title", str()) | ("default", None):
                continue
            case "properties" | "$defs", by_name:  # its keys are names, not words of the schema
                word = "definitions" if key == "$defs" else key
                clean[word] = {name: _clean(part) for name, part in by_name.items()}
            case "description", text:
                clean[key] = " ".join(text.split())
            case "default" | "required" | "enum", values:
                clean[key] = values
            case "prefixItems", items:
                clean |= {"items": _clean(items), "additionalItems": False}
            case "oneOf" | "anyOf", parts:  # alternatives of the model exclude one another
                kept = [_clean(part) for part in parts if part != {"type": "null"}]
                clean |= kept[0] if len(kept) == 1 else {"anyOf": kept}
            case _, part:
                clean[key] = _clean(part)
    if "patternProperties" in clean:
        clean["additionalProperties"] = False
    return clean


def _partial(schema: Any) -> Any:
    """Return the schema where no field has to be there, since the file extended may have it."""
    if isinstance(schema, list):
        return [_partial(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return schema | {"$ref": schema["$ref"] + _PART}
    left_out = ("dependencies",) + (() if "properties" not in schema else ("required", "oneOf"))
    return {key: _partial(part) for key, part in schema.items() if key not in left_out}


# --- the reference in Markdown


START = "<!-- generated reference: gpubench.suite.schema -->"
END = "<!-- end of the generated reference -->"

_SECTIONS = (
    ("Kernel", "`kernels.NAME`"),
    ("SizeRange", "`sizes.NAME`, as a range"),
    ("Zip", "`sizes.NAME`, axes that move together"),
    ("Range", "`parameters.NAME`, as a range"),
    ("Array", "`arrays.NAME`"),
    ("FormulaFill", "`fill`, as a formula"),
    ("DeclaredTable", "`tables.NAME`"),
    ("Column", "`tables.NAME.columns.NAME`"),
    ("Init", "`init`"),
    ("Scalar", "`scalars.NAME`"),
    ("Implementation", "`implementations.NAME`"),
    ("DeclaredLaunch", "`launch`"),
    ("Work", "`work`"),
    ("Check", "`check`"),
    ("OutputCheck", "`check.outputs.NAME`"),
    ("Sampling", "`sampling`"),
    ("Exclude", "an item of `exclude`"),
    ("Skip", "an item of `skip`"),
    ("Include", "an item of `include`"),
    ("Preset", "`presets.NAME`"),
    ("Overlay", "`presets.NAME.kernels.NAME`"),
    ("ArrayOverlay", "`presets.NAME.arrays.NAME`"),
    ("ScalarOverlay", "`presets.NAME.scalars.NAME`"),
    ("ImplementationOverlay", "`presets.NAME.implementations.NAME`"),
    ("DeclaredPair", "an item of `pairs`"),
)


def reference_markdown() -> str:
    """Tables of every field: its type, whether it is required, its default and its meaning."""
    schema = suite_schema()
    root = schema["else"] | {"description": schema["description"]}
    sections = [_section("The file", root)]
    sections += [_section(title, schema["definitions"][name]) for name, title in _SECTIONS]
    return "\n".join([*sections, _words()])


def _section(title: str, schema: Schema) -> str:
    lines = [f"### {title}", "", schema["description"], "", "| field | type | default | meaning |"]
    lines.append("| --- | --- | --- | --- |")
    for name, field in schema["properties"].items():
        default = field.get("default")
        if name in schema.get("required", ()):
            shown = "required"
        elif default in (None, [], {}) or isinstance(default, dict):
            shown = ""
        else:
            listed = isinstance(default, list)
            shown = f"`{', '.join(map(str, default)) if listed else str(default).lower()}`"
        lines.append(f"| `{name}` | {_type(field)} | {shown} | {field.get('description', '')} |")
    return "\n".join(lines) + "\n"


_JSON_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true, false",
}


def _type(schema: Schema) -> str:
    """Words for what a field may be."""
    match schema:
        case {"$ref": _}:
            return "mapping"
        case {"anyOf": parts}:
            words = [_type(part) for part in parts]
        case {"enum": [*values]} | {"const": values}:
            words = [f"`{value}`" for value in (values if isinstance(values, list) else [values])]
        case {"type": [*kinds]}:
            words = ["number" if kind == "integer" else _JSON_TYPES[kind] for kind in kinds]
        case {"type": "array", "items": dict() as items}:
            return f"list of: {_type(items)}"
        case {"type": "array"}:
            return "list"
        case {"type": "object"}:
            return "mapping by name"
        case _:
            return "formula" if "maxLength" in schema else _JSON_TYPES[schema["type"]]
    return " or ".join(dict.fromkeys(words))


def _words() -> str:
    lines = [
        "### Words and bounds",
        "",
        "| | |",
        "| --- | --- |",
        f"| dtypes | {_code(DTYPES)}; of columns no complex ones, but {_code(TEXTS)} |",
        f"| fills | {_code(FILLS)}, a number, `{{formula: ...}}`, `{{like: ARRAY}}`,"
        " `{{function: module:name}}` |",
        f"| functions in formulas | {_code(FUNCTION_NAMES)} |",
        f"| names known to `exclude` and `skip` | every axis, {_code(RULE_NAMES)} |",
        f"| names known to `skip` alone | {_code(DEVICE_FACTS)} |",
        f"| names that no axis has | {_code(sorted(RESERVED))}, functions, Python's keywords |",
        f"| longest formula | {MAX_LENGTH} characters, {MAX_FORMULA_DEPTH} operations deep |",
        "| largest number | 2**128 |",
        f"| most values of an axis | {MAX_AXIS_VALUES} |",
        f"| largest file | {MAX_SUITE_BYTES} bytes, nested {MAX_YAML_DEPTH} deep |",
    ]
    return "\n".join(lines) + "\n"


def _code(words: Any) -> str:
    return ", ".join(f"`{word}`" for word in words)
