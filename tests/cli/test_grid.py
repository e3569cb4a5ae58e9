"""`gpubench grid`: what a person sees of a grid, on a GPU or on the device in software."""

import json

import pytest
from click.testing import CliRunner

from gpubench.backends.devices import known_gpus
from gpubench.cli import main


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["grid", *arguments])
    assert result.exit_code == code, result.output
    return result


def lines(*arguments):
    return [line.rstrip() for line in run(*arguments).stdout.splitlines()]


@pytest.mark.gpu
def test_two_blocks_of_four_threads_cover_eight_elements():
    assert lines("2", "4") == [
        f"2 blocks of 4 threads: 8 threads, on cuda:0 ({known_gpus()[0].name})",
        " block \\ thread  0    1    2    3",
        " 0               [0]  [1]  [2]  [3]",
        " 1               [4]  [5]  [6]  [7]",
        "i = cuda.grid(1) is blockIdx.x * blockDim.x + threadIdx.x: the threads cover an array of "
        "8 elements, a[i]",
        "an array of another shape takes ceil(extent / 4) blocks; threads beyond its end must not "
        "touch it",
        "a block runs as 1 warp of 32 threads in step; 28 lanes of the last idle",
    ]


@pytest.mark.gpu
def test_in_two_dimensions_x_is_the_last_of_the_array():
    shown = lines("2x3", "4x2")
    assert shown[:4] == [
        f"6 blocks of 8 threads: 48 threads, on cuda:0 ({known_gpus()[0].name})",
        " block \\ thread  0,0     1,0     2,0     3,0     0,1     1,1     2,1     3,1",
        " 0,0             [0, 0]  [0, 1]  [0, 2]  [0, 3]  [1, 0]  [1, 1]  [1, 2]  [1, 3]",
        " 1,0             [0, 4]  [0, 5]  [0, 6]  [0, 7]  [1, 4]  [1, 5]  [1, 6]  [1, 7]",
    ]
    assert "x, y = cuda.grid(2)" in shown[8]
    assert shown[8].endswith("an array of shape [6, 8], a[y, x]; x is its last dimension")
    assert "ceil(extent / 4) along x, ceil(extent / 2) along y blocks" in shown[9]


@pytest.mark.gpu
def test_in_three_dimensions_every_thread_has_an_element_of_its_own():
    found = json.loads(run("2x1x2", "1x3x2", "--json").stdout)
    assert (found["grid"], found["block"], found["device"]) == ("2x1x2", "1x3x2", "cuda:0")
    elements = [tuple(one["element"]) for one in found["threads"]]
    assert sorted(elements) == [(z, y, x) for z in range(4) for y in range(3) for x in range(2)]
    for one in found["threads"]:
        block, thread = one["block"], one["thread"]
        at = [block[i] * (1, 3, 2)[i] + thread[i] for i in range(3)]
        assert one["element"] == at[::-1]


@pytest.mark.gpu
def test_without_a_gpu_another_process_launches_in_software(monkeypatch):
    monkeypatch.delenv("GPUBENCH_SOFTCUDA", raising=False)
    monkeypatch.setattr("gpubench.grid_tour.gpu_count", lambda: 0)
    assert lines("2", "4")[0] == "2 blocks of 4 threads: 8 threads, on cuda:0 (softcuda)"


@pytest.mark.gpu
def test_what_does_not_fit_a_terminal_is_counted():
    assert "not shown: 8 blocks, 11 threads of each block" in lines("40", "20")


@pytest.mark.parametrize(
    ("blocks", "threads", "reason"),
    [
        (
            "1", "2048",
            "block of 2048 threads: the limit is 1024 threads per block (every CUDA architecture); "
            "use a smaller block",
        ),
        (
            "1", "1x1x65",
            "block of 1x1x65: the limit is 64 threads along z (every CUDA architecture); use a "
            "smaller extent or the x axis",
        ),
        (
            "1x65536", "4",
            "grid of 1x65536: the limit is 65535 blocks along y (every CUDA architecture); give "
            "every thread more elements, or use the x axis",
        ),
        (
            "2048", "1024",
            "launch of 2097152 threads: possible on cuda:0, but only 1048576 threads are noted "
            "one by one; use a smaller grid to look at",
        ),
        (
            "0", "4",
            "grid of 0: every extent has to be at least 1; mend the grid's shape or formula",
        ),
        (
            "2by3", "4",
            "grid of '2by3': write one to three whole numbers, x first, like 4, 2x3 or 2x3x2",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_launched_is_refused_with_the_reason(blocks, threads, reason, monkeypatch):
    monkeypatch.setattr("gpubench.backends.devices.known_gpus", lambda: ())
    assert run(blocks, threads, code=2).stderr.replace("\n", "") == f"gpubench: {reason}"


def test_a_device_that_is_none_of_cudas_is_refused():
    reason = "'cpu' is no CUDA device; use cuda:0, cuda:1 ..."
    assert reason in run("2", "4", "--device", "cpu", code=2).stderr
