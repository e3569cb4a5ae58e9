"""JSON Schema of the format for editors (draft 07, which they read best) and its reference for
people, both generated from the model.

The schema says what can be said of one place in a file. Names, formulas and what one field says
about another are checked by the loader alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gpubench.suite.expressions import FUNCTION_NAMES, MAX_DEPTH, MAX_LENGTH
from gpubench.suite.model import MAX_VALUES, RANGE_FORMS, Suite
from gpubench.suite.reader import MAX_BYTES
from gpubench.suite.reader import MAX_DEPTH as MAX_NESTING
from gpubench.suite.types import (
    DEVICE_FACTS,
    DTYPES,
    FILLS,
    RESERVED,
    RULE_NAMES,
    TARGET_FIELDS,
)

Schema = dict[str, Any]


def _one_of(fields: Iterable[str]) -> list[Schema]:
    return [{"required": [field]} for field in fields]


_PART = "Part"
"""Ends the names of definitions in a file that extends another, where no field has to be there."""
_RANGE: Schema = {"oneOf": _one_of(RANGE_FORMS)}
_RULES: dict[str, Schema] = {
    "Range": _RANGE,
    "SizeRange": _RANGE,
    "Implementation": {
        "oneOf": _one_of(TARGET_FIELDS),
        "dependencies": {
            "entry": ["source"],
            "source": ["entry"],
            "with": {"anyOf": _one_of(("factory", "source"))},
        },
    },
}


def suite_schema() -> Schema:
    """Schema of a suite file."""
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
        "properties": {name: _described(schema) for name, schema in properties.items()},
        "if": {"required": ["extends"]},
        "then": {"properties": _partial(properties)},
        "else": {"properties": properties, **required},
        "definitions": definitions | parts,
    }


def schema_text() -> str:
    """The text of ``docs/suite.schema.json``, newline included."""
    return json.dumps(suite_schema(), indent=2, ensure_ascii=False) + "\n"


def _described(schema: Schema) -> Schema:
    """What an editor shows for a field of a suite, whichever branch it is checked by."""
    return {"description": schema["description"]} if "description" in schema else {}


def _clean(schema: Any) -> Any:
    """The generated schema in the words of draft 07, without titles and without ``null``."""
    if isinstance(schema, list):
        return [_clean(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return _shaped({key: _cleaned(key, part) for key, part in schema.items() if _keep(key, part)})


def _keep(key: str, part: Any) -> bool:
    titles = key == "title" and isinstance(part, str)
    return not titles and not (key == "default" and part is None)


def _cleaned(key: str, part: Any) -> Any:
    if key in ("properties", "$defs"):  # their keys are names, not words of the schema
        return {name: _clean(schema) for name, schema in part.items()}
    if key == "description":
        return " ".join(part.split())
    return part if key in ("default", "required", "enum") else _clean(part)


def _shaped(schema: Schema) -> Schema:
    if "$defs" in schema:
        schema["definitions"] = schema.pop("$defs")
    if "prefixItems" in schema:
        schema |= {"items": schema.pop("prefixItems"), "additionalItems": False}
    if "patternProperties" in schema:
        schema["additionalProperties"] = False
    for word in ("oneOf", "anyOf"):  # alternatives of the model exclude one another
        if word in schema:
            schema |= _alternatives(schema.pop(word))
    return schema


def _alternatives(parts: list[Schema]) -> Schema:
    kept = [part for part in parts if part != {"type": "null"}]
    return kept[0] if len(kept) == 1 else {"anyOf": kept}


def _partial(schema: Any) -> Any:
    """The schema where no field has to be there, since the file extended may have it."""
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
    ("Zip", "`sizes.NAME`, sizes that move together"),
    ("Range", "`parameters.NAME`, as a range"),
    ("Array", "`arrays.NAME`"),
    ("Init", "`init`"),
    ("Scalar", "`scalars.NAME`"),
    ("Implementation", "`implementations.NAME`"),
    ("Launch", "`launch`"),
    ("Work", "`work`"),
    ("Check", "`check`"),
    ("Sampling", "`sampling`"),
    ("Exclude", "an item of `exclude`"),
    ("Skip", "an item of `skip`"),
    ("Include", "an item of `include`"),
    ("Preset", "`presets.NAME`"),
    ("Overlay", "`presets.NAME.kernels.NAME`"),
    ("ImplementationOverlay", "`presets.NAME.implementations.NAME`"),
    ("Pair", "an item of `pairs`"),
)


def reference_markdown() -> str:
    """Tables of every field: its type, whether it is required, its default and its meaning."""
    schema = suite_schema()
    root = schema["else"] | {"description": schema["description"]}
    sections = [_section("The file", root)]
    sections += [_section(title, schema["definitions"][name]) for name, title in _SECTIONS]
    return "\n".join([*sections, _words()])


def _section(title: str, schema: dict[str, Any]) -> str:
    lines = [f"### {title}", "", schema["description"], "", *_table(schema)]
    return "\n".join(lines) + "\n"


def _table(schema: dict[str, Any]) -> Iterator[str]:
    yield "| field | type | default | meaning |"
    yield "| --- | --- | --- | --- |"
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        default = "required" if name in required else _default(field)
        yield f"| `{name}` | {_type(field)} | {default} | {field.get('description', '')} |"


def _default(field: dict[str, Any]) -> str:
    default = field.get("default")
    if default in (None, [], {}) or isinstance(default, dict):
        return ""
    shown = ", ".join(map(str, default)) if isinstance(default, list) else str(default).lower()
    return f"`{shown}`"


def _type(schema: dict[str, Any]) -> str:
    """Words for what a field may be."""
    if "$ref" in schema:
        return "mapping"
    if "anyOf" in schema:
        return _either([_type(part) for part in schema["anyOf"]])
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return _either([f"`{word}`" for word in words])
    return _plain_type(schema)


def _plain_type(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either(["number" if one == "integer" else _KINDS[one] for one in kind])
    if kind == "array":
        items = schema.get("items", {})
        return "list" if isinstance(items, list) else f"list of: {_type(items)}"
    if kind == "object":
        return "mapping by name"
    return "formula" if "maxLength" in schema else _KINDS[str(kind)]


_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true, false"}


def _either(words: list[str]) -> str:
    return " or ".join(dict.fromkeys(words))


def _words() -> str:
    lines = [
        "### Words and bounds",
        "",
        "| | |",
        "| --- | --- |",
        f"| dtypes | {_code(DTYPES)} |",
        f"| fills | {_code(FILLS)}, a number, `{{like: ARRAY}}`, `{{function: module:name}}` |",
        f"| functions in formulas | {_code(FUNCTION_NAMES)} |",
        f"| names known to `exclude` and `skip` | every axis, {_code(RULE_NAMES)} |",
        f"| names known to `skip` alone | {_code(DEVICE_FACTS)} |",
        f"| names that no axis has | {_code(sorted(RESERVED))}, functions, Python's keywords |",
        f"| longest formula | {MAX_LENGTH} characters, {MAX_DEPTH} operations deep |",
        "| largest number | 2**128 |",
        f"| most values of an axis | {MAX_VALUES} |",
        f"| largest file | {MAX_BYTES} bytes, nested {MAX_NESTING} deep |",
    ]
    return "\n".join(lines) + "\n"


def _code(words: Any) -> str:
    return ", ".join(f"`{word}`" for word in words)
