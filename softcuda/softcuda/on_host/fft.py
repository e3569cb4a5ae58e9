"""cuFFT on the host: transforms of any size in one to three dimensions, by NumPy.

Names, layouts and orders of arguments are those of the manual of cuFFT. Transforms over several
devices, callbacks and numbers of 16 bits are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from softcuda.on_host.libraries import Library, RefusedError
from softcuda.on_host.work import Array, host_number, queue, view

VERSION = 12000
"""What ``cufftGetVersion`` answers: 12.0."""
INVALID_PLAN, INVALID_VALUE = 1, 4
NOT_SUPPORTED, EXEC_FAILED = 16, 6
FORWARD = -1

_Transform: TypeAlias = Callable[..., Array]


@dataclass(frozen=True)
class _Kind:
    """A type of transform (``cufftType``)."""

    name: str
    input: Any
    output: Any

    @property
    def halves(self) -> tuple[bool, bool]:
        """Whether input and output hold only the half that is not redundant."""
        is_complex = [np.issubdtype(each, np.complexfloating) for each in (self.input, self.output)]
        return (is_complex[0] and not is_complex[1], is_complex[1] and not is_complex[0])


KINDS = {
    0x2A: _Kind("R2C", np.float32, np.complex64),
    0x2C: _Kind("C2R", np.complex64, np.float32),
    0x29: _Kind("C2C", np.complex64, np.complex64),
    0x6A: _Kind("D2Z", np.float64, np.complex128),
    0x6C: _Kind("Z2D", np.complex128, np.float64),
    0x69: _Kind("Z2Z", np.complex128, np.complex128),
}


@dataclass(frozen=True)
class _Layout:
    """How batches of arrays lie in memory, in elements."""

    embed: tuple[int, ...]
    """Lengths of the array that it is a part of; the first does not count."""
    stride: int
    distance: int


@dataclass(frozen=True)
class _Plan:
    stream: int = 0
    kind: _Kind | None = None
    """``None``: the plan was created and not made."""
    lengths: tuple[int, ...] = ()
    batch: int = 0
    layouts: tuple[_Layout | None, _Layout | None] = (None, None)
    """Of input and output; ``None`` where they are packed."""

    def array(self, side: int, address: int, *, in_place: bool) -> Array:
        """Return input (0) or output (1) in memory: ``[batch, *lengths]``."""
        assert self.kind is not None
        dtype = np.dtype((self.kind.input, self.kind.output)[side])
        half = self.lengths[-1] // 2 + 1
        shape = (*self.lengths[:-1], half) if self.kind.halves[side] else self.lengths
        layout = self.layouts[side]
        if layout is None:
            # "in-place transforms [...] the input must be padded" of real and half complex numbers
            is_padded = in_place and self.kind.halves[1 - side]
            row = 2 * half if is_padded else shape[-1]
            embed = (*shape[:-1], row)
            layout = _Layout(embed, 1, int(np.prod(embed)))
        steps = [int(np.prod(layout.embed[axis + 1 :])) for axis in range(len(shape))]
        strides = [layout.distance, *(step * layout.stride for step in steps)]
        return view(
            address, dtype, (self.batch, *shape), [step * dtype.itemsize for step in strides]
        )


_plans: dict[int, _Plan] = {}
_numbers = count(1)


def _create(address: int) -> None:
    number = next(_numbers)
    _plans[number] = _Plan()
    host_number(address, np.intc)[...] = number


def _destroy(plan: int) -> int | None:
    return None if _plans.pop(plan, None) else INVALID_PLAN


def _set_stream(plan: int, stream: int) -> None:
    _plans[plan] = replace(_plans[plan], stream=stream)


def _get_version(address: int) -> None:
    host_number(address, np.intc)[...] = VERSION


def _make_plan_1d(plan: int, length: int, kind: int, batch: int, room: int) -> int | None:
    return _make(plan, (length,), kind, batch, (None, None), room)


def _make_plan_many(plan: int, rank: int, lengths: int, *given: int) -> int | None:
    embed, stride, distance, embed_out, stride_out, distance_out, kind, batch, room = given
    # "If inembed is set to NULL, then [...] istride, idist [...] are ignored", for both sides
    layouts: tuple[_Layout | None, _Layout | None] = (None, None)
    if embed and embed_out:
        layouts = (
            _Layout(_integers(embed, rank), stride, distance),
            _Layout(_integers(embed_out, rank), stride_out, distance_out),
        )
    return _make(plan, _integers(lengths, rank), kind, batch, layouts, room)


def _integers(address: int, count: int) -> tuple[int, ...]:
    size = np.dtype(np.intc).itemsize
    return tuple(int(host_number(address + place * size, np.intc)) for place in range(count))


def _make(
    plan: int,
    lengths: Sequence[int],
    kind: int,
    batch: int,
    layouts: tuple[_Layout | None, _Layout | None],
    room: int,
) -> int | None:
    if plan not in _plans:
        return INVALID_PLAN
    if kind not in KINDS:
        raise RefusedError(f"for the cufftType {kind:#x}")
    if min(*lengths, batch, 1) < 1:
        return INVALID_VALUE
    _plans[plan] = replace(
        _plans[plan], kind=KINDS[kind], lengths=tuple(lengths), batch=batch, layouts=layouts
    )
    host_number(room, np.uintp)[...] = 0  # NumPy takes what it needs from the host
    return None


def _set_nothing(plan: int, _: int) -> int | None:
    """Take room that is not needed."""
    return None if plan in _plans else INVALID_PLAN


def _transform(
    name: str, plan: int, source: int, target: int, direction: int = FORWARD
) -> int | None:
    """Queue a transform, which is not scaled in either direction."""
    made = _plans.get(plan)
    if made is None or made.kind is None or made.kind.name != name:
        return INVALID_PLAN
    before, after = (
        made.array(side, address, in_place=source == target)
        for side, address in enumerate((source, target))
    )
    axes = range(1, before.ndim)
    transform: _Transform
    if made.kind.halves[1]:
        transform = partial(np.fft.rfftn, axes=axes)
    elif made.kind.halves[0]:
        transform = partial(np.fft.irfftn, s=made.lengths, axes=axes, norm="forward")
    elif direction == FORWARD:
        transform = partial(np.fft.fftn, axes=axes)
    else:
        transform = partial(np.fft.ifftn, axes=axes, norm="forward")

    def write() -> None:
        after[...] = transform(before)

    queue(f"cufftExec{name}", made.stream, write, after)
    return None


CUFFT = Library(
    name="cufft",
    module="cupy.cuda.cufft",
    error="CuFFTError",
    not_supported=NOT_SUPPORTED,
    failed=EXEC_FAILED,
    functions={
        "cufftCreate": ("p", _create),
        "cufftDestroy": ("i", _destroy),
        "cufftGetVersion": ("p", _get_version),
        "cufftSetStream": ("ip", _set_stream),
        "cufftSetAutoAllocation": ("ii", _set_nothing),
        "cufftSetWorkArea": ("ip", _set_nothing),
        "cufftMakePlan1d": ("iiiip", _make_plan_1d),
        "cufftMakePlanMany": ("iippiipiiiip", _make_plan_many),
        **{
            f"cufftExec{kind.name}": (
                "ipp" if any(kind.halves) else "ippi",  # these have a direction
                partial(_transform, kind.name),
            )
            for kind in KINDS.values()
        },
    },
)
