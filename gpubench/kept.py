"""Files of our own that spare work the next time: whole or not there, and never in the way.

MessagePack, so that a foreign one is data and can do no harm. A damaged one counts as none, and
where none can be written there is none.
"""

from __future__ import annotations

import hashlib
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gpubench import __version__
from gpubench.whole_file import write_whole

T = TypeVar("T")


def read_kept(path: Path, kind: type[T]) -> T | None:
    """What was kept; ``None`` where there is no such file, or another or a damaged one."""
    try:
        kept = memoryview(path.read_bytes())
        if _checksum(kept[4:]) != kept[:4]:
            return None
        return msgspec.msgpack.decode(kept[4:], type=kind)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def write_kept(path: Path, content: Any) -> None:
    """Keep something, in a folder with a ``.gitignore`` of its own."""
    with suppress(OSError, msgspec.MsgspecError, OverflowError, TypeError, ValueError):
        encoded = msgspec.msgpack.encode(content)
        path.parent.mkdir(exist_ok=True)
        (path.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        write_whole(path, _checksum(encoded) + encoded)


@lru_cache
def code_stamp() -> str:
    """Changes with the release of gpubench, and where its code is worked on, with that."""
    package = Path(__file__).parent
    files = sorted(package.rglob("*.py"))
    found = [(path.relative_to(package).as_posix(), path.stat()) for path in files]
    told = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
    return hashlib.sha256(repr((__version__, told)).encode()).hexdigest()


def _checksum(content: bytes | memoryview) -> bytes:
    """Tells damage, which could be in the middle of a number."""
    return zlib.crc32(content).to_bytes(4)
