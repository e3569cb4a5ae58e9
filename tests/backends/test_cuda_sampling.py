"""How a time is taken on a CUDA device, on a scripted device whose times are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scripted_cuda import FLOOR, Kernel, ScriptedCuda, watched

from gpubench.backends.cuda_sampling import HOLD_LIMIT, BestWay, CudaSampler, warm_up
from gpubench.backends.devices import ClockState
from gpubench.backends.protocol import DeviceLostError

US = 1e-6


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> ScriptedCuda:
    made = ScriptedCuda()
    watched(made, monkeypatch)
    return made


def way(cuda: ScriptedCuda, kernel: Kernel) -> BestWay:
    call = cuda.call(kernel)
    call()
    return BestWay(cuda, call)


def sampler(cuda: ScriptedCuda, kernel: Kernel) -> CudaSampler:
    return CudaSampler(cuda, cuda.call(kernel))


def without(cuda: ScriptedCuda, graphs: bool = True, can_hold: bool = True) -> ScriptedCuda:
    cuda.graphs, cuda.can_hold = graphs, can_hold
    return cuda


def test_the_call_that_compiles_is_made_before_anything_is_captured(cuda: ScriptedCuda) -> None:
    captured = []

    def call() -> None:
        captured.append(cuda.capturing is not None)
        cuda.call(Kernel(2 * US))()

    CudaSampler(cuda, call)
    assert captured[:2] == [False, True]


@pytest.mark.parametrize("runs", [2, 199, 200, 201, 1000])
def test_many_runs_are_replayed_and_launching_is_not_in_the_time(
    cuda: ScriptedCuda, runs: int
) -> None:
    best = way(cuda, Kernel(2 * US))
    assert best.seconds(runs) == pytest.approx(runs * 2 * US)
    assert best.method == "graph replay"
    assert cuda.replays == -(-runs // 200)


def test_a_graph_is_captured_once_for_all_samples(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(2 * US))
    for _ in range(5):
        best.seconds(450)
    look, whole, rest = 1, 1, 1
    assert cuda.captures == look + whole + rest


def test_graphs_of_sizes_that_are_over_are_given_back(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(2 * US))
    for runs in (20, 30, 450, 470):
        best.seconds(runs)
    assert [graph.nodes for graph in cuda.made if not graph.closed] == [200, 70]


def test_one_run_is_held_back_until_it_is_queued(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(2 * US))
    assert best.seconds(1) == pytest.approx(2 * US)
    assert (best.method, cuda.replays) == ("held-back stream", 0)


def test_work_that_no_graph_may_hold_is_held_back_in_parts(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(2 * US, nodes="copy"))
    assert best.seconds(1201) == pytest.approx(1201 * 2 * US)
    assert best.method == "held-back stream"
    begin_and_end = 2
    assert cuda.most_pending == 500 + begin_and_end


def test_parts_are_smaller_where_one_run_launches_more(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(2 * US, launches=300, nodes="copy"))
    assert best.seconds(3) == pytest.approx(3 * 300 * 2 * US)
    assert cuda.most_pending == 300 + 2


def test_a_call_that_waits_is_measured_plainly_and_never_held_back(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(2 * US, waits=True))
    assert best.seconds(100) == pytest.approx(100 * (2 * US + cuda.launch_cost))
    assert (best.method, best.launch_bound) == ("plain events", True)
    assert cuda.most_pending == 0


def test_work_that_was_queued_before_hides_no_launch(cuda: ScriptedCuda) -> None:
    best = way(without(cuda, graphs=False), Kernel(2 * US))
    cuda.call(Kernel(1.0))()
    assert best.seconds(10) == pytest.approx(9 * cuda.launch_cost + 7 * US)


def test_a_refused_capture_leaves_the_stream_usable(cuda: ScriptedCuda) -> None:
    way(cuda, Kernel(2 * US, waits=True))
    assert way(cuda, Kernel(3 * US)).seconds(10) == pytest.approx(10 * 3 * US)


def test_a_call_that_queues_nothing_is_measured_plainly(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(launches=0))
    assert best.seconds(5) == 0
    assert best.method == "plain events"


@pytest.mark.parametrize("seconds, bound", [(2 * US, True), (100 * US, False)])
def test_without_graphs_a_kernel_shorter_than_its_launch_is_launch_bound(
    cuda: ScriptedCuda, seconds: float, bound: bool
) -> None:
    best = way(without(cuda, graphs=False), Kernel(seconds))
    slower = max(seconds, cuda.launch_cost)
    assert best.seconds(1000) == pytest.approx(1000 * slower, rel=0.01)
    assert (best.method, best.launch_bound) == ("plain events", bound)


def test_where_nothing_can_be_held_back_graphs_are_replayed_all_the_same(
    cuda: ScriptedCuda,
) -> None:
    best = way(without(cuda, can_hold=False), Kernel(2 * US))
    first_launch = cuda.replay_cost
    assert best.seconds(200) == pytest.approx(200 * 2 * US + first_launch)
    assert best.method == "graph replay"
    best.seconds(1)
    assert best.method == "plain events"


def test_a_run_that_does_not_repeat_itself_is_not_replayed(cuda: ScriptedCuda) -> None:
    first, later = cuda.call(Kernel(2 * US)), cuda.call(Kernel(2 * US, launches=2))
    calls = iter([first])
    best = BestWay(cuda, lambda: next(calls, later)())
    best.seconds(3)
    assert best.method == "held-back stream"


def test_a_stream_that_is_waited_for_is_let_go(cuda: ScriptedCuda) -> None:
    kernel = Kernel(2 * US, nodes="copy")
    best = way(cuda, kernel)
    kernel.waits = True
    assert best.seconds(1) < HOLD_LIMIT
    assert best.method == "plain events"


def test_a_queue_that_is_full_is_let_go(cuda: ScriptedCuda) -> None:
    kernel = Kernel(2 * US, nodes="copy")
    best = way(cuda, kernel)
    kernel.launches = 1100
    best.seconds(1)
    assert best.method == "plain events"


@pytest.mark.parametrize("nodes", ["kernel", "copy"])
def test_a_crash_opens_the_gate_and_is_told(cuda: ScriptedCuda, nodes: str) -> None:
    kernel = Kernel(2 * US, nodes=nodes)
    best = way(cuda, kernel)
    kernel.lost_at = 3
    with pytest.raises(DeviceLostError):
        best.seconds(100)
    assert not cuda.holding


def test_an_error_while_queueing_opens_the_gate(cuda: ScriptedCuda) -> None:
    copy = cuda.call(Kernel(2 * US, nodes="copy"))
    left = [copy, copy, copy]
    best = BestWay(cuda, lambda: left.pop()())
    with pytest.raises(IndexError):
        best.seconds(5)
    assert not cuda.holding and not cuda.pending


def falling(run: int) -> float:
    """A device that wakes up: three times as slow at first, 100 µs in the end."""
    return (1 + 2 * 0.995**run) * 100 * US


@pytest.mark.parametrize(
    ("seconds", "last"),
    [(lambda run: 10e-3, 10e-3), (falling, 100 * US), (lambda run: 0.3, 0.3)],
    ids=["steady", "waking", "long"],
)
def test_warming_up_ends_when_two_windows_agree(
    cuda: ScriptedCuda, seconds: Callable[[int], float], last: float
) -> None:
    best = way(cuda, Kernel(seconds))
    assert warm_up(best.seconds) == pytest.approx(last, rel=0.01)
    assert cuda.ready < (0.5 if last < 0.1 else 1.0)


def test_warming_up_ends_after_two_seconds_of_work(cuda: ScriptedCuda) -> None:
    best = way(cuda, Kernel(lambda run: 10e-3 * 1.01**run))
    warm_up(best.seconds)
    assert 2.0 <= cuda.ready < 2.3


def test_windows_are_long_enough_to_be_compared() -> None:
    windows: list[float] = []

    def seconds(runs: int) -> float:
        windows.append(runs * 3 * US)
        return windows[-1]

    warm_up(seconds)
    assert [window >= 0.05 for window in windows[-2:]] == [True, True]
    assert not any(window >= 0.05 for window in windows[:-2])


def test_a_sampler_is_warm_before_its_first_sample(cuda: ScriptedCuda) -> None:
    made = sampler(cuda, Kernel(falling))
    assert made.seconds(1) == pytest.approx(100 * US, rel=0.01)
    assert (made.method, made.warnings) == ("held-back stream", ())


def test_a_sampler_for_other_arrays_runs_a_warm_kernel_but_twice(cuda: ScriptedCuda) -> None:
    """Once before the capture, as every sampler, and once by the way that was picked."""
    kernel = Kernel(seconds=1e-3)
    again = cuda.sampler_again(cuda.call(kernel))
    assert next(kernel.runs) == 2
    assert again.seconds(10) == pytest.approx(1e-2)


def test_a_time_near_the_floor_is_marked(cuda: ScriptedCuda) -> None:
    made = sampler(cuda, Kernel(4 * US))
    assert made.warnings == ("near the floor: a run takes 4.00 µs and an empty kernel 1.00 µs",)


@pytest.mark.parametrize(("floors", "marked"), [(9.9, True), (10.1, False)])
def test_ten_floors_are_enough(cuda: ScriptedCuda, floors: float, marked: bool) -> None:
    assert bool(sampler(cuda, Kernel(floors * FLOOR)).warnings) is marked


def test_the_floor_is_measured_once(cuda: ScriptedCuda) -> None:
    assert cuda.floor_seconds is None
    replays = []
    for _ in range(3):
        assert cuda.floor("graph replay", single=False) == pytest.approx(FLOOR)
        replays.append(cuda.replays)
    assert len(set(replays)) == 1
    assert cuda.floor_seconds == pytest.approx(FLOOR)
    assert cuda.asked == ["kernel empty"]


def test_a_floor_by_another_method_is_no_floor(cuda: ScriptedCuda) -> None:
    assert cuda.floor("plain events", single=False) is None
    made = sampler(cuda, Kernel(2 * US, waits=True))
    assert not any("floor" in warning for warning in made.warnings)


def test_launch_bound_is_a_warning(cuda: ScriptedCuda) -> None:
    made = sampler(without(cuda, graphs=False), Kernel(2 * US))
    assert made.warnings[0] == (
        "launch-bound: the host takes longer to queue a run than the device to run it. The "
        "call can neither be captured into a graph nor held back"
    )


def test_a_sample_at_a_slow_clock_is_marked_from_then_on(cuda: ScriptedCuda) -> None:
    cuda.clock = ClockState(1500, 1980)
    made = sampler(cuda, Kernel())
    assert made.warnings == ()
    cuda.clock = ClockState(1200, 1980, ("software power cap",))
    made.seconds(10)
    cuda.clock = ClockState(1980, 1980)
    made.seconds(10)
    assert made.warnings == ("throttled: 1200 MHz of 1980 MHz (software power cap)",)


def test_the_clock_is_read_before_the_floor_is_measured(
    cuda: ScriptedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "clock_state", lambda: cuda.asked.append("clock"))
    sampler(cuda, Kernel())
    assert cuda.asked == ["clock", "kernel empty"]


def test_a_slow_clock_without_a_reason_says_so(cuda: ScriptedCuda) -> None:
    cuda.clock = ClockState(345, 1980)
    assert sampler(cuda, Kernel()).warnings == (
        "throttled: 345 MHz of 1980 MHz (the driver gives no reason)",
    )
