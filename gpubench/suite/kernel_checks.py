"""What one field of a kernel says about another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpubench.errors import Fault
from gpubench.suite.declared import declared, formulas
from gpubench.suite.expressions import Expression
from gpubench.suite.model import Array, FunctionFill, Implementation, Kernel, LikeFill
from gpubench.suite.tree import Node, Path
from gpubench.suite.types import DEVICE_FACTS, DTYPES, RULE_NAMES, suggestion
from gpubench.suite.validation import expression_fault, fault

_KINDS = ("function", "factory", "launcher", "source")


class KernelChecks:
    """The checks of one kernel.

    ``sound`` is the tree that ``kernel`` was made from, ``raw`` the same with the parts at fault.
    """

    def __init__(self, name: str, kernel: Kernel, sound: Node, raw: Node) -> None:
        self.name = name
        self.kernel = kernel
        self.node = sound
        self.raw = raw
        self.names = declared(raw)
        self.arrays_declared = frozenset(self.names.arrays)
        self.places = self._places()
        self.rooted: set[str] = set()  # arrays whose fill is known to lead into no circle

    def faults(self) -> Iterator[Fault]:
        """Every fault but those of ``unused``."""
        yield from self.clashes()
        yield from self.arrays()
        yield from self.scalar_dtypes()
        yield from self.arguments()
        yield from self.formulas()
        yield from self.implementations()
        yield from self.baseline()
        yield from self.includes()

    def at(self, path: Path, message: str) -> Iterator[Fault]:
        """A fault at the value at a path of the kernel, where there is one."""
        if node := self.node.find(path):
            yield fault(node.origin, message)

    def at_key(self, path: Path, key: str, message: str) -> Iterator[Fault]:
        if node := self.node.find(path):
            yield fault(node.key_origin(key), message)

    def clashes(self) -> Iterator[Fault]:
        """Names declared as two things, or in two groups of sizes that move together."""
        groups = (self.names.sizes, self.names.parameters, self.names.arrays, self.names.scalars)
        counts = Counter(name for group in groups for name in group)
        for name, count in counts.items():
            if count > 1:
                message = f"{name!r} is declared twice in kernel {self.name!r}; rename one of them"
                yield fault(self.places[name].key_origin(name), message)

    def _places(self) -> dict[str, Node]:
        """The mapping that declares a name; the last one where there are several."""
        places: dict[str, Node] = {}
        for field in ("sizes", "parameters", "arrays", "scalars"):
            parent = self.raw.child(field)
            for key, entry in parent.entries.items() if parent else ():
                members = entry.value.child("zip") if field == "sizes" else None
                if members:
                    places |= dict.fromkeys(members.entries, members)
                elif parent:
                    places[key] = parent
        return places

    def arrays(self) -> Iterator[Fault]:
        for name, array in self.kernel.arrays.items():
            path = ("arrays", name)
            yield from self.dtype((*path, "dtype"), array.dtype)
            yield from self.fill((*path, "fill"), name, array)

    def fill(self, path: Path, name: str, array: Array) -> Iterator[Fault]:
        if array.fill is None:
            return
        if array.intent in ("out", "scratch"):
            message = f"array {name!r} is written only; intent {array.intent} takes no fill"
            yield from self.at(path, message)
        elif name in self.names.made:
            yield from self.at(path, f"array {name!r} is made by init; it takes no fill")
        if isinstance(array.fill, LikeFill):
            yield from self.like((*path, "like"), name, array.fill.like)

    def like(self, path: Path, name: str, other: str) -> Iterator[Fault]:
        known = (*self.names.arrays, *self.names.made)
        if other not in self.arrays_declared and other not in self.names.made:
            yield from self.at(path, f"unknown array {other!r}{suggestion(other, known)}")
            return
        seen = {name}
        while other in self.kernel.arrays and not (other in seen or other in self.rooted):
            seen.add(other)
            fill = self.kernel.arrays[other].fill
            other = fill.like if isinstance(fill, LikeFill) else ""
        if other not in seen:
            self.rooted |= seen
        else:
            yield from self.at(path, f"array {name!r} is filled like itself; fill one of them")

    def scalar_dtypes(self) -> Iterator[Fault]:
        for name, scalar in self.kernel.scalars.items():
            if scalar.dtype is not None:
                yield from self.dtype(("scalars", name, "dtype"), scalar.dtype)

    def dtype(self, path: Path, dtype: str) -> Iterator[Fault]:
        if dtype in DTYPES:
            return
        if dtype not in self.names.parameters:
            near = suggestion(dtype, (*DTYPES, *self.names.parameters))
            yield from self.at(path, f"unknown dtype {dtype!r}{near}")
            return
        values = self.node.find(("parameters", dtype))
        values = values and (values.child("values") or values)
        for value in values.items if values else ():
            if value.content not in DTYPES:
                near = suggestion(str(value.content), DTYPES)
                yield fault(value.origin, f"unknown dtype {value.content!r}{near}")

    def arguments(self) -> Iterator[Fault]:
        names = self.names
        known = dict.fromkeys((*names.arrays, *names.made, *names.scalars, *names.axes))
        for index, name in enumerate(self.kernel.call):
            if name not in known:
                near = suggestion(name, tuple(known))
                yield from self.at(("call", index), f"unknown argument {name!r}{near}")
        taken = {*names.axes, *names.scalars, *names.made}
        for index, name in enumerate(self.kernel.returns):
            if name in taken:
                message = f"{name!r} is declared already; name what is returned otherwise"
                yield from self.at(("returns", index), message)

    def formulas(self) -> Iterator[Fault]:
        """Names in formulas that are not in their scope."""
        kernel, axes = self.kernel, self.names.axes
        rules = (*axes, *RULE_NAMES)
        for name, array in kernel.arrays.items():
            yield from self.scope(("arrays", name, "shape"), array.shape, axes, arrays=False)
        yield from self.scope(("scalars",), kernel.scalars, axes)
        yield from self.scope(("implementations",), kernel.implementations, axes)
        yield from self.scope(("work",), kernel.work, axes)
        yield from self.scope(("include",), kernel.include, axes)
        yield from self.scope(("exclude",), kernel.exclude, rules)
        yield from self.scope(("skip",), kernel.skip, (*rules, *DEVICE_FACTS))

    def scope(
        self, path: Path, part: object, scope: tuple[str, ...], arrays: bool = True
    ) -> Iterator[Fault]:
        known = frozenset(scope)
        for formula, node in formulas(part, self.node.find(path)):
            for use in formula.name_uses:
                if use.name not in known:
                    yield expression_fault(node, self.names.unknown(use.name, scope), use.offset)
            yield from self.array_uses(formula, node, arrays)

    def array_uses(self, formula: Expression, node: Node, allowed: bool) -> Iterator[Fault]:
        for use in formula.array_uses:
            if not allowed:
                problem = "itemsize and size are not known in the shape of an array"
            elif use.name in self.arrays_declared:
                continue
            elif use.name in (*self.names.made, *self.names.returned):
                problem = f"the shape of {use.name!r} is not declared; add it to arrays"
            else:
                problem = f"unknown array {use.name!r}{suggestion(use.name, self.names.arrays)}"
            yield expression_fault(node, problem, use.offset)

    def implementations(self) -> Iterator[Fault]:
        for name, implementation in self.kernel.implementations.items():
            path = ("implementations", name)
            yield from self.kind(path, name)
            yield from self.cover(path, implementation)

    def kind(self, path: Path, name: str) -> Iterator[Fault]:
        """Exactly one way to name what is called, and only what goes with it."""
        node = self.raw.find(path)
        if node is None:
            return
        given = [kind for kind in _KINDS if kind in node.entries]
        needed = f"implementation {name!r} has exactly one of {', '.join(_KINDS)}"
        if not given:
            yield from self.at_key(path[:-1], name, f"{needed}; found none")
        for extra in given[1:]:
            yield fault(node.key_origin(extra), f"{needed}; found {' and '.join(given)}")
        if len(given) == 1:
            yield from self.companions(path, node, given[0])

    def companions(self, path: Path, node: Node, kind: str) -> Iterator[Fault]:
        if kind == "source":
            for field in ("entry", "backend"):
                if field not in node.entries:
                    yield fault(node.key_origin(kind), f"missing field {field!r} beside source")
        elif "entry" in node.entries:
            yield fault(node.key_origin("entry"), f"entry goes with source; found {kind}")
        if "with" in node.entries and kind not in ("factory", "source"):
            message = f"with goes with factory or source; found {kind}"
            yield fault(node.key_origin("with"), message)

    def cover(self, path: Path, implementation: Implementation) -> Iterator[Fault]:
        launch = implementation.launch
        if launch is None or launch.over is not None or "cover" not in launch.grids():
            return
        raw = self.raw.find((*path, "launch"))
        if self._writes() or raw is None or "over" in raw.entries:
            return
        message = "cover needs an array with intent out or inout, or over: [...]"
        key = "grid" if "grid" in raw.entries else "launch"
        parent = raw if key == "grid" else self.raw.find(path)
        if parent:
            yield fault(parent.key_origin(key), message)

    def _writes(self) -> bool:
        arrays = self.raw.child("arrays")
        intents = (
            [entry.value.child("intent") for entry in arrays.entries.values()] if arrays else []
        )
        return any(intent and intent.content in ("out", "inout") for intent in intents)

    def baseline(self) -> Iterator[Fault]:
        declared_ = self.raw.child("implementations")
        known = tuple(declared_.entries) if declared_ else ()
        baseline = self.kernel.baseline
        if baseline in known:
            return
        if "baseline" in self.raw.entries:
            near = suggestion(baseline, known)
            yield from self.at(("baseline",), f"unknown implementation {baseline!r}{near}")
        elif len(known) > 1:
            message = (
                f"kernel {self.name!r} has no implementation 'numpy' to measure against;"
                f" write baseline: and one of {', '.join(known)}"
            )
            yield from self.at_key((), "implementations", message)

    def includes(self) -> Iterator[Fault]:
        declared_ = self.raw.child("implementations")
        known = tuple(declared_.entries) if declared_ else ()
        for index, include in enumerate(self.kernel.include):
            name = include.implementation
            if name not in known:
                message = f"unknown implementation {name!r}{suggestion(name, known)}"
                yield from self.at(("include", index, "implementation"), message)
            axes = frozenset(self.names.axes)
            for axis in include.values:
                if axis not in axes:
                    message = f"unknown axis {axis!r}{suggestion(axis, self.names.axes)}"
                    yield from self.at_key(("include", index, "values"), axis, message)

    def unused(self) -> Iterator[Fault]:
        """Axes, arrays and scalars that nothing uses: no case would differ by them."""
        used = self._used()
        for field, names in (("arrays", self.names.arrays), ("scalars", self.names.scalars)):
            for name in names:
                if name not in used:
                    message = f"{field[:-1]} {name!r} is used by nothing; name it in call"
                    yield from self.at_key((field,), name, message)
        fills = [array.fill for array in self.kernel.arrays.values()]
        if self.kernel.init or any(isinstance(fill, FunctionFill) for fill in fills):
            return  # a function that draws data is given every axis
        moved = self._moved(used)
        for name in self.names.axes:
            if name not in used and name not in moved:
                message = (
                    f"{name!r} is used by no array, scalar, call, launch, with or threads;"
                    " use it, or remove it"
                )
                yield fault(self.places[name].key_origin(name), message)

    def _moved(self, used: set[str]) -> set[str]:
        """Sizes that move together with one that is used."""
        sizes = self.raw.child("sizes")
        zips = (entry.value.child("zip") for entry in (sizes.entries.values() if sizes else ()))
        members = (frozenset(group.entries) for group in zips if group)
        return {name for group in members if group & used for name in group}

    def _used(self) -> set[str]:
        kernel = self.kernel
        used = {*kernel.call, *kernel.returns, *self.names.made}
        used |= {array.dtype for array in kernel.arrays.values()}
        used |= {scalar.dtype for scalar in kernel.scalars.values() if scalar.dtype}
        fills = (array.fill for array in kernel.arrays.values())
        used |= {fill.like for fill in fills if isinstance(fill, LikeFill)}
        for field in ("arrays", "scalars", "implementations"):
            for formula, _ in formulas(getattr(kernel, field), self.node.child(field)):
                used |= formula.names
        for formula, _ in formulas(kernel, self.node):
            used |= formula.arrays
        return used
