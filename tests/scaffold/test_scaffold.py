"""``gpubench init`` makes a directory ready for asv and overwrites nothing."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

import pytest
import yaml
from asv import util as asv_util
from asv.config import Config
from asv.environment import get_environments
from packaging.requirements import Requirement

import softcuda
from gpubench import files
from gpubench.backends import devices
from gpubench.backends.devices import Gpu
from gpubench.distribution import write_local_requirements
from gpubench.measure import compiling_ahead
from gpubench.measure.sampling import sample_plan
from gpubench.results.ratio import rank
from gpubench.scaffold.first_steps import next_steps
from gpubench.scaffold.project import ProjectError, find_project, package_name, write_project
from gpubench.scaffold.requirements import device_requirement, quoted, requirement
from gpubench.suite.loading import load_suites

CHECKOUT = Path(__file__).resolve().parents[2]
GPU = Gpu(0, "NVIDIA H200", "GPU-one", "580")


def files_below(directory: Path) -> list[str]:
    paths = (path.relative_to(directory) for path in directory.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in paths)


def suite_functions(directory: Path) -> list[str]:
    suite = yaml.safe_load((directory / "suites/saxpy.yaml").read_text())
    implementations = suite["kernels"]["saxpy"]["implementations"]
    return [implementation["function"] for implementation in implementations.values()]


def asv_configuration(directory: Path) -> Config:
    return Config.load(str(directory / "asv.conf.json"))


def make_project(directory: Path, package: str, build_file: str = "pyproject.toml") -> Path:
    (directory / package).mkdir(parents=True)
    (directory / package / "__init__.py").touch()
    (directory / build_file).write_text('[project]\nname = "My-Tool"\nversion = "1"\n')
    return directory


def test_an_empty_directory_gets_everything(tmp_path: Path) -> None:
    directory = tmp_path / "my-proj 2"
    written = write_project(directory)
    assert files_below(directory) == [
        ".gitignore",
        "asv.conf.json",
        "benchmarks/__init__.py",
        "benchmarks/suites.py",
        "gpubench.schema.json",
        "my_proj_2/__init__.py",
        "my_proj_2/saxpy.py",
        "pyproject.toml",
        "suites/saxpy.yaml",
    ]
    assert all(written.values())
    assert sorted(path.relative_to(directory).as_posix() for path in written) == files_below(
        directory
    )


def test_the_suite_names_functions_of_the_new_package(tmp_path: Path) -> None:
    write_project(tmp_path / "my-proj 2")
    assert suite_functions(tmp_path / "my-proj 2") == [
        "my_proj_2.saxpy:saxpy_numpy",
        "my_proj_2.saxpy:saxpy_parallel",
        "my_proj_2.saxpy:saxpy_cuda",
    ]


def test_the_first_suite_names_its_baseline_and_takes_samples_enough(tmp_path: Path) -> None:
    write_project(tmp_path / "project")
    path = tmp_path / "project/suites/saxpy.yaml"
    (loaded,) = load_suites([path], "smoke")
    kernel = loaded.suite.kernels["saxpy"]
    assert f"The one named {kernel.baseline} is the baseline" in path.read_text()
    plan = sample_plan(kernel.sampling, "kernel")
    samples = plan.processes * plan.samples(0.01)
    assert rank(samples) > 1  # an interval that bears a slow first round


def test_a_new_project_is_named_after_its_directory(tmp_path: Path) -> None:
    write_project(tmp_path / "my-proj 2")
    project = tomllib.loads((tmp_path / "my-proj 2/pyproject.toml").read_text())
    assert project["project"]["name"] == "my-proj-2"
    assert project["project"]["dependencies"] == ["numba", "numpy"]
    assert project["tool"]["setuptools"]["packages"] == ["my_proj_2"]


def on_a_machine_with(
    monkeypatch: pytest.MonkeyPatch, *gpus: Gpu, cuda: tuple[int, int] | None = None
) -> None:
    monkeypatch.setattr(devices, "known_gpus", lambda: gpus)
    monkeypatch.setattr(devices, "cuda_version", lambda: cuda)


def test_asv_reads_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_machine_with(monkeypatch)
    write_project(tmp_path / "mine")
    configuration = asv_configuration(tmp_path / "mine")
    assert configuration.project == "mine"
    assert configuration.environment_type == "virtualenv"
    assert configuration.launch_method == "forkserver"
    assert sorted(configuration.matrix["req"]) == sorted(
        ["numba", "numpy", "msgspec", "pydantic", "pyyaml", "threadpoolctl", "nvidia-ml-py"]
    )


@pytest.mark.parametrize(
    ("cuda", "requirement"),
    [
        ((13, 1), "softcuda==0.9"),
        ((12, 9), "'numba-cuda[cu12]' 'numpy<2.5'"),
        (None, "softcuda==0.9"),
    ],
)
def test_with_a_gpu_asv_installs_numba_cuda_for_its_driver(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cuda: tuple[int, int] | None,
    requirement: str,
) -> None:
    on_a_machine_with(monkeypatch, GPU, cuda=cuda)
    monkeypatch.setattr(
        "gpubench.scaffold.requirements.device_requirement", lambda: "softcuda==0.9"
    )
    write_project(tmp_path)
    configuration = asv_configuration(tmp_path)
    assert configuration.matrix["req"]["numba-cuda"] == []
    command = f"in-dir={{env_dir}} python -m pip install {requirement}"
    assert configuration.install_command[3] == command
    assert len(configuration.install_command) == 5


def test_without_a_gpu_asv_installs_nothing_for_cuda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_machine_with(monkeypatch)
    write_project(tmp_path)
    configuration = asv_configuration(tmp_path)
    assert not {"numba-cuda", "softcuda"} & configuration.matrix["req"].keys()
    assert not any("cuda" in command for command in configuration.install_command)


def test_systems_go_into_asv_s_environment_and_those_that_pin_others_into_their_own(
    tmp_path: Path,
) -> None:
    write_project(tmp_path, ["dask", "joblib", "modin"])
    configuration = asv_configuration(tmp_path)
    together = configuration.matrix["req"]
    assert together.keys() >= {"dask", "distributed", "joblib", "numba", "numpy"}
    assert "modin" not in together
    (apart,) = configuration.include
    assert apart["req"].keys() >= {"modin", "ray", "pyarrow", "numba", "pydantic"}
    environments = list(get_environments(configuration, []))
    assert len(environments) == 2
    assert sum("modin" in environment.name for environment in environments) == 1


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("daks", "no backend 'daks' has an extra of gpubench; did you mean 'dask'? Allowed: "),
        ("numba", "no backend 'numba' has an extra of gpubench"),
        ("dev", "no backend 'dev' has an extra of gpubench"),
    ],
)
def test_what_is_no_system_is_refused_before_anything_is_written(
    tmp_path: Path, system: str, message: str
) -> None:
    with pytest.raises(ProjectError, match=re.escape(message)):
        write_project(tmp_path, [system])
    assert not files_below(tmp_path)


def test_a_configuration_that_was_kept_is_told_what_systems_need(tmp_path: Path) -> None:
    (tmp_path / "asv.conf.json").write_text("{}")
    (step, *_) = next_steps(tmp_path, write_project(tmp_path, ["joblib"]), ["joblib"])
    assert "and joblib. Its benchmark_dir" in step


def test_asv_installs_each_requirement_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads them itself, and takes the 13 of ``numba-cuda[cu13]`` for a version."""
    on_a_machine_with(monkeypatch, GPU)
    write_project(tmp_path)
    for name in asv_configuration(tmp_path).matrix["req"]:
        declared = asv_util.ParsedPipDeclaration(f"{name} ")
        assert (declared.pkgname, declared.specification) == (name, None)


