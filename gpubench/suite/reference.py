"""The reference of the format as Markdown, generated from the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpubench.suite.expressions import FUNCTION_NAMES, MAX_DEPTH, MAX_LENGTH
from gpubench.suite.ranges import MAX_VALUES
from gpubench.suite.reader import MAX_BYTES
from gpubench.suite.reader import MAX_DEPTH as MAX_NESTING
from gpubench.suite.schema import suite_schema
from gpubench.suite.types import DEVICE_FACTS, DTYPES, FILLS, RESERVED, RULE_NAMES

START = "<!-- generated reference: gpubench.suite.reference -->"
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
