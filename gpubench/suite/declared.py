"""What a kernel declares by name, told apart for the checks of the names that formulas use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpubench.suite.expressions import Expression
from gpubench.suite.tree import Node
from gpubench.suite.types import DEVICE_FACTS, DTYPES, RULE_NAMES, Model, suggestion


@dataclass(frozen=True, slots=True)
class Declared:
    """Names of one kernel, those at fault included: what uses them is no second fault."""

    sizes: tuple[str, ...]
    """Zipped ones taken apart."""
    parameters: tuple[str, ...]
    arrays: tuple[str, ...]
    made: tuple[str, ...]
    """Arrays that ``init`` returns."""
    returned: tuple[str, ...]
    """Names of what the function returns."""
    scalars: tuple[str, ...]
    texts: tuple[str, ...]
    """Text values of the parameters."""

    @property
    def axes(self) -> tuple[str, ...]:
        return (*self.sizes, *self.parameters)

    def unknown(self, name: str, scope: tuple[str, ...]) -> str:
        """What is wrong with a name that a formula uses though it is not in its ``scope``."""
        if name in self.arrays or name in self.made:
            return f"{name!r} is an array; formulas use itemsize({name}) or size({name})"
        if name in self.scalars:
            return f"{name!r} is a scalar; formulas use sizes and parameters"
        if name in DEVICE_FACTS:
            return f"{name!r} is a fact of the device; only skip may use it"
        if name in RULE_NAMES:
            return f"{name!r} is known only to exclude and skip"
        if name in self.texts or name in DTYPES:
            return f"unknown name {name!r}; text is written in quotes: '{name}'"
        return f"unknown name {name!r}{suggestion(name, scope)}"


def declared(kernel: Node) -> Declared:
    """Names that a kernel's tree declares."""
    sizes = kernel.child("sizes")
    parameters = kernel.child("parameters")
    init = kernel.child("init")
    return Declared(
        sizes=tuple(_size_names(sizes)) if sizes else (),
        parameters=_keys(parameters),
        arrays=_keys(kernel.child("arrays")),
        made=_texts(init.child("returns")) if init else (),
        returned=_texts(kernel.child("returns")),
        scalars=_keys(kernel.child("scalars")),
        texts=tuple(_parameter_texts(parameters)) if parameters else (),
    )


def _keys(node: Node | None) -> tuple[str, ...]:
    return tuple(node.entries) if node else ()


def _texts(node: Node | None) -> tuple[str, ...]:
    items = node.items if node else ()
    return tuple(item.content for item in items if isinstance(item.content, str))


def _size_names(sizes: Node) -> Iterator[str]:
    for name, entry in sizes.entries.items():
        members = entry.value.child("zip")
        yield from members.entries if members else (name,)


def _parameter_texts(parameters: Node) -> Iterator[str]:
    for entry in parameters.entries.values():
        yield from _texts(entry.value.child("values") or entry.value)


def formulas(part: object, node: Node | None) -> Iterator[tuple[Expression, Node]]:
    """Every formula in a part of the model, with the value in the tree that holds it."""
    if node is None:
        return
    if isinstance(part, Expression):
        yield part, node
    elif isinstance(part, Model):
        for name, field in type(part).model_fields.items():
            yield from formulas(getattr(part, name), node.child(field.alias or name))
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from formulas(value, node.child(key))
    elif isinstance(part, tuple):
        for index, value in enumerate(part):
            yield from formulas(value, node.child(index))
