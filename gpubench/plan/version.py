"""Version of a benchmark: a hash of what it measures, so that results that mean something else are
never put on one line.

Where it is measured (axes, block and grid, devices), what people call it, and the code of the
kernel are not part of it: these are what a history is drawn over.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from gpubench.suite.expressions import Expression
from gpubench.suite.model import Kernel, Launch

PROTOCOL = 1
"""Raised when the way in which times are taken changes what they mean."""

_OF_KERNEL = ("arrays", "init", "scalars", "call", "returns")
_OF_IMPLEMENTATION = ("function", "factory", "launcher", "source", "entry", "with_")
_OF_LAUNCH = ("over", "shared_bytes", "cooperative")


def benchmark_version(kernel: Kernel, implementation_name: str, time: str) -> str:
    """Sixteen hexadecimal digits that change when one labelled time measures something else."""
    implementation = kernel.implementations[implementation_name]
    content = {
        "protocol": PROTOCOL,
        "time": time,
        "kernel": _fields(kernel, _OF_KERNEL),
        "implementation": _fields(implementation, _OF_IMPLEMENTATION),
        "launch": _fields(implementation.launch or Launch(), _OF_LAUNCH),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fields(model: BaseModel, names: tuple[str, ...]) -> dict[str, Any]:
    """Fields that are not at their default: a field that the format gains later changes nothing."""
    declared = type(model).model_fields
    return {
        name: _plain(getattr(model, name))
        for name in names
        if getattr(model, name) != declared[name].get_default(call_default_factory=True)
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Expression):
        return ast.unparse(ast.parse(value.text.strip(), mode="eval"))
    if isinstance(value, BaseModel):
        return _fields(value, tuple(type(value).model_fields))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
