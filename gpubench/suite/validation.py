"""A tree against the model: every fault at its place, and what is sound for later checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gpubench.errors import Fault, did_you_mean
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node, Path, shortened
from gpubench.suite.types import Model, suggestion

_ATTEMPTS = 20
"""Leaving out what is at fault can leave its parent at fault: a suite is some 8 levels deep."""
_ALLOWED = {
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping, name: value",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "tuple_type": "a list, in brackets",
    "list_type": "a list, in brackets",
    "literal_error": "{expected}",
    "too_short": "at least {min_length}",
    "too_long": "at most {max_length}",
}
"""What is allowed, by pydantic's type of an error and with its context."""
_PLURALS = (
    *("kernels", "implementations", "arrays", "tables", "columns", "scalars"),
    *("presets", "sizes", "parameters"),
)
_SINGULAR = {plural: plural.removesuffix("s") for plural in _PLURALS} | {"zip": "size"}
"""What an entry is called, by the field that holds it."""


class Validated(NamedTuple):
    """What came of a tree."""

    suite: Suite | None
    """The model of the sound part; ``None`` where nothing is left."""
    sound: Node
    """The tree without the parts that are at fault."""
    faults: tuple[Fault, ...]


def validate(root: Node) -> Validated:
    """Check a tree against the model; parts at fault are told once and left out.

    So the checks of what one field says about another go on with all that is sound.
    """
    sound: Node | None = root
    faults: tuple[Fault, ...] = ()
    for attempt in range(_ATTEMPTS):
        if sound is None:
            break
        try:
            return Validated(Suite.model_validate(sound.plain()), sound, faults)
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        if attempt == 0:  # what fails later follows from what was left out
            shown = errors[: MAX_FAULTS + 1]
            faults = tuple(fault for details in shown for fault in _faults(details, root))
        if len(errors) > MAX_FAULTS:
            break
        sound = _without(sound, {id(_walk(sound, details["loc"])[1]) for details in errors})
    return Validated(None, root, faults)


def _faults(details: ErrorDetails, root: Node) -> Iterator[Fault]:
    location, context = details["loc"], details.get("ctx", {})
    path, node = _walk(root, location)
    match details["type"]:
        case "extra_forbidden":
            hint = suggestion(str(path[-1]), _fields_at(location[:-1]))
            message = f"unknown field {path[-1]!r} in {_label(path[:-1])}{hint}"
            yield node.key_fault(message)
        case "missing":
            message = f"missing field {location[-1]!r} in {_label(path)}"
            yield node.key_fault(message)
        case "expression":
            yield node.formula_fault(context["problem"], context["offset"])
        case "problem" if location[-1:] == ("[key]",):
            yield node.key_fault(context["message"])
        case "problem":
            at = node.find(*context["at"]) or node
            yield at.origin.fault(f"{_where((*path, *context['at']))}: {context['message']}")
        case "too_short" if len(node.items or node.entries) >= context["min_length"]:
            return  # items that are at fault themselves are not counted
        case kind:
            # A misspelt word of a few is suggested: pydantic lists them as 'in', 'out' or 'inout'.
            words = re.findall(r"'(\w+)'", str(context.get("expected", "")))
            hint = did_you_mean(str(node.content)[:80], words).replace("?", "? Allowed: ")
            allowed = _ALLOWED.get(kind, "").format_map(context) or details["msg"]
            found = f"{_where(path)}: found {_shown(node)}"
            yield node.origin.fault(f"{found}{hint or '; allowed: '}{allowed}")


def _shown(node: Node) -> str:
    match node.content:
        case dict():
            return "a mapping"
        case tuple():
            return f"a list of {len(node.items)}"
        case bool():
            return str(node.content).lower()
        case None:
            return "nothing"
    return shortened(repr(node.content), 60)


def _label(path: Path) -> str:
    """Words for the part of a suite at a path: ``kernel 'matmul'``, ``launch``, ``the suite``."""
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return "the suite"
    singular = _SINGULAR.get(names[-2]) if len(names) > 1 else None
    return f"{singular} {names[-1]!r}" if singular else names[-1]


def _where(path: Path) -> str:
    """The field at the end of a path, with its index: ``block[1]``."""
    steps, text = list(path), ""
    while steps and isinstance(steps[-1], int):
        text = f"[{steps.pop()}]{text}"
    return f"{steps[-1] if steps else 'the suite'}{text}"


def _walk(root: Node, location: tuple[str | int, ...]) -> tuple[Path, Node]:
    """Path and node that pydantic's location leads to, past the marks of unions."""
    node, path = root, []
    for step in location:
        if child := node.find(step):
            node = child
            path.append(step)
    return tuple(path), node


def _fields_at(location: Iterable[str | int]) -> Iterator[str]:
    """Names of the fields that the model has at pydantic's location."""
    kinds: list[Any] = [Suite]
    for step in location:
        if not (isinstance(step, str) and step.startswith("<")):  # the mark of an alternative
            kinds = [inner for kind in kinds for inner in _inside(kind, step)]
    for kind in kinds:
        for model in filter(_is_model, _alternatives(kind)):
            yield from (field.alias or name for name, field in model.model_fields.items())


def _inside(kind: Any, step: str | int) -> Iterator[Any]:
    """Annotations of what lies under a key or index of a type."""
    for alternative in _alternatives(kind):
        if get_origin(alternative) in (dict, tuple):
            yield get_args(alternative)[1 if get_origin(alternative) is dict else 0]
        elif _is_model(alternative):
            for name, field in alternative.model_fields.items():
                if (field.alias or name) == step:
                    yield field.annotation


def _alternatives(kind: Any) -> Iterator[Any]:
    """The types that an annotation stands for, unions and annotations taken apart."""
    if get_origin(kind) in (Annotated, Union, UnionType):
        for part in get_args(kind):
            yield from _alternatives(part)
    else:
        yield kind


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)


def _without(node: Node, left_out: set[int]) -> Node | None:
    """The tree without some of its nodes, by their ``id``; ``None`` when the root is one."""
    if id(node) in left_out:
        return None
    content = node.content
    if isinstance(content, dict):
        entries = ((key, _without(entry, left_out)) for key, entry in content.items())
        return replace(node, content={key: entry for key, entry in entries if entry})
    if isinstance(content, tuple):
        items = (_without(item, left_out) for item in content)
        return replace(node, content=tuple(item for item in items if item))
    return node
