"""Suites from files: the examples, extends, presets, places of values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from small_suite import SUITE

from gpubench.errors import SuiteError
from gpubench.suite.arrays import axis_default, axis_values
from gpubench.suite.loading import LoadedSuite, load_suite, load_suites

EXAMPLES = Path(__file__).parent / "examples"
Load = Callable[..., LoadedSuite]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def faults_of(*paths: Path, preset: str | None = None) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_suites(paths, preset)
    return [str(fault) for fault in caught.value.faults]


def test_the_smallest_example_loads_as_written() -> None:
    kernel = load_suite(EXAMPLES / "vector_add.yaml").suite.kernels["vector_add"]
    assert axis_values(kernel.sizes["n"]) == tuple(2**e for e in range(10, 25, 2))
    launch = kernel.implementations["numba_cuda"].launch
    assert launch is not None
    assert launch.blocks() == ((4,), (64,), (256,), (1024,))
    assert launch.grids() == ("cover",)


def test_the_larger_example_loads_as_written() -> None:
    kernel = load_suite(EXAMPLES / "matmul.yaml").suite.kernels["matmul"]
    members = kernel.sizes["shape"].zip
    assert {name: axis_values(axis) for name, axis in members.items()} == {
        "m": (256, 1024, 2048),
        "k": (256, 1024, 512),
        "n": (256, 1024, 2048),
    }
    tiled = kernel.implementations["cuda_tiled"]
    assert {name: str(value) for name, value in tiled.with_.items()} == {"tile": "tile"}
    assert [[str(extent) for extent in grid] for grid in tiled.launch.grids()] == [
        ["cdiv(n, tile)", "cdiv(m, tile)"]
    ]


def test_the_larger_example_is_changed_by_its_preset() -> None:
    with_preset = load_suite(EXAMPLES / "matmul.yaml", "smoke")
    kernel = with_preset.suite.kernels["matmul"]
    assert with_preset.preset == "smoke"
    assert axis_values(kernel.parameters["tile"]) == (8,)
    assert axis_values(kernel.sizes["shape"].zip["m"]) == (64,)
    assert axis_values(kernel.parameters["dtype"]) == ("float32", "float64")


def test_every_value_has_the_place_that_set_it() -> None:
    path = EXAMPLES / "matmul.yaml"
    loaded = load_suite(path, "smoke")
    assert str(loaded.origin(("kernels", "matmul", "parameters", "tile"))) == (
        f"{path}:33:82 (preset smoke)"
    )
    assert str(loaded.origin(("kernels", "matmul", "parameters", "dtype"))) == f"{path}:9:14"


def test_a_default_has_the_place_of_what_is_around_it(load: Load) -> None:
    origin = load().origin(("kernels", "add", "check", "rtol"))
    assert (origin.line, origin.column) == (5, 5)


def test_a_preset_keeps_the_default_of_an_axis(load: Load) -> None:
    text = SUITE.replace("tile: [2, 4]", "tile: {values: [2, 4], default: 4}")
    text += (
        "presets: {smoke: {parameters: {tile: [2]}}, other: {parameters: {tile: {pow2: [0, 1]}}}}\n"
    )
    for preset, values in (("smoke", (2,)), ("other", (1, 2))):
        tile = load(text, preset).suite.kernels["add"].parameters["tile"]
        assert axis_values(tile) == values
        assert axis_default(tile) == 4


def test_a_preset_merges_the_launch_of_those_that_have_one(load: Load) -> None:
    text = SUITE.replace("block: [64]", "block: [64], shared_bytes: 8")
    text += "presets: {smoke: {launch: {block: [32]}, sampling: {repeat: 3}, devices: ['cuda:1']"
    text += "}}\n"
    kernel = load(text, "smoke").suite.kernels["add"]
    assert kernel.implementations["cuda"].launch.blocks() == ((32,),)
    assert kernel.implementations["cuda"].launch.shared_bytes == 8
    assert kernel.implementations["numpy"].launch is None
    assert kernel.sampling.repeat == 3
    assert kernel.devices == ("cuda:1",)


def test_a_preset_takes_fewer_times(load: Load) -> None:
    text = SUITE.replace("    call:", "    measure: [kernel, compile]\n    call:", 1)
    text += "presets: {smoke: {measure: [kernel]}, full: {kernels: {add: {measure: [cold]}}}}\n"
    expected = {None: ("kernel", "compile"), "smoke": ("kernel",), "full": ("cold",)}
    for preset, times in expected.items():
        assert load(text, preset).suite.kernels["add"].measure == times


def test_a_preset_is_refined_for_a_kernel_and_an_implementation(load: Load) -> None:
    text = SUITE + (
        "presets:\n"
        "  smoke:\n"
        "    sizes: {n: [2]}\n"
        "    implementations: {cuda: {launch: {block: [16]}}}\n"
        "    kernels: {add: {sizes: {n: [1]}, implementations: {numpy: {threads: [1]}}}}\n"
    )
    kernel = load(text, "smoke").suite.kernels["add"]
    assert axis_values(kernel.sizes["n"]) == (1,)
    assert kernel.implementations["cuda"].launch.blocks() == ((16,),)
    assert kernel.implementations["numpy"].threads == (1,)


def test_an_unknown_preset_names_those_that_there_are(load: Load, tmp_path: Path) -> None:
    load(SUITE + "presets: {smoke: {}, full: {}}\n")
    path = tmp_path / "small.yaml"
    assert faults_of(path, preset="smok") == [
        f"{path}: unknown preset 'smok'; did you mean 'smoke'?"
    ]


def test_a_preset_that_only_some_suites_have_is_a_warning_on_the_others() -> None:
    matmul, vector_add = load_suites([EXAMPLES], "smoke")
    assert (matmul.preset, matmul.warnings) == ("smoke", ())
    assert vector_add.preset is None
    assert [warning.message for warning in vector_add.warnings] == [
        "preset 'smoke' is not in this suite, which stands as it is; it has: none"
    ]


def test_an_extending_suite_merges_maps_and_replaces_lists(tmp_path: Path) -> None:
    write(tmp_path / "common" / "base.yaml", SUITE)
    path = write(
        tmp_path / "child.yaml",
        "suite: child\nextends: common/base.yaml\nkernels:\n  add:\n    sizes: {n: [2]}\n"
        "    implementations: {cuda: {launch: {block: [8]}}, numpy: {launcher: m:go}}\n",
    )
    loaded = load_suite(path)
    kernel = loaded.suite.kernels["add"]
    assert axis_values(kernel.sizes["n"]) == (2,)
    assert kernel.call == ("a", "b")
    assert kernel.implementations["cuda"].launch.blocks() == ((8,),)
    assert kernel.implementations["cuda"].factory == "some.module:make"
    assert kernel.implementations["numpy"].function is None
    assert loaded.origin(("kernels", "add", "sizes", "n")).path == str(path)
    assert loaded.origin(("kernels", "add", "call")).path == str(tmp_path / "common/base.yaml")


def test_a_fault_in_an_extended_file_has_its_place_there(tmp_path: Path) -> None:
    base = write(tmp_path / "base.yaml", SUITE.replace("call: [a, b]", "call: [a, c]"))
    path = write(tmp_path / "child.yaml", "suite: child\nextends: base.yaml\n")
    assert faults_of(path) == [f"{base}:10:15: unknown argument 'c'; allowed: a, b, n, dtype, tile"]


def test_files_that_extend_one_another_in_a_circle_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "one.yaml", "version: 1\nsuite: one\nextends: two.yaml\n")
    write(tmp_path / "two.yaml", "extends: one.yaml\n")
    assert (
        f"{tmp_path / 'two.yaml'}:1:10: extends 'one.yaml', which extends this file in turn;"
        " break the circle"
    ) in faults_of(path)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("gone.yaml", "extends 'gone.yaml', but there is no file {folder}/gone.yaml"),
        ("/etc/suite.yaml", "extends '/etc/suite.yaml'; allowed: a path relative to this file"),
    ],
)
def test_a_file_that_cannot_be_extended_is_a_fault(
    tmp_path: Path, written: str, message: str
) -> None:
    path = write(tmp_path / "small.yaml", SUITE + f"extends: {written}\n")
    assert faults_of(path) == [f"{path}:17:10: {message.format(folder=tmp_path)}"]


def test_all_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    one = write(tmp_path / "one.yaml", "a: 1\na: 2\n")
    write(tmp_path / "two.yaml", "[1]")
    gone = tmp_path / "gone.yaml"
    faults = faults_of(tmp_path, gone)
    assert f"{gone}: cannot be read: No such file or directory" in faults
    assert f"{one}:2:1: 'a' is there twice; the first is in line 1" in faults
    assert f"{tmp_path / 'two.yaml'}:1:1: a suite is a mapping; it starts with version: 1" in faults


def test_two_suites_of_one_name_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "one" / "small.yaml", SUITE)
    two = write(tmp_path / "two" / "small.yaml", SUITE)
    assert faults_of(one, two) == [
        f"{two}:2:8: suite 'small' is there twice; the other is {one}:2:8"
    ]


def test_an_old_name_of_a_suite_is_no_name_of_another(tmp_path: Path) -> None:
    one = write(tmp_path / "small.yaml", SUITE.replace("suite: small", "suite: small\nwas: big"))
    big = SUITE.replace("suite: small", "suite: big")
    two = write(tmp_path / "big.yaml", big)
    use = "which is a name that is in use; remove it, or rename the other"
    assert faults_of(tmp_path) == [f"{one}:3:6: was: suite 'small' cannot have been 'big', {use}"]
    two.unlink()
    load_suites([tmp_path])
    three = write(tmp_path / "third.yaml", big.replace("suite: big", "suite: third\nwas: big"))
    assert faults_of(tmp_path) == [
        f"{three}:3:6: was: 'big' cannot have been 'small' and 'third'; remove one"
    ]


def test_a_preset_and_a_suite_that_extends_keep_the_old_names_of_axes(tmp_path: Path) -> None:
    renamed = SUITE.replace("{n: [4, 8]}", "{n: {values: [4, 8], was: m}}")
    renamed = renamed.replace("suite: small", "suite: base\nwas: first")
    preset = "presets: {smoke: {sizes: {n: [2]}}}\n"
    base = write(tmp_path / "base.yaml", renamed + preset)
    over = "version: 1\nsuite: over\nextends: base.yaml\nkernels: {add: {sizes: {n: [16]}}}\n"
    path = write(tmp_path / "over.yaml", over)

    assert load_suite(base, "smoke").suite.kernels["add"].old_axes() == {"n": ("m",)}
    extended = load_suite(path).suite
    assert extended.kernels["add"].old_axes() == {"n": ("m",)}
    assert axis_values(extended.kernels["add"].sizes["n"]) == (16,)
    assert extended.was is None, "the other suite had that name"


def test_a_folder_without_suites_is_a_fault(tmp_path: Path) -> None:
    assert faults_of(tmp_path) == [f"{tmp_path}: no suite here; suite files end in .yaml"]


def test_pairs_load_instead_of_kernels(load: Load) -> None:
    pair = "{name: sum, baseline: bench.time_numpy, candidate: bench.time_numba}"
    suite = load(f"version: 1\nsuite: small\npairs: [{pair}]\n").suite
    assert [pair.candidate for pair in suite.pairs] == ["bench.time_numba"]


def test_a_file_with_very_many_faults_tells_the_first_hundred(tmp_path: Path) -> None:
    text = SUITE + "".join(f"field{number}: 1\n" for number in range(5000))
    faults = faults_of(write(tmp_path / "small.yaml", text))
    assert len(faults) == 101
    assert faults[0] == f"{tmp_path}/small.yaml: more than 100 faults; these are the first"


def test_presets_beyond_what_can_be_checked_quickly_are_refused(tmp_path: Path) -> None:
    presets = "".join(f"  p{number}: {{sizes: {{n: [1]}}}}\n" for number in range(400))
    (fault,) = faults_of(write(tmp_path / "small.yaml", f"{SUITE}presets:\n{presets}"))
    assert fault.endswith(
        ":18:3: 400 presets of a suite of 1640 values, each checked as a whole;"
        " allowed: 60, or split the suite"
    )


def test_what_a_preset_changes_keeps_the_place_of_its_name(load: Load) -> None:
    text = SUITE + (
        "presets:\n"
        "  smoke:\n"
        "    launch: {block: [32]}\n"
        "    implementations: {cuda: {launch: {grid: [4]}}}\n"
    )
    loaded = load(text, "smoke")
    path = ("kernels", "add", "implementations", "cuda")

    assert str(loaded.fault_at(path, "here")).endswith("small.yaml:13:7: here")
    assert loaded.origin((*path, "launch", "block")).line == 19
    assert loaded.origin((*path, "launch", "grid")).line == 20
    assert loaded.origin((*path, "factory")).preset is None


def test_a_fault_at_a_default_is_at_what_is_around_it(load: Load) -> None:
    fault = load().fault_at(("kernels", "add", "sampling", "repeat"), "here")
    assert (fault.line, fault.column) == (5, 5)


def test_the_default_backend_of_a_suite_is_read_and_replaced_like_other_keys(
    load: Load, tmp_path: Path
) -> None:
    assert load().suite.backend is None
    assert load(SUITE.replace("kernels:", "backend: numba\nkernels:")).suite.backend == "numba"
    path = write(tmp_path / "child.yaml", "suite: child\nextends: small.yaml\n")
    assert load_suite(path).suite.backend == "numba"
    path = write(path, "suite: child\nextends: small.yaml\nbackend: numpy\n")
    assert load_suite(path).suite.backend == "numpy"


@pytest.mark.parametrize(
    ("fills", "message"),
    [
        ({"a": "b", "b": "a"}, ["array 'a' is filled", "array 'b' is filled"]),
        ({"a": "b", "b": "c", "c": "b"}, ["'a' is filled", "'b' is filled", "'c' is filled"]),
        ({"a": "b", "b": "c", "c": None}, []),
    ],
)
def test_arrays_that_are_filled_like_one_another_in_a_circle_are_refused(
    tmp_path: Path, fills: dict[str, str | None], message: list[str]
) -> None:
    arrays = "".join(
        f"      {name}: {{shape: [n], dtype: int32{f', fill: {{like: {like}}}' if like else ''}}}\n"
        for name, like in fills.items()
    )
    text = (
        "version: 1\nsuite: round\nkernels:\n  add:\n    sizes: {n: [4]}\n"
        f"    arrays:\n{arrays}    call: [{', '.join(fills)}]\n    returns: [sum]\n"
        "    implementations: {numpy: {function: some.module:add}}\n"
    )
    path = write(tmp_path / "round.yaml", text)
    if not message:
        assert load_suite(path).suite.suite == "round"
        return
    faults = faults_of(path)
    assert len(faults) == len(message)
    assert all(part in fault for part, fault in zip(message, faults, strict=True))
