"""JSON Schema of the format for editors, generated from the model (draft 07, which they read best).

The schema says what can be said of one place in a file. Names, formulas and what one field says
about another are checked by the loader alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from gpubench.suite.model import Suite
from gpubench.suite.ranges import FORMS

Schema = dict[str, Any]

_KINDS = ("function", "factory", "launcher", "source")
_PART = "Part"
"""Ends the names of definitions in a file that extends another, where no field has to be there."""


def suite_schema() -> Schema:
    """Schema of a suite file."""
    generated = Suite.model_json_schema(
        ref_template="#/definitions/{model}", schema_generator=GenerateJsonSchema
    )
    whole = _clean(generated)
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


def _one_of(fields: Iterable[str]) -> list[Schema]:
    return [{"required": [field]} for field in fields]


_RANGE: Schema = {"oneOf": _one_of(FORMS)}
_RULES: dict[str, Schema] = {
    "Range": _RANGE,
    "SizeRange": _RANGE,
    "Implementation": {
        "oneOf": _one_of(_KINDS),
        "dependencies": {
            "entry": ["source"],
            "source": ["entry", "backend"],
            "with": {"anyOf": _one_of(("factory", "source"))},
        },
    },
}


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
