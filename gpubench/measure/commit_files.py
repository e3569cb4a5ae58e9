"""Read the files of one commit in git, with those of the submodules that it pins."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from gpubench.git import Repository, ask_git, top_level

_Tree = tuple[Mapping[str, str], Mapping[str, str]]
"""By their paths: digests of files, and commits of submodules."""


def _list_tree(folder: Repository, commit: str) -> _Tree:
    listed = ask_git(folder, "ls-tree", "-r", "-z", "--full-tree", commit)
    blobs, links = {}, {}
    for line in listed.decode(errors="surrogateescape").split("\0"):
        kind, _, path = line.partition("\t")
        if " blob " in kind:
            blobs[path] = kind.split(" ")[2]
        elif " commit " in kind:
            links[path] = kind.split(" ")[2]
    return blobs, links


_tree_of_commit = lru_cache(maxsize=64)(_list_tree)
"""Asked once: a commit never changes, and git takes as long as reading a suite."""


@dataclass(frozen=True)
class CommitFiles:
    """The files of one commit in git, with those of the commits that its submodules are at."""

    folder: Repository
    commit: str

    @cached_property
    def blobs(self) -> Mapping[str, str]:
        """Digest of each file, by its path; empty where git does not know the commit."""
        inside = ((path, module.blobs) for path, module in self.modules.items())
        deeper = {f"{path}/{name}": one for path, blobs in inside for name, one in blobs.items()}
        return {**self._tree[0], **deeper}

    @cached_property
    def _tree(self) -> _Tree:
        asked = _list_tree if self.commit == "HEAD" else _tree_of_commit  # HEAD moves
        return asked(self.folder, self.commit)

    @cached_property
    def modules(self) -> Mapping[str, CommitFiles]:
        """Submodules by their paths, each at the commit that this one pins. One has no files where
        git lacks that commit: then whatever lies there cannot be proven."""
        links = self._tree[1]
        if not links or not isinstance(self.folder, Path):
            return {}
        top = top_level(self.folder) or self.folder
        return {path: CommitFiles(top / path, commit) for path, commit in links.items()}

    @cached_property
    def paths(self) -> Mapping[str, Sequence[str]]:
        """Paths by the last part of them, for a search by the end of a path."""
        paths = defaultdict[str, list[str]](list)
        for path in self.blobs:
            paths[path.rpartition("/")[2]].append(path)
        return paths

    @cached_property
    def digests(self) -> frozenset[str]:
        return frozenset(self.blobs.values())

    def has(self, path: str, content: bytes) -> bool:
        """Return whether the file of this path has this content, whatever ends its lines."""
        return self.blobs.get(path, "-") in self.digests_of(content)

    def digests_of(self, content: bytes) -> tuple[str, ...]:
        """Return git's digests of a content, as it is and with the ends of lines that git keeps."""
        make = hashlib.sha256 if any(len(one) == 64 for one in self.digests) else hashlib.sha1
        contents = dict.fromkeys((content, content.replace(b"\r\n", b"\n")))
        return tuple(make(b"blob %d\0" % len(one) + one).hexdigest() for one in contents)

    def ending_with(self, path: str) -> list[str]:
        """Return the paths that are this one or end with it."""
        ends = self.paths.get(path.rpartition("/")[2], ())
        return [one for one in ends if one == path or one.endswith(f"/{path}")]

    def content(self, path: str) -> bytes:
        for place, module in self.modules.items():
            if path.startswith(f"{place}/"):
                return module.content(path.removeprefix(f"{place}/"))
        return ask_git(self.folder, "cat-file", "blob", self.blobs[path])

    def known(self, digests: Iterable[str]) -> frozenset[str]:
        """Return those of these digests that git has a file of, of whatever commit."""
        digests = [*digests]
        given = "".join(f"{one}\n" for one in digests).encode()
        answers = ask_git(self.folder, "cat-file", "--batch-check", given=given).decode()
        lines = (line.split(" ") for line in answers.splitlines())
        found = frozenset(fields[0] for fields in lines if "blob" in fields[1:2])
        return found.union(*(module.known(digests) for module in self.modules.values()))
