"""What one field says about another: names, kinds of implementations, the baseline, the presets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from gpubench.errors import Fault
from gpubench.suite.model import Array, FunctionFill, Implementation, Kernel, LikeFill, formulas
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node, Path
from gpubench.suite.types import (
    DEVICE_FACTS,
    DTYPES,
    RULE_NAMES,
    TARGET_FIELDS,
    suggestion,
)
from gpubench.suite.validation import Validated


def check_suite(validated: Validated, root: Node) -> Iterator[Fault]:
    """Faults between the fields of a suite; ``root`` is the tree with what is unsound still in it.

    An axis, array or scalar that nothing uses is told only where nothing else is wrong: what is
    wrong may have been its use.
    """
    yield from _kernels_or_pairs(root)
    for name, kernel in (validated.suite.kernels if validated.suite else {}).items():
        sound, raw = validated.sound.find("kernels", name), root.find("kernels", name)
        if sound is None or raw is None:
            continue
        checks = _KernelChecks(name, kernel, sound, raw)
        faults = list(islice(checks.faults(), MAX_FAULTS + 1))
        yield from faults
        if not faults and not validated.faults:
            yield from checks.unused()


def _kernels_or_pairs(root: Node) -> Iterator[Fault]:
    kernels, pairs = root.find("kernels"), root.find("pairs")
    if kernels and pairs:
        message = "both kernels and pairs; a suite has one of them"
        yield pairs.key_fault(message)
    elif not kernels and not pairs:
        yield root.origin.fault("missing field 'kernels' in the suite (or 'pairs' instead)")
    for field, node in (("kernels", kernels), ("pairs", pairs)):
        if node and node.content in ((), {}):
            yield node.origin.fault(f"{field}: found none; at least one is needed")
    names: set[str] = set()
    for pair in pairs.items if pairs else ():
        name = pair.find("name")
        if name and isinstance(name.content, str):
            if name.content in names:
                yield name.origin.fault(f"the pair {name.content!r} is there twice")
            names.add(name.content)


# --- presets


def check_presets(root: Node) -> Iterator[Fault]:
    """Names in presets that no kernel declares."""
    kernels = root.fields("kernels")
    for preset in root.fields("presets").values() if "kernels" in root.entries else ():
        yield from _overlay(preset, list(kernels.values()), "any kernel")
        for name, overlay in preset.fields("kernels").items():
            if name in kernels:
                yield from _overlay(overlay, [kernels[name]], f"kernel {name!r}")
            else:
                yield overlay.key_fault(f"unknown kernel {name!r}{suggestion(name, kernels)}")


def _overlay(overlay: Node, kernels: list[Node], where: str) -> Iterator[Fault]:
    """Names in a preset, or in its part for one kernel, that none of the kernels declares."""
    for field in ("sizes", "parameters", "implementations"):
        declared = dict.fromkeys(name for kernel in kernels for name in kernel.fields(field))
        zips = [item for kernel in kernels for item in kernel.fields(field).items()]
        for name, change in overlay.fields(field).items():
            if name in declared:
                continue
            hint = suggestion(name, declared)
            if group := next((group for group, size in zips if name in size.fields("zip")), None):
                hint = f"; it moves together with others: write {group}: {{zip: ...}}"
            yield change.key_fault(f"{field[:-1]} {name!r} is not declared by {where}{hint}")
    launched: dict[str, bool] = {}
    for kernel in kernels:
        for name, implementation in kernel.fields("implementations").items():
            launched[name] = launched.get(name, False) or "launch" in implementation.entries
    if "launch" in overlay.entries and not any(launched.values()):
        message = f"no implementation of {where} declares a launch"
        yield overlay.entries["launch"].key_fault(message)
    for name, change in overlay.fields("implementations").items():
        if "launch" in change.entries and not launched.get(name, True):
            message = f"implementation {name!r} declares no launch"
            yield change.entries["launch"].key_fault(message)


# --- one kernel


class _KernelChecks:
    """The checks of one kernel.

    ``sound`` is the tree that ``kernel`` was made from, ``raw`` the same with the parts at fault:
    the names declared there count too, since what uses them is no second fault.
    """

    def __init__(self, name: str, kernel: Kernel, sound: Node, raw: Node) -> None:
        self.name = name
        self.kernel = kernel
        self.node = sound
        self.raw = raw
        sizes = [
            item  # zipped sizes taken apart
            for key, size in raw.fields("sizes").items()
            for item in (size.fields("zip") or {key: size}).items()
        ]
        axes = [*sizes, *raw.fields("parameters").items()]
        self.axes = tuple(name for name, _ in axes)
        self.parameters = raw.fields("parameters")
        self.arrays = raw.fields("arrays")
        self.scalars = raw.fields("scalars")
        self.declared = [*axes, *self.arrays.items(), *self.scalars.items()]
        self.made = _texts(raw.find("init", "returns"))
        self.rooted: set[str] = set()  # arrays whose fill is seen to lead into no circle

    def faults(self) -> Iterator[Fault]:
        """Every fault but those of ``unused``."""
        yield from self.declared_twice()
        for name, array in self.kernel.arrays.items():
            yield from self.dtype(("arrays", name, "dtype"), array.dtype)
            yield from self.fill(name, array)
        for name, scalar in self.kernel.scalars.items():
            if scalar.dtype is not None:
                yield from self.dtype(("scalars", name, "dtype"), scalar.dtype)
        yield from self.arguments()
        yield from self.formulas()
        for name, implementation in self.kernel.implementations.items():
            yield from self.target(name)
            yield from self.cover(name, implementation)
        yield from self.baseline()
        yield from self.includes()

    def fault(self, path: Path, message: str) -> Fault:
        return (self.node.find(*path) or self.node).origin.fault(message)

    def declared_twice(self) -> Iterator[Fault]:
        counts = Counter(name for name, _ in self.declared)
        for name, node in dict(self.declared).items():  # the last of several
            if counts[name] > 1:
                message = f"{name!r} is declared twice in kernel {self.name!r}; rename one of them"
                yield node.key_fault(message)

    def fill(self, name: str, array: Array) -> Iterator[Fault]:
        path = ("arrays", name, "fill")
        if array.fill is None:
            return
        if array.intent in ("out", "scratch"):
            message = f"array {name!r} is written only; intent {array.intent} takes no fill"
            yield self.fault(path, message)
        elif name in self.made:
            yield self.fault(path, f"array {name!r} is made by init; it takes no fill")
        if isinstance(array.fill, LikeFill):
            yield from self.like((*path, "like"), name, array.fill.like)

    def like(self, path: Path, name: str, other: str) -> Iterator[Fault]:
        candidates = (*self.arrays, *self.made)
        if other not in candidates:
            yield self.fault(path, f"unknown array {other!r}{suggestion(other, candidates)}")
            return
        seen = {name}
        while other in self.kernel.arrays and not (other in seen or other in self.rooted):
            seen.add(other)
            fill = self.kernel.arrays[other].fill
            other = fill.like if isinstance(fill, LikeFill) else ""
        if other not in seen:
            self.rooted |= seen
        else:
            yield self.fault(path, f"array {name!r} is filled like itself; fill one of them")

    def dtype(self, path: Path, dtype: str) -> Iterator[Fault]:
        """A name of NumPy's, or of a parameter that has nothing but such names."""
        if dtype in DTYPES:
            return
        if dtype not in self.parameters:
            hint = suggestion(dtype, (*DTYPES, *self.parameters))
            yield self.fault(path, f"unknown dtype {dtype!r}{hint}")
            return
        values = self.node.find("parameters", dtype, "values")
        values = values or self.node.find("parameters", dtype)
        for value in values.items if values else ():
            if value.content not in DTYPES:
                hint = suggestion(str(value.content), DTYPES)
                yield value.origin.fault(f"unknown dtype {value.content!r}{hint}")

    def arguments(self) -> Iterator[Fault]:
        declared = dict.fromkeys((*self.arrays, *self.made, *self.scalars, *self.axes))
        for index, name in enumerate(self.kernel.call):
            if name not in declared:
                hint = suggestion(name, declared)
                yield self.fault(("call", index), f"unknown argument {name!r}{hint}")
        for index, name in enumerate(self.kernel.returns):
            if name in declared and name not in self.arrays:
                message = f"{name!r} is declared already; name what is returned otherwise"
                yield self.fault(("returns", index), message)

    def formulas(self) -> Iterator[Fault]:
        """Names in formulas that are not in their scope."""
        kernel, axes, rules = self.kernel, self.axes, (*self.axes, *RULE_NAMES)
        for name, array in kernel.arrays.items():
            yield from self.scope(("arrays", name, "shape"), array.shape, axes, arrays=False)
        yield from self.scope(("scalars",), kernel.scalars, axes)
        yield from self.scope(("implementations",), kernel.implementations, axes)
        yield from self.scope(("work",), kernel.work, axes)
        yield from self.scope(("include",), kernel.include, axes)
        yield from self.scope(("exclude",), kernel.exclude, rules)
        yield from self.scope(("skip",), kernel.skip, (*rules, *DEVICE_FACTS))

    def scope(
        self, path: Path, part: object, names: tuple[str, ...], arrays: bool = True
    ) -> Iterator[Fault]:
        in_scope = frozenset(names)
        for inner, formula in formulas(part):
            node = self.node.find(*path, *inner)
            if node is None:  # a default
                continue
            for use in formula.name_uses:
                if use.name not in in_scope:
                    yield node.formula_fault(self.unknown(use.name, names), use.offset)
            for use in formula.array_uses:
                if not arrays:
                    problem = "itemsize and size are not known in the shape of an array"
                elif use.name in self.arrays:
                    continue
                elif use.name in (*self.made, *_texts(self.raw.find("returns"))):
                    problem = f"the shape of {use.name!r} is not declared; add it to arrays"
                else:
                    problem = f"unknown array {use.name!r}{suggestion(use.name, self.arrays)}"
                yield node.formula_fault(problem, use.offset)

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
        axes = self.parameters.values()
        values = (text for axis in axes for text in _texts(axis.find("values") or axis))
        if name in DTYPES or name in values:
            return f"unknown name {name!r}; text is written in quotes: '{name}'"
        return f"unknown name {name!r}{suggestion(name, scope)}"

    def target(self, name: str) -> Iterator[Fault]:
        """Exactly one way to name what is called, and only what goes with it."""
        node = self.raw.find("implementations", name)
        if node is None:
            return
        needed = f"implementation {name!r} has exactly one of {', '.join(TARGET_FIELDS)}"
        given = [field for field in TARGET_FIELDS if field in node.entries]
        if len(given) != 1:
            if not given:
                yield node.key_fault(f"{needed}; found none")
            for extra in given[1:]:
                yield node.entries[extra].key_fault(f"{needed}; found {' and '.join(given)}")
            return
        (kind,) = given
        if kind == "source" and "entry" not in node.entries:
            yield node.entries[kind].key_fault("missing field 'entry' beside source")
        if kind != "source" and "entry" in node.entries:
            yield node.entries["entry"].key_fault(f"entry goes with source; found {kind}")
        if kind not in ("factory", "source") and "with" in node.entries:
            message = f"with goes with factory or source; found {kind}"
            yield node.entries["with"].key_fault(message)

    def cover(self, name: str, implementation: Implementation) -> Iterator[Fault]:
        """A grid that covers needs something to cover."""
        launch, raw = implementation.launch, self.raw.find("implementations", name, "launch")
        if launch is None or launch.over is not None or "cover" not in launch.grids():
            return
        intents = [array.find("intent") for array in self.raw.fields("arrays").values()]
        writes = any(intent and intent.content in ("out", "inout") for intent in intents)
        if writes or raw is None or "over" in raw.entries:
            return
        message = "cover needs an array with intent out or inout, or over: [...]"
        yield raw.entries.get("grid", raw).key_fault(message)

    def baseline(self) -> Iterator[Fault]:
        names, baseline = tuple(self.raw.fields("implementations")), self.kernel.baseline
        if baseline in names:
            return
        if "baseline" in self.raw.entries:
            hint = suggestion(baseline, names)
            yield self.fault(("baseline",), f"unknown implementation {baseline!r}{hint}")
        elif len(names) > 1:
            message = (
                f"kernel {self.name!r} has no implementation 'numpy' to measure against;"
                f" write baseline: and one of {', '.join(names)}"
            )
            yield self.raw.entries["implementations"].key_fault(message)

    def includes(self) -> Iterator[Fault]:
        names = tuple(self.raw.fields("implementations"))
        for index, include in enumerate(self.kernel.include):
            path, name = ("include", index), include.implementation
            if name not in names:
                message = f"unknown implementation {name!r}{suggestion(name, names)}"
                yield self.fault((*path, "implementation"), message)
            for axis in include.values:
                if axis not in self.axes:
                    message = f"unknown axis {axis!r}{suggestion(axis, self.axes)}"
                    if node := self.node.find(*path, "values", axis):
                        yield node.key_fault(message)

    def unused(self) -> Iterator[Fault]:
        """Axes, arrays and scalars that nothing uses: no case would differ by them."""
        used = self.used()
        for kind, nodes in (("array", self.arrays), ("scalar", self.scalars)):
            for name, node in nodes.items():
                if name not in used:
                    yield node.key_fault(f"{kind} {name!r} is used by nothing; name it in call")
        fills = [array.fill for array in self.kernel.arrays.values()]
        if self.kernel.init or any(isinstance(fill, FunctionFill) for fill in fills):
            return  # a function that draws data is given every axis
        for size in self.raw.fields("sizes").values():
            if not used.isdisjoint(members := size.fields("zip")):
                used |= members.keys()  # they move together with one that is used
        for name, node in self.declared[: len(self.axes)]:
            if name not in used:
                message = (
                    f"{name!r} is used by no array, scalar, call, launch, with or threads;"
                    " use it, or remove it"
                )
                yield node.key_fault(message)

    def used(self) -> set[str]:
        kernel = self.kernel
        used = {*kernel.call, *kernel.returns, *self.made}
        used |= {array.dtype for array in kernel.arrays.values()}
        used |= {scalar.dtype for scalar in kernel.scalars.values() if scalar.dtype}
        fills = (array.fill for array in kernel.arrays.values())
        used |= {fill.like for fill in fills if isinstance(fill, LikeFill)}
        for path, formula in formulas(kernel):
            used |= formula.arrays
            if path[0] in ("arrays", "scalars", "implementations"):
                used |= formula.names
        return used


def _texts(node: Node | None) -> tuple[str, ...]:
    items = node.items if node else ()
    return tuple(item.content for item in items if isinstance(item.content, str))
