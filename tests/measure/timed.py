"""Builders for the tests of what is measured without asv: cases of scripted duration."""

from __future__ import annotations

from pathlib import Path

from builders import plan_of

from gpubench.plan.case import Case

KERNEL = """
sizes: {{n: [8]}}
arrays:
  a: {{shape: [n], dtype: float32}}
  out: {{shape: [n], dtype: float32, intent: out}}
call: [a, out]
work: {{bytes: 1000000, flops: 2000000}}
baseline: base
devices: {devices}
sampling: {{number: 1, warmup_time: 0, {sampling}}}
implementations:
  base: {{function: timed_kernels:two_ms, backend: scripted}}
"""


def scripted_cases(
    folder: Path, *functions: str, sampling: str = "repeat: 10", devices: str = "[cpu]"
) -> list[Case]:
    """The baseline of 2 ms and an implementation for each function, called by its name."""
    lines = [
        f"  {name}: {{function: timed_kernels:{name}, backend: scripted}}" for name in functions
    ]
    kernel = KERNEL.format(sampling=sampling, devices=devices) + "\n".join(lines)
    return list(plan_of(folder, kernel).cases())
