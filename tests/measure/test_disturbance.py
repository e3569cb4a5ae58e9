"""A sample that had to wait for others is told from a slow one, and taken again."""

import subprocess
import sys
from itertools import chain, repeat

import pytest

from gpubench.measure.disturbance import (
    CoreUse,
    Counters,
    Thread,
    busy_since,
    core_use,
    counters,
    others,
)
from gpubench.measure.retaking import Watch, watch_samples
from gpubench.measure.sampling import CaseSampler, SamplePlan

LONG = 1e3
"""Seconds in which disturbed samples may be taken again."""


class Neighbours:
    """What the system counts while samples of 10 ms are taken, of which each waits as scripted.

    ``others`` cores are busy with other work all the time.
    """

    def __init__(self, *waits, threads=1, others=0.0, cores=2):
        self.waits, self.threads, self.others, self.cores = iter(waits), threads, others, cores
        self.now, self.waited, self.reads = 100.0, 0.0, 0

    def counters(self):
        if self.reads % 2:  # after a sample
            self.now += 0.01
            self.waited += next(self.waits)
        self.reads += 1
        each = {str(n): Thread(self.now, self.waited / self.threads) for n in range(self.threads)}
        return Counters(self.now, each)

    def core_use(self):
        busy = (self.others + self.threads) * self.now
        return CoreUse(self.now, self.cores, busy, self.threads * self.now)

    def watch(self, again=0, seconds=LONG):
        return Watch(again, seconds, counters=self.counters, core_use=self.core_use)


def samples(neighbours, count, again=0, seconds=LONG):
    """Samples of so many, numbered as they are taken, and the watch that has seen them."""
    taken, restored, watch = iter(range(1000)), [], neighbours.watch(again, seconds)
    found = [watch.sample(lambda: next(taken), lambda: restored.append(1)) for _ in range(count)]
    return found, restored, watch.disturbance()


def test_a_sample_that_waited_for_two_percent_of_its_time_is_disturbed():
    _, _, seen = samples(Neighbours(0.00019, 0.00021), 2)
    assert seen.disturbed == 0.5
    assert seen.waiting == (0.00019, 0.00021)


def test_a_disturbed_sample_is_taken_again_after_restoring():
    found, restored, seen = samples(Neighbours(0.004, 0.0, 0.0), 2, again=2)
    assert found == [1, 2]
    assert len(restored) == 1
    assert (seen.again, seen.waiting) == (1, (0.0, 0.0))
    assert seen.disturbed == 1 / 3, "of three that were taken"


def test_of_samples_that_all_waited_the_one_that_waited_least_counts():
    found, _, seen = samples(Neighbours(0.004, 0.001, 0.002), 1, again=2)
    assert found == [1]
    assert (seen.again, seen.disturbed, seen.waiting) == (2, 1.0, (0.001,))


def test_no_more_are_taken_again_than_may_be():
    assert samples(Neighbours(*[0.004] * 9), 3, again=2)[2].again == 2
    assert samples(Neighbours(*[0.004] * 9), 3, again=9, seconds=0.0)[2].again == 0


def test_threads_that_wait_for_each_other_are_not_disturbed():
    waits = [0.02] * 20
    _, _, alone = samples(Neighbours(*waits, threads=4), 20)
    _, _, beside = samples(Neighbours(*waits, threads=4, others=1.0), 20)
    assert alone.disturbed == 0
    assert beside.disturbed > 0.5


def test_neighbours_that_use_a_quarter_of_the_cores_disturb_what_never_waited():
    calm = [0.0] * 12
    assert samples(Neighbours(*calm, others=0.4), 12)[2].disturbed == 0
    assert samples(Neighbours(*calm, others=0.6), 12)[2].disturbed == 1
    assert samples(Neighbours(*calm, others=0.6, cores=8), 12)[2].disturbed == 0


