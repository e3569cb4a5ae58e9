"""One kernel, several forms: a function joins the suite whose kernel has its baseline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import SuiteError
from gpubench.files import replace_file, replace_text
from gpubench.scaffold.adding import BLOCKS, AddError, suite_name
from gpubench.scaffold.function_source import FunctionSource
from gpubench.suite.folder import suite_paths
from gpubench.suite.loading import load_suites
from gpubench.suite.reader import read_suite_file
from gpubench.suite.tree import Node


@dataclass(frozen=True, slots=True)
class DeclaredKernel:
    """A kernel of a suite file."""

    path: Path
    suite: str
    name: str
    node: Node

    @property
    def functions(self) -> dict[str, str]:
        """References of its implementations, by name."""
        implementations = self.node.fields("implementations").items()
        found = ((name, node.find("function")) for name, node in implementations)
        return {name: str(function.content) for name, function in found if function is not None}


def find_kernel_of(baseline: str, folder: Path) -> DeclaredKernel | None:
    """Return the first kernel of a folder's suites that is held against this function; ``None``
    without one, and where a file cannot be read."""
    if not folder.is_dir():
        return None
    for path in suite_paths(folder, nested=True):
        root, _ = read_suite_file(path)
        named = root.find("suite") if root else None
        for name, node in root.fields("kernels").items() if root and named else ():
            kernel = DeclaredKernel(path, str(named.content) if named else "", name, node)
            declared = node.find("baseline")
            is_baseline = kernel.functions.get(str(declared.content) if declared else "numpy")
            if is_baseline == baseline:
                return kernel
    return None


def join_kernel(kernel: DeclaredKernel, function: FunctionSource) -> str:
    """Add a function to a kernel as one more implementation, and return the name it gets there.

    The rest of the file stays as it is, comments too. Raises ``AddError``, with the file unchanged,
    where the kernel has it, calls with another number of arguments, or would have faults.
    """
    functions = kernel.functions
    if has := next((name for name, known in functions.items() if known == function.reference), ""):
        raise AddError(f"{function.reference} is the implementation {has!r} of {kernel.path}")
    called = kernel.node.find("call")
    if called is not None and len(called.items) != len(function.parameters):
        raise AddError(
            f"{function.reference} takes {len(function.parameters)} arguments, and "
            f"{kernel.path} calls {kernel.name!r} with {len(called.items)}; give --name for a "
            "suite of its own"
        )
    name = function.backend if function.backend not in functions else suite_name(function.name)
    if name in functions:
        raise AddError(f"{kernel.path} has an implementation {name!r} already: add it by hand")
    before = kernel.path.read_bytes()
    replace_text(kernel.path, _with_implementation(kernel, function, name))
    try:
        load_suites([kernel.path])
    except SuiteError as error:
        replace_file(kernel.path, before)
        raise AddError(f"{kernel.path} is kept, since it would have faults:\n{error}") from None
    return name


def _with_implementation(kernel: DeclaredKernel, function: FunctionSource, name: str) -> str:
    """Return the text of the suite with one more implementation."""
    lines = kernel.path.read_text(encoding="utf-8").splitlines(keepends=True)
    implementations = kernel.node.find("implementations")
    first = next(iter(kernel.node.fields("implementations").values()), None)
    key = implementations.key if implementations else None
    if key is None or first is None or first.key is None or first.key.line <= key.line:
        raise AddError(f"{kernel.path} writes its implementations on one line: add it by hand")
    indent = " " * (first.key.column - 1)
    added = [f"{indent}{name}:", f"{indent}  function: {function.reference}"]
    if name != function.backend:
        added.append(f"{indent}  backend: {function.backend}")
    if function.backend == "numba_cuda":
        block = BLOCKS[function.launch_dimensions]
        added += [f"{indent}  launch:", f"{indent}    block: {block}", f"{indent}    grid: cover"]
    end = _end_of(lines, key.line, key.column - 1)
    devices = kernel.node.find("devices")
    if function.backend == "numba_cuda" and devices is not None:
        _add_cuda_device(lines, kernel.path, devices)
    lines[end:end] = [f"{line}\n" for line in added]
    if function.backend == "numba_cuda" and devices is None:
        lines.insert(key.line - 1, f'{" " * (key.column - 1)}devices: [cpu, "cuda:0"]\n')
    return "".join(lines)


def _end_of(lines: list[str], first: int, indent: int) -> int:
    """Return the index after the last line that belongs to the key of line ``first``."""
    end = first
    for place in range(first, len(lines)):
        text = lines[place].strip()
        if not text or text.startswith("#"):
            continue
        if len(lines[place]) - len(lines[place].lstrip()) <= indent:
            break
        end = place + 1
    if end == len(lines) and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return end


def _add_cuda_device(lines: list[str], path: Path, devices: Node) -> None:
    """Add ``cuda:0`` to the devices of a kernel, where it names none of CUDA's."""
    if any(str(item.content).startswith("cuda") for item in devices.items):
        return
    place, start = devices.origin.line - 1, devices.origin.column - 1
    line = lines[place]
    end = line.find("]", start)
    if line[start] != "[" or end < 0:
        raise AddError(f'{path}: add "cuda:0" to `devices` in line {place + 1} first')
    lines[place] = f'{line[:end]}, "cuda:0"{line[end:]}'
