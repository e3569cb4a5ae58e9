"""What the coordinator does with shares, on workers in this process and tasks without asv."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="make test-systems has it")

import distributed

from gpubench.edge.fleet import dispatch
from gpubench.edge.fleet.cluster import LINES_TOPIC, RECORDS
from gpubench.edge.fleet.coordinator import claim, claim_or_wait, duration, expectation, keepers_of
from gpubench.edge.fleet.dispatch import ASKED_AGAIN, Dispatch, Outcome, Pace
from gpubench.edge.fleet.messages import Malformed
from gpubench.edge.fleet.parcels import Damaged, digest
from gpubench.edge.fleet.shares import Machine, Share
from gpubench.errors import GpubenchError
from gpubench.record import CaseRecord, RunRecord, to_line

pytestmark = pytest.mark.systems

RECORD = "c0ffee00-env.gpubench.jsonl"
SHARES = [Share("c0ffee00", f"suite_{n}", (f"suite_{n}__plain",), "lab", 1.0) for n in range(6)]


class Scene:
    """Three machines and what they are given to do."""

    def __init__(self, cluster: Any, client: Any, results: Path) -> None:
        self.cluster, self.client, self.results = cluster, client, results
        addresses = sorted(client.nthreads())
        self.machines = [machine(name, a) for name, a in zip("abc", addresses, strict=True)]
        self.said: list[str] = []
        self.kept: list[tuple[str, str]] = []
        self.begun: list[tuple[str, Mapping[str, bytes]]] = []
        """Suites of shares that were given out, and their lines of records."""
        self.came: dict[str, Mapping[str, bytes]] = {}
        """By suite, lines of records that came before the parcel."""

    def name_of(self, address: str) -> str:
        return next(m.name for m in self.machines if m.address == address)

    def measure(
        self,
        task: Callable[[str, Share, Any], Any],
        keep: Callable[[Any], None] = lambda parcel: None,
        keepers: dict[str, str] | None = None,
        shares: list[Share] = SHARES,
    ) -> Outcome:
        """``task`` gets the machine's name, the share and the variables."""
        global _task

        def _task(share: Share, variables: Any, begun: Mapping[str, bytes]) -> Any:
            self.begun.append((share.suite, begun))
            return task(self.name_of(distributed.get_worker().address), share, variables)

        def kept(parcel: Any, share: Share, machine: Machine, came: Mapping[str, bytes]) -> int:
            keep(parcel)
            self.kept.append((machine.name, share.suite))
            self.came[share.suite] = came
            return 1

        keepers, say = keepers or dict.fromkeys("abc", "lab"), self.said.append
        return Dispatch(
            self.client, self.machines, keepers, shares, self.results, kept, say, task=run_task
        ).run()

    def record(self) -> str:
        """Return the record of the commit that is measured, as far as it is kept."""
        path = self.results / "lab" / RECORD
        return path.read_text() if path.exists() else ""


_task: Callable[[Share, Any, Any], Any]


def run_task(share: Share, variables: Any, begun: Any) -> Any:
    """Run it by its name, for Dask: workers of this process find it."""
    return _task(share, variables, begun)