def test_the_door_for_asv_is_the_one_of_this_repository(tmp_path: Path) -> None:
    write_project(tmp_path)
    for name in ("benchmarks/suites.py", "benchmarks/__init__.py"):
        assert (tmp_path / name).read_text() == (CHECKOUT / name).read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    theirs = {
        "asv.conf.json": "{}",
        "benchmarks/suites.py": "# mine",
        "suites/saxpy.yaml": "suite: mine",
        ".gitignore": "*.log\n",
    }
    for name, text in theirs.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    files = write_project(tmp_path)
    assert {name: (tmp_path / name).read_text() for name in theirs} == theirs
    kept = {path.relative_to(tmp_path).as_posix() for path, is_new in files.items() if not is_new}
    assert kept == set(theirs)


def test_a_second_run_keeps_all_that_the_first_wrote(tmp_path: Path) -> None:
    first = write_project(tmp_path / "mine")
    # Now it is a project, so that pyproject.toml and the package are not in question any more.
    asked = {*first} - {
        tmp_path / "mine/pyproject.toml",
        tmp_path / "mine/mine/__init__.py",
        tmp_path / "mine/mine/saxpy.py",
        tmp_path / "mine/suites/saxpy.yaml",
    }
    second = write_project(tmp_path / "mine")
    assert {*second} == asked
    assert not any(second.values())
    assert files_below(tmp_path / "mine/mine") == ["__init__.py", "saxpy.py"]


