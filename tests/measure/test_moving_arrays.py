"""Before each round the arrays of a case lie elsewhere, and what they hold is the same."""

import numpy as np
import pytest
from builders import SCALE, case_of

from gpubench.backends import registry
from gpubench.backends.host import HostSession
from gpubench.backends.protocol import DeviceMemoryError
from gpubench.measure.bound_case import BoundCase
from gpubench.measure.inputs import draw_inputs
from gpubench.measure.targets import load_target
from gpubench.measure.times import LABELLED_TIMES
from gpubench.suite.sampling import Sampling

IN_PLACE = """
sizes: {n: [64]}
arrays:
  a: {shape: [n], dtype: float32}
  b: {shape: [n], dtype: float32, intent: inout}
call: [a, b]
implementations:
  numpy: {function: measured_kernels:add_in_place}
"""


@pytest.fixture
def execution(tmp_path):
    case = case_of(tmp_path, IN_PLACE, "numpy")
    with registry.get("numpy").open("cpu") as session:
        yield BoundCase(session, case, load_target(case), draw_inputs(case))


def arrays_of(execution):
    """The arrays that the call is bound to."""
    return execution.call.args


def test_the_call_is_bound_to_arrays_that_lie_elsewhere(execution):
    before = arrays_of(execution)
    execution.move()
    after = arrays_of(execution)
    for old, new in zip(before, after, strict=True):
        assert old.ctypes.data != new.ctypes.data
        assert not np.may_share_memory(old, new)
    assert np.array_equal(after[0], execution.inputs.arrays["a"])


def test_the_call_has_run_once_and_restoring_takes_that_back(execution):
    a, b = (execution.inputs.arrays[name] for name in "ab")
    execution.move()
    assert np.array_equal(arrays_of(execution)[1], b + a)
    execution.restore()
    assert np.array_equal(arrays_of(execution)[1], b)


def test_a_session_without_room_for_a_second_copy_uses_the_first_one_s_place(
    execution, monkeypatch
):
    """One copy too many at a time, as on a device that is nearly full."""
    copies = []

    def to_native(session, array):
        if len(execution._native) == 2:
            copies.append("refused")
            raise DeviceMemoryError("no room")
        copies.append("made")
        return array.copy()

    monkeypatch.setattr(HostSession, "to_native", to_native)
    execution.move()
    assert copies == ["refused", "made"] * 2
    assert len(arrays_of(execution)) == 2


def test_values_are_put_from_the_host_where_the_device_has_no_room_for_them(execution, monkeypatch):
    refusals = [DeviceMemoryError("no room")]

    def pristine(session, array):
        if refusals:
            raise refusals.pop()
        return array

    monkeypatch.setattr(HostSession, "pristine", pristine)
    put = execution.putter(execution.fresh())
    assert refusals == []
    for _ in range(2):
        execution.call()
        put()
        assert np.array_equal(arrays_of(execution)[1], execution.inputs.arrays["b"])


@pytest.mark.parametrize(
    ("time", "moves"), [("kernel", True), ("cold", True), ("launch", True), ("end_to_end", False)]
)
def test_times_whose_runs_allocate_for_themselves_need_no_moving(
    execution, monkeypatch, time, moves
):
    measurement = LABELLED_TIMES[time](execution)
    measurement.size(Sampling(number=1))
    before = arrays_of(execution)[0]
    measurement.begin_round()
    assert (arrays_of(execution)[0] is not before) == moves
    assert measurement.restored_sample() > 0


@pytest.mark.parametrize(("seconds", "runs"), [(0.2, 1), (0.3, 0)])
def test_a_round_of_long_runs_begins_without_an_untimed_one(execution, seconds, runs):
    measurement = LABELLED_TIMES["kernel"](execution)
    measurement.size(Sampling(number=1))
    measurement.run_seconds = seconds
    called, bind = [], execution.bind
    execution.bind = lambda native: lambda: called.append(1) or bind(native)()
    measurement.begin_round()
    assert len(called) == runs


def test_no_round_lies_where_an_earlier_one_has_been(execution):
    places = set()
    for _ in range(20):
        execution.move()
        places.add(tuple(array.ctypes.data for array in arrays_of(execution)))
    assert len(places) == 20
    assert len({place for pair in places for place in pair}) == 40


def test_large_arrays_of_earlier_rounds_are_freed(tmp_path, monkeypatch):
    monkeypatch.setattr("gpubench.measure.bound_case.SMALL", 0)
    freed = []

    class Watched(np.ndarray):
        def __del__(self):
            freed.append(self.ctypes.data)

    class Session(HostSession):
        def to_native(self, array):
            return array.copy().view(Watched)

    case = case_of(tmp_path, SCALE, "numpy")
    execution = BoundCase(Session("numpy"), case, load_target(case), draw_inputs(case))
    measurement = LABELLED_TIMES["kernel"](execution)
    first = [array.ctypes.data for array in arrays_of(execution)]
    freed.clear()
    measurement.begin_round()
    assert set(first) <= set(freed)
