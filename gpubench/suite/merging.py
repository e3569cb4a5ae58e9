"""One suite laid over another: ``extends`` and presets, on trees, so that places are kept."""

from __future__ import annotations

from dataclasses import replace

from gpubench.suite.tree import Node, Path
from gpubench.suite.types import TARGET_FIELDS


def extend(base: Node, over: Node, path: Path = ()) -> Node:
    """``over`` on top of ``base``: maps merge, lists and single values replace.

    An axis replaces the values and keeps the base's ``default``; how an implementation is named
    (function, factory, launcher, source, parts) and how an array is filled is replaced as a whole.
    """
    if len(path) >= 2 and path[-2] in ("sizes", "parameters") and path[0] != path[-2]:
        return _replace_axis(base, over)
    if not (isinstance(base.content, dict) and isinstance(over.content, dict)):
        return over
    if path[-1:] == ("fill",):
        return over
    entries = dict(base.content)
    if not over.content.keys().isdisjoint(TARGET_FIELDS):
        for field in (*TARGET_FIELDS, "with", "entry", "split"):
            entries.pop(field, None)
    for key, value in over.content.items():
        entries[key] = extend(entries[key], value, (*path, key)) if key in entries else value
    return replace(over, content=entries)


def _replace_axis(base: Node, over: Node) -> Node:
    """The axis ``over``, with the default of ``base`` unless it gives one itself."""
    if members := over.entries.get("zip"):
        replaced = {
            name: _replace_axis(member, value) if (member := base.find("zip", name)) else value
            for name, value in members.entries.items()
        }
        return replace(over, content={**over.entries, "zip": replace(members, content=replaced)})
    default = base.entries.get("default")
    if default is None or "default" in over.entries:
        return over
    fields = over.entries or {"values": replace(over, key=over.origin)}
    return replace(over, content={**fields, "default": default})


def apply_preset(suite: Node, name: str) -> Node:
    """The suite with one of its presets laid over every kernel that declares what it changes."""
    preset = suite.find("presets", name)
    if preset is None or "kernels" not in suite.entries:
        return suite
    preset = _labelled(preset, name)
    kernels = {}
    for kernel_name, kernel in suite.fields("kernels").items():
        kernel = _apply(kernel, preset)
        overlay = preset.find("kernels", kernel_name)
        kernels[kernel_name] = _apply(kernel, overlay) if overlay else kernel
    return _with(suite, {"kernels": replace(suite.entries["kernels"], content=kernels)})


def _apply(kernel: Node, overlay: Node) -> Node:
    """A kernel with what a preset, or its part for this kernel, changes in it."""
    replaced = ("devices", "measure", "sampling")
    fields = {field: overlay.entries[field] for field in replaced if field in overlay.entries}
    if "sampling" in fields and (base := kernel.entries.get("sampling")):
        fields["sampling"] = _changed(base, fields["sampling"])
    for field in ("sizes", "parameters", "let", "arrays", "scalars"):
        if declared := kernel.entries.get(field):
            laid_over = _replace_axis if field in ("sizes", "parameters") else _changed
            old, new = declared.entries, overlay.fields(field)
            named = {name: laid_over(old[name], new[name]) for name in new if name in old}
            fields[field] = _with(declared, named)
    if implementations := kernel.entries.get("implementations"):
        changed, launch = {}, overlay.entries.get("launch")
        for name, implementation in implementations.entries.items():
            if launch and (base := implementation.entries.get("launch")):
                implementation = _with(implementation, {"launch": _changed(base, launch)})
            change = overlay.find("implementations", name)
            if change and change.entries:
                implementation = _changed(implementation, change)
            changed[name] = implementation
        fields["implementations"] = replace(implementations, content=changed)
    return _with(kernel, fields)


def _changed(base: Node, over: Node) -> Node:
    """``base`` as a preset changes it; what the suite declares keeps the place of its name."""
    return replace(extend(base, over), key=base.key)


def _with(node: Node, fields: dict[str, Node]) -> Node:
    return replace(node, content=node.entries | fields)


def _labelled(node: Node, preset: str) -> Node:
    """The same values, their places marked as set by the preset."""
    content = node.content
    if isinstance(content, dict):
        content = {key: _labelled(value, preset) for key, value in content.items()}
    elif isinstance(content, tuple):
        content = tuple(_labelled(item, preset) for item in content)
    key = node.key and replace(node.key, preset=preset)
    return replace(node, content=content, origin=replace(node.origin, preset=preset), key=key)
