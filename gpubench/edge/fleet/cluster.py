"""What Dask does for a fleet: workers that measure, calls to them, and who may listen.

Only here and in ``coordinator`` is ``distributed`` imported.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Security, Worker, get_worker, rpc
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.diagnostics.plugin import WorkerPlugin

from gpubench.backends.devices import known_gpus
from gpubench.edge.fleet.checkout import Checkout
from gpubench.edge.fleet.equality import CaseTimes
from gpubench.edge.fleet.parcels import Parcel, digest, going_on, pack, record_names
from gpubench.edge.fleet.shares import Machine, Share, resources
from gpubench.errors import GpubenchError
from gpubench.measure.recorder import run_facts
from gpubench.temporary import temporary_folder

LINES_TOPIC = "gpubench-fleet"
"""Topic of Dask's events: what the processes of all machines write."""

RECORDS = "gpubench-fleet-records"
"""Topic of Dask's events: lines of the records of what is measured now."""

LOOK_SECONDS = 5.0
"""Seconds between two looks at what is new in a record. A look reads what a case or two have
written; what was measured since the last one is lost with a machine."""

MAX_SCHEDULER_SECONDS = 10.0
"""Seconds in which a scheduler has to answer: a hundred times what a connection across a continent
takes."""

RETRY_SECONDS = 5.0
"""Between two attempts to join a scheduler that is not there: a restart takes about as long."""

PROGRESS = re.compile(r"\[\s*(\d{1,3}(?:\.\d{1,3})?)%\]", re.ASCII)
"""Of asv's lines."""


class SchedulerStopped(GpubenchError):
    """The connection to the scheduler broke: what it knew of the run is lost."""


def security_for(
    address: str, tls_ca_file: str | None, tls_cert: str | None, tls_key: str | None
) -> Security:
    """Return how a scheduler at an address is spoken to: with TLS any may be, without it one of the
    loopback interface.

    Files that are not given are as Dask is configured. Raises ``GpubenchError``.
    """
    given = {
        "tls_ca_file": tls_ca_file,
        **dict.fromkeys(("tls_client_cert", "tls_worker_cert"), tls_cert),
        **dict.fromkeys(("tls_client_key", "tls_worker_key"), tls_key),
    }
    security = Security(**{name: file for name, file in given.items() if file is not None})
    scheme, place = parse_address(address)
    if security.tls_ca_file and scheme != "tls":
        raise GpubenchError(
            f"{address} is without TLS, and --tls-ca-file is given; write tls://{place}, and start "
            "the scheduler with its certificates"
        )
    if not security.tls_ca_file and (scheme != "tcp" or not is_loopback(address)):
        raise GpubenchError(
            f"{address}: without TLS only addresses of the loopback interface are used, "
            "tcp://127.0.0.1:8786 for example; give --tls-ca-file, --tls-cert and --tls-key, or "
            "forward ports by ssh (gpubench/edge/fleet/fleet-ssh.md)"
        )
    return security


def is_loopback(address: str) -> bool:
    """Return whether an address of Dask's is of the loopback interface."""
    host, _ = parse_host_port(parse_address(address)[1], 0)
    with suppress(ValueError):
        return host == "localhost" or ip_address(host).is_loopback
    return False


def _refuse_open(listens: str, security: Security) -> None:
    if not security.tls_ca_file and not is_loopback(listens):
        raise GpubenchError(
            f"the scheduler listens at {listens} without TLS, to others too; start it with "
            "`dask scheduler --host 127.0.0.1`, or use TLS (--tls-ca-file)"
        )


@contextmanager
def connected(address: str, security: Security) -> Iterator[Client]:
    """Connect a client; raises ``GpubenchError`` where no scheduler answers, or where without TLS
    it listens to others."""
    try:
        client = Client(address, timeout=MAX_SCHEDULER_SECONDS, security=security)
    except (OSError, ValueError) as error:  # time-outs are some
        raise GpubenchError(
            f"no scheduler of Dask answers at {address} within {MAX_SCHEDULER_SECONDS:g} s "
            f"({type(error).__name__}); start one with `dask scheduler --host 127.0.0.1`"
        ) from error
    _silence_dask()
    with client:
        _refuse_open(client.scheduler_info(n_workers=0)["address"], security)
        try:
            yield client
        except GpubenchError:
            raise
        except (CancelledError, OSError, RuntimeError, ValueError) as error:
            # Dask says it in many ways, by the call that was under way.
            if client.status == "running" and not isinstance(error, CancelledError):
                raise
            raise SchedulerStopped(f"the scheduler at {address} stopped") from error


