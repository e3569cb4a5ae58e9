"""Figures of GPUs: those of data sheets, and files that describe another GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.errors import SuiteError
from gpubench.work.gpus import GPUS, MULTIPROCESSORS, load_gpu

DATA_SHEETS = {
    # Peak rates of data sheets, in TFLOP/s: float32, float64, float16 without tensor cores.
    "T4": (8.1, None, 16.3),
    "A100": (19.5, 9.7, 78.0),
    "RTX 4090": (82.6, 1.29, 82.6),
    "H100": (66.9, 33.5, 133.8),
    "B200": (75.0, 37.5, None),
}

L2_MIB = {"T4": 4, "A100": 40, "RTX 4090": 72, "H100": 50, "B200": 126}
"""Cache of white papers, in MiB."""

A10 = """\
name: A10
architecture: 8.6
multiprocessors: 72
clock_mhz: 1695
memory_gb_per_second: 600
l2_mb: 6
source: NVIDIA A10 data sheet
"""


@pytest.mark.parametrize("name", GPUS)
def test_rates_come_to_those_of_data_sheets(name: str) -> None:
    gpu = GPUS[name]
    per_clock = gpu.limits.float32_per_clock, gpu.limits.float64_per_clock
    for rate, published in zip(
        (*per_clock, gpu.limits.float16_per_clock), DATA_SHEETS[name], strict=True
    ):
        if published is not None:
            peak = gpu.multiprocessors * rate * 2 * gpu.clock_hz / 1e12
            assert peak == pytest.approx(published, rel=0.01)
    assert gpu.source


@pytest.mark.parametrize("written", ["RTX 4090", "rtx4090", "RTX4090", " rtx 4090"])
def test_a_gpu_is_found_however_its_name_is_spaced(written: str) -> None:
    assert load_gpu(written) is GPUS["RTX 4090"]


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(SuiteError, match=r"T4, A100, RTX 4090, H100, B200.*did you mean 'H100'"):
        load_gpu("H10O")


def test_the_l2_cache_has_the_bytes_of_the_white_paper() -> None:
    assert {name: gpu.l2_bytes for name, gpu in GPUS.items()} == {
        name: mib * 1024 * 1024 for name, mib in L2_MIB.items()
    }


def written(folder: Path, text: str) -> str:
    path = folder / "gpu.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_describes_a_gpu(tmp_path: Path) -> None:
    gpu = load_gpu(written(tmp_path, A10))
    assert (gpu.name, gpu.architecture, gpu.multiprocessors) == ("A10", (8, 6), 72)
    assert (gpu.clock_hz, gpu.memory_bytes_per_second) == (1.695e9, 600e9)
    assert (gpu.l2_bytes, gpu.source) == (6 << 20, "NVIDIA A10 data sheet")
    assert gpu.limits == MULTIPROCESSORS[8, 6]


def test_a_file_overrides_what_its_architecture_says(tmp_path: Path) -> None:
    gpu = load_gpu(written(tmp_path, A10 + "float64_per_clock: 4\nblocks: 8\n"))
    assert (gpu.limits.float64_per_clock, gpu.limits.blocks) == (4, 8)
    assert gpu.limits.threads == MULTIPROCESSORS[8, 6].threads


def test_an_architecture_without_figures_needs_all_of_them(tmp_path: Path) -> None:
    thor = A10.replace("8.6", "11.0")
    with pytest.raises(SuiteError, match=r"gpu\.yaml:2:15: .*11\.0 are not known; write threads, "):
        load_gpu(written(tmp_path, thor))
    limits = (
        "threads: 1536\nblocks: 24\nshared_bytes: 233472\nshared_bytes_per_block: 232448\n"
        "float16_per_clock: 256\nfloat32_per_clock: 128\nfloat64_per_clock: 2\n"
        "special_per_clock: 16\n"
    )
    assert load_gpu(written(tmp_path, thor + limits)).limits.threads == 1536


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            A10.replace("clock_mhz", "clok_mhz"),
            r":4:1: no such key of a GPU: 'clok_mhz'.*'clock_mhz'",
        ),
        (A10.replace("clock_mhz: 1695\n", ""), r"needs the key clock_mhz: a number"),
        (A10.replace("name: A10\n", ""), r"needs the key name: what tables call it"),
        (A10.replace("1695", "-1"), r":4:12: clock_mhz is -1; write a number above 0"),
        (A10.replace("72", "7.5"), r"multiprocessors is 7\.5; write a whole number above 0"),
        (A10.replace("72", "many"), r"multiprocessors is 'many'; write a whole number"),
        (A10.replace("72", "true"), r"multiprocessors is True; write a whole number"),
        (A10.replace("8.6", "Ampere"), r":2:15: architecture 'Ampere' is no compute capability"),
        (A10.replace("8.6", "6.1"), r"no compute capability from 7\.0 on; write one such as 8\.6"),
        ("- a\n- b\n", r"gpu\.yaml:1:1: a GPU is described by a mapping; it starts with name"),
        ("", r"gpu\.yaml: a GPU is described by a mapping"),
    ],
)
def test_a_file_that_is_wrong_is_refused_at_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(SuiteError, match=message):
        load_gpu(written(tmp_path, text))


def test_all_faults_of_a_file_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(SuiteError) as raised:
        load_gpu(written(tmp_path, A10.replace("72", "0").replace("600", "fast")))
    assert len(raised.value.faults) == 2


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"none\.yaml: cannot be read: No such file"):
        load_gpu(str(tmp_path / "none.yaml"))
