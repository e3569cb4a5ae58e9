"""Scripts of data beside the pages: one value each, compressed, which a page reads on request.

A page that is opened from the disk can load scripts and no other files. So data stand in scripts:
JSON, compressed by deflate, in base64. ``gpubenchLists.read`` and ``gpubenchLists.floats`` of
``lists.js`` are the other side. Values of thousands of commits would fill most of a report without
that.
"""

from __future__ import annotations

import zlib
from base64 import b64encode
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

SCRIPTS_FOLDER = "compare-data"
"""Of the scripts, beside the pages; all of it belongs to the report."""

DROPPED_BITS = 7
"""Lowest bits of a 32-bit float that are not kept: 17 of 24 stay, four parts in a million, where
asv keeps five digits of a time."""

DROPPED_SHARE_BITS = 15
"""The same of the distance of an interval's end from its value: 9 bits stay, so that an end which
is 10 % away is right to one part in 10,000."""


def data_script(address: str, content: Any) -> str:
    """Return a script that holds one value, which pages read by the script's address."""
    packed = b64encode(zlib.compress(msgspec.json.encode(content), 9)).decode("ascii")
    return f'gpubenchLists.put({msgspec.json.encode(address).decode()}, "{packed}");\n'


def pack_floats(values: ArrayLike) -> str:
    """Return numbers of any shape, in their order, for ``gpubenchLists.floats``."""
    return _packed(_shortened(np.asarray(values), DROPPED_BITS))


def pack_intervals(values: ArrayLike) -> str:
    """Return values with their intervals, for ``gpubenchLists.intervals``: of shape (3 kinds, ...),
    a value and both of its ends for each kind.

    An end is near its value. So its distance stands there, as a share of the value, which needs
    fewer bits for as many digits of the end.
    """
    columns = np.array(values, np.float64)
    kinds = columns.reshape(len(columns) // 3, 3, *columns.shape[1:])
    middle, low, high = kinds[:, 0], kinds[:, 1], kinds[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (middle - low) / middle, (high - middle) / middle
    parts = [middle, *shares]
    bits = [DROPPED_BITS, DROPPED_SHARE_BITS, DROPPED_SHARE_BITS]
    shortened = map(_shortened, parts, bits)
    return _packed(np.stack([*shortened], axis=1))


def _shortened(values: NDArray[Any], dropped: int) -> NDArray[np.uint32]:
    """Return the bits of 32-bit floats, rounded to fewer."""
    kept = np.ascontiguousarray(values, "<f4")
    bits = kept.view("<u4")
    half = np.uint32(1 << (dropped - 1))
    mask = np.uint32((0xFFFFFFFF << dropped) & 0xFFFFFFFF)
    return np.where(np.isfinite(kept), (bits + half) & mask, bits & mask)


def _packed(bits: NDArray[np.uint32]) -> str:
    """Return numbers in text. The first bytes of all stand together, then the second ones, and so
    on: bytes of one kind resemble each other, so that deflate finds more to leave out."""
    planes = np.ascontiguousarray(bits.ravel(), "<u4").view(np.uint8).reshape(-1, 4).T
    return b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
