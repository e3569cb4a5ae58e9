"""A tree against the model: every fault at its place, and what is sound for later checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gpubench.errors import Fault, did_you_mean
from gpubench.suite.arrays import Array, DeclaredTable, Init, Scalar
from gpubench.suite.model import Exclude, Implementation, Include, Skip, Suite, Work
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.sampling import Check
from gpubench.suite.tree import Node, Path, shortened
from gpubench.suite.types import Model, meant_reference, suggestion

_ATTEMPTS = 20
"""Leaving out what is at fault can leave its parent at fault: a suite is some 8 levels deep."""
_ALLOWED = {
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping, name: value",
    "model_type": "a mapping of fields",
    "tuple_type": "a list, in brackets",
    "literal_error": "{expected}",
    "too_short": "at least {min_length}",
    "too_long": "at most {max_length}",
}
"""What is allowed, by pydantic's type of an error and with its context."""
_NAMED_KINDS = ("kernel", "implementation", "array", "table", "column", "scalar", "preset", "size")
_SINGULAR = {f"{kind}s": kind for kind in (*_NAMED_KINDS, "parameter")} | {"zip": "size"}
"""What an entry is called, by the field that holds it."""


def validate(
    root: Node, base: tuple[Node, Suite] | None = None
) -> tuple[Suite | None, Node, tuple[Fault, ...]]:
    """Check a tree against the model; parts at fault are told once and left out.

    So the checks of what one field says about another go on with all that is sound: the model of
    that, ``None`` where nothing is left, and its tree. ``base`` is a sound tree and its model: what
    both trees share is not checked again.
    """
    sound = root
    faults: tuple[Fault, ...] = ()
    for attempt in range(_ATTEMPTS):
        try:
            plain = sound.plain() if base is None else _with_models(sound, *base)
            return Suite.model_validate(plain), sound, faults
        except ValidationError as error:
            errors = error.errors(include_url=False, include_input=False)
        if attempt == 0:  # what fails later follows from what was left out
            misspelt = _misspelt(errors)
            told = (
                _fault(details, root)
                for details in errors[: MAX_FAULTS + 1]
                if not (details["type"] == "missing" and details["loc"] in misspelt)
            )
            faults = tuple(fault for fault in told if fault)
        at_fault = {id(_walk(sound, details["loc"])[1]) for details in errors}
        if len(errors) > MAX_FAULTS or id(sound) in at_fault:
            break
        sound = _without(sound, at_fault)
    return None, root, faults


_SHARED_MODELS = (
    Array,
    Check,
    DeclaredTable,
    Exclude,
    Implementation,
    Include,
    Init,
    Scalar,
    Skip,
    Work,
)
"""Models that pydantic takes in place of what they are made from. Models that are one of several
forms of a field are told apart by what a file says."""


def _with_models(node: Node, base: Node | None, model: object) -> Any:
    """Return the value without places, as ``Node.plain``, with the models in place of what another
    tree has at the same place; ``model`` is made of ``base``, which stands there."""
    if base is None or model is None:
        return node.plain()
    if node is base and isinstance(model, _SHARED_MODELS):
        return model
    if isinstance(node.content, dict) and isinstance(model, dict | Model):
        entries, fields = base.entries, model if isinstance(model, dict) else vars(model)
        return {
            key: _with_models(entry, entries.get(key), fields.get(key))
            for key, entry in node.content.items()
        }
    if node is base and isinstance(model, tuple) and len(model) == len(node.items):
        return tuple(map(_with_models, node.items, base.items, model))
    return node.plain()


def _misspelt(errors: Iterable[ErrorDetails]) -> set[tuple[str | int, ...]]:
    """Return the places of fields that are written with another spelling: that they are missing
    follows from it."""
    places = set()
    for details in errors:
        if details["type"] == "extra_forbidden":
            *at, name = details["loc"]
            near = get_close_matches(str(name), _fields_at(at), n=1)
            places |= {(*at, field) for field in near}
    return places


