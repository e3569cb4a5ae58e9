"""A tree against the model: every fault at its place, and what is sound for later checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gpubench.errors import Fault
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node, Origin, Path
from gpubench.suite.types import Model, suggestion

_ROUNDS = 20
_ALLOWED = {
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping, name: value",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
}
_SINGULAR = {
    "kernels": "kernel",
    "implementations": "implementation",
    "arrays": "array",
    "scalars": "scalar",
    "presets": "preset",
    "sizes": "size",
    "parameters": "parameter",
    "zip": "size",
}


@dataclass(frozen=True, slots=True)
class Validated:
    """What came of a tree."""

    suite: Suite | None
    """The model of the sound part; ``None`` where nothing is left."""
    sound: Node
    """The tree without the parts that are at fault."""
    faults: tuple[Fault, ...]


def validate(root: Node) -> Validated:
    """Check a tree against the model; parts at fault are told once and left out."""
    sound: Node | None = root
    faults: tuple[Fault, ...] = ()
    for attempt in range(_ROUNDS):
        if sound is None:
            break
        try:
            return Validated(Suite.model_validate(sound.plain()), sound, faults)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        if len(errors) > MAX_FAULTS:
            told = (
                fault for details in errors[: MAX_FAULTS + 1] for fault in _faults(details, root)
            )
            return Validated(None, root, tuple(told))
        if attempt == 0:  # what fails later follows from what was left out
            faults = tuple(fault for details in errors for fault in _faults(details, root))
        sound = _without(sound, [_place(sound, details) for details in errors])
    return Validated(None, root, faults)


def _faults(details: ErrorDetails, root: Node) -> Iterator[Fault]:
    path, node = _walk(root, details["loc"])
    context = details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            yield _unknown_field(root, path, details["loc"])
        case "missing":
            message = f"missing field {details['loc'][-1]!r} in {label(path)}"
            yield fault(_key_origin(root, path), message)
        case "expression":
            yield expression_fault(node, context["problem"], context["offset"])
        case "problem":
            yield _problem(root, path, details)
        case "too_short" if len(node.items or node.entries) >= context["min_length"]:
            return  # items that are at fault themselves are not counted
        case _:
            message = (
                f"{_where(path)}: found {found(node)}{_near(details, node)}{_allowed(details)}"
            )
            yield fault(node.origin, message)


def fault(origin: Origin, message: str) -> Fault:
    """A fault at the place that set a value."""
    return Fault(origin.path, origin.line, origin.column, message)


def expression_fault(node: Node, problem: str, offset: int) -> Fault:
    """A fault inside a formula, at the column of the character where it can be told."""
    origin = node.origin
    column = node.text_column + offset if node.text_column else origin.column
    text = str(node.content)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return Fault(origin.path, origin.line, column, f"{problem} (in '{shown}')")


def found(node: Node) -> str:
    """Words for a value in a message."""
    if isinstance(node.content, Mapping):
        return "a mapping"
    if isinstance(node.content, tuple):
        return f"a list of {len(node.items)}"
    if isinstance(node.content, bool):
        return str(node.content).lower()
    if node.content is None:
        return "nothing"
    text = repr(node.content)
    return text if len(text) <= 60 else f"{text[:57]}..."


def label(path: Path) -> str:
    """Words for the part of a suite at a path: ``kernel 'matmul'``, ``launch``, ``the suite``."""
    if not path:
        return "the suite"
    last = path[-1]
    if isinstance(last, int):
        return label(path[:-1])
    singular = _SINGULAR.get(str(path[-2])) if len(path) > 1 else None
    return f"{singular} {last!r}" if singular else last


def _walk(root: Node, location: tuple[str | int, ...]) -> tuple[Path, Node]:
    """Path and node that pydantic's location leads to, past the marks of unions."""
    node, path = root, []
    for step in location:
        if child := node.child(step):
            node = child
            path.append(step)
    return tuple(path), node


def _place(root: Node, details: ErrorDetails) -> Path:
    return _walk(root, details["loc"])[0]


