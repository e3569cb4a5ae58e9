"""What one field says about another: names, kinds of implementations, the baseline, the presets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gpubench.errors import Fault
from gpubench.suite.kernel_checks import KernelChecks
from gpubench.suite.reader import MAX_FAULTS
from gpubench.suite.tree import Node
from gpubench.suite.types import suggestion
from gpubench.suite.validation import Validated, fault


def check_suite(validated: Validated, root: Node) -> Iterator[Fault]:
    """Faults between the fields of a suite; ``root`` is the tree with what is unsound still in it.

    An axis, array or scalar that nothing uses is told only where nothing else is wrong: what is
    wrong may have been its use.
    """
    yield from _kernels_or_pairs(root)
    yield from _pair_names(root)
    suite, kernels = validated.suite, validated.sound.child("kernels")
    for name, kernel in (suite.kernels if suite and kernels else {}).items():
        sound, raw = validated.sound.find(("kernels", name)), root.find(("kernels", name))
        if sound is None or raw is None:
            continue
        checks = KernelChecks(name, kernel, sound, raw)
        faults = list(islice(checks.faults(), MAX_FAULTS + 1))
        yield from faults
        if not faults and not validated.faults:
            yield from checks.unused()


def _kernels_or_pairs(root: Node) -> Iterator[Fault]:
    kernels, pairs = root.child("kernels"), root.child("pairs")
    if kernels and pairs:
        message = "both kernels and pairs; a suite has one of them"
        yield fault(root.key_origin("pairs"), message)
    elif not kernels and not pairs:
        yield fault(root.origin, "missing field 'kernels' in the suite (or 'pairs' instead)")
    for field in ("kernels", "pairs"):
        node = root.child(field)
        if node and isinstance(node.content, tuple | dict) and not node.content:
            yield fault(node.origin, f"{field}: found none; at least one is needed")


def _pair_names(root: Node) -> Iterator[Fault]:
    pairs = root.child("pairs")
    seen: set[object] = set()
    for pair in pairs.items if pairs else ():
        name = pair.child("name")
        if name is None or not isinstance(name.content, str):
            continue
        if name.content in seen:
            yield fault(name.origin, f"the pair {name.content!r} is there twice")
        seen.add(name.content)


def check_presets(root: Node) -> Iterator[Fault]:
    """Names in presets that no kernel declares."""
    presets, kernels = root.child("presets"), root.child("kernels")
    if presets is None or kernels is None:
        return
    by_name = {name: entry.value for name, entry in kernels.entries.items()}
    for entry in presets.entries.values():
        preset = entry.value
        yield from _overlay(preset, tuple(by_name.values()), "any kernel")
        if refined := preset.child("kernels"):
            for name in refined.entries:
                yield from _refinement(refined, name, by_name)


def _refinement(refined: Node, name: str, kernels: dict[str, Node]) -> Iterator[Fault]:
    if name not in kernels:
        message = f"unknown kernel {name!r}{suggestion(name, tuple(kernels))}"
        yield fault(refined.key_origin(name), message)
    elif overlay := refined.child(name):
        yield from _overlay(overlay, (kernels[name],), f"kernel {name!r}")


def _overlay(overlay: Node, kernels: tuple[Node, ...], where: str) -> Iterator[Fault]:
    for field, kind in (
        ("sizes", "size"),
        ("parameters", "parameter"),
        ("implementations", "implementation"),
    ):
        yield from _undeclared(overlay, field, kind, kernels, where)
    has_launch: dict[str, bool] = {}
    for name, implementation in (one for kernel in kernels for one in _implementations(kernel)):
        has_launch[name] = has_launch.get(name, False) or "launch" in implementation.entries
    if overlay.child("launch") and not any(has_launch.values()):
        yield fault(overlay.key_origin("launch"), f"no implementation of {where} declares a launch")
    own = overlay.child("implementations")
    for name, entry in (own.entries if own else {}).items():
        if entry.value.child("launch") and not has_launch.get(name, True):
            message = f"implementation {name!r} declares no launch"
            yield fault(entry.value.key_origin("launch"), message)


def _implementations(kernel: Node) -> list[tuple[str, Node]]:
    node = kernel.child("implementations")
    return [(name, entry.value) for name, entry in node.entries.items()] if node else []


def _undeclared(
    overlay: Node, field: str, kind: str, kernels: tuple[Node, ...], where: str
) -> Iterator[Fault]:
    changed = overlay.child(field)
    if changed is None:
        return
    declared = [node for kernel in kernels if (node := kernel.child(field))]
    known = dict.fromkeys(name for node in declared for name in node.entries)
    for name in changed.entries:
        if name in known:
            continue
        if group := _zipped_in(name, declared):
            near = f"; it moves together with others: write {group}: {{zip: ...}}"
        else:
            near = suggestion(name, tuple(known))
        message = f"{kind} {name!r} is not declared by {where}{near}"
        yield fault(changed.key_origin(name), message)


def _zipped_in(name: str, declared: list[Node]) -> str | None:
    for sizes in declared:
        for group, entry in sizes.entries.items():
            members = entry.value.child("zip")
            if members and name in members.entries:
                return group
    return None
