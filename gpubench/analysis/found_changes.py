"""Changes of all setups: several processes find them, and they are kept for the next report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from gpubench.analysis.changes import Change, Values, changes_in
from gpubench.analysis.levels import SettledFits, Stops
from gpubench.collecting import without_collecting
from gpubench.kept import code_stamp, read_kept, write_kept
from gpubench.parallel import spread

MUCH = 200_000
"""Times from which more than one process looks for changes."""

Found = list[tuple[Change, ...]]
"""Changes of each case of a setup."""


@dataclass(frozen=True, slots=True)
class SetupTimes:
    """What changes of one setup are found in."""

    digest: bytes
    """Of all of it."""
    series: Callable[[], Sequence[Values]]
    """As for ``changes_in``, one for each case."""
    kept: Path | None = None
    """Where changes are kept; ``None``: nowhere."""


class _Kept(msgspec.Struct, array_like=True):
    """What was found in the times of one setup."""

    digest: bytes = b""
    changes: Found = []
    fits: dict[bytes, Stops] = {}
    """Of settled values, which hold when commits are added."""
    code: str = ""
    """Stamp of the code that found them."""


def kept_path(beside: Path, machine: str, environment: str) -> Path:
    """Where the changes of one setup are kept."""
    name = hashlib.sha256(f"{machine}\0{environment}".encode()).hexdigest()[:16]
    return beside.with_name(f"{beside.stem}-{name}.changes")


class Search:
    """Looks for changes of several setups; what is kept and still holds is not looked for again."""

    def __init__(self, setups: Sequence[SetupTimes]) -> None:
        self._setups = setups
        self._kept = [_read(setup.kept) for setup in setups]
        digests = [setup.digest for setup in setups]
        self._new = [p for p, kept in enumerate(self._kept) if kept.digest != digests[p]]
        self._series = {place: setups[place].series() for place in self._new}

        unknown = [times for p in self._new if not self._kept[p].fits for times in self._series[p]]
        self._is_long = sum(times.shape[1] for times in unknown) >= MUCH

    @property
    def is_short(self) -> bool:
        """Whether there is something to look for, and not enough for several processes."""
        return bool(self._new) and not self._is_long

    def found(self) -> list[Found]:
        """Changes of each setup's cases."""
        kept, series = self._kept, self._series
        fits = {key: stops for place in self._new for key, stops in kept[place].fits.items()}
        every = [times for place in self._new for times in series[place]]
        look = partial(_changes_of, known=fits)
        found = spread(look, every, None if self._is_long else 1)
        for place in self._new:
            own = list(islice(found, len(series[place])))
            used = {key: stops for _, fitted in own for key, stops in fitted.items()}
            changes = [changed for changed, _ in own]
            kept[place] = _Kept(self._setups[place].digest, changes, used, code_stamp())
            _write(self._setups[place].kept, kept[place])
        return [own.changes for own in kept]


@without_collecting()
def _changes_of(
    series: Sequence[Values], known: Mapping[bytes, Stops]
) -> list[tuple[tuple[Change, ...], dict[bytes, Stops]]]:
    """Changes of each series, and the fits that went into them."""
    found = []
    for times in series:
        fits = SettledFits(known)
        found.append((changes_in(times, fits), fits.used))
    return found


def _read(path: Path | None) -> _Kept:
    kept = read_kept(path, _Kept) if path else None
    return kept if kept and kept.code == code_stamp() else _Kept()


def _write(path: Path | None, kept: _Kept) -> None:
    if path:
        write_kept(path, kept)
