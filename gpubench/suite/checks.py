"""What one field says about another: names, kinds of implementations, the baseline, the presets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from gpubench.errors import Fault
from gpubench.names import pattern_fault
from gpubench.suite.expressions import MAX_DEPTH, Expression
from gpubench.suite.model import (
    Array,
    Column,
    FormulaFill,
    FunctionFill,
    Implementation,
    Kernel,
    LikeFill,
    formulas,
)
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node, Path
from gpubench.suite.types import (
    COLUMN_DTYPES,
    DEVICE_FACTS,
    DTYPES,
    INDICES,
    RULE_NAMES,
    TARGET_FIELDS,
    TEXTS,
    suggestion,
    unknown,
)
from gpubench.suite.validation import Validated


def check_suite(validated: Validated, root: Node, preset: str | None) -> Iterator[Fault]:
    """Faults between the fields of a suite; ``root`` is the tree with what is unsound still in it,
    ``preset`` the one that was applied.

    What is missing (outputs, a use of an axis, array or scalar) is told only where nothing else is
    wrong: what is wrong may have been it.
    """
    yield from _kernels_or_pairs(root)
    sound, raw = validated.sound.fields("kernels"), root.fields("kernels")
    for name, kernel in (validated.suite.kernels if validated.suite else {}).items():
        checks = _KernelChecks(name, kernel, sound[name], raw[name])
        faults = list(islice(checks.faults(), MAX_FAULTS + 1))
        yield from faults
        if not faults and not validated.faults:
            yield from checks.nothing_written()
            yield from checks.unused(preset)


def _kernels_or_pairs(root: Node) -> Iterator[Fault]:
    kernels, pairs = root.find("kernels"), root.find("pairs")
    if kernels and pairs:
        yield pairs.key_fault("both kernels and pairs; a suite has one of them")
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
        baseline, candidate = pair.find("baseline"), pair.find("candidate")
        if name is None and baseline and candidate:
            fault = pattern_fault(str(baseline.content), str(candidate.content))
            if fault:
                yield baseline.origin.fault(fault)
        elif baseline and candidate and baseline.content == candidate.content:
            yield candidate.origin.fault(
                f"{candidate.content!r} is compared with itself; name another benchmark"
            )


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
                yield overlay.key_fault(unknown("kernel", name, kernels))


def _overlay(overlay: Node, kernels: list[Node], where: str) -> Iterator[Fault]:
    """Names in a preset, or in its part for one kernel, that none of the kernels declares."""
    launched = {
        name
        for kernel in kernels
        for name, implementation in kernel.fields("implementations").items()
        if "launch" in implementation.entries
    }
    if "launch" in overlay.entries and not launched:
        message = f"no implementation of {where} declares a launch"
        yield overlay.entries["launch"].key_fault(message)
    for field in ("sizes", "parameters", "let", "arrays", "scalars", "implementations"):
        kind = "constant" if field == "let" else field[:-1]
        declared = [item for kernel in kernels for item in kernel.fields(field).items()]
        names = dict.fromkeys(name for name, _ in declared)
        for name, change in overlay.fields(field).items():
            if name not in names:
                hint = suggestion(name, names)
                groups = (group for group, size in declared if name in size.fields("zip"))
                if group := next(groups, None):
                    hint = f"; it moves together with others: write {group}: {{zip: ...}}"
                yield change.key_fault(f"{kind} {name!r} is not declared by {where}{hint}")
            elif field == "implementations" and name not in launched and "launch" in change.entries:
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
            item  # zipped axes taken apart
            for key, size in raw.fields("sizes").items()
            for item in (size.fields("zip") or {key: size}).items()
        ]
        zipped = (size.fields("zip") for size in raw.fields("sizes").values())
        self.parameters = {n: axis for axes in zipped for n, axis in axes.items()}
        self.parameters |= raw.fields("parameters")
        axes = [*sizes, *raw.fields("parameters").items()]
        self.axes = tuple(name for name, _ in axes)
        self.let = raw.fields("let")
        self.names = (*self.axes, *self.let)
        """What every formula may use."""
        self.arrays = raw.fields("arrays")
        self.tables = raw.fields("tables")
        self.scalars = raw.fields("scalars")
        self.implementations = raw.fields("implementations")
        data = *self.arrays.items(), *self.tables.items(), *self.scalars.items()
        self.declared = [*axes, *self.let.items(), *data]
        self.made = _texts(raw.find("init", "returns"))
        self.rooted: set[str] = set()  # arrays whose fill is seen to lead into no circle

    def faults(self) -> Iterator[Fault]:
        """Every fault but those of ``unused``."""
        counts = Counter(name for name, _ in self.declared)
        for name, node in dict(self.declared).items():  # the last of several
            if counts[name] > 1:
                message = f"{name!r} is declared twice in kernel {self.name!r}; rename one of them"
                yield node.key_fault(message)
        for name, array in self.kernel.arrays.items():
            yield from self.dtype(("arrays", name, "dtype"), array.dtype)
            yield from self.fill(name, array)
        yield from self.tables_and_columns()
        for name, scalar in self.kernel.scalars.items():
            yield from self.dtype(("scalars", name, "dtype"), scalar.dtype)
        yield from self.arguments()
        yield from self.formulas()
        for name, implementation in self.kernel.implementations.items():
            yield from self.target(name)
            yield from self.cover(name, implementation)
            yield from self.returned(name, implementation)
            yield from self.divided(name, implementation)
        yield from self.circles()
        yield from self.outputs()
        yield from self.baseline()
        yield from self.includes()

    def fault(self, path: Path, message: str) -> Fault:
        return (self.node.find(*path) or self.node).origin.fault(message)

    def fill(self, name: str, array: Array) -> Iterator[Fault]:
        path = ("arrays", name, "fill")
        if array.fill is None:
            return
        if array.intent in ("out", "scratch"):
            message = f"array {name!r} is written only; intent {array.intent} takes no fill"
            yield self.fault(path, message)
        elif name in self.made:
            yield self.fault(path, f"array {name!r} is made by init; it takes no fill")
        elif isinstance(array.fill, FormulaFill):
            yield from self.indices(path, f"array {name!r}", array.fill, len(array.shape))
        if isinstance(array.fill, LikeFill):
            yield from self.like((*path, "like"), name, array.fill.like)

    def indices(self, path: Path, what: str, fill: FormulaFill, dimensions: int) -> Iterator[Fault]:
        """An index for each dimension, called like nothing else that the formula may mean."""
        indices, declared = fill.indices or INDICES[:dimensions], dict(self.declared)
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
        scope = (*self.names, *indices)
        yield from self.scope((*path, "formula"), fill.formula, scope)

    def like(self, path: Path, name: str, other: str) -> Iterator[Fault]:
        candidates = (*self.arrays, *self.made)
        if other not in candidates:
            yield self.fault(path, unknown("array", other, candidates))
            return
        declared = self.kernel.arrays.get(other)
        if declared is not None and declared.intent in ("out", "scratch"):
            message = f"array {other!r} has intent {declared.intent} and holds nothing at first"
            yield self.fault(path, f"{message}; name one that is read")
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

    def tables_and_columns(self) -> Iterator[Fault]:
        """What tables that are read and tables that are returned have to say, and their columns."""
        for name, table in self.kernel.tables.items():
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
            for column, declared in table.columns.items():
                at = ("tables", name, "columns", column)
                yield from self.dtype((*at, "dtype"), declared.dtype, COLUMN_DTYPES)
                yield from self.column(at, f"column {f'{name}.{column}'!r}", declared)

    def column(self, path: Path, what: str, column: Column) -> Iterator[Fault]:
        """What fills a column."""
        fill = column.fill
        if isinstance(fill, LikeFill):
            message = f"{what} takes no like; name one function for both"
            yield self.fault((*path, "fill"), message)
        elif isinstance(fill, FormulaFill):
            yield from self.indices((*path, "fill"), what, fill, 1)
        if column.dtype in TEXTS and not isinstance(fill, FunctionFill):
            message = f"{what} is {column.dtype}: it needs fill: {{function: module:name}}"
            yield self.fault((*path, "fill") if fill is not None else path, message)
        if isinstance(column.nulls, int | float) and not 0 <= column.nulls <= 1:
            message = f"nulls: found {column.nulls}; allowed: a share of the rows, from 0 to 1"
            yield self.fault((*path, "nulls"), message)

    def dtype(
        self, path: Path, dtype: str | None, allowed: tuple[str, ...] = DTYPES
    ) -> Iterator[Fault]:
        """A name of NumPy's, or of a parameter that has nothing but such names."""
        if dtype is None or dtype in allowed:
            return
        if dtype not in self.parameters:
            yield self.fault(path, unknown("dtype", dtype, (*allowed, *self.parameters)))
        axis = self.parameters.get(dtype)
        default = axis.find("default") if axis else None
        for value in (*_values(axis), *([default] if default else [])):
            if value.content not in allowed:
                yield value.origin.fault(unknown("dtype", value.content, allowed))

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
        """Names in formulas that are not in their scope."""
        kernel, names, rules = self.kernel, self.names, (*self.names, *RULE_NAMES)
        yield from self.scope(("let",), kernel.let, names, without_arrays="in let")
        for name, array in kernel.arrays.items():
            path, where = ("arrays", name, "shape"), "in the shape of an array"
            yield from self.scope(path, array.shape, names, without_arrays=where)
        for name, table in kernel.tables.items():
            path, where = ("tables", name, "rows"), "in the number of rows"
            yield from self.scope(path, table.rows, names, without_arrays=where)
            for column, declared in table.columns.items():
                at = ("tables", name, "columns", column, "nulls")
                yield from self.scope(at, declared.nulls, names)
        yield from self.scope(("scalars",), kernel.scalars, names)
        yield from self.scope(("implementations",), kernel.implementations, names)
        yield from self.scope(("work",), kernel.work, names)
        yield from self.scope(("memory_limit",), kernel.memory_limit, names)
        yield from self.scope(("include",), kernel.include, names)
        yield from self.scope(("exclude",), kernel.exclude, rules)
        yield from self.scope(("skip",), kernel.skip, (*rules, *DEVICE_FACTS))

    def scope(
        self, path: Path, part: object, names: tuple[str, ...], without_arrays: str = ""
    ) -> Iterator[Fault]:
        in_scope = frozenset(names)
        for inner, formula in formulas(part):
            node = self.node.find(*path, *inner)
            if node is None:  # a default
                continue
            for name, offset in formula.name_uses.items():
                if name not in in_scope:
                    yield node.formula_fault(self.not_in_scope(name, names), offset)
            for name, offset in formula.array_uses.items():
                if without_arrays:
                    problem = f"itemsize and size are not known {without_arrays}"
                elif name in self.arrays:
                    continue
                elif name in (*self.made, *_texts(self.raw.find("returns"))):
                    problem = f"the shape of {name!r} is not declared; add it to arrays"
                else:
                    problem = unknown("array", name, self.arrays)
                yield node.formula_fault(problem, offset)

    def not_in_scope(self, name: str, scope: tuple[str, ...]) -> str:
        """What is wrong with a name that a formula uses though it is not in its ``scope``."""
        if name in self.arrays or name in self.made:
            return f"{name!r} is an array; formulas use itemsize({name}) or size({name})"
        if name in self.tables:
            return f"{name!r} is a table; formulas use sizes and parameters"
        if name in self.scalars:
            return f"{name!r} is a scalar; formulas use sizes and parameters"
        if name in DEVICE_FACTS:
            return f"{name!r} is a fact of the device; only skip may use it"
        if name in RULE_NAMES:
            return f"{name!r} is known only to exclude and skip"
        if name in DTYPES or any(name in _texts(axis) for axis in self.parameters.values()):
            return f"unknown name {name!r}; text is written in quotes: '{name}'"
        return unknown("name", name, scope)

    def circles(self) -> Iterator[Fault]:
        """A name of ``let`` that leads back to itself, or over more names than anybody follows."""
        depths: dict[str, int] = {}

        def depth(name: str, chain: tuple[str, ...]) -> int:
            """How many names lie between this one and the axes; counts to a little over the most
            that is allowed."""
            value = self.kernel.let.get(name)
            if name in chain or len(chain) > MAX_DEPTH:
                return MAX_DEPTH + 1
            if name not in depths and isinstance(value, Expression):
                inner = (depth(used, (*chain, name)) for used in value.names)
                depths[name] = 1 + max(inner, default=0)
            return depths.get(name, 0)

        for name in self.kernel.let:
            if depth(name, ()) > MAX_DEPTH:
                message = (
                    f"{name!r} leads back to itself, or over more than {MAX_DEPTH} other names;"
                    " a name of let is over axes, or over names that are"
                )
                yield self.fault(("let", name), message)
                return

    def outputs(self) -> Iterator[Fault]:
        """Outputs that ``check`` names are there, and one at least is compared."""
        outputs = [*self.kernel.written(), *self.kernel.returns]
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
        others = ("backend", "launch", "threads", "returns", "options")
        for field in (field for field in others if field in self.implementations[name].entries):
            at = self.implementations[name].entries[field]
            yield at.key_fault(f"parts have their own; remove {field}")
        sizes = [axis for axis in self.axes if axis not in self.parameters]
        if split not in sizes:
            yield self.fault((*path, "split"), unknown("size", split, sizes))
        elif self.kernel.returns or self.kernel.tables:
            message = "what is returned, or a table, is not divided; let it write arrays"
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
        """A grid that covers needs something to cover."""
        launch, raw = implementation.launch, self.implementations[name].fields("launch")
        if launch is None or "cover" not in launch.grids() or "over" in raw:
            return
        intents = (array.find("intent") for array in self.arrays.values())
        if not any(intent and intent.content in ("out", "inout") for intent in intents):
            at = raw.get("grid") or self.implementations[name].entries["launch"]
            yield at.key_fault("cover needs an array with intent out or inout, or over: [...]")

    def returned(self, name: str, implementation: Implementation) -> Iterator[Fault]:
        """What an implementation returns by name is written by the others."""
        written = self.kernel.written()
        for index, array in enumerate(implementation.returns):
            if array not in written:
                path = ("implementations", name, "returns", index)
                yield self.fault(path, unknown("written array", array, written))

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

    def includes(self) -> Iterator[Fault]:
        for index, include in enumerate(self.kernel.include):
            path, name = ("include", index), include.implementation
            if name not in self.implementations:
                message = unknown("implementation", name, self.implementations)
                yield self.fault((*path, "implementation"), message)
            values = self.node.find(*path, "values")
            for axis, node in values.entries.items() if values else ():
                if axis not in self.axes:
                    yield node.key_fault(unknown("axis", axis, self.axes))

    def nothing_written(self) -> Iterator[Fault]:
        """A kernel without outputs: any other would be as right."""
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
        fills = (one.fill for one in kernel.drawn())
        used = {*kernel.call, *kernel.returns, *self.made, *kernel.dtypes()}
        used |= {fill.like for fill in fills if isinstance(fill, LikeFill)}
        anywhere = set(used)
        for path, formula in formulas(kernel):
            used |= formula.arrays
            anywhere |= formula.names
            if path[0] in ("arrays", "tables", "scalars", "implementations", "memory_limit"):
                used |= formula.names
        kinds = (("array", self.arrays), ("table", self.tables), ("scalar", self.scalars))
        for kind, nodes in kinds:
            for name, node in nodes.items():
                if name not in used:
                    yield node.key_fault(f"{kind} {name!r} is used by nothing; name it in call")
        if kernel.is_drawn_by_functions():  # which are given every axis and constant
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


def _values(axis: Node | None) -> tuple[Node, ...]:
    """Items of a list, or of the ``values`` of an axis that is written as a mapping."""
    return (axis.find("values") or axis).items if axis else ()


def _texts(axis: Node | None) -> tuple[str, ...]:
    return tuple(item.content for item in _values(axis) if isinstance(item.content, str))
