"""What the source of a function tells a first suite: the backend, and which arguments are arrays,
with dimensions, dtype, and whether the function writes them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gpubench.backends import registry
from gpubench.errors import KernelError
from gpubench.plan.source import decorator_names, find_definition
from gpubench.suite.types import meant_reference

UFUNC_DECORATORS = frozenset({"vectorize", "guvectorize"})
"""Decorators whose function gets elements, and not the arrays of a call."""
WRITING_METHODS = frozenset({"fill", "sort", "partition", "put"})
"""Methods of an array that change it."""
SIZE_ATTRIBUTES = frozenset({"shape", "size", "ndim", "dtype", "strides"})
"""Attributes that only arrays have, and that read none of their elements."""
ARRAY_TYPES = ("NDArray", "ndarray", "ArrayLike")
"""Words of annotations of arrays, as NumPy names them."""
ANNOTATION_DTYPES = frozenset(
    {"bool_", "complex64", "complex128", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
"""NumPy's names of types of numbers that an annotation may give."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What the source tells of one argument; ``None`` where it does not tell."""

    name: str
    is_array: bool | None = None
    dimensions: int | None = None
    dtype: str | None = None
    """By its annotation."""
    is_read: bool = False
    is_written: bool = False
    default: bool | int | float | None = None
    """What a scalar is where a caller leaves it out."""
    indices: tuple[frozenset[str], ...] = ()
    """Variables that index an array, by its dimensions: those that stand alone, as ``i`` and ``j``
    in ``a[i, j]``."""


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """What the source tells of a function."""

    reference: str
    backend: str
    parameters: tuple[Parameter, ...]
    launch_dimensions: int
    """Dimensions of the grid that a CUDA kernel asks for; 1 where it does not say."""
    summary: str
    """The first line of its docstring; empty without one."""

    @property
    def name(self) -> str:
        return self.reference.partition(":")[2]


def read_function(reference: str) -> FunctionSource:
    """Read what ``module:name`` is, without importing it.

    Raises ``KernelError`` where there is no such module or name, where it is no function that is
    written in Python, and where it does not take its arguments in order.
    """
    module, _, name = reference.partition(":")
    if not module or not name:
        near = meant_reference(reference)
        write = f"did you mean {near}?" if near else "write module:function, as in mine:add"
        raise KernelError(f"{reference!r} names no function: {write}")
    definition = find_definition(reference)
    if not isinstance(definition, ast.FunctionDef):
        raise KernelError(
            f"{reference} is no function whose source can be read: name one that is written with "
            "def in a .py file, or write the suite by hand (docs/suite-format.md)"
        )
    taken = definition.args
    if taken.vararg or taken.kwarg or taken.kwonlyargs:
        raise KernelError(
            f"{reference} takes more than arguments in order: a kernel gets its arguments one "
            "after another; write a function around it that does"
        )
    parameters = (*taken.posonlyargs, *taken.args)
    if not parameters:
        raise KernelError(
            f"{reference} takes no argument: a kernel writes an array that it is given"
        )
    uses = _Uses({each.arg for each in parameters})
    uses.look_through(definition)
    defaults = (None,) * (len(parameters) - len(taken.defaults)) + (*taken.defaults,)
    found = (
        _parameter(each, default, uses) for each, default in zip(parameters, defaults, strict=True)
    )
    summary = (ast.get_docstring(definition) or "").partition("\n")[0].strip()
    dimensions = uses.launch_dimensions
    return FunctionSource(reference, _find_backend(definition), (*found,), dimensions, summary)


def join_parameters(one: Parameter, other: Parameter) -> Parameter:
    """Return what two functions that are called alike tell of one argument."""
    is_array = one.is_array if one.is_array is not None else other.is_array
    return Parameter(
        one.name,
        other.is_array or is_array,
        one.dimensions or other.dimensions,
        one.dtype or other.dtype,
        one.is_read or other.is_read,
        one.is_written or other.is_written,
        one.default if one.default is not None else other.default,
        one.indices or other.indices,
    )


def _find_backend(definition: ast.FunctionDef) -> str:
    """Return the backend by a function's decorators; NumPy's without one that compiles."""
    backends = registry.by_decorator() if definition.decorator_list else {}
    for names in decorator_names(definition):
        for name in names:
            if name in UFUNC_DECORATORS:
                raise KernelError(
                    f"{definition.name} is made a ufunc by @{name}: write a function around it "
                    "that gets the array to write, as in np_like(a, out): my_ufunc(a, out)"
                )
            if name in backends:
                return backends[name]
    return "numpy"