@pytest.mark.parametrize("stopped_at", range(7))
def test_what_was_stopped_on_a_full_disk_goes_on_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped_at: int
) -> None:
    write_project(tmp_path / "whole" / "mine")
    write = files.write_new
    written: list[Path] = []

    def until_it_is_full(path: Path, content: bytes) -> None:
        if len(written) == stopped_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        written.append(path)
        write(path, content)

    directory = tmp_path / "stopped" / "mine"
    with monkeypatch.context() as full:
        full.setattr("gpubench.scaffold.project.write_new", until_it_is_full)
        with pytest.raises(ProjectError, match="No space left on device"):
            write_project(directory)
    write_project(directory)

    names = files_below(tmp_path / "whole" / "mine")
    assert files_below(directory) == names
    for name in names:
        whole = tmp_path / "whole" / "mine" / name
        assert (directory / name).read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("there", ["mine.pyx", "mine.cpython-313-linux.so", "mine"])
def test_a_new_package_hides_no_module_and_is_no_file(tmp_path: Path, there: str) -> None:
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / there).write_text("theirs = 1\n")
    (directory / "mine_kernels.pyx").write_text("theirs = 1\n")

    write_project(directory)

    written = tomllib.loads((directory / "pyproject.toml").read_text())
    assert written["tool"]["setuptools"]["packages"] == ["mine_kernels_2"]
    assert suite_functions(directory)[0] == "mine_kernels_2.saxpy:saxpy_numpy"
    assert files_below(directory / "mine_kernels_2") == ["__init__.py", "saxpy.py"]


def test_a_new_package_hides_nothing_that_is_installed(tmp_path: Path) -> None:
    write_project(tmp_path / "yaml")
    assert files_below(tmp_path / "yaml/yaml_kernels") == ["__init__.py", "saxpy.py"]


