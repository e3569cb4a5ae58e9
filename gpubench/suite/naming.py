"""What people call suites and kernels: the one place that resolves these names for all commands.

A name is ``suite``, ``suite::kernel``, ``suite.kernel``, a kernel's name where one suite has it, or
a path of a suite file or of a folder of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gpubench.errors import GpubenchError, did_you_mean
from gpubench.names import KernelKey, kernel_title

MAX_LISTED = 12
"""Names that a message lists."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a name on the command line stands for, in suite files."""

    path: Path
    """A suite file, or a folder of them."""
    kernel: str | None
    """``None``: every kernel of it."""


def split_name(text: str, suites: Collection[str]) -> tuple[str, str]:
    """Return the suite's part of a name and the kernel's, which is empty where none is named."""
    if "::" in text or text in suites:
        suite, _, kernel = text.partition("::")
        return suite, kernel
    suite, _, kernel = text.partition(".")
    return (suite, kernel) if suite in suites else (text, "")


def find_name(
    text: str,
    suites: Collection[str],
    kernels_of: Callable[[str], Collection[str]],
    *,
    missing: str,
    there: str,
    others: Iterable[str] = (),
) -> tuple[str, str | None]:
    """Return the suite and the kernel that a name stands for; no kernel for a whole suite.

    Raises ``GpubenchError`` for a kernel's name that several suites have, and for a name of
    nothing: ``missing`` begins that message, ``there`` ends it where neither another name is near
    nor one of ``others``.
    """
    suite, kernel = split_name(text, suites)
    if suite in suites:
        if not kernel:
            return suite, None
        kernels = kernels_of(suite)
        if kernel not in kernels:
            hint = did_you_mean(kernel, kernels) or f"; it has {list_names(kernels)}"
            raise GpubenchError(f"suite {suite!r} has no kernel {kernel!r}{hint}")
        return suite, kernel
    owners = [each for each in suites if not kernel and suite in kernels_of(each)]
    if len(owners) == 1:
        return owners[0], suite
    if owners:
        listed = list_names(f"{owner}::{suite}" for owner in owners)
        raise GpubenchError(f"{len(owners)} suites have a kernel {suite!r}; write {listed}")
    every = {*suites, *others}.union(*map(kernels_of, suites))
    hint = did_you_mean(suite, every) or f"; {there}"
    raise GpubenchError(f"{missing} {text!r}{hint}")


def find_kernels(texts: Iterable[str], keys: Collection[KernelKey]) -> set[KernelKey]:
    """Return those of the kernels of stored results that are named; all where none is.

    A path of a suite file stands for its suite. Raises ``GpubenchError``.
    """
    texts = [*texts]
    if not texts:
        return {*keys}
    suites: dict[str, list[str]] = {}
    for suite, kernel in keys:
        suites.setdefault(suite, []).append(kernel)
    there = f"measured are {list_names(suites)}; `asv run` measures more"
    found: set[KernelKey] = set()
    for text in texts:
        # Pages print titles, and benchmarks of another project can be called anything.
        titled = {key for key in keys if text in ("::".join(key), kernel_title(*key))}
        if titled and text not in suites:
            found |= titled
            continue
        path, colons, kernel = text.partition("::")
        name = f"{Path(path).stem}{colons}{kernel}" if path.endswith(".yaml") else text
        missing = "there are no results of"
        suite, only = find_name(name, suites, suites.__getitem__, missing=missing, there=there)
        found |= {key for key in keys if key[0] == suite and only in (None, key[1])}
    return found


def list_names(names: Iterable[str]) -> str:
    """Return names with commas between, the first ones of many; ``none`` without any."""
    every = [*names]
    rest = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return (", ".join(every[:MAX_LISTED]) or "none") + rest


class SuiteFiles:
    """Suite files of a folder, by the names of their suites."""

    def __init__(self, folder: Path, *, nested: bool = False) -> None:
        """``nested``: those in folders of it too."""
        self.folder = folder
        self.nested = nested
        self._kernels: dict[str, tuple[str, ...]] = {}

    @cached_property
    def paths(self) -> dict[str, list[Path]]:
        """Files by name; several where folders of it have files of one name."""
        return _by_stem(self.folder, nested=self.nested)

    def kernels_of(self, suite: str) -> tuple[str, ...]:
        """Return the names of a suite's kernels, read without a check of anything else."""
        from gpubench.suite.loading import read_fields

        if suite not in self._kernels:
            self._kernels[suite] = tuple(read_fields(self.paths[suite][0], "kernels"))
        return self._kernels[suite]

    def find(self, text: str) -> Target:
        """Return the file, or the folder, that a name stands for; raises ``GpubenchError``.

        A suite goes before a path of the same name: a folder beside ``suites/`` hides none.
        """
        path, _, kernel = text.partition("::")
        if split_name(text, self.paths)[0] not in self.paths and _exists(Path(path)):
            return Target(Path(path), kernel or None)
        missing, there = "there is no suite, kernel or path", self._describe(path)
        suite, only = find_name(
            text,
            self.paths,
            self.kernels_of,
            missing=missing,
            there=there,
            others=(str(path) for paths in self.paths.values() for path in paths),
        )
        files = self.paths[suite]
        if len(files) > 1:
            listed = list_names(map(str, files))
            raise GpubenchError(f"{len(files)} files are called {suite!r}; write {listed}")
        return Target(files[0], only)

    def find_all(self, texts: Iterable[str]) -> list[Target]:
        """Return what each name stands for."""
        return [self.find(text) for text in texts]

    def _describe(self, missing: str) -> str:
        """Say what the folder has, and where a file of that name lies deeper in it."""
        has = f"{self.folder}/ has {list_names(self.paths) if self.paths else 'no suites'}"
        deeper = _by_stem(self.folder, nested=True).get(missing, ())
        return f"{has}; a path is {list_names(map(str, deeper))}" if deeper else has


def _by_stem(folder: Path, *, nested: bool) -> dict[str, list[Path]]:
    from gpubench.suite.folder import suite_paths  # of no use to what reads results

    files: dict[str, list[Path]] = {}
    for path in suite_paths(folder, nested):
        if path.suffix == ".yaml":
            files.setdefault(path.stem, []).append(path)
    return files


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or holds what no name can
        return False


def complete(incomplete: str, files: SuiteFiles) -> Sequence[str]:
    """Return the names that begin so: of suites, and of kernels where a suite is written already,
    or where no suite begins so."""
    for separator in ("::", "."):
        suite, found, _ = incomplete.partition(separator)
        if found and suite in files.paths:
            names = (f"{suite}{separator}{kernel}" for kernel in files.kernels_of(suite))
            return [name for name in names if name.startswith(incomplete)]
    if suites := [name for name in files.paths if name.startswith(incomplete)]:
        return suites
    kernels = (kernel for suite in files.paths for kernel in files.kernels_of(suite))
    return sorted({kernel for kernel in kernels if kernel.startswith(incomplete)})