def test_a_short_watch_asks_what_others_did_before_it():
    """Five samples of 10 ms are too short for ticks: threads that waited are told by what others
    have done since the case was got ready."""
    for earlier, disturbed in ((None, 0.0), (0.05, 0.0), (1.0, 1.0)):
        neighbours = Neighbours(*[0.02] * 5, threads=4, others=1.0)
        before = neighbours.core_use()
        if earlier is not None:
            neighbours.now += earlier
        kept = {} if earlier is None else {"earlier": before}
        watch = Watch(0, LONG, counters=neighbours.counters, core_use=neighbours.core_use, **kept)
        for _ in range(4):
            watch.sample(lambda: 1.0, lambda: None)
        assert watch.disturbance().disturbed == disturbed, earlier


def test_where_the_system_tells_nothing_nothing_is_known():
    nothing = CoreUse(0.0, 2, None, 0.0)
    watch = Watch(5, LONG, counters=lambda: Counters(0.0, None), core_use=lambda: nothing)
    assert watch.sample(lambda: 1.0, lambda: None) == 1.0
    assert watch.disturbance() is None
    assert others(nothing, nothing) is None


def test_cores_that_others_keep_busy_are_what_is_not_our_own():
    neighbours = Neighbours(others=1.8)
    before = neighbours.core_use()
    neighbours.now += 0.2
    assert others(before, neighbours.core_use()) == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (0.1, None),
        (
            1.8,
            "1.8 of 2 cores are busy with other work: cases that have to wait for it get no "
            "verdict; end it, or measure later",
        ),
    ],
)
def test_a_busy_machine_is_named_at_the_start(busy, said, monkeypatch):
    neighbours = Neighbours(others=busy)
    before = neighbours.core_use()
    neighbours.now += 0.2
    monkeypatch.setattr("gpubench.measure.disturbance.core_use", neighbours.core_use)
    assert busy_since(before, 0.0) == said


BUSY = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"
"""Half a second of work, and then nothing until standard input ends."""
STARTING = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone says who started whom")
@pytest.mark.parametrize("code", [BUSY, STARTING], ids=["its own", "of one that it started"])
def test_work_of_processes_that_were_started_is_not_that_of_others(code):
    before = core_use().own
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout.readline() == "done\n"
        meanwhile = core_use().own
        worker.communicate("\n")
    assert meanwhile - before > 0.4
    assert core_use().own >= meanwhile - 0.05  # in hundredths of a second


def test_this_system_is_read_without_an_error():
    """What it says differs; on Linux there are the threads of this process."""
    assert counters().at <= counters().at
    assert core_use().own > 0


class Loop:
    """A sampler that the host times."""

    method, warnings = "host loop", ()

    def __init__(self, *seconds):
        self.durations = chain(seconds, repeat(seconds[-1]))

    def seconds(self, runs):
        return next(self.durations) * runs


def test_asvs_timer_advances_by_the_sample_that_counts(monkeypatch):
    neighbours = Neighbours(0.005, 0.0, 0.0)
    monkeypatch.setattr(
        "gpubench.measure.retaking.Watch",
        lambda again, seconds, **_: neighbours.watch(again, seconds),
    )
    sampler = Loop(8.0, 1.0)
    measured = CaseSampler(lambda again: sampler, lambda: None)
    measured.sample_seconds = 0.01
    watch = watch_samples(measured, SamplePlan(1, 2, 2, seconds=LONG, warm_up=0.0))
    assert [measured.restored_sample() for _ in range(2)] == [1.0, 1.0]
    assert measured.elapsed() == 2.0
    assert watch.disturbance().again == 1


def test_what_a_device_times_is_not_watched(monkeypatch):
    sampler = Loop(1.0)
    sampler.method = "graph replay"
    measured = CaseSampler(lambda again: sampler, lambda: None)
    watch = watch_samples(measured, SamplePlan(1, 2, 2, seconds=LONG, warm_up=0.0))
    measured.restored_sample()
    assert watch.disturbance() is None
