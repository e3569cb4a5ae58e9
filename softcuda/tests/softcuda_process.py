"""Runs a test's function in a process of its own, on a device in software with given options.

A process can load one CUDA driver, and options are read when it is loaded.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import softcuda


def on_softcuda(function: Callable[[], Any], **options: object) -> Any:
    """Return what ``function`` answers (as JSON has it) where ``SOFTCUDA_<OPTION>`` are set.

    ``visible`` is ``CUDA_VISIBLE_DEVICES``. Fails with what the process said where it fails.
    """
    done = process_on_softcuda(function, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def process_on_softcuda(
    function: Callable[[], Any], **options: object
) -> subprocess.CompletedProcess[str]:
    """Return the same, for a process whose end or output is what the test is about."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SOFTCUDA_")}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    if "SOFTCUDA_CACHE" in os.environ:
        environment["SOFTCUDA_CACHE"] = os.environ["SOFTCUDA_CACHE"]
    for name, value in options.items():
        variable = "CUDA_VISIBLE_DEVICES" if name == "visible" else f"SOFTCUDA_{name.upper()}"
        environment[variable] = str(value)
    module = Path(sys.modules[function.__module__].__file__ or "")
    return subprocess.run(
        [sys.executable, __file__, str(module.parent), module.stem, function.__name__],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )


def result(answer: tuple[Any, ...]) -> Any:
    """Return what a call of the driver gave; fails where it gave an error."""
    assert error(answer) == "SUCCESS", answer
    return answer[1] if len(answer) == 2 else answer[1:]


def error(answer: tuple[Any, ...]) -> str:
    """``INVALID_VALUE`` for ``CUDA_ERROR_INVALID_VALUE``."""
    name: str = answer[0].name
    return name.removeprefix("CUDA_").removeprefix("ERROR_")


def reports() -> list[str]:
    """Return what the device has found since the last call, as ``kind: text``."""
    return [f"{report.kind}: {report.text}" for report in softcuda.start().reports()]


def use_device(ordinal: int = 0) -> Any:
    """Initialise the driver and make the primary context of a device current."""
    from cuda.bindings import driver

    result(driver.cuInit(0))
    context = result(driver.cuDevicePrimaryCtxRetain(ordinal))
    result(driver.cuCtxSetCurrent(context))
    return context


def _main(folder: str, module: str, function: str) -> None:
    softcuda.start()
    sys.path.insert(0, folder)
    print(json.dumps(getattr(importlib.import_module(module), function)()))


if __name__ == "__main__":
    _main(*sys.argv[1:])
