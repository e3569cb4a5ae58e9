"""A constant at the top of a module has a name that no other module gives another one."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ENGINE = Path(__file__).parents[2] / "gpubench"


def constants(source: str) -> Iterator[str]:
    """Yield the names in capitals that a module assigns at its top, type variables apart."""
    for node in ast.parse(source).body:
        target: ast.expr | None = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target = node.target
        if isinstance(target, ast.Name) and target.id.isupper() and len(target.id) > 1:
            yield target.id


def test_no_two_modules_of_the_engine_assign_constants_of_one_name() -> None:
    """One idea is one constant, which the others import; two ideas have two names."""
    modules = defaultdict(list)
    for path in sorted(ENGINE.rglob("*.py")):
        if not {"kernels", "tests"} & {
            *path.relative_to(ENGINE).parts
        }:  # kernels import nothing of the engine
            for name in constants(path.read_text(encoding="utf-8")):
                modules[name].append(path.relative_to(ENGINE).as_posix())

    assert {name: where for name, where in modules.items() if len(where) > 1} == {}
