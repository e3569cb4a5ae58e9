"""Ray: functions get references to objects in its store, and return references, of tasks or of
actors, or arrays. A call is done when all objects that it returned are there (``ray.wait``).

A Ray that is started here listens on the loopback interface only, with a token of its own, has no
dashboard, and keeps its files in a folder that goes with it. One process has one Ray: sessions on
the same device share it, and the last one stops it.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gpubench.backends.host import Cell, CellSession
from gpubench.backends.protocol import Call, DeviceError, DeviceLostError, DeviceMemoryError, Native
from gpubench.distribution import require_extra
from gpubench.edge.systems.clusters import (
    MAX_ANSWER_SECONDS,
    WORKERS_PATTERN,
    ClusterBackend,
    blas_threads_asker,
    counts_of,
    memory_option,
    no_threads_beside_workers,
    wait_for_all,
    who_am_i,
)
from gpubench.environment import environment
from gpubench.errors import BackendError, KernelError
from gpubench.layouts import Layout
from gpubench.names import Value
from gpubench.temporary import temporary_folder

OBJECT_STORE = 2**30
"""Bytes of the object store of a Ray that is started here, in shared memory: three arrays of 2**24
float64 (128 MiB each) and as many of the round before fit. Ray's own choice, 30 % of the machine's
memory, would be another one on every machine."""

MAX_FOLDER_CHARACTERS = 17
"""Of the name of the folder in which Ray's is made: the path of a socket has 103 characters at most
(107 on Linux), and Ray adds up to 86."""

LOST_HEAD_SECONDS = 2 * MAX_ANSWER_SECONDS
"""Seconds for which a head may stay silent until Ray ends this process; Ray itself has a minute."""


class Result(Cell):
    """What a call returned, where it is a reference."""

    __slots__ = ("_ray",)

    def __init__(self, reference: Any, ray: Any) -> None:
        super().__init__(reference)
        self._ray = ray

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the object, which is fetched for it."""
        dtype: np.dtype[Any] = np.asarray(self._ray.get(self.value)).dtype
        return dtype


class Cluster:
    """Ray as this process uses it, started here or connected to."""

    def __init__(self, device: str, memory: int | None) -> None:
        self.key = device, memory
        self.sessions = 1
        self.ray = import_module("ray")
        if self.ray.is_initialized():
            raise BackendError(
                f"{device}: Ray is started in this process already, and not by gpubench; a process "
                "has one: call ray.shutdown() first, or leave ray.init() out of the suite's modules"
            )
        self._folder: Path | None = None
        start, counts = time.perf_counter(), counts_of(device)
        with ExitStack() as ending:
            if counts:
                self._folder = ending.enter_context(
                    temporary_folder("ray", max_characters=MAX_FOLDER_CHARACTERS)
                )
            ending.callback(self._shut_down)
            if counts:
                self._start(counts[0], memory or OBJECT_STORE)
            else:
                self._connect(device)
            self.stop = ending.pop_all().close
        resources = self.ray.cluster_resources()
        self.facts: dict[str, Value] = {
            "ray": self.ray.__version__,
            "workers": int(resources.get("CPU", 0)),
            "nodes": sum(node["Alive"] for node in self.ray.nodes()),
            "object_store_bytes": int(resources.get("object_store_memory", 0)),
            ("pool_start_seconds" if counts else "connect_seconds"): time.perf_counter() - start,
        }

    def _start(self, workers: int, memory: int) -> None:
        with _on_loopback():
            self.ray.init(
                num_cpus=workers,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                object_store_memory=memory,
                _temp_dir=str(self._folder),
            )
        ask = self.ray.remote(num_cpus=1)(who_am_i)
        wait_for_all(lambda times: self.ray.get([ask.remote() for _ in range(times)]), workers)

    def _connect(self, device: str) -> None:
        if reason := _unreachable(device):  # Ray itself would end the process after a minute
            raise BackendError(
                f"{device}: {reason}; start Ray there with `ray start --head --port PORT`, or use "
                "ray:N"
            )
        address, patience = device.removeprefix("ray:"), "RAY_gcs_rpc_server_reconnect_timeout_s"
        try:
            with (
                environment({patience: os.environ.get(patience, f"{LOST_HEAD_SECONDS:g}")}),
                _quiet(),
            ):
                self.ray.init(address, log_to_driver=False, logging_level=logging.CRITICAL)
        except (ConnectionError, RuntimeError, self.ray.exceptions.RayError) as error:
            raise BackendError(
                f"{device}: Ray cannot be reached: {error}; start it with `ray start --head`, or "
                "use ray:N"
            ) from error

    def _shut_down(self) -> None:
        with suppress(Exception):  # what has crashed already
            self.ray.shutdown()

    def check_store(self) -> None:
        """Raise ``DeviceMemoryError`` where objects had to go to disk: times would be the
        disk's."""
        if self._folder and next(self._folder.glob("session_*/ray_spilled_objects*/*"), None):
            raise self.full_store("Ray wrote objects to disk")

    def full_store(self, consequence: str) -> DeviceMemoryError:
        """Return what to raise where the object store is full."""
        return DeviceMemoryError(
            f"the object store of {self.facts['object_store_bytes']:,} bytes is full, and "
            f"{consequence}; use smaller sizes, or set `options: {{memory: ...}}`"
        )


