"""cuDF and cudf.pandas: what their backend asks of them, and what it refuses.

They need a GPU. What the backend has of them is a stand-in here, and where cuDF is installed its
own ``cudf.pandas``, which goes on with pandas where there is no GPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from gpubench.backends.protocol import DeviceError, DeviceMemoryError, Target
from gpubench.backends.registry import get
from gpubench.edge.systems.cudf import CudfSession
from gpubench.errors import BackendError, KernelError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pandas")


class FrameOnADevice:
    """As much of ``cudf.DataFrame`` as the session asks for."""

    def __init__(self, table: Any) -> None:
        self.table = table

    @classmethod
    def from_arrow(cls, table: Any) -> FrameOnADevice:
        if table.num_rows > 3:
            raise MemoryError("std::bad_alloc: out_of_memory")
        return cls(table)

    def to_arrow(self, preserve_index: bool) -> Any:
        assert not preserve_index
        return self.table


class Device:
    waits: ClassVar[list[int]] = []
    attributes: ClassVar[dict[str, int]] = {"L2CacheSize": 64}

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal

    def use(self) -> None: ...

    def synchronize(self) -> None:
        self.waits.append(self.ordinal)


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    cudf, cupy = ModuleType("cudf"), ModuleType("cupy")
    vars(cudf).update(DataFrame=FrameOnADevice, __version__="26.10")
    vars(cupy).update(cuda=SimpleNamespace(Device=Device))
    monkeypatch.setitem(sys.modules, "cudf", cudf)
    monkeypatch.setitem(sys.modules, "cupy", cupy)


@pytest.mark.usefixtures("stand_ins")
def test_a_call_of_cudf_waits_for_the_device_and_takes_nothing_but_its_frames() -> None:
    sent = pa.table({"c": [1, 2, 3]})
    with CudfSession("cuda:1") as session:
        native = session.table_to_native(sent)
        call = session.bind(Target(function=lambda x: x), None, [native])
        Device.waits.clear()
        assert session.table_to_host(call()).equals(sent)
        assert Device.waits == [1]
        on_the_host = session.bind(Target(function=lambda x: x.table.to_pandas()), None, [native])
        with pytest.raises(
            KernelError, match=r"a pandas\.DataFrame; allowed: a cudf\.DataFrame\. A"
        ):
            session.table_to_host(on_the_host())
        with pytest.raises(DeviceMemoryError, match=r"^cuda:1 is out of memory: std::bad_alloc"):
            session.table_to_native(pa.table({"c": [1, 2, 3, 4]}))


@pytest.fixture
def standing_for_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    switched_on = ModuleType("cudf.pandas")
    vars(switched_on).update(LOADED=True)
    monkeypatch.setitem(sys.modules, "cudf.pandas", switched_on)


@pytest.mark.usefixtures("stand_ins", "standing_for_pandas")
def test_a_process_in_which_cudf_stands_for_pandas_is_refused() -> None:
    with pytest.raises(BackendError, match=r"^cuda:0: cudf\.pandas is switched on in this process"):
        CudfSession("cuda:0")
    with pytest.raises(BackendError, match=r"^cudf\.pandas is switched on in this process and"):
        get("pandas").open("cpu")


# --- cudf.pandas, by as much of its proxies as the session asks for


class FallbackError(Exception):
    """As much of cuDF's as the session asks for."""


class Proxy:
    """A frame that lies on the GPU, or on the host, whence each look at it makes a copy."""

    def __init__(self, frame: FrameOnADevice, *, on_gpu: bool = True) -> None:
        self.frame, self.on_gpu = frame, on_gpu

    def as_gpu_object(self) -> FrameOnADevice:
        return self.frame if self.on_gpu else FrameOnADevice(self.frame.table)

    def fall_back(self) -> None:
        """What the GPU cannot do."""
        assert os.environ["CUDF_PANDAS_FAIL_ON_FALLBACK"] == "1"
        raise FallbackError(
            "Falling back to the slow path. The exception was x. \\\n        The f."
        )

    def run_out(self) -> None:
        raise FallbackError from MemoryError("std::bad_alloc")


