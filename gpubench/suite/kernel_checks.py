"""Check one kernel: its arrays, formulas, outputs, target and parts, and what nothing uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from gpubench.errors import Fault
from gpubench.suite.arrays import Array, DeclaredTable, FormulaFill, FunctionFill, LikeFill
from gpubench.suite.expressions import MAX_FORMULA_DEPTH, Expression
from gpubench.suite.formulas import formulas
from gpubench.suite.model import Implementation, Kernel
from gpubench.suite.tree import Node, Path
from gpubench.suite.types import (
    COLUMN_DTYPES,
    DEVICE_FACTS,
    DTYPES,
    INDICES,
    ORDERS,
    RULE_NAMES,
    TARGET_FIELDS,
    TEXTS,
    is_name_of_code,
    unknown,
)
from gpubench.suite.validation import was_faults

_WITHOUT_ARRAYS = {
    "let": "in let",
    "shape": "in the shape of an array",
    "rows": "in the number of rows",
}
"""Fields whose formulas know no ``itemsize`` and ``size``, since arrays come after them."""


class KernelChecks:
    """The checks of one kernel.

    ``sound`` is the tree that ``kernel`` was made from, ``raw`` the same with the parts at fault:
    the names declared there count too, since what uses them is no second fault.
    """

    def __init__(self, name: str, kernel: Kernel, sound: Node, raw: Node) -> None:
        self.name = name
        self.kernel = kernel
        self.node = sound
        self.raw = raw
        self.parameters: dict[str, Node] = {}  # those of zips among them
        axes: list[tuple[str, Node]] = []
        for key, size in raw.fields("sizes").items():
            axes += (size.fields("zip") or {key: size}).items()
            self.parameters |= size.fields("zip")
        axes += raw.fields("parameters").items()
        self.parameters |= raw.fields("parameters")
        self.axes = tuple(name for name, _ in axes)
        self.let = raw.fields("let")
        self.names = dict.fromkeys((*self.axes, *self.let))
        """What every formula may use."""
        self.arrays = raw.fields("arrays")
        self.tables = raw.fields("tables")
        self.scalars = raw.fields("scalars")
        self.implementations = raw.fields("implementations")
        data = *self.arrays.items(), *self.tables.items(), *self.scalars.items()
        self.declared = [*axes, *self.let.items(), *data]
        self.made = _texts(raw.find("init", "returns"))
        self.indices: dict[Path, tuple[str, ...]] = {}
        """Names of the indices in formulas that fill, by the place of each ``fill``."""
        fills = ((name, array.fill) for name, array in kernel.arrays.items())
        likes = {name: [fill.like] for name, fill in fills if isinstance(fill, LikeFill)}
        self.rooted = _layers(likes).keys()  # arrays whose fill leads into no circle
        self.all_formulas = formulas(kernel)

    def faults(self) -> Iterator[Fault]:
        """Yield every fault but those of ``nothing_written`` and ``unused``."""
        counts = Counter(name for name, _ in self.declared)
        for name, node in dict(self.declared).items():  # the last of several
            if counts[name] > 1:
                message = f"{name!r} is declared twice in kernel {self.name!r}; rename one of them"
                yield node.key_fault(message)
        for name, array in self.kernel.arrays.items():
            yield from self.dtype(("arrays", name, "dtype"), array.dtype)
            yield from self.dtype(("arrays", name, "order"), array.order, ORDERS, "order")
            yield from self.fill(name, array)
        for name, table in self.kernel.tables.items():
            yield from self.table(name, table)
        for name, scalar in self.kernel.scalars.items():
            yield from self.dtype(("scalars", name, "dtype"), scalar.dtype)
        yield from self.changed_in_place()
        yield from self.arguments()
        yield from self.formulas()
        yield from self.circles()
        for name, implementation in self.kernel.implementations.items():
            yield from self.target(name)
            yield from self.cover(name, implementation)
            yield from self.divided(name, implementation)
        yield from self.outputs()
        yield from self.baseline()
        declared = self.declared[: len(self.axes)]
        yield from was_faults("axis", declared, {name for name, _ in self.declared} | {*self.made})
        yield from was_faults("implementation", self.implementations.items(), self.implementations)
        for name, node in self.implementations.items():
            yield from self.old_targets(node, self.kernel.implementations.get(name))
        for index, include in enumerate(self.kernel.include):
            path, name = ("include", index), include.implementation
            if name not in self.implementations:
                message = unknown("implementation", name, self.implementations)
                yield self.fault((*path, "implementation"), message)
            for axis, node in self.node.fields(*path, "values").items():
                if axis not in self.axes:
                    yield node.key_fault(unknown("axis", axis, self.axes))

    def fault(self, path: Path, message: str) -> Fault:
        return (self.node.find(*path) or self.node).origin.fault(message)

    def changed_in_place(self) -> Iterator[Fault]:
        """Yield what ``init`` calls changed and does not return, or what is declared elsewhere."""
        for index, name in enumerate(self.kernel.init.inout if self.kernel.init else ()):
            path = ("init", "inout", index)
            if name not in self.made:
                yield self.fault(path, unknown("array of init", name, self.made))
            elif name in self.arrays:
                message = f"array {name!r} is declared under arrays: write `intent: inout` there"
                yield self.fault(path, message)

    def dtype(
        self,
        path: Path,
        dtype: str | None,
        allowed: tuple[str, ...] = DTYPES,
        kind: str = "dtype",
    ) -> Iterator[Fault]:
        """Yield a name of NumPy's, or of a parameter that has nothing but such names."""
        if dtype is None or dtype in allowed:
            return
        axis = self.parameters.get(dtype)
        if axis is None:
            yield self.fault(path, unknown(kind, dtype, (*allowed, *self.parameters)))
            return
        default = axis.find("default")
        for value in (*_values(axis), *([default] if default else [])):
            if value.content not in allowed:
                yield value.origin.fault(unknown(kind, value.content, allowed))

    def fill(self, name: str, array: Array) -> Iterator[Fault]:
        path, fill = ("arrays", name, "fill"), array.fill
        if fill is None:
            return
        if array.intent in ("out", "scratch"):
            message = f"array {name!r} is written only; intent {array.intent} takes no fill"
            yield self.fault(path, message)
        elif name in self.made:
            yield self.fault(path, f"array {name!r} is made by init; it takes no fill")
        if isinstance(fill, FormulaFill):
            yield from self.by_formula(path, f"array {name!r}", fill, len(array.shape))
        if not isinstance(fill, LikeFill):
            return
        other, at = fill.like, (*path, "like")
        declared, candidates = self.kernel.arrays.get(other), (*self.arrays, *self.made)
        if other not in candidates:
            yield self.fault(at, unknown("array", other, candidates))
        elif declared is not None and declared.intent in ("out", "scratch"):
            message = f"array {other!r} has intent {declared.intent} and holds nothing at first"
            yield self.fault(at, f"{message}; name one that is read")
        elif name not in self.rooted:
            yield self.fault(at, f"array {name!r} is filled like itself; fill one of them")

    def by_formula(
        self, path: Path, what: str, fill: FormulaFill, dimensions: int
    ) -> Iterator[Fault]:
        """Yield an index for each dimension, called like nothing else that the formula may mean."""
        indices, declared = fill.indices or INDICES[:dimensions], dict(self.declared)
        self.indices[path] = indices
        if len(indices) != dimensions:
            message = (
                f"found {len(indices)} indices; {what} needs {dimensions}, one for each"
                " dimension: indices: [i, j] for example"
            )
            yield self.fault((*path, "indices") if fill.indices else path, message)
        for index in indices:
            if index in declared and (fill.indices or index in fill.formula.names):
                message = (
                    f"{index!r} is an index of {what} and something that the kernel"
                    " declares; name the indices otherwise, indices: [p, q] for example"
                )
                yield self.fault((*path, "formula"), message)

    def table(self, name: str, table: DeclaredTable) -> Iterator[Fault]:
        """Yield faults of a table that is read or returned, and of its columns."""
        node, is_read = self.tables[name], table.intent == "in"
        if is_read and name in self.kernel.returns:
            yield node.key_fault(f"table {name!r} is returned: give it `intent: out`")
        elif not is_read and name not in self.kernel.returns:
            message = f"table {name!r} has intent out; name it in the kernel's `returns`"
            yield node.key_fault(message)
        for field in ("rows", "columns"):
            if is_read and field not in node.entries:
                yield node.key_fault(f"table {name!r} is read: it needs {field}")
            elif not is_read and field in node.entries:
                message = f"table {name!r} is returned: it takes no {field}"
                yield node.entries[field].key_fault(message)
        if is_read and "key" in node.entries:
            yield node.entries["key"].key_fault(f"table {name!r} is read: it takes no key")
        for column_name, column in table.columns.items():
            path, fill = ("tables", name, "columns", column_name), column.fill
            what = f"column {f'{name}.{column_name}'!r}"
            yield from self.dtype((*path, "dtype"), column.dtype, COLUMN_DTYPES)
            if isinstance(fill, LikeFill):
                message = f"{what} takes no like; name one function for both"
                yield self.fault((*path, "fill"), message)
            elif isinstance(fill, FormulaFill):
                yield from self.by_formula((*path, "fill"), what, fill, 1)
            if column.dtype in TEXTS and not isinstance(fill, FunctionFill):
                message = f"{what} is {column.dtype}: it needs fill: {{function: module:name}}"
                yield self.fault((*path, "fill") if fill is not None else path, message)
            if isinstance(column.nulls, int | float) and not 0 <= column.nulls <= 1:
                message = f"nulls: found {column.nulls}; allowed: a share of the rows, from 0 to 1"
                yield self.fault((*path, "nulls"), message)

    def arguments(self) -> Iterator[Fault]:
        data = *self.arrays, *self.made, *self.tables, *self.scalars
        declared = dict.fromkeys((*data, *self.names))
        for index, name in enumerate(self.kernel.call):
            if name not in declared:
                yield self.fault(("call", index), unknown("argument", name, declared))
            elif name in self.kernel.tables and self.kernel.tables[name].intent == "out":
                message = f"table {name!r} is returned, and no argument of the call"
                yield self.fault(("call", index), message)
        for index, name in enumerate(self.kernel.returns):
            if name in declared and name not in (*self.arrays, *self.tables):
                message = f"{name!r} is declared already; name what is returned otherwise"
                yield self.fault(("returns", index), message)

    def formulas(self) -> Iterator[Fault]:
        """Yield the names in formulas that are not in their scope."""
        rules = self.names | dict.fromkeys(RULE_NAMES)
        scopes = {"exclude": rules, "skip": rules | dict.fromkeys(DEVICE_FACTS)}
        returned = _texts(self.raw.find("returns"))
        for path, formula in self.all_formulas:
            node = self.node.find(*path)
            if node is None:  # a default
                continue
            names = scopes.get(str(path[0]), self.names)
            indices = self.indices.get(path[:-1], ())
            for name, offset in formula.name_uses.items():
                if name not in names and name not in indices:
                    problem = self.not_in_scope(name, (*names, *indices))
                    yield node.formula_fault(problem, offset)
            without = (where for field, where in _WITHOUT_ARRAYS.items() if field in path[:3:2])
            where = next(without, None)
            for name, offset in formula.array_uses.items():
                if where:
                    problem = f"itemsize and size are not known {where}"
                elif name in self.arrays:
                    continue
                elif name in (*self.made, *returned):
                    problem = f"the shape of {name!r} is not declared; add it to arrays"
                else:
                    problem = unknown("array", name, self.arrays)
                yield node.formula_fault(problem, offset)

    def not_in_scope(self, name: str, scope: tuple[str, ...]) -> str:
        """Return what is wrong with a name that a formula uses though it is not in its
        ``scope``."""
        if name in self.arrays or name in self.made:
            return f"{name!r} is an array; formulas use itemsize({name}) or size({name})"
        if name in self.tables or name in self.scalars:
            kind = "table" if name in self.tables else "scalar"
            return f"{name!r} is a {kind}; formulas use sizes and parameters"
        if name in DEVICE_FACTS:
            return f"{name!r} is a fact of the device; only skip may use it"
        if name in RULE_NAMES:
            return f"{name!r} is known only to exclude and skip"
        if name in DTYPES or any(name in _texts(axis) for axis in self.parameters.values()):
            return f"unknown name {name!r}; text is written in quotes: '{name}'"
        return unknown("name", name, scope)

    def circles(self) -> Iterator[Fault]:
        """Yield a name of ``let`` that leads back to itself, or over more names than anybody
        follows."""
        values = self.kernel.let.items()
        layers = _layers({n: v.names if isinstance(v, Expression) else () for n, v in values})
        for name in self.kernel.let:
            if layers.get(name, MAX_FORMULA_DEPTH + 1) > MAX_FORMULA_DEPTH:
                message = (
                    f"{name!r} leads back to itself, or over more than {MAX_FORMULA_DEPTH} "
                    "other names; a name of let is over axes, or over names that are"
                )
                yield self.fault(("let", name), message)
                return

    def outputs(self) -> Iterator[Fault]:
        """Yield what implementations return by name is written by the others; outputs that
        ``check`` names are there, and one at least is compared."""
        written = self.kernel.written()
        for implementation, declared in self.kernel.implementations.items():
            for index, name in enumerate(declared.returns):
                if name not in written:
                    path = ("implementations", implementation, "returns", index)
                    yield self.fault(path, unknown("written array", name, written))
        outputs = [*written, *self.kernel.returns]
        for name, node in self.node.fields("check", "outputs").items():
            if name in self.kernel.arrays and name not in outputs:
                intent = self.kernel.arrays[name].intent
                message = f"array {name!r} has intent {intent}; outputs are {', '.join(outputs)}"
                yield node.key_fault(message)
            elif name not in (*outputs, *self.arrays):
                yield node.key_fault(unknown("output", name, outputs))
        if outputs and self.kernel.check.uncompared().keys() >= set(outputs):
            message = "no output is compared, so that a wrong kernel would get a time; compare one"
            yield self.fault(("check", "outputs"), message)

    def target(self, name: str) -> Iterator[Fault]:
        """Exactly one way to name what is called, and only what goes with it."""
        node = self.implementations[name]
        given = [field for field in TARGET_FIELDS if field in node.entries]
        if len(given) != 1:
            needed = f"implementation {name!r} has exactly one of {', '.join(TARGET_FIELDS)}"
            if not given:
                yield node.key_fault(f"{needed}; found none")
            for extra in given[1:]:
                yield node.entries[extra].key_fault(f"{needed}; found {' and '.join(given)}")
            return
        (kind,) = given
        if kind == "source" and "entry" not in node.entries:
            yield node.entries[kind].key_fault("missing field 'entry' beside source")
        for field, kinds in (("entry", ("source",)), ("with", ("factory", "source"))):
            if field in node.entries and kind not in kinds:
                message = f"{field} goes with {' or '.join(kinds)}; found {kind}"
                yield node.entries[field].key_fault(message)

    def old_targets(self, node: Node, implementation: Implementation | None) -> Iterator[Fault]:
        """Functions and sources that an implementation had before, of its own kind."""
        was = node.find("was")
        if was is None or implementation is None:
            return
        allowed = "a name, or module:name of a function"
        if implementation.source is not None:
            allowed = "a name, or the path of a source"
        elif implementation.parts:
            allowed = "a name"
        for old in was.items or (was,):
            text = str(old.content)
            is_path = is_name_of_code(text) and ":" not in text
            is_fitting = is_path if implementation.source is not None else not is_path
            if is_name_of_code(text) and (implementation.parts or not is_fitting):
                yield old.origin.fault(f"was: found {text!r}; allowed here: {allowed}")

    def divided(self, name: str, implementation: Implementation) -> Iterator[Fault]:
        """Parts that can take a portion each, and arrays that can be cut along one size."""
        path, split = ("implementations", name), implementation.split
        if implementation.parts is None or split is None:
            if implementation.parts or split:
                yield self.fault(path, "parts and split go together; give both or none")
            return
        whole = [n for n, other in self.kernel.implementations.items() if not other.parts]
        for index, part in enumerate(implementation.parts):
            if part not in whole:
                yield self.fault((*path, "parts", index), unknown("implementation", part, whole))
            elif self.kernel.implementations[part].cast:
                message = f"{part!r} casts what it is given, and a portion is given as it is"
                yield self.fault((*path, "parts", index), f"{message}; name another part")
        others = ("backend", "launch", "threads", "returns", "options", "cast")
        for field in (field for field in others if field in self.implementations[name].entries):
            at = self.implementations[name].entries[field]
            yield at.key_fault(f"parts have their own; remove {field}")
        sizes = [axis for axis in self.axes if axis not in self.parameters]
        if split not in sizes:
            yield self.fault((*path, "split"), unknown("size", split, sizes))
        elif self.kernel.returns or self.kernel.tables:
            message = "what is returned, or a table, is not divided; let it write arrays"
            yield self.fault((*path, "split"), message)
        elif self.kernel.init is not None and self.kernel.init.inout:
            message = "what init makes is not divided; declare under arrays what a run writes"
            yield self.fault((*path, "split"), message)
        for array, declared in self.kernel.arrays.items():
            cut = [str(extent).strip() == split for extent in declared.shape]
            rest = (e for e, is_cut in zip(declared.shape, cut, strict=True) if not is_cut)
            used = (e.names for e in rest if isinstance(e, Expression))
            if sum(cut) > 1 or any(split in self.kernel.axes_behind(names) for names in used):
                message = f"array {array!r} cannot be cut: {split} is one extent of it, or none"
                yield self.fault((*path, "split"), message)
            elif not any(cut) and declared.intent in ("out", "inout"):
                message = f"array {array!r} is written and has no extent {split}: who writes it?"
                yield self.fault((*path, "split"), message)

    def cover(self, name: str, implementation: Implementation) -> Iterator[Fault]:
        """Yield a grid that covers needs something to cover."""
        launch, raw = implementation.launch, self.implementations[name].fields("launch")
        if launch is None or "cover" not in launch.grids() or "over" in raw:
            return
        intents = [array.find("intent") for array in self.arrays.values()]
        if not (any(intents) or self.kernel.returns or self.kernel.written()):
            return  # a kernel that writes nothing is told as that
        if not any(intent and intent.content in ("out", "inout") for intent in intents):
            at = raw.get("grid") or self.implementations[name].entries["launch"]
            yield at.key_fault("cover needs an array with intent out or inout, or over: [...]")

    def baseline(self) -> Iterator[Fault]:
        names, baseline = tuple(self.implementations), self.kernel.baseline
        if baseline in names:
            return
        if "baseline" in self.raw.entries:
            yield self.fault(("baseline",), unknown("implementation", baseline, names))
        else:
            message = (
                f"kernel {self.name!r} has no implementation 'numpy' to measure against;"
                f" write baseline: and one of {', '.join(names)}"
            )
            yield self.raw.entries["implementations"].key_fault(message)

    def nothing_written(self) -> Iterator[Fault]:
        """Yield a kernel without outputs: any other would be as right."""
        if self.kernel.returns or self.kernel.written():
            return
        message = (
            f"kernel {self.name!r} writes nothing that could be checked: give the arrays that it"
            " writes `intent: out` or `inout`, or name what it returns in `returns`"
        )
        yield self.raw.key_fault(message)

    def unused(self, preset: str | None) -> Iterator[Fault]:
        """Axes, arrays, scalars and constants that nothing uses: no case would differ by them."""
        kernel = self.kernel
        fills = (one.fill for one in kernel.drawn().values())
        used = {*kernel.call, *kernel.returns, *self.made, *kernel.dtypes()}
        used |= {fill.like for fill in fills if isinstance(fill, LikeFill)}
        anywhere = set(used)
        for path, formula in self.all_formulas:
            used |= formula.arrays
            anywhere |= formula.names
            if path[0] in ("arrays", "tables", "scalars", "implementations", "memory_limit"):
                used |= formula.names
        kinds = (("array", self.arrays), ("table", self.tables), ("scalar", self.scalars))
        for kind, nodes in kinds:
            for name, node in nodes.items():
                if name not in used:
                    yield node.key_fault(f"{kind} {name!r} is used by nothing; name it in call")
        if kernel.drawing_functions():  # which are given every axis and constant
            return
        for name, node in self.let.items():
            if name not in anywhere and preset is None:  # which may replace what uses it
                message = f"{name!r} is used by no formula and not in call; use it, or remove it"
                yield node.key_fault(message)
        used |= kernel.axes_behind(used)
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


def _layers(uses: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """Over how many others each name leads to those that use none; without names that lead into a
    circle."""
    sorter, layers, layer = TopologicalSorter(uses), dict[str, int](), 0
    with suppress(CycleError):  # it goes on to what is in no circle
        sorter.prepare()
    while ready := sorter.get_ready():
        layers |= dict.fromkeys(ready, layer)
        sorter.done(*ready)
        layer += 1
    return layers


def _values(axis: Node | None) -> tuple[Node, ...]:
    """Items of a list, or of the ``values`` of an axis that is written as a mapping."""
    return (axis.find("values") or axis).items if axis else ()


def _texts(axis: Node | None) -> tuple[str, ...]:
    return tuple(item.content for item in _values(axis) if isinstance(item.content, str))
