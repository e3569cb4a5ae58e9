"""Files are written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpubench.files import write_new


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_new_file_is_whole_and_alone(tmp_path: Path) -> None:
    write_new(tmp_path / "new", b"content")

    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert (tmp_path / "new").read_bytes() == b"content"


@pytest.mark.parametrize("missing", [None, "hardlink_to"])
def test_on_a_full_disk_there_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    if missing:
        monkeypatch.setattr(Path, missing, full)
        monkeypatch.setattr(Path, "rename", full)
    else:
        opened = Path.open

        class Full:
            def __init__(self, file: Any) -> None:
                self.file = file

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                self.file.close()

            write = full

        monkeypatch.setattr(Path, "open", lambda *args: Full(opened(*args)))

    with pytest.raises(OSError, match="No space left") as error:
        write_new(tmp_path / "new", b"content")

    assert error.value.filename == str(tmp_path / "new")
    assert [*tmp_path.iterdir()] == []


def test_without_links_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "hardlink_to", full)
    write_new(tmp_path / "new", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def link_nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, link_nowhere])
def test_what_is_there_is_never_replaced(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "there")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "there", b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not (tmp_path / "there").is_file() or (tmp_path / "there").read_bytes() == b""