class RaySession(CellSession):
    """Cells hold references to objects. The reference that a call returned last is looked at when
    somebody waits: ``ray.wait`` takes a task that failed for one that is done."""

    # Of an array that is in neither order, pickle makes one in C order.
    layouts: ClassVar[tuple[Layout, ...]] = ("C", "F")

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("ray", cluster.key[0])
        self._cluster, self._ray, self._facts = cluster, cluster.ray, cluster.facts
        self._last: list[Any] = []
        self._ending.callback(self._leave)

    def _leave(self) -> None:
        self._last = []
        self._cluster.sessions -= 1
        if not self._cluster.sessions:
            self._cluster.stop()

    def to_native(self, array: np.ndarray[Any, Any]) -> Cell:
        with self._errors():
            resident = Cell(self._ray.put(array))
            self._cluster.check_store()
        return resident

    def view(self, native: Native) -> np.ndarray[Any, Any]:
        """Return the object's own memory where it is on this node, which cannot be written."""
        with self._errors():
            value = self._ray.get(native.value) if isinstance(native, Cell) else native
        array = np.asarray(value)
        if array.dtype == object:
            raise KernelError(f"a task returned a {type(value).__name__}; allowed: an array")
        return array

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        ray = self._ray

        def call() -> Any:
            given = [a.value if isinstance(a, Cell) else a for a in arguments]
            with self._errors():
                returned = function(*given)
                several = isinstance(returned, tuple | list)
                results = list(returned) if several else [returned]
                self._last = [one for one in results if isinstance(one, ray.ObjectRef)]
                if self._last:
                    ray.wait(self._last, num_returns=len(self._last), fetch_local=False)
            results = [Result(r, ray) if isinstance(r, ray.ObjectRef) else r for r in results]
            return results if several else results[0]

        return call

    def synchronize(self) -> None:
        """Raise what the last call's tasks raised."""
        last, self._last = self._last, []
        with self._errors():
            for reference in last:
                self._ray.get(reference)
            self._cluster.check_store()

    def facts(self) -> Mapping[str, Value]:
        """Versions, ``workers``, ``nodes``, ``object_store_bytes`` and ``worker_blas_threads``.
        ``pool_start_seconds`` is how long starting took, to the answer of the last worker."""
        asked = self._ray.remote(blas_threads_asker()).remote()
        return {**super().facts(), **self._ray.get(asked)}

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Tell what went wrong, in words, with the cause; errors of functions stay what they
        are."""
        errors = self._ray.exceptions
        try:
            yield
        except errors.RayTaskError as error:
            cause = error.cause
            raise KernelError(f"a task raised {type(cause).__name__}: {_words(cause)}") from error
        except (errors.ObjectStoreFullError, errors.OutOfMemoryError) as error:
            raise DeviceMemoryError(
                f"{self.device} is out of memory: {_words(error)}; use smaller sizes, or set "
                "`options: {memory: ...}`"
            ) from error
        except errors.OutOfDiskError as error:
            raise self._cluster.full_store(
                "so is the disk, where Ray would write objects"
            ) from error
        except (errors.WorkerCrashedError, errors.ActorDiedError) as error:
            raise DeviceError(
                f"a worker of {self.device} died while it ran a task: {_words(error)}; look "
                "for one that ends its process, or for memory that ran out"
            ) from error
        except errors.RayError as error:
            raise DeviceLostError(
                f"{self.device} failed: {type(error).__name__}: {_words(error)}; start it again"
            ) from error


class RayBackend(ClusterBackend):
    name = "ray"
    title = "Ray"
    times = ("kernel", "end_to_end", "transfer", "start")
    capabilities = ("cluster", "out_of_core")
    runs_on = "ray:N (started here with N CPUs), ray:auto and ray:HOST:PORT (one that runs already)"
    device_names = rf"ray:({WORKERS_PATTERN}|auto|(ray://)?[\w.\-]+:\d+)"
    requires = (require_extra("ray"),)
    modules = ("ray",)
    software = ("ray",)
    concerns = ("ray",)
    no_threads = no_threads_beside_workers("ray:N")
    options: ClassVar[Mapping[str, str]] = {
        "memory": f"bytes of the object store of ray:N; absent: {OBJECT_STORE:,}"
    }

    def __init__(self) -> None:
        self._cluster: Cluster | None = None

    def lost(self, device: str) -> str | None:
        reason = None if counts_of(device) else _unreachable(device)
        return reason and f"{device} lost its head: {reason}; start it again"

    def start(self, device: str, threads: int | None, memory: int | None = None) -> RaySession:
        why = "" if counts_of(device) else "its object store has its size already"
        memory = memory_option(memory, device, why)
        running = self._cluster
        if running is None or not running.sessions:
            running = self._cluster = Cluster(device, memory)
        elif running.key == (device, memory):
            running.sessions += 1
        else:
            raise BackendError(
                f"{device}: this process uses Ray on {running.key[0]} already, and it can use one; "
                "compare such cases with a baseline of another backend"
            )
        return RaySession(running)


def _unreachable(device: str) -> str | None:
    """Return why there is no head at the address of ``ray:HOST:PORT``; ``None`` where there is one,
    and of ``ray:auto``, which has no address."""
    host, _, port = device.rpartition("://")[2].removeprefix("ray:").rpartition(":")
    if not host:
        return None
    try:
        socket.create_connection((host, int(port)), timeout=MAX_ANSWER_SECONDS).close()
    except OSError as error:
        return f"nothing answers at {host}:{port} within {MAX_ANSWER_SECONDS:g} s ({error})"
    return None


def _words(error: BaseException) -> str:
    """Return one line of a message: Ray's have tracebacks, which end with the cause, and advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no message"]
    return lines[-1] if re.match(r"\w+(Error|Exception): ", lines[-1]) else lines[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray warns of what it chose, before it takes the level that it is given."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


@cache
def _token() -> str:
    """Return one token for all Rays of this process: Ray reads it once."""
    return secrets.token_hex(32)


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Keep a Ray that is started meanwhile from being reached from outside.

    Ray listens on all interfaces, save where it is told that clusters are of no use: it does so by
    itself on Windows and macOS, and this variable chooses. Its other guard is a token, which it
    would write into the user's home.
    """
    constants: Any = import_module("ray._private.ray_constants")
    variables = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_TOKEN": os.environ.get("RAY_AUTH_TOKEN") or _token(),
        "RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE"),  # which Ray sets
        "RAY_USAGE_STATS_ENABLED": "0",
        # Workers find the modules that this process finds.
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    enabled, constants.ENABLE_RAY_CLUSTER = constants.ENABLE_RAY_CLUSTER, False
    try:
        with environment(variables), _quiet():
            yield
    finally:
        constants.ENABLE_RAY_CLUSTER = enabled