def machine(name: str, address: str = "", cpu: str = "A") -> Machine:
    return Machine(name, address, {"cpu": cpu}, (), ("env",))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with (
        distributed.LocalCluster(
            n_workers=3,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            resources={"cpu": 1},
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Scene(cluster, client, tmp_path / "results")


def suites(shares: list[Share]) -> list[str]:
    return sorted(share.suite for share in shares)


def meeting() -> Callable[[str], None]:
    """Wait: called by each of the three machines with its name; the first call of each returns when
    all have one."""
    together, met = threading.Barrier(3, timeout=60), set[str]()

    def meet(name: str) -> None:
        if name not in met:
            met.add(name)
            together.wait()

    return meet


def test_every_share_is_measured_once_and_by_all_machines(scene: Scene) -> None:
    meet = meeting()

    def task(name: str, share: Share, variables: Any) -> None:
        meet(name)

    outcome = scene.measure(task)
    assert (outcome.kept, outcome.lost) == (6, [])
    assert sorted(suite for _, suite in scene.kept) == suites(SHARES)
    assert {name for name, _ in scene.kept} == set("abc")
    assert scene.said[-1].startswith("[6/6] ")


def test_a_machine_measures_only_what_is_kept_under_its_name(scene: Scene) -> None:
    own = [Share("c0ffee00", f"suite_{n}", (), name, 1.0) for n in range(2) for name in "abc"]
    outcome = scene.measure(lambda *_: None, keepers={n: n for n in "abc"}, shares=own)
    assert outcome.kept == 6
    assert sorted(scene.kept) == [(name, f"suite_{n}") for name in "abc" for n in range(2)]


def test_the_share_of_a_machine_that_vanishes_goes_to_another(scene: Scene) -> None:
    vanished = threading.Event()

    def task(name: str, share: Share, variables: Any) -> None:
        if name == "a":
            worker = distributed.get_worker()
            worker.loop.add_callback(worker.close, executor_wait=False, nanny=False)
            vanished.wait(60)

    outcome = scene.measure(task)
    vanished.set()
    assert (outcome.kept, outcome.lost) == (6, [])
    assert {name for name, _ in scene.kept} == {"b", "c"}
    assert [line for line in scene.said if "vanished" in line] == [
        "a: c0ffee00 suite_0: it has vanished"
    ]


def test_what_nobody_else_may_measure_is_lost_and_named(scene: Scene) -> None:
    vanished = threading.Event()

    def task(name: str, share: Share, variables: Any) -> None:
        if name == "a":
            worker = distributed.get_worker()
            worker.loop.add_callback(worker.close, executor_wait=False, nanny=False)
            vanished.wait(60)

    own = [Share("c0ffee00", f"suite_{n}", (), name, 1.0) for n in range(2) for name in "abc"]
    outcome = scene.measure(task, keepers={n: n for n in "abc"}, shares=own)
    vanished.set()
    assert outcome.kept == 4
    assert [(share.suite, why) for share, why in outcome.lost] == [
        ("suite_0", "a: it has vanished"),
        ("suite_1", "no machine is left that could measure it"),
    ]


def test_a_damaged_parcel_is_asked_for_again_where_it_was_measured(scene: Scene) -> None:
    asked = []

    def task(name: str, share: Share, variables: Any) -> Any:
        asked.append((name, share.suite, variables))
        return share.suite == "suite_1" and variables is not None

    def keep(is_damaged: bool) -> None:
        if is_damaged:
            raise Damaged("x.json is damaged")

    outcome = scene.measure(task, keep)
    assert (outcome.kept, outcome.asked_again, outcome.lost) == (6, 1, [])
    (first, again) = [one for one in asked if one[1] == "suite_1"]
    assert (first[2], again[2], first[0]) == ({}, None, again[0])
    assert f"{first[0]}: c0ffee00 suite_1: x.json is damaged; it is asked for again" in scene.said


def test_what_comes_damaged_every_time_goes_to_the_others_and_is_lost_at_last(
    scene: Scene,
) -> None:
    def keep(suite: str) -> None:
        if suite == "suite_1":
            raise Damaged("x.json is damaged")

    outcome = scene.measure(lambda name, share, variables: share.suite, keep)
    assert outcome.kept == 5
    assert suites([share for share, _ in outcome.lost]) == ["suite_1"]
    assert outcome.asked_again == ASKED_AGAIN + 3  # the others are given one chance


def test_a_machine_that_fails_twice_gets_no_more_and_others_do_its_shares(scene: Scene) -> None:
    meet = meeting()

    def task(name: str, share: Share, variables: Any) -> None:
        meet(name)
        if name == "b":
            raise GpubenchError("no space left on device")

    many = [Share("c0ffee00", f"suite_{n:02}", (), "lab", 1.0) for n in range(40)]
    outcome = scene.measure(task, shares=many)
    assert (outcome.kept, outcome.lost) == (40, [])
    assert {name for name, _ in scene.kept} == {"a", "c"}
    failed = [line for line in scene.said if line.startswith("b: ")]
    assert len(failed) <= 2
    assert all(line.endswith(": no space left on device") for line in failed)


def test_only_machines_of_one_kind_divide_the_work(scene: Scene) -> None:
    def asked(*machines: Machine, name: str = "lab") -> Any:
        return keepers_of(None, machines, None, name, scene.said.append)

    a, b, c, d = (machine(n, cpu=cpu) for n, cpu in zip("abcd", "AABB", strict=True))
    assert asked(a, c) == ({"a": "a", "c": "c"}, {})
    assert scene.said == ["no two machines are of one kind: each measures everything"]
    with pytest.raises(
        GpubenchError, match="machines of 2 kinds could divide the work: a, b; c, d"
    ):
        asked(d, c, b, a)
    for name in ("a", "../a", ""):
        with pytest.raises(GpubenchError, match="give a name that no machine has"):
            asked(a, b, name=name)


def test_how_long_it_takes_is_expected_by_what_it_took_before() -> None:
    keepers = {"a": "lab", "b": "lab", "c": "c"}
    known = [
        Share("c0ffee00", "s", (), name, seconds) for name, seconds in (("lab", 90), ("c", 50))
    ]
    new = replace(known[0], was_measured=False)
    expected = "2 shares for 3 machines: some 50 s, by what they took before"
    assert expectation(known, keepers) == expected
    assert expectation([new], {"a": "lab"}).startswith(
        "1 share for 1 machine: 1 of them were never"
    )
    assert expectation([], keepers).startswith("0 shares for 3 machines: some 1 s")
    pace = Pace()
    assert pace.seconds_left([new], keepers) is None
    pace.add(known[1], 100)  # it took twice as long
    assert pace.seconds_left([new], keepers) == 90
    assert [duration(s) for s in (0.2, 99, 100, 5400, 9000)] == [
        *("1 s", "99 s", "2 min", "90 min", "2 h 30 min"),
    ]


def test_progress_within_shares_is_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.edge.fleet.dispatch.TELL_SECONDS", 0.0)

    def task(name: str, share: Share, variables: Any) -> None:
        if name == "a":
            wait_for(lambda: any("measuring: " in line for line in scene.said))

    assert scene.measure(task).kept == 6
    (line, *_) = [line for line in scene.said if line.startswith("measuring: ")]
    assert "a 0 % of c0ffee00 suite_0" in line
    assert all(" benchmarks in " in line for line in scene.said if line.startswith("["))


def test_a_second_run_is_refused_until_the_first_ones_client_is_gone(scene: Scene) -> None:
    with distributed.Client(scene.cluster, set_as_default=False) as first:
        assert claim(first, "HEAD^!") is None
        assert claim(first, "HEAD^!") is None  # its own
        with pytest.raises(GpubenchError, match=r"another run measures on this fleet: HEAD\^!, si"):
            claim_or_wait(scene.client, "HEAD~2..HEAD", scene.said.append, wait=False)
        ends = threading.Timer(0.5, first.close)
        ends.start()
        claim_or_wait(scene.client, "HEAD~2..HEAD", scene.said.append, wait=True)
        ends.join()
    assert len(scene.said) == 1
    assert scene.said[0].startswith("waiting for the run that measures now: HEAD^!, since ")


def lines_of(machine: str, share: Share) -> str:
    """Return what a machine has on record once it has finished a case of a share."""
    case = CaseRecord(f"suites.{share.classes[0]}.time_kernel", "n=8", "ok", "2026-01-01")
    return to_line(RunRecord("2026-01-01", {"host": machine, "run": share.suite})) + to_line(case)


def send(machine: str, text: str, record: str = RECORD, **other: Any) -> None:
    """Send it as the worker of a machine does while it measures."""
    piece = {"machine": machine, "record": record, "lines": text.encode()}
    piece["digest"] = digest(text.encode())
    distributed.get_worker().log_event(RECORDS, {**piece, **other})


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_lines_of_a_record_are_kept_while_their_share_is_measured(scene: Scene) -> None:
    def task(name: str, share: Share, variables: Any) -> None:
        text = lines_of(name, share)
        send(name, text)
        wait_for(lambda: text in scene.record())

    assert scene.measure(task).kept == 6
    for name, suite in scene.kept:
        (share,) = (share for share in SHARES if share.suite == suite)
        assert scene.came[suite] == {RECORD: lines_of(name, share).encode()}
    assert not any(lines for _, begun in scene.begun for lines in begun.values())


def test_lines_that_are_damaged_or_of_something_else_are_not_kept(scene: Scene) -> None:
    def task(name: str, share: Share, variables: Any) -> None:
        text = lines_of(name, share)
        send(name, text, digest="0")
        send(name, text, record="../c0ffee00-env.gpubench.jsonl")
        send(name, text, record="decaf000-env.gpubench.jsonl")
        send("d", text)
        send(name, lines_of(name, SHARES[5]))

    assert scene.measure(task, shares=SHARES[:5]).kept == 5
    assert not list(scene.results.rglob("*"))


def test_what_a_vanished_machine_had_sent_stays_and_goes_to_the_next(scene: Scene) -> None:
    vanished = threading.Event()

    def task(name: str, share: Share, variables: Any) -> None:
        if name == "a":
            send(name, lines_of(name, share))
            wait_for(lambda: lines_of(name, share) in scene.record())
            worker = distributed.get_worker()
            worker.loop.add_callback(worker.close, executor_wait=False, nanny=False)
            vanished.wait(60)

    assert scene.measure(task).kept == 6
    vanished.set()
    given = [begun for suite, begun in scene.begun if suite == "suite_0"]
    assert given == [{RECORD: b""}, {RECORD: lines_of("a", SHARES[0]).encode()}]
    assert scene.record() == lines_of("a", SHARES[0])


def test_where_what_exists_is_skipped_all_that_is_kept_goes_along(scene: Scene) -> None:
    (scene.results / "lab").mkdir(parents=True)
    earlier = "".join(lines_of("x", share) for share in SHARES)
    (scene.results / "lab" / RECORD).write_text(earlier)
    skipping = [replace(share, skip_existing=True) for share in SHARES[:2]]
    scene.measure(lambda *_: None, shares=skipping)
    assert sorted(scene.begun) == [
        (share.suite, {RECORD: lines_of("x", share).encode()}) for share in SHARES[:2]
    ]
    assert scene.record() == earlier


def fail(error: BaseException) -> Any:
    raise error


EVENTS = (
    *({}, 5, None, "x", {"machine": "a"}, {"machine": ["a"], "record": "r", "lines": b""}),
    {"machine": "a", "record": RECORD, "lines": "text", "digest": "x"},
    {"machine": "a", "record": "../../x", "lines": b"x\n", "digest": digest(b"x\n")},
    {"machine": "b", "record": RECORD, "lines": b"x\n", "digest": digest(b"x\n")},
)
"""None of them is lines of the share that the machine a has."""
HOSTILE: dict[str, Callable[[], Any]] = {
    "an error with a long text": lambda: fail(RuntimeError("\x1b]0;title\x07" + "e" * 100_000)),
    "events of any kind": lambda: [
        distributed.get_worker().log_event(topic, event)
        for topic in (RECORDS, LINES_TOPIC)
        for event in EVENTS
    ],
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_beside_a_hostile_machine_the_share_of_an_honest_one_arrives(
    scene: Scene, hostile: str
) -> None:
    def task(name: str, share: Share, variables: Any) -> Any:
        if name == "a":
            HOSTILE[hostile]()
            return "hostile"
        return "honest"

    def keep(parcel: Any) -> None:
        if parcel == "hostile":
            raise Malformed("what it sent is malformed")

    own = [Share("c0ffee00", f"suite_{n}", (), name, 1.0) for n in range(2) for name in "abc"]
    outcome = scene.measure(task, keep, keepers={n: n for n in "abc"}, shares=own)

    assert {name for name, _ in scene.kept} == {"b", "c"}
    assert (outcome.kept, len(outcome.lost)) == (4, 2)
    assert max(map(len, scene.said)) < 3_000
    assert not scene.results.exists()


def test_of_a_traceback_of_another_machine_the_last_line_is_said() -> None:
    said = 'cannot send\nTraceback (most recent call last):\n  File "x", line 1\nTypeError: a lock'
    assert dispatch.words_of(RuntimeError(said)) == "TypeError: a lock"
    assert dispatch.words_of(RuntimeError("asv failed:\nno disk")) == "asv failed:\nno disk"


class Topics:
    """A client, as far as what is logged is concerned."""

    def subscribe_topic(self, topic: str, handler: Callable[[Any], None]) -> None:
        self.handler = handler


def test_logs_are_bounded_and_of_who_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "MAX_LOG_BYTES", 2 * dispatch.MAX_SAID)
    client = Topics()
    progress = dispatch.keep_logs(client, tmp_path / "logs")  # type: ignore[arg-type]

    def say(line: Any, machine: Any = "lab", worker: str = "tcp://1") -> None:
        client.handler((0.0, {"machine": machine, "line": line, "worker": worker}))

    say("[ 40.50%] first \ud800")
    for line in ("[1.2.3%]", "[999999999999999999%]", 5, None, {}):
        say(line)
    say("of another", worker="tcp://2")
    for name in ("../../evil", "a/b", "", 5, "con", "x" * 300):
        say("evil", machine=name)
        say("evil", machine=name, worker="tcp://2")
    for name in ("other", "lab2", "NaN"):
        say("a second log of one worker", machine=name)
    for event in EVENTS:
        client.handler((0.0, event))
    for _ in range(9):
        say("x" * 1_000_000)

    (log,) = tmp_path.rglob("*.log")
    assert log == tmp_path / "logs/lab.log"
    text = log.read_text(encoding="utf-8")
    assert text.startswith("[ 40.50%] first ?\n") and "of another" not in text
    assert len(text) < 3 * dispatch.MAX_SAID and "the log is full" in text
    assert progress == {"lab": "40 %"}
