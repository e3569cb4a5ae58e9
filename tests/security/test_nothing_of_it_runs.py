"""Commands that only read run nothing of a repository that nobody should trust."""

from __future__ import annotations

import signal
from urllib.request import urlopen

import pytest
from untrusted import NUMPY, Untrusted, plant

IN_EACH_RUN = (
    ("check",),
    ("plan", "--json"),
    ("report",),
    ("advise", "add", "-a", "n=4"),
    ("fleet", "status", "--scheduler", "tcp://127.0.0.1:1"),
    ("compare", "aaaaaaaa", "master"),
    ("query", "select * from results"),
)
READING = (
    *IN_EACH_RUN,
    ("plan",),
    ("plan", "--list"),
    ("plan", "--explain", f"{NUMPY} n=4"),
    ("plan", "--where", "n == 4"),
    ("devices",),
    ("schema",),
    ("report", "--json"),
    ("choose",),
    ("advise", "add", "-a", "n=9", "--json"),
    ("compare", "cccccccc", "master"),
    ("query",),
    ("export", "--format", "bencher"),
    ("export", "--format", "csv", "--output", "cases.csv"),
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Untrusted:
    return plant(tmp_path_factory.mktemp("untrusted"))


@pytest.mark.parametrize(
    "arguments",
    [one if one in IN_EACH_RUN else pytest.param(one, marks=pytest.mark.ci) for one in READING],
    ids=" ".join,
)
def test_a_command_that_reads_runs_nothing_of_the_repository(
    repository: Untrusted, arguments: tuple[str, ...]
) -> None:
    repository.ran.unlink(missing_ok=True)

    done = repository.run(*arguments)

    assert repository.what_ran() == []
    assert "Traceback" not in done.stderr


def test_nor_do_the_processes_that_read_many_results(repository: Untrusted) -> None:
    # From 32 MiB on several processes read (`MUCH`); blanks cost the parser nothing.
    results = sorted((repository.folder / ".asv" / "results" / "runner").glob("????????-*.json"))
    texts = [path.read_text() for path in results]
    for path, text in zip(results, texts, strict=True):
        path.write_text(text + " " * 2**24)
    repository.ran.unlink(missing_ok=True)

    done = repository.run("query", "select count(*) from results")

    for path, text in zip(results, texts, strict=True):
        path.write_text(text)
    assert repository.what_ran() == []
    assert done.returncode == 0, done.stderr


def test_grid_runs_no_module_of_the_working_folder(repository: Untrusted) -> None:
    repository.ran.unlink(missing_ok=True)

    repository.run("grid", "2", "4")

    assert repository.what_ran() == []


def test_numba_in_a_process_that_only_reads_is_not_imported(repository: Untrusted) -> None:
    # It reads .numba_config.yaml of the working folder, which names a library to load.
    for arguments in (("check",), ("plan",), ("devices",), ("report",)):
        done = repository.run(*arguments, PYTHONPROFILEIMPORTTIME="1")
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}

        assert "gpubench.cli" in imported
        assert not imported & {"numba", "torch", "jax", "ray"}, arguments


def test_nor_does_serve(repository: Untrusted) -> None:
    repository.ran.unlink(missing_ok=True)

    with repository.started("serve", "--port", "0") as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[0]
        with urlopen(url) as page:
            assert b"gpubench" in page.read()
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=100)

    assert repository.what_ran() == []
