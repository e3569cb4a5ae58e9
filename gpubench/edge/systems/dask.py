"""Dask: arrays and tables in pieces on a pool of threads or processes, on a cluster of workers that
is started here, or on one that a scheduler's address leads to.

Functions get Dask's arrays and data frames, which cannot be written, and return those that they
make; these may be lazy. A call is done when all that it returned is computed and lies where the
workers are (``persist`` and ``wait``). ``dask.delayed``, ``dask.compute`` and
``distributed.get_client`` find the session's workers inside a call.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from importlib import import_module
from itertools import count, product
from multiprocessing import get_context
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import numpy as np

from gpubench.arrow import AnyArray
from gpubench.backends.host import Cell, CellSession, value_of
from gpubench.backends.numpy import blas_libraries
from gpubench.backends.protocol import (
    Call,
    DeviceLostError,
    DeviceMemoryError,
    Native,
    not_installed,
)
from gpubench.distribution import require_extra
from gpubench.edge.systems.clusters import (
    MAX_ANSWER_SECONDS,
    MAX_WORKERS_START_SECONDS,
    WORKERS_PATTERN,
    ClusterBackend,
    blas_threads_asker,
    counts_of,
    memory_option,
    no_threads_beside_workers,
    wait_for_all,
    who_am_i,
)
from gpubench.edge.systems.pandas import to_arrow
from gpubench.edge.systems.pools import locks_without_names, start_trackers
from gpubench.environment import environment
from gpubench.errors import BackendError, KernelError
from gpubench.names import Value
from gpubench.processes import end_with_parent
from gpubench.temporary import temporary_folder

HASH_SEED = "6640"
"""Of text in worker processes, which have to agree: the one that Dask gives its own pool."""


class DaskSession(CellSession):
    """Dask's schedulers in this process, with a pool of threads or processes that stays open:
    Dask's own pool of processes is another one for every call."""

    def __init__(self, device: str, chunks: int | str | None) -> None:
        super().__init__("dask", device)
        self._dask, self._arrays = import_module("dask"), import_module("dask.array")
        self._chunks, self._workers = chunks, 0
        with self.opening() as ending:
            self._facts = {"dask": self._dask.__version__, **self._started(ending)}

    def _started(self, ending: ExitStack) -> dict[str, Value]:
        """Start the workers; what there is to say of them, with ``pool_start_seconds`` from the
        first process to the answer of the last."""
        self._scheduler = self.device.partition(":")[0]
        (self._workers,) = counts_of(self.device)
        self._blas = blas_libraries()
        start = time.perf_counter()
        hash_seed = environment({"PYTHONHASHSEED": HASH_SEED})
        with hash_seed, self.errors(), locks_without_names():
            self._pool: Executor
            if self._scheduler == "threads":
                self._pool = ThreadPoolExecutor(self._workers)
            else:
                # Not forked: threads that this process has would leave their locks behind.
                spawn = get_context("spawn")
                self._pool = ProcessPoolExecutor(self._workers, spawn, initializer=_begin_worker)
            ending.callback(self._pool.shutdown, cancel_futures=True)
            wait_for_all(lambda times: self._pool.map(who_am_i, range(times)), self._workers)
        return {
            "workers": self._workers,
            "scheduler": self._scheduler,
            "worker_blas_threads": 1,
            "pool_start_seconds": time.perf_counter() - start,
        }

    @contextmanager
    def configured(self) -> Iterator[None]:
        """Dask computes with this session's workers inside. Not for as long as the session is open:
        another one may be open beside it."""
        # One thread of BLAS for each worker: threads of the pool would have all of them each.
        alone = self._blas.limit(limits=1) if self._scheduler == "threads" else nullcontext()
        with self._dask.config.set(scheduler=self._scheduler, pool=self._pool), alone:
            yield

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Tell what went wrong with the workers, in words; errors of tasks stay what they are."""
        try:
            yield
        except BrokenProcessPool as error:
            raise DeviceLostError(
                f"a worker process of {self.device} died: {error} Look for a task that ends its "
                "process, or for memory that ran out"
            ) from error

    def computed(self, collections: Sequence[Any]) -> Sequence[Any]:
        """Return the same collections with their values, when all of them are there."""
        persisted: Sequence[Any] = self._dask.persist(*collections)
        return persisted

    def resident(self, array: AnyArray, chunks: Any) -> Any:
        """Return a Dask array of a copy of ``array`` in these chunks."""
        return self._arrays.from_array(array.copy(order="K"), chunks=chunks)

    def resident_table(self, frame: Any, rows: int) -> Any:
        """Return what a Cell holds of a pandas frame, in pieces of so many rows."""
        return import_module("dask.dataframe").from_pandas(frame, chunksize=rows, sort=False)

    def given(self, value: Any) -> Any:
        """Return what a function gets for the value of a cell."""
        return value

    def fetched(self, array: Any) -> AnyArray:
        """Values of a Dask array that is computed; may be memory that others see."""
        # The chunks are in this process: no worker is asked to put them together.
        values: AnyArray = array.compute(scheduler="sync")
        return values

    def to_native(self, array: AnyArray) -> Cell:
        chunks = self._arrays.core.normalize_chunks(
            self._chunks if self._chunks is not None else self._shares(array.shape),
            array.shape,
            dtype=array.dtype,
        )
        with self.errors():
            return Cell(self.resident(array, chunks))

    def _shares(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Extents of as many chunks as there are workers, along the first axis."""
        return tuple(
            max(1, -(-extent // self._workers) if axis == 0 else extent)
            for axis, extent in enumerate(shape)
        )

    def to_host(self, native: Native) -> AnyArray:
        is_whole = getattr(value_of(native), "npartitions", 1) == 1  # and not joined of several
        return np.array(self.view(native)) if is_whole else self.view(native)

    def view(self, native: Native) -> AnyArray:
        array = value_of(native)
        if isinstance(array, self._arrays.Array):
            with self.errors():
                array = self.fetched(array)
        return np.asarray(array)

    def table_to_native(self, table: Any) -> Cell:
        """Return a piece for each worker, of pandas's own types."""
        import_module("dask.dataframe")  # which is not imported with Dask
        with self.errors():
            return Cell(self.resident_table(table.to_pandas(), *self._shares([table.num_rows])))

    def table_to_host(self, native: Native) -> Any:
        frame = self.given(native.value) if isinstance(native, Cell) else native
        with self.errors(), self.configured():
            values = frame.compute() if _is_frame(frame) else frame
        return to_arrow(values)

    def call_of(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
        is_collection = self._dask.is_dask_collection

        def call() -> Any:
            given = [self.given(a.value) if isinstance(a, Cell) else a for a in arguments]
            with self.errors(), self.configured():
                returned = function(*given)
                several = isinstance(returned, tuple | list)
                results = list(returned) if several else [returned]
                lazy = [place for place, one in enumerate(results) if is_collection(one)]
                if lazy:
                    values = self.computed([_in_its_pieces(results[place]) for place in lazy])
                    for place, value in zip(lazy, values, strict=True):
                        results[place] = value
            return results if several else results[0]

        return call


class Pieces(NamedTuple):
    """Of a table on the workers of a cluster."""

    empty: Any
    """A frame of pandas with its columns and no rows."""
    futures: Sequence[Any]


class ClusterSession(DaskSession):
    """Workers of ``distributed`` in processes of their own, reached by a client.

    A cluster that is started here listens on the loopback interface only, has no dashboard, and
    gives a task up when a worker dies of it: Dask would try four, and add that to the time.
    """

    def __init__(self, device: str, chunks: int | str | None, memory: int | None) -> None:
        self._begun, self._memory = time.perf_counter(), memory
        self._distributed = import_module("distributed")
        self._told, self._name, self._runs = _Told(), f"gpubench-{uuid4().hex}", count()
        self._returned: set[Any] = set()
        """A key of each collection that calls have returned."""
        super().__init__(device, chunks)

    def _started(self, ending: ExitStack) -> dict[str, Value]:
        ending.enter_context(self._distributed.utils.silence_logging_cmgr(logging.CRITICAL))
        address, counts = self.device.removeprefix("dask:"), counts_of(self.device)
        cluster = self._local_cluster(ending, *counts) if counts else address
        try:
            client = self._distributed.Client(
                cluster, timeout=MAX_ANSWER_SECONDS, set_as_default=False
            )
        except OSError as error:  # time-outs are some
            raise BackendError(
                f"{self.device}: no scheduler of Dask answers at {cluster} within "
                f"{MAX_ANSWER_SECONDS:g} s ({type(error).__name__}); start one with "
                f"`dask scheduler`, and workers with `dask worker {cluster}`"
            ) from error
        self._client = client
        ending.callback(_closed, client)
        # Of a cluster that is started here all, of another one the first.
        workers, seconds = (
            (counts[0], MAX_WORKERS_START_SECONDS) if counts else (1, MAX_ANSWER_SECONDS)
        )
        try:
            client.wait_for_workers(workers, timeout=seconds)
        except TimeoutError as error:
            raise BackendError(
                f"{self.device}: fewer than {workers} workers after {seconds:g} s; start them "
                f"with `dask worker {address}`, or use fewer"
            ) from error
        took, threads = time.perf_counter() - self._begun, client.nthreads()
        self._workers = sum(threads.values())
        return {
            "scheduler": "distributed",
            "distributed": self._distributed.__version__,
            "workers": len(threads),
            "threads_per_worker": max(threads.values()),
            ("pool_start_seconds" if counts else "connect_seconds"): took,
            **({} if self._memory is None else {"worker_memory_bytes": self._memory}),
        }

    def _local_cluster(self, ending: ExitStack, workers: int, threads: int) -> Any:
        start_trackers()  # the queues between nannies and workers have locks with names
        nannies = logging.getLogger("distributed.nanny")
        folder = str(ending.enter_context(temporary_folder("dask")))
        ending.enter_context(locks_without_names())  # of workers that nannies start again
        ending.callback(nannies.setLevel, nannies.level)
        ending.callback(nannies.removeHandler, self._told)
        nannies.addHandler(self._told)
        nannies.setLevel(logging.INFO)
        settings = {
            "distributed.scheduler.allowed-failures": 0,
            "temporary-directory": folder,  # the scheduler's, too
        }
        with self._dask.config.set(settings), locks_without_names():
            cluster = self._distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=threads,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # its HTTP server has a port all the same
                scheduler_kwargs={"dashboard": False},
                local_directory=folder,
                memory_limit="auto" if self._memory is None else self._memory,
                silence_logs=logging.CRITICAL,
            )
        ending.callback(_closed, cluster)
        return cluster

    @contextmanager
    def configured(self) -> Iterator[None]:
        with self._client.as_current(), self._dask.config.set(scheduler=self._client):
            yield

    def resident(self, array: AnyArray, chunks: Any) -> Any:
        slices = self._arrays.core.slices_from_chunks(chunks)
        futures = self._scattered([np.asarray(array[piece]) for piece in slices])
        name, places = self._new_name(), product(*(range(len(axis)) for axis in chunks))
        graph = {(name, *place): future for place, future in zip(places, futures, strict=True)}
        return self._arrays.Array(graph, name, chunks, dtype=array.dtype)

    def resident_table(self, frame: Any, rows: int) -> Pieces:
        pieces = [frame.iloc[start : start + rows] for start in range(0, len(frame), rows)]
        return Pieces(frame.iloc[:0], self._scattered(pieces))

    def _scattered(self, pieces: Sequence[Any]) -> Sequence[Any]:
        """Futures of copies that lie where the workers are."""
        # Past the scheduler, through which all of it would go, where the workers are at hand.
        direct = True if counts_of(self.device) else None
        with self._client.as_current():
            futures: Sequence[Any] = self._client.scatter(pieces, hash=False, direct=direct)
            self._distributed.wait(futures)
        return futures

    def _new_name(self) -> str:
        return f"{self._name}-{next(self._runs)}"

    def given(self, value: Any) -> Any:
        """Return the array or table by a new name. The names of what is computed follow from those
        of the arrays, and a scheduler that still has something of that name does not compute it
        again: a second run took 5 ms in place of 40."""
        name = self._new_name()
        if isinstance(value, Pieces):
            from_delayed = import_module("dask.dataframe").from_delayed
            return from_delayed(value.futures, meta=value.empty, prefix=name, verify_meta=False)
        graph = {(name, *key[1:]): future for key, future in value.dask.items()}
        return self._arrays.Array(graph, name, value.chunks, dtype=value.dtype)

    def computed(self, collections: Sequence[Any]) -> Sequence[Any]:
        keys = [next(self._dask.core.flatten(c.__dask_keys__())) for c in collections]
        if self._returned.isdisjoint(keys):
            persisted = super().computed(collections)
        else:  # made of no array of the call, so that its name is that of an earlier run's
            if any(map(_is_frame, collections)):  # which `clone` does not take
                raise KernelError(
                    "a frame made of no table of the call has one name in every run, under which "
                    f"{self.device} keeps it; use threads:N or processes:N, or give it a table"
                )
            clone = import_module("dask.graph_manipulation").clone
            # In this order: what is cloned cannot always be optimized.
            fresh = map(clone, self._dask.optimize(*collections))
            persisted = self._dask.persist(*fresh, optimize_graph=False)
        self._returned.update(keys)
        futures = self._distributed.futures_of(persisted)
        self._distributed.wait(futures)
        for future in futures:
            if future.status == "error":
                future.result()  # raises it
        return persisted

    def fetched(self, array: Any) -> AnyArray:
        # Chunk by chunk: `compute` would first put them together on one of the workers.
        with self._client.as_current():
            values = self._client.gather(dict(array.dask))
        finalize, arguments = array.__dask_postcompute__()
        whole: AnyArray = finalize(_by_key(array.__dask_keys__(), values), *arguments)
        return whole

    def facts(self) -> Mapping[str, Value]:
        """Return the same, and ``worker_blas_threads``, where workers can tell."""
        name, answers = "worker_blas_threads", self._client.run(blas_threads_asker()).values()
        counts = [answer[name] for answer in answers if answer]
        return {**super().facts(), **({name: max(counts)} if counts else {})}

    @contextmanager
    def errors(self) -> Iterator[None]:
        comm = self._distributed.comm.CommClosedError
        try:
            yield
        except self._distributed.scheduler.KilledWorker as error:
            if "memory" in self._told.words:
                raise DeviceMemoryError(
                    f"a worker of {self.device} exceeded its memory: {self._told.words}; use "
                    "smaller sizes or chunks, fewer workers, or more `memory`"
                ) from error
            raise DeviceLostError(
                f"a worker of {self.device} died while it ran a task: "
                f"{self._told.words or error}; look for a task that ends its process"
            ) from error
        except (CancelledError, comm) as error:
            raise DeviceLostError(
                f"{self.device} lost what it held, because a worker or the scheduler ended: "
                f"{self._told.words or error}; start it again"
            ) from error


class _Told(logging.Handler):
    """Keeps what those who watch the workers of a cluster (``nannies``) first said of an end."""

    words = ""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not self.words and re.search(r"exceeded|killed by signal|exited with status", message):
            self.words = message


class DaskBackend(ClusterBackend):
    name = "dask"
    title = "Dask"
    times = ("kernel", "end_to_end", "transfer", "start")
    capabilities = ("cluster", "out_of_core")
    runs_on = (
        "threads:N, processes:N, dask:WORKERS:THREADS (a cluster that is started here) and "
        "dask:tcp://HOST:PORT (a scheduler's address)"
    )
    device_names = rf"(threads|processes):{WORKERS_PATTERN}|dask:({WORKERS_PATTERN}:{WORKERS_PATTERN}|(tcp|tls)://[\w.\-\[\]:]+:\d+)"
    requires = (require_extra("dask"),)
    modules = ("dask",)
    software = ("dask", "distributed")
    concerns = ("dask", "distributed")
    takes_tables = True
    no_threads = no_threads_beside_workers("threads:N, processes:N or dask:WORKERS:THREADS")
    options: ClassVar[Mapping[str, str]] = {
        "chunks": "elements of a chunk along each axis, or 'auto'; absent: as many chunks along "
        "the first axis as there are workers",
        "memory": "bytes that each worker of dask:WORKERS:THREADS may use; absent: its share of "
        "the machine's",
    }

    def unavailable(self, device: str) -> str | None:
        reason = super().unavailable(device)
        if reason or not device.startswith("dask:"):
            return reason
        return not_installed(device, f"'{require_extra('dask')}'", "distributed")

    def start(
        self,
        device: str,
        threads: int | None,
        chunks: int | str | None = None,
        memory: int | None = None,
    ) -> DaskSession:
        is_count = isinstance(chunks, int) and not isinstance(chunks, bool) and chunks >= 1
        if not is_count and chunks not in (None, "auto"):
            raise BackendError(
                f"the option chunks is {chunks!r}; allowed: a whole number from 1, or 'auto'"
            )
        is_cluster = device.startswith("dask:")
        limited = is_cluster and counts_of(device)
        why = "" if limited else "only workers of dask:WORKERS:THREADS have a limit"
        memory = memory_option(memory, device, why)
        return ClusterSession(device, chunks, memory) if is_cluster else DaskSession(device, chunks)


def _is_frame(value: object) -> bool:
    return type(value).__module__.startswith("dask.dataframe")


def _in_its_pieces(collection: Any) -> Any:
    """Return the same, a frame in as many pieces as it is computed in. Dask decides that when it
    optimizes a frame, of sums of groups over more than 15 pieces for example, and ``dask.persist``
    (2026.8) keeps as many as there were before: a quarter of the answer of 32."""
    return collection.optimize() if _is_frame(collection) else collection


def _closed(what: Any) -> None:
    with suppress(Exception):  # what is lost already
        what.close()


def _by_key(keys: Any, values: Mapping[Any, Any]) -> Any:
    """Return lists of lists of keys with their values in place of them."""
    if isinstance(keys, list):
        return [_by_key(each, values) for each in keys]
    return values[keys]


def _begin_worker() -> None:
    """Run first in each worker process: workers have a processor each."""
    end_with_parent()
    blas_libraries().limit(limits=1)