def _fault(details: ErrorDetails, root: Node) -> Fault | None:
    location, context = details["loc"], details.get("ctx", {})
    path, node = _walk(root, location)
    match details["type"]:
        case "extra_forbidden":
            hint = suggestion(str(path[-1]), _fields_at(location[:-1]))
            return node.key_fault(f"unknown field {path[-1]!r} in {_label(path[:-1])}{hint}")
        case "missing":
            write = "; write version: 1" if location == ("version",) else ""
            return node.key_fault(f"missing field {location[-1]!r} in {_label(path)}{write}")
        case "expression":
            return node.formula_fault(context["problem"], context["offset"])
        case "problem" if location[-1:] == ("[key]",):
            return node.key_fault(context["message"])
        case "problem":
            at = node.find(*context["at"]) or node
            return at.origin.fault(f"{_where((*path, *context['at']))}: {context['message']}")
        case "too_short" if len(node.items or node.entries) >= context["min_length"]:
            return None  # items that are at fault themselves are not counted
        case kind:
            # A misspelt word of a few is suggested: pydantic lists them as 'in', 'out' or 'inout'.
            words = re.findall(r"'(\w+)'", str(context.get("expected", "")))
            hint = did_you_mean(str(node.content)[:80], words).replace("?", "? Allowed: ")
            allowed = _ALLOWED.get(kind, "").format_map(context) or details["msg"]
            found = f"{_where(path)}: found {_shown(node)}"
            if meant := _meant(kind, path, node):
                return node.origin.fault(f"{found}; write {meant}")
            if allowed.startswith("module:name") and (near := meant_reference(str(node.content))):
                return node.origin.fault(f"{found}; did you mean {near}? It is module:name")
            return node.origin.fault(f"{found}{hint or '; allowed: '}{allowed}")


def _meant(kind: str, path: Path, node: Node) -> str | None:
    """Return what was most likely meant by one value in place of a list or of fields."""
    if not isinstance(node.content, str | int | float) or len(path) < 2:
        return None
    if kind == "tuple_type":
        return f"[{node.content}]"
    if kind == "model_type" and path[-2] == "implementations" and ":" in str(node.content):
        return f'{{function: "{node.content}"}}'
    if kind == "model_type" and path[-2] == "scalars" and not isinstance(node.content, str):
        return f"{{value: {node.content}, dtype: float64}}"
    return None


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
    """Return the field at the end of a path, with its index: ``block[1]``."""
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


def _fields_at(location: Iterable[str | int]) -> list[str]:
    """Return the names of the fields that the model has at pydantic's location."""
    models: list[type[Model]] = [Suite]
    steps = (step for step in location if not str(step).startswith("<"))  # marks of alternatives
    for step in steps:
        kinds = [kind for name, kind in _fields(models) if name == step]
        models = [model for kind in kinds for model in _models_in(kind)]
        if any(get_origin(kind) in (dict, tuple) for kind in kinds):
            next(steps, None)  # the name or index of one of them
    return [name for name, _ in _fields(models)]


def _fields(models: Iterable[type[Model]]) -> Iterator[tuple[str, Any]]:
    for model in models:
        for name, field in model.model_fields.items():
            yield field.alias or name, field.annotation


def _models_in(kind: Any) -> Iterator[type[Model]]:
    """Yield the models that an annotation names."""
    if isinstance(kind, type) and issubclass(kind, Model):
        yield kind
    for part in get_args(kind):
        yield from _models_in(part)


def _without(node: Node, left_out: set[int]) -> Node:
    """Return the tree without some of its nodes, by their ``id``."""
    content = node.content
    if isinstance(content, dict):
        kept = {key: entry for key, entry in content.items() if id(entry) not in left_out}
        content = {key: _without(entry, left_out) for key, entry in kept.items()}
    elif isinstance(content, tuple):
        content = tuple(_without(item, left_out) for item in content if id(item) not in left_out)
    return replace(node, content=content)


def was_faults(
    kind: str, declared: Iterable[tuple[str, Node]], taken: Collection[str]
) -> Iterator[Fault]:
    """Old names of things of one kind that do not tell which of them had the name.

    ``taken`` are all names that are in use where theirs are looked up.
    """
    owners: dict[str, str] = {}
    for name, node in declared:
        was = node.find("was")
        for old in filter(_is_text, (was.items or (was,)) if was else ()):
            if old.content in taken:
                yield old.origin.fault(
                    f"was: {kind} {name!r} cannot have been {old.content!r}, which is a name "
                    "that is in use; remove it, or rename the other"
                )
            else:
                first = owners.setdefault(str(old.content), name)
                if first != name:
                    yield old.origin.fault(
                        f"was: {old.content!r} cannot have been {first!r} and {name!r}; remove one"
                    )


def _is_text(node: Node) -> bool:
    """Return whether a value is a text: another value is a fault that another check reports."""
    return isinstance(node.content, str)
