"""Version of a benchmark: a hash of what it measures, so that results that mean something else are
never put on one line.

Where it is measured (axes, block and grid, devices), what people call it, and the code of the
kernel are not part of it: these are what a history is drawn over.
"""

from __future__ import annotations

import ast
import hashlib
import json
from typing import Any

from pydantic import BaseModel

from gpubench.suite.expressions import Expression
from gpubench.suite.model import DeclaredLaunch, Kernel

PROTOCOL = 1
"""Raised when the way in which times are taken changes what they mean."""

_OF_KERNEL = {"let", "arrays", "tables", "init", "scalars", "call", "returns", "memory_limit"}
_OF_IMPLEMENTATION = {
    *("function", "factory", "launcher", "source", "entry"),
    *("with_", "returns", "options", "parts", "split", "cast"),
}
_OF_LAUNCH = {"over", "shared_bytes", "cooperative"}


def benchmark_version(kernel: Kernel, implementation_name: str, time: str) -> str:
    """Sixteen hexadecimal digits that change when one labelled time measures something else."""
    implementation = kernel.implementations[implementation_name]
    content = {
        "protocol": PROTOCOL,
        "time": time,
        "kernel": _fields(kernel, _OF_KERNEL),
        "implementation": _fields(implementation, _OF_IMPLEMENTATION),
        "launch": _fields(implementation.launch or DeclaredLaunch(), _OF_LAUNCH),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=_formula)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fields(model: BaseModel, names: set[str]) -> dict[str, Any]:
    """Fields that are not at their default: a field that the format gains later changes nothing."""
    return model.model_dump(include=names, exclude_defaults=True)


def _formula(value: Expression) -> str:
    """A formula as Python writes it: blanks and redundant parentheses mean nothing."""
    return ast.unparse(ast.parse(value.text.strip(), mode="eval"))
