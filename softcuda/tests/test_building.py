"""What is built once: by one process at a time, file by file on all processors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from softcuda import build

SOURCE = "int softcuda_test_{name}(void) {{ return 1; }}\n"


def test_a_library_that_several_ask_for_at_once_is_built_once(tmp_path: Path) -> None:
    library, all_here, built = tmp_path / "lib.so", Barrier(4), []

    def ask(number: int) -> None:
        all_here.wait()
        with build.building(library) as is_missing:
            if is_missing:
                built.append(number)
                build.write_at_once(library, "built")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))

    assert len(built) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["lib.so"], "no lock is left"


def test_where_building_fails_the_next_one_tries(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    with pytest.raises(build.UnavailableError), build.building(library) as is_missing:
        assert is_missing
        raise build.UnavailableError("no compiler")

    with build.building(library) as is_missing:
        assert is_missing


def test_sources_are_compiled_apart_and_a_fault_of_one_is_told(tmp_path: Path) -> None:
    sources = [tmp_path / f"{name}.c" for name in ("one", "two")]
    for source in sources:
        source.write_text(SOURCE.format(name=source.stem))

    told: list[tuple[int, int]] = []
    objects = build.compile_each(sources, tmp_path, ["-O0"], lambda *far: told.append(far))
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert [objects[source].name for source in sources] == ["one.o", "two.o"]
    assert all(path.is_file() for path in objects.values())

    sources[1].write_text("int f(void) { return no_such; }")
    with pytest.raises(build.UnavailableError, match="no_such"):
        build.compile_each(sources, tmp_path, ["-O0"])
