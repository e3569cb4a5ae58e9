"""One repository and one environment of asv for the whole session."""

from __future__ import annotations

from pathlib import Path

import pytest
from asv_project import (
    Project,
    build_distributions,
    forget_other_work,
    isolated_environment,
    make_cuda_project,
    make_project,
)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home directory that holds nothing of the developer's."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what ``build_distributions`` builds."""
    return build_distributions(tmp_path_factory.mktemp("build"))


@pytest.fixture(scope="session")
def wheel(distributions: dict[str, Path]) -> Path:
    return distributions["wheel"]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, home: Path) -> Project:
    """Make the repository, with the machine known to asv and its environment made; not measured."""
    folder = tmp_path_factory.mktemp("sample")
    made = make_project(folder / "toolkit", isolated_environment(home))
    made.asv("machine", "--yes")
    made.asv("check")
    return made


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory, project: Project) -> Project:
    """Make a copy with all four commits measured by one ``asv run start..main``. Read it only."""
    copy = project.copy(tmp_path_factory.mktemp("history") / "toolkit")
    # asv exits with 2 when a benchmark failed, and the wrong kernel does.
    copy.asv("run", "start..main", code=2)
    forget_other_work(copy.results)
    return copy


@pytest.fixture
def cuda_project(tmp_path: Path, home: Path) -> Project:
    """Make one commit with CUDA kernels, measured by the Python that runs the tests: an environment
    of asv's own would only install numba-cuda again."""
    return make_cuda_project(tmp_path / "scaling", isolated_environment(home))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder as an end-to-end test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.end_to_end)
