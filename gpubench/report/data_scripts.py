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
from numpy.typing import ArrayLike

SCRIPTS_FOLDER = "compare-data"
"""Of the scripts, beside the pages; all of it belongs to the report."""

DROPPED_BITS = 7
"""Lowest bits of a 32-bit float that are not kept: 17 of 24 stay, four parts in a million, where
asv keeps five digits of a time. An interval differs more from one run to the next."""


def data_script(address: str, content: Any) -> str:
    """Return a script that holds one value, which pages read by the script's address."""
    packed = b64encode(zlib.compress(msgspec.json.encode(content), 9)).decode("ascii")
    return f'gpubenchLists.put({msgspec.json.encode(address).decode()}, "{packed}");\n'


def pack_floats(values: ArrayLike) -> str:
    """Return numbers of any shape, in their order, for ``gpubenchLists.floats``.

    The first bytes of all 32-bit floats stand together, then the second ones, and so on: bytes of
    one kind resemble each other, so that deflate finds more to leave out.
    """
    kept = np.ascontiguousarray(values, "<f4")
    bits = kept.view("<u4")
    half = np.uint32(1 << (DROPPED_BITS - 1))
    mask = np.uint32((0xFFFFFFFF << DROPPED_BITS) & 0xFFFFFFFF)
    rounded = np.where(np.isfinite(kept), (bits + half) & mask, bits & mask)
    planes = rounded.astype("<u4").view(np.uint8).reshape(-1, 4).T
    return b64encode(zlib.compress(planes.tobytes(), 9)).decode("ascii")