def test_the_folder_of_benchmarks_hides_no_module(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.py").write_text("theirs = 1\n")
    write_project(tmp_path)
    assert asv_configuration(tmp_path).benchmark_dir == "benchmarks_kernels"
    assert files_below(tmp_path / "benchmarks_kernels") == ["__init__.py", "suites.py"]


def test_an_existing_project_gets_an_example_beside_its_code_where_it_is_asked_for(
    tmp_path: Path,
) -> None:
    make_project(tmp_path, "my_tool")
    write_project(tmp_path)
    assert files_below(tmp_path / "my_tool") == ["__init__.py"]
    assert not (tmp_path / "suites").exists()
    write_project(tmp_path, example=True)
    assert files_below(tmp_path / "my_tool") == ["__init__.py", "saxpy.py"]
    assert suite_functions(tmp_path)[0] == "my_tool.saxpy:saxpy_numpy"
    assert asv_configuration(tmp_path).project == "My-Tool"


def test_a_package_under_src_is_found(tmp_path: Path) -> None:
    make_project(tmp_path, "src/my_tool")
    write_project(tmp_path, example=True)
    assert (tmp_path / "src/my_tool/saxpy.py").is_file()
    assert suite_functions(tmp_path)[0] == "my_tool.saxpy:saxpy_numpy"


def test_the_package_that_bears_the_projects_name_is_chosen(tmp_path: Path) -> None:
    make_project(tmp_path, "my_tool")
    for other in ("another", "tests"):
        (tmp_path / other).mkdir()
        (tmp_path / other / "__init__.py").touch()
    write_project(tmp_path, example=True)
    assert (tmp_path / "my_tool/saxpy.py").is_file()
    assert files_below(tmp_path / "another") == ["__init__.py"]


@pytest.mark.parametrize("taken", ["saxpy.py", "saxpy/__init__.py"])
def test_a_module_of_the_same_name_is_left_alone(tmp_path: Path, taken: str) -> None:
    make_project(tmp_path, "my_tool")
    (tmp_path / "my_tool" / taken).parent.mkdir(exist_ok=True)
    (tmp_path / "my_tool" / taken).write_text("mine = 1\n")
    write_project(tmp_path, example=True)
    assert (tmp_path / "my_tool" / taken).read_text() == "mine = 1\n"
    assert suite_functions(tmp_path)[0] == "my_tool.saxpy_kernels:saxpy_numpy"
    assert (tmp_path / "my_tool/saxpy_kernels.py").is_file()


def test_an_edited_module_is_not_written_a_second_time_under_another_name(tmp_path: Path) -> None:
    write_project(tmp_path / "mine")
    with (tmp_path / "mine/mine/saxpy.py").open("a") as module:
        module.write("# edited\n")
    write_project(tmp_path / "mine", example=True)
    assert files_below(tmp_path / "mine/mine") == ["__init__.py", "saxpy.py"]


def test_a_project_in_a_subdirectory_of_its_repository_says_so_to_asv(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_project(tmp_path / "python/mine")
    configuration = asv_configuration(tmp_path / "python/mine")
    assert (configuration.repo, configuration.repo_subdir) == ("../..", "python/mine")


def test_a_project_without_a_package_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("setup()")
    with pytest.raises(ProjectError) as error:
        write_project(tmp_path)
    assert str(error.value) == (
        f"no package and no module found in {str(tmp_path)!r} (a folder with __init__.py, there or "
        "in src/, or a NAME.py); make one, or start in an empty folder"
    )
    assert files_below(tmp_path) == ["setup.py"]


@pytest.mark.parametrize("root", [None, "[tool.uv.workspace]\n"])
def test_a_repository_of_several_projects_names_them(tmp_path: Path, root: str | None) -> None:
    for name in ("packages/one", "two", ".venv/other", "tests/made"):
        make_project(tmp_path / name, "kernels")
    if root is not None:
        (tmp_path / "pyproject.toml").write_text(root)
    before = files_below(tmp_path)
    with pytest.raises(ProjectError) as error:
        write_project(tmp_path)
    said = f"no project in {str(tmp_path)!r} itself, but below it: packages/one, two; start in one "
    assert str(error.value).startswith(f"{said}of them: gpubench init packages/one")
    assert files_below(tmp_path) == before
    if root is None:  # where the user says so, one of its own
        assert write_project(tmp_path, project=find_project(tmp_path, "all"))


def test_a_project_of_modules_gets_no_example(tmp_path: Path) -> None:
    (tmp_path / "mine.py").touch()
    with pytest.raises(ProjectError, match="a project of modules gets no example"):
        write_project(tmp_path, example=True)
    assert files_below(tmp_path) == ["mine.py"]


def test_a_file_where_a_folder_has_to_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "suites").write_text("not a folder")
    with pytest.raises(ProjectError) as error:
        write_project(tmp_path)
    assert str(error.value) == f"cannot write {str(tmp_path / 'suites')!r}: File exists"


def test_a_broken_pyproject_is_named(tmp_path: Path) -> None:
    make_project(tmp_path, "tool")
    (tmp_path / "pyproject.toml").write_text("[project\n")
    with pytest.raises(ProjectError) as error:
        write_project(tmp_path)
    assert str(error.value).startswith(f"cannot read {str(tmp_path / 'pyproject.toml')!r}: ")
    assert str(error.value).endswith("; mend it first")


@pytest.mark.parametrize(
    ("directory", "package"),
    [
        ("my-proj 2", "my_proj_2"),
        ("2nd try", "project_2nd_try"),
        ("Größe", "grosse"),
        ("numpy", "numpy_kernels"),
        ("class", "class_kernels"),
        ("json", "json_kernels"),
        ("Benchmarks", "benchmarks_kernels"),
        ("---", "kernels"),
        ("日本", "kernels"),
    ],
)
def test_a_directorys_name_becomes_an_import_name(directory: str, package: str) -> None:
    assert package_name(directory) == package


def test_the_next_steps_begin_with_the_folder_where_it_is_another(tmp_path: Path) -> None:
    directory = tmp_path / "begins with its folder"
    assert next_steps(directory, write_project(directory))[0] == f"cd '{directory}'"


def test_the_next_steps_of_a_new_project_begin_with_its_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    files = write_project(tmp_path)
    assert next_steps(tmp_path, files) == [
        "git init",
        "git add . && git commit -m 'Benchmarks'",
        "asv machine --yes",
        "GPUBENCH_PRESET=smoke asv run HEAD^!",
        "gpubench report",
    ]
    (tmp_path / ".asv-machine.json").write_text("{}")
    assert "asv machine --yes" not in next_steps(tmp_path, files)


def test_the_next_steps_of_a_measured_project_are_not_those_of_the_first_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = write_project(tmp_path)
    machine = tmp_path / ".asv/results/mine/machine.json"
    machine.parent.mkdir(parents=True)
    machine.write_text("{}")
    assert next_steps(tmp_path, files) == ["git init", "git add . && git commit -m 'Benchmarks'"]


def test_a_repository_is_not_made_twice(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    steps = next_steps(tmp_path / "inside", write_project(tmp_path / "inside"))
    assert steps[1] == "git add . && git commit -m 'Benchmarks'"
    assert "git init" not in steps


def test_what_was_kept_and_lacks_something_is_a_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_machine_with(monkeypatch, GPU, cuda=(13, 0))
    monkeypatch.setattr(
        "gpubench.scaffold.requirements.device_requirement", lambda: "softcuda==0.9"
    )
    (tmp_path / "asv.conf.json").write_text("{}")
    configuration, replacing, *_ = next_steps(tmp_path, write_project(tmp_path))
    assert configuration.startswith("asv.conf.json was there and is kept: its environments")
    assert " and softcuda==0.9. Its benchmark_dir " in configuration
    assert 'Its plugins have to name ".gpubench.asv_plugin"' in configuration
    assert "--no-deps --force-reinstall {wheel_file}" in replacing


class Installed(Distribution):
    """An installed gpubench, or softcuda, of version 1.2 with a given origin."""

    def __init__(self, origin: str | None, name: str = "gpubench-suite") -> None:
        self._files = {
            "METADATA": f"Name: {name}\nVersion: 1.2\n",
            "direct_url.json": origin,
        }

    def read_text(self, filename: str) -> str | None:
        return self._files.get(filename)

    def locate_file(self, path: object) -> Path:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "gpubench-suite==1.2"),
        ('{"url": "file:///no/longer/there.whl", "archive_info": {}}', "gpubench-suite==1.2"),
        (
            '{"url": "https://example.org/g.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}',
            "gpubench-suite @ git+https://example.org/g.git@abc",
        ),
        (
            '{"url": "https://example.org/g.whl", "archive_info": {}}',
            "gpubench-suite @ https://example.org/g.whl",
        ),
    ],
)
def test_asv_installs_gpubench_from_where_this_one_came(origin: str | None, expected: str) -> None:
    assert requirement(Installed(origin)) == expected


