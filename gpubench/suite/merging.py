"""One suite laid over another: ``extends`` and presets, on trees, so that places are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpubench.suite.tree import Entry, Node, Origin, Path

_KINDS = ("function", "factory", "launcher", "source")
_OF_KIND = (*_KINDS, "with", "entry")


def extend(base: Node, over: Node, path: Path = ()) -> Node:
    """``over`` on top of ``base``: maps merge, lists and single values replace.

    An axis replaces the values and keeps the base's ``default``; how an implementation is named
    (function, factory, launcher, source) and how an array is filled is replaced as a whole.
    """
    if _is_axis(path):
        return replace_axis(base, over)
    if not (isinstance(base.content, Mapping) and isinstance(over.content, Mapping)):
        return over
    if path[-1:] == ("fill",):
        return over
    kept = _without_other_kinds(base, over)
    return Node({**kept, **_merged(kept, over, path)}, over.origin)


def _merged(kept: Mapping[str, Entry], over: Node, path: Path) -> dict[str, Entry]:
    return {
        key: replace(entry, value=extend(kept[key].value, entry.value, (*path, key)))
        if key in kept
        else entry
        for key, entry in over.entries.items()
    }


def _without_other_kinds(base: Node, over: Node) -> Mapping[str, Entry]:
    if not any(kind in over.entries for kind in _KINDS):
        return base.entries
    return {key: entry for key, entry in base.entries.items() if key not in _OF_KIND}


def _is_axis(path: Path) -> bool:
    """Whether the path leads to an axis of a kernel, or of a preset."""
    return len(path) >= 2 and path[-2] in ("sizes", "parameters") and path[0] != path[-2]


def replace_axis(base: Node, over: Node) -> Node:
    """The axis ``over``, with the default of ``base`` unless it gives one itself."""
    zipped, zipped_base = over.entries.get("zip"), base.child("zip")
    if zipped:
        members = {
            name: replace(entry, value=_member(zipped_base, name, entry.value))
            for name, entry in zipped.value.entries.items()
        }
        content = replace(zipped, value=replace(zipped.value, content=members))
        return replace(over, content={**over.entries, "zip": content})
    default = base.entries.get("default")
    if default is None or "default" in over.entries:
        return over
    if over.entries:
        return replace(over, content={**over.entries, "default": default})
    return Node({"values": Entry(over.origin, over), "default": default}, over.origin)


def _member(base: Node | None, name: str, over: Node) -> Node:
    member = base.child(name) if base else None
    return replace_axis(member, over) if member else over


def apply_preset(suite: Node, name: str) -> Node:
    """The suite with one of its presets laid over every kernel that declares what it changes."""
    preset = suite.find(("presets", name))
    kernels = suite.entries.get("kernels")
    if preset is None or kernels is None:
        return suite
    preset = _labelled(preset, name)
    changed = {
        kernel: replace(entry, value=_apply(entry.value, _overlays(preset, kernel)))
        for kernel, entry in kernels.value.entries.items()
    }
    content = replace(kernels, value=replace(kernels.value, content=changed))
    return replace(suite, content={**suite.entries, "kernels": content})


def _overlays(preset: Node, kernel: str) -> tuple[Node, ...]:
    own = preset.find(("kernels", kernel))
    return (preset, own) if own else (preset,)


def _apply(kernel: Node, overlays: Iterable[Node]) -> Node:
    for overlay in overlays:
        fields = dict(kernel.entries)
        for field in ("sizes", "parameters"):
            _put(fields, field, _apply_axes(kernel.child(field), overlay.child(field)))
        fields |= {
            field: overlay.entries[field]
            for field in ("devices", "measure")
            if field in overlay.entries
        }
        if sampling := overlay.entries.get("sampling"):
            _put(fields, "sampling", _over(kernel.child("sampling"), sampling.value))
            fields.setdefault("sampling", sampling)
        _put(fields, "implementations", _apply_implementations(kernel, overlay))
        kernel = replace(kernel, content=fields)
    return kernel


def _put(fields: dict[str, Entry], field: str, value: Node | None) -> None:
    if value is not None and field in fields:
        fields[field] = replace(fields[field], value=value)


def _over(base: Node | None, over: Node) -> Node:
    return extend(base, over) if base else over


def _apply_axes(axes: Node | None, overlay: Node | None) -> Node | None:
    if axes is None or overlay is None:
        return axes
    changed = {
        name: replace(overlay.entries[name], value=replace_axis(entry.value, value))
        if (value := overlay.child(name))
        else entry
        for name, entry in axes.entries.items()
    }
    return replace(axes, content=changed)


def _apply_implementations(kernel: Node, overlay: Node) -> Node | None:
    implementations = kernel.child("implementations")
    if implementations is None:
        return None
    own = overlay.child("implementations")
    changed = {
        name: replace(entry, value=_implementation(entry.value, overlay, own and own.child(name)))
        for name, entry in implementations.entries.items()
    }
    return replace(implementations, content=changed)


def _implementation(implementation: Node, overlay: Node, own: Node | None) -> Node:
    if (launch := overlay.child("launch")) and (base := implementation.child("launch")):
        fields = dict(implementation.entries)
        _put(fields, "launch", extend(base, launch))
        implementation = replace(implementation, content=fields)
    return extend(implementation, own) if own and own.entries else implementation


def _labelled(node: Node, preset: str) -> Node:
    """The same values, their places marked as set by the preset."""
    content = node.content
    if isinstance(content, Mapping):
        content = {
            key: Entry(_label(entry.key, preset), _labelled(entry.value, preset))
            for key, entry in content.items()
        }
    elif isinstance(content, tuple):
        content = tuple(_labelled(item, preset) for item in content)
    return Node(content, _label(node.origin, preset), node.text_column)


def _label(origin: Origin, preset: str) -> Origin:
    return replace(origin, preset=preset)