def _silence_dask() -> None:
    """Keep Dask's log to itself, unless its configuration says what to log: we say what happens."""
    if dask.config.get("logging", None) is None:
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


# --- a worker


class Measuring(WorkerPlugin):  # type: ignore[misc]
    """Makes a worker of Dask's a measuring one: it ends what runs when its task is cancelled, by
    Ctrl-C or because who asked is gone, and when the worker ends."""

    name = "gpubench"

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self._key: object = None
        """Of the task that runs."""
        self.doing = self.progress = ""
        checkout.say = self.said

    def setup(self, worker: Any) -> None:
        self._worker = worker

    def transition(self, key: Any, start: str, finish: str, **_: object) -> None:
        if key == self._key and finish in ("released", "forgotten"):
            threading.Thread(target=self.checkout.end).start()  # this one answers the scheduler

    async def teardown(self, worker: Any) -> None:
        await asyncio.to_thread(self.checkout.end)

    @contextmanager
    def task(self, what: str) -> Iterator[Checkout]:
        """Inside, this task of the worker may start processes, and no other."""
        self.checkout.begin()
        self._key, self.doing = get_worker().get_current_task(), what
        try:
            yield self.checkout
        finally:
            self._key, self.doing, self.progress = None, "", ""

    @contextmanager
    def sending(self, records: Sequence[Path]) -> Iterator[None]:
        """Inside, whole lines that are new in these files are sent, and at the end the rest."""
        over = threading.Event()
        sent = {path: path.stat().st_size if path.exists() else 0 for path in records}

        def watch() -> None:
            is_over = False
            while not is_over:
                is_over = over.wait(LOOK_SECONDS)
                for path in filter(Path.exists, records):
                    with path.open("rb") as file:
                        file.seek(sent[path])
                        new = file.read()
                    lines = new[: new.rfind(b"\n") + 1]
                    sent[path] += len(lines)
                    of = {"machine": self.checkout.machine, "record": path.name}
                    if lines:
                        piece = {**of, "lines": lines, "digest": digest(lines)}
                        self._worker.log_event(RECORDS, piece)

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield
        finally:
            over.set()
            watching.join()

    def said(self, line: str) -> None:
        """Pass a line that a process wrote to who listens."""
        if match := PROGRESS.search(line):
            self.progress = f"{float(match[1]):.0f} %"
        said = {"machine": self.checkout.machine, "line": f"{self.doing}: {line}"}
        self._worker.log_event(LINES_TOPIC, said)


def _measuring() -> Measuring:
    plugin: Measuring = get_worker().plugins[Measuring.name]
    return plugin


def join(repository: str, head: str) -> Machine:
    """On a worker: bring its checkout to a commit, and say what the machine is."""
    with _measuring().task("preparing") as checkout:
        checkout.update(repository, head)
        _, environments = checkout.environments(checkout.machine)
        gpus = tuple(gpu.name for gpu in known_gpus())
        return Machine(checkout.machine, get_worker().address, run_facts(), gpus, environments)


def measure(
    repository: str,
    head: str,
    share: Share,
    variables: Mapping[str, str] | None,
    begun: Mapping[str, bytes],
) -> Parcel:
    """On a worker: measure a share, and give what asv kept of it; without ``variables``, the
    environment's, give it again. ``begun`` are the lines of each record that there are of it.

    The checkout is brought to ``head`` before each share: what is there now, another run or a
    restart of the worker may have left.
    """
    with _measuring().task(share.title) as checkout:
        if variables is not None:
            checkout.update(repository, head)
        results_dir, environments = checkout.environments(share.keeper)
        if variables is not None:
            folder, names = results_dir / share.keeper, record_names(share, environments)
            asked = going_on(results_dir, share, environments, begun)
            with _measuring().sending([folder / name for name in names]):
                checkout.measure(asked, variables)
        return pack(results_dir, share, environments)


def time_cases(commands: Sequence[Sequence[str]], variables: Mapping[str, str]) -> CaseTimes:
    """On a worker: times of the cases of ``gpubench time`` with these arguments and variables."""
    times: dict[str, tuple[float, ...]] = {}
    with _measuring().task("comparing machines") as checkout:
        for case in (case for command in commands for case in checkout.times(command, variables)):
            if seconds := case["seconds"]:
                ends = (seconds[name] for name in ("median", "low", "high"))
                times[case["name"]] = tuple(float("nan" if e is None else e) for e in ends)
    return times