@pytest.fixture
def accelerated(stand_ins: None, monkeypatch: pytest.MonkeyPatch) -> None:
    module, proxies = ModuleType("cudf.pandas"), ModuleType("cudf.pandas.fast_slow_proxy")
    vars(proxies).update(FallbackError=FallbackError)
    vars(module).update(
        LOADED=False,
        install=lambda: vars(module).update(LOADED=True),
        as_proxy_object=Proxy,
        is_proxy_object=lambda value: isinstance(value, Proxy),
    )
    monkeypatch.setitem(sys.modules, "cudf.pandas", module)
    monkeypatch.setitem(sys.modules, "cudf.pandas.fast_slow_proxy", proxies)


def brought_to_the_host(x: Proxy) -> Proxy:
    x.on_gpu = False
    return Proxy(x.frame)


@pytest.mark.usefixtures("accelerated")
def test_by_cudf_pandas_all_frames_have_to_stay_on_the_gpu() -> None:
    sent = pa.table({"c": [1, 2, 3]})
    with get("cudf").start("cuda:0", None, accel=True) as session:  # type: ignore[call-arg]
        assert session.facts()["cudf_accel"] is True
        native = session.table_to_native(sent)

        def run(function: Any) -> Any:
            return session.bind(Target(function=function), None, [native])()

        assert session.table_to_host(run(lambda x: x)).equals(sent)
        with pytest.raises(KernelError, match=r"a pandas\.DataFrame; allowed: a cudf\.DataFrame"):
            session.table_to_host(run(lambda x: x.frame.table.to_pandas()))
        to_the_host = r"^cuda:0: cudf\.pandas brought a Proxy to the host; use"
        with pytest.raises(DeviceError, match=to_the_host):
            run(lambda x: Proxy(x.frame, on_gpu=False))
        with pytest.raises(DeviceError, match=to_the_host):
            run(brought_to_the_host)
    assert "CUDF_PANDAS_FAIL_ON_FALLBACK" not in os.environ


@pytest.mark.usefixtures("accelerated")
def test_what_cudf_pandas_cannot_do_on_the_gpu_fails_in_every_run() -> None:
    with get("cudf").start("cuda:0", None, accel=True) as session:  # type: ignore[call-arg]
        native = session.table_to_native(pa.table({"c": [1, 2, 3]}))
        call = session.bind(Target(function=Proxy.fall_back), None, [native])
        for _ in range(2):
            with pytest.raises(
                DeviceError, match=r"cudf\.pandas would compute on the CPU: Falling"
            ):
                call()
        call = session.bind(Target(function=Proxy.run_out), None, [native])
        with pytest.raises(DeviceMemoryError, match=r"^cuda:0 is out of memory: std::bad_alloc;"):
            call()


FALLING_BACK = """
import warnings
warnings.simplefilter("ignore")  # of no GPU
import cupy, pandas
from types import SimpleNamespace
cupy.cuda.Device = lambda ordinal=0: SimpleNamespace(use=lambda: None, synchronize=lambda: None)
frame = pandas.DataFrame({"c": [1, 2]})
from gpubench.edge.systems.cudf import CudfPandasSession
from gpubench.backends.protocol import DeviceError, Target
session = CudfPandasSession("cuda:0")
import cudf.pandas
frame = cudf.pandas.as_proxy_object(frame)
try:
    session.bind(Target(function=lambda x: x.groupby("c").sum()), None, [frame])()
except DeviceError as error:
    print(error)
session.close()
print(frame["c"].sum())  # by pandas, silently
"""


@pytest.mark.skipif(find_spec("cudf") is None, reason="3 GB: pip install 'gpubench-suite[cudf]'")
def test_cudf_pandas_itself_raises_in_place_of_going_on_with_pandas() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FALLING_BACK], capture_output=True, text=True, check=False
    )
    refused, computed = done.stdout.splitlines()[-2:] or [done.stderr] * 2
    assert refused.startswith("cuda:0: cudf.pandas would compute on the CPU: Falling back"), done
    assert computed == "3"


def test_accel_is_true_or_false() -> None:
    with pytest.raises(BackendError, match=r"^accel of 'yes'; allowed: true or false$"):
        get("cudf").start("cuda:0", None, accel="yes")  # type: ignore[call-arg]