def _key_origin(root: Node, path: Path) -> Origin:
    parent = root.find(path[:-1])
    if parent and path and isinstance(path[-1], str):
        return parent.key_origin(path[-1])
    node = root.find(path)
    return node.origin if node else root.origin


def _unknown_field(root: Node, path: Path, location: tuple[str | int, ...]) -> Fault:
    name = str(path[-1])
    known = tuple(_fields_at(location[:-1]))
    message = f"unknown field {name!r} in {label(path[:-1])}{suggestion(name, known)}"
    return fault(_key_origin(root, path), message)


def _problem(root: Node, path: Path, details: ErrorDetails) -> Fault:
    context = details["ctx"]
    if details["loc"][-1:] == ("[key]",):
        return fault(_key_origin(root, path), context["message"])
    node = root.find(path) or root
    at = node.find(context["at"]) or node
    where = _where((*path, *context["at"]))
    return fault(at.origin, f"{where}: {context['message']}")


def _where(path: Path) -> str:
    """The field at the end of a path, with its index: ``block[1]``."""
    steps = list(path)
    text = ""
    while steps and isinstance(steps[-1], int):
        text = f"[{steps.pop()}]{text}"
    return f"{steps[-1] if steps else 'the suite'}{text}"


def _near(details: ErrorDetails, node: Node) -> str:
    """``; did you mean 'inout'?`` for a misspelt word of a fixed set, then what is allowed."""
    words = tuple(re.findall(r"'(\w+)'", str(details.get("ctx", {}).get("expected", ""))))
    close = get_close_matches(str(node.content)[:80], words, 1)
    return f"; did you mean {close[0]!r}? Allowed: " if close else "; allowed: "


def _allowed(details: ErrorDetails) -> str:
    kind, context = details["type"], details.get("ctx", {})
    if kind in ("tuple_type", "list_type"):
        return "a list, in brackets"
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "too_short":
        return f"at least {context['min_length']}"
    if kind == "too_long":
        return f"at most {context['max_length']}"
    return _ALLOWED.get(kind, details["msg"])


def _fields_at(location: Iterable[str | int]) -> Iterator[str]:
    """Names of the fields that the model has at pydantic's location."""
    types: list[Any] = [Suite]
    for step in location:
        if not (isinstance(step, str) and step.startswith("<")):
            types = [inner for outer in types for inner in _inside(outer, step)]
    for model in (alternative for kind in types for alternative in _alternatives(kind)):
        if isinstance(model, type) and issubclass(model, Model):
            for name, field in model.model_fields.items():
                yield field.alias or name


def _alternatives(kind: Any) -> Iterator[Any]:
    """The types that an annotation stands for, unions and annotations taken apart."""
    if get_origin(kind) is Annotated:
        yield from _alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, UnionType):
        for part in get_args(kind):
            yield from _alternatives(part)
    elif kind is not NoneType:
        yield kind


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    """Annotations of what lies under a key or index of a type."""
    for alternative in _alternatives(kind):
        if get_origin(alternative) in (dict, tuple):
            yield get_args(alternative)[1 if get_origin(alternative) is dict else 0]
        elif isinstance(alternative, type) and issubclass(alternative, Model):
            for name, field in alternative.model_fields.items():
                if (field.alias or name) == step:
                    yield field.annotation


def _without(root: Node, places: Iterable[Path]) -> Node | None:
    """The tree without the values at some paths; ``None`` when one of them is the root."""
    by_step: dict[str | int, list[Path]] = {}
    for place in places:
        if not place:
            return None
        by_step.setdefault(place[0], []).append(place[1:])
    if isinstance(root.content, Mapping):
        kept = {
            key: replace(entry, value=value)
            for key, entry in root.content.items()
            if (value := _without(entry.value, by_step.get(key, [])))
        }
        return replace(root, content=kept)
    items = (_without(item, by_step.get(index, [])) for index, item in enumerate(root.items))
    return replace(root, content=tuple(item for item in items if item)) if root.items else root
