"""Read scripts of data as a page does (``lists.js``)."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from typing import Any

import numpy as np
from numpy.typing import NDArray


def unpacked(script: str) -> Any:
    """Return the value that a script holds."""
    (text,) = re.findall(r'gpubenchLists\.put\("[^"]*", "([^"]*)"\);', script)
    return json.loads(zlib.decompress(b64decode(text)))


def floats(text: str) -> NDArray[np.float32]:
    """Return packed numbers."""
    planes = np.frombuffer(zlib.decompress(b64decode(text)), np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<f4").ravel()