class _Uses:
    """How a function's body uses its arguments."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.arrays: set[str] = set()
        self.dimensions: dict[str, int] = {}
        self.indices: dict[str, list[set[str]]] = {}
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.launch_dimensions = 1
        self._seen: set[int] = set()
        """Nodes of names whose use is known by what stands around them."""

    def look_through(self, definition: ast.FunctionDef) -> None:
        for statement in definition.body:
            for node in ast.walk(statement):  # what stands around a name comes before it
                self._look(node)

    def _look(self, node: ast.AST) -> None:
        match node:
            case ast.AugAssign(target=target):
                self._change(target)
            case ast.Subscript(value=ast.Name(id=name) as array) if name in self.names:
                self._index(node, array)
            case ast.Attribute(value=ast.Name(id=name) as array, attr=attribute):
                if name in self.names:
                    self._use_attribute(array, attribute)
            case ast.Call():
                self._look_at_call(node)
            case ast.Name(id=name, ctx=ast.Load()) if name in self.names:
                if id(node) not in self._seen:
                    self.read.add(name)

    def _change(self, target: ast.expr) -> None:
        """``b += a`` of NumPy changes an array in place, as ``b[i] += a[i]`` does."""
        array = target.value if isinstance(target, ast.Subscript) else target
        if isinstance(array, ast.Name) and array.id in self.names:
            self.read.add(array.id)
            self.written.add(array.id)

    def _index(self, node: ast.Subscript, array: ast.Name) -> None:
        self.arrays.add(array.id)
        self._seen.add(id(array))
        (self.read if isinstance(node.ctx, ast.Load) else self.written).add(array.id)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        # `b[:]` and `b[...]` are all of an array, whatever its dimensions.
        if not all(isinstance(each, ast.Slice) or _is_ellipsis(each) for each in indices):
            self.dimensions[array.id] = max(self.dimensions.get(array.id, 0), len(indices))
            known = self.indices.setdefault(array.id, [])
            known += (set[str]() for _ in indices[len(known) :])
            for names, each in zip(known, indices, strict=False):
                names |= {each.id} if isinstance(each, ast.Name) else set()

    def _use_attribute(self, array: ast.Name, attribute: str) -> None:
        if attribute in SIZE_ATTRIBUTES | WRITING_METHODS:
            self.arrays.add(array.id)
            self._seen.add(id(array))
        if attribute in WRITING_METHODS:
            self.written.add(array.id)

    def _look_at_call(self, call: ast.Call) -> None:
        called = ast.unparse(call.func)
        for keyword in call.keywords:
            if keyword.arg == "out":
                self._write(keyword.value)
        if call.args and called in ("np.copyto", "numpy.copyto"):
            self._write(call.args[0])
        if call.args and ".atomic." in f".{called}":
            self._write(call.args[0])
            self.read |= self._names(call.args[0])
        if called == "len":
            self.arrays |= self._names(call)
        if called in ("cuda.grid", "cuda.gridsize") and call.args:
            count = getattr(call.args[0], "value", 1)
            if count in (1, 2, 3):
                self.launch_dimensions = max(self.launch_dimensions, int(count))

    def _write(self, array: ast.expr) -> None:
        names = self._names(array)
        self.arrays |= names
        self.written |= names
        self._seen |= {id(node) for node in ast.walk(array) if isinstance(node, ast.Name)}

    def _names(self, node: ast.AST) -> set[str]:
        return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & self.names


def _parameter(argument: ast.arg, default: ast.expr | None, uses: _Uses) -> Parameter:
    name = argument.arg
    annotation = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    is_array: bool | None = None
    if name in uses.arrays or any(word in annotation for word in ARRAY_TYPES):
        is_array = True
    elif annotation in ("int", "float", "bool", "complex") or _number(default) is not None:
        is_array = False
    elif name in uses.written:  # `y += alpha * x` of a whole array
        is_array = True
    return Parameter(
        name,
        is_array,
        uses.dimensions.get(name),
        _find_dtype(annotation) if is_array else None,
        name in uses.read,
        name in uses.written,
        _number(default),
        tuple(map(frozenset, uses.indices.get(name, ()))),
    )


def _number(default: ast.expr | None) -> bool | int | float | None:
    value = default.value if isinstance(default, ast.Constant) else None
    return value if isinstance(value, bool | int | float) else None


def _find_dtype(annotation: str) -> str | None:
    """Return NumPy's name of the type of numbers that an annotation names."""
    words = re.findall(r"[A-Za-z_]\w*", annotation)
    return next((word for word in words if word in ANNOTATION_DTYPES), None)


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