def test_asv_installs_gpubench_from_the_folder_that_this_one_was_installed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "a b{c}"
    source.mkdir()
    origin = f'{{"url": "{source.as_uri()}"}}'
    assert requirement(Installed(origin)) == "-r {conf_dir}/.asv/gpubench.txt"
    assert requirement(Installed(origin, "softcuda")) == "-r {conf_dir}/.asv/softcuda.txt"
    # No path of this machine stands in the configuration: asv's plugin writes those files.
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.distribution", lambda name: Installed(origin, name))
        write_local_requirements(tmp_path)
    for name, file in (("gpubench-suite", "gpubench.txt"), ("softcuda", "softcuda.txt")):
        written = (tmp_path / ".asv" / file).read_text()
        assert written == f"{name} @ {source.as_uri()}\n"
        assert "{" not in written


def test_a_softcuda_that_is_not_installed_is_the_one_that_the_extra_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("gpubench.scaffold.requirements.distribution", missing)
    asked = Requirement(device_requirement())
    assert asked.name == "softcuda" and asked.specifier.contains(softcuda.__version__)


def test_a_folder_of_a_repository_is_named_with_its_revision() -> None:
    vcs = '"vcs_info": {"vcs": "git", "commit_id": "abc"}, "subdirectory": "softcuda"'
    installed = Installed(f'{{"url": "https://example.org/g.git", {vcs}}}', "softcuda")
    expected = "softcuda @ git+https://example.org/g.git@abc#subdirectory=softcuda"
    assert requirement(installed) == expected


@pytest.mark.parametrize("text", ["gpubench-suite==1.2", "/a b/{x}/it's", 'C:\\gpu "bench"'])
def test_asv_takes_the_requirement_as_one_word(text: str) -> None:
    command, *_ = asv_util.interpolate_command(f"pip install {quoted(text)}", {})
    assert command == ["pip", "install", text]


def test_the_install_command_is_pips_and_then_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_machine_with(monkeypatch)
    write_project(tmp_path)
    engine, code, dependencies, compiling = asv_configuration(tmp_path).install_command
    assert shlex.split(engine)[:6] == [
        "in-dir={env_dir}", "python", "-m", "pip", "install", "--no-deps",
    ]  # fmt: skip
    replacing = "in-dir={env_dir} python -m pip install --no-deps --force-reinstall {wheel_file}"
    assert code == replacing
    assert dependencies == "in-dir={env_dir} python -m pip install {wheel_file}"
    words = asv_util.interpolate_command(compiling, {"env_dir": "/a b", "conf_dir": "/c d"})
    program = ["python", "-m", compiling_ahead.__name__, "/c d/suites"]
    assert words == (program, {}, None, "/a b")  # None: whatever it returns
    assert installed_version("gpubench-suite") in engine or ".asv/gpubench.txt" in engine
    assert CHECKOUT.as_posix() not in engine
