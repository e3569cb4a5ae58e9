"""What one field says about another: names, kinds of implementations, the baseline, the presets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gpubench.errors import Fault, did_you_mean
from gpubench.names import pattern_fault
from gpubench.suite.kernel_checks import KernelChecks
from gpubench.suite.model import Suite
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node
from gpubench.suite.types import suggestion, unknown
from gpubench.suite.validation import validate, was_faults


def check_suite(
    root: Node, preset: str | None, base: tuple[Node, Suite] | None = None
) -> tuple[Suite | None, list[Fault]]:
    """Return the model of a tree, ``None`` where nothing of it is sound, and all that is wrong with
    it; ``preset`` is the one that was applied, and ``base`` the sound suite that it was applied to.

    What is missing (outputs, a use of an axis, array or scalar) is told only where nothing else is
    wrong: what is wrong may have been it.
    """
    suite, sound, unsound = validate(root, base)
    kernels = root.fields("kernels")
    faults = [*unsound, *_kernels_or_pairs(root), *was_faults("kernel", kernels.items(), kernels)]
    for name, kernel in suite.kernels.items() if suite else ():
        node, raw = sound.fields("kernels")[name], root.fields("kernels")[name]
        checks = KernelChecks(name, kernel, node, raw)
        of_kernel = [*islice(checks.faults(), MAX_FAULTS + 1)]
        if not of_kernel and not unsound:
            of_kernel = [*checks.nothing_written(), *checks.unused(preset)]
        faults += of_kernel
        if len(faults) > MAX_FAULTS:
            break
    return suite, faults


_HELD = ("kernels", "pairs")
"""What a suite has one of. A misspelt one is told as such, and is not missing beside it."""


def _kernels_or_pairs(root: Node) -> Iterator[Fault]:
    kernels, pairs = root.find("kernels"), root.find("pairs")
    if kernels and pairs:
        yield pairs.key_fault("both kernels and pairs; a suite has one of them")
    elif not (kernels or pairs or any(did_you_mean(key, _HELD) for key in root.entries)):
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
    """Yield the names in presets that no kernel declares."""
    kernels = root.fields("kernels")
    for preset in root.fields("presets").values() if "kernels" in root.entries else ():
        yield from _overlay(preset, list(kernels.values()), "any kernel")
        for name, overlay in preset.fields("kernels").items():
            if name in kernels:
                yield from _overlay(overlay, [kernels[name]], f"kernel {name!r}")
            else:
                yield overlay.key_fault(unknown("kernel", name, kernels))


def _overlay(overlay: Node, kernels: list[Node], where: str) -> Iterator[Fault]:
    """Yield the names in a preset, or in its part for one kernel, that none of the kernels
    declares."""
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
        for change in _axes_in(overlay, field) if field in ("sizes", "parameters") else ():
            if "was" in change.entries:
                message = "a preset renames nothing; write it where the axis is declared"
                yield change.entries["was"].key_fault(f"was: {message}")
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


def _axes_in(part: Node, field: str) -> Iterator[Node]:
    """Axes below a field, each axis of a group that moves together too."""
    for axis in part.fields(field).values():
        yield from axis.fields("zip").values() or (axis,)


# --- one kernel