def describe(dask_worker: Any) -> dict[str, str] | None:
    """On a worker, outside of tasks: what it is and does; ``None`` for one that does not
    measure."""
    plugin: Measuring | None = dask_worker.plugins.get(Measuring.name)
    if plugin is None:
        return None
    place = plugin.checkout
    does = {"does": plugin.doing, "progress": plugin.progress}
    return {"machine": place.machine, **does, "checkout": f"{place.folder}"}


async def serve(
    address: str,
    security: Security,
    checkout: Checkout,
    name: str | None,
    host: str | None,
    *,
    retry: bool,
    say: Callable[[str], object],
) -> None:
    """Be a measuring worker until Ctrl-C, SIGTERM or the scheduler's end; with ``retry`` wait for a
    scheduler that is not there yet, or that has stopped, and join it again.

    ``host``: where it listens, with a port or without. Raises ``GpubenchError`` where others could
    reach the worker without TLS and, without ``retry``, where there is no scheduler, or one that
    has a worker of that name.
    """
    if not security.tls_ca_file and not is_loopback(host or "127.0.0.1"):
        raise GpubenchError(
            f"--host {host}: without TLS a worker listens on the loopback interface alone, at "
            "127.0.0.1; give --tls-ca-file, --tls-cert and --tls-key"
        )
    _silence_dask()
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    # Dask would look a hundred times a second at what its threads do.
    settings = {"distributed.worker.profile.enabled": False}
    with dask.config.set(settings), temporary_folder("fleet") as folder:
        said = None
        while not interrupted.is_set():
            joining = asyncio.ensure_future(
                _joined(address, security, checkout, name, host, folder)
            )
            await _first_of(interrupted.wait(), joining)
            if interrupted.is_set():  # Dask tries to reach a scheduler for half a minute
                with suppress(_CannotJoin, asyncio.CancelledError):
                    await (await joining).close()
                return
            try:
                worker = joining.result()
            except _CannotJoin as error:
                if not retry:
                    raise
                if str(error) != said:
                    say(f"{error}; trying every {RETRY_SECONDS:g} s until it can (--retry)")
                said = str(error)
            else:
                say(f"{checkout.machine} has joined the fleet at {address}")
                await _first_of(interrupted.wait(), worker.finished())
                await worker.close()
                if interrupted.is_set():
                    return
                said = (
                    f"{checkout.machine}: the scheduler at {address} stopped, and what it measured"
                )
                said += " ended"
                if not retry:
                    say(f"{said}; a worker with --retry waits until the scheduler is back")
                    return
                say(f"{said}; waiting until the scheduler is back (--retry)")
            await _first_of(interrupted.wait(), asyncio.sleep(RETRY_SECONDS))


class _CannotJoin(GpubenchError):
    """A scheduler that is not there, or refuses: later it may be and may not."""


async def _joined(
    address: str,
    security: Security,
    checkout: Checkout,
    name: str | None,
    host: str | None,
    folder: Path,
) -> Worker:
    """Return a worker that takes part; raises ``_CannotJoin`` where it does not, and
    ``GpubenchError`` where the scheduler listens to others without TLS."""
    name = name or checkout.machine
    try:
        connection = security.get_connection_args("worker")
        async with rpc(address, connection_args=connection) as scheduler:
            _refuse_open((await scheduler.identity(n_workers=0))["address"], security)
        return await Worker(
            address,
            nthreads=1,
            name=name,
            resources=resources(len(known_gpus())),
            plugins=(Measuring(checkout),),
            memory_limit=0,
            security=security,
            host=host or ("127.0.0.1" if is_loopback(address) else None),
            dashboard_address="127.0.0.1:0",  # its HTTP server has a port all the same
            local_directory=str(folder),
        )
    except (OSError, ValueError, RuntimeError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:  # the last says why, the others that it was so
            cause = cause.__cause__
        why = f"{cause}" or type(cause).__name__
        if "name taken" in why:
            why = f"it has a worker called {name} already; end that one, or give another --machine"
            if name != checkout.machine:
                why = why.replace("--machine", "--name")
        raise _CannotJoin(
            f"{checkout.machine} cannot join the fleet at {address}: {why}"
        ) from error


async def _first_of(*awaited: Awaitable[object]) -> None:
    """Wait until one of these is done, and drop the others."""
    tasks = [asyncio.ensure_future(one) for one in awaited]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
