"""The true cause of what foreign code does, where Python and its libraries say another one."""

from __future__ import annotations

import os
import pickle
import sys
import time
from pathlib import Path

import pytest

from gpubench.backends import devices, registry
from gpubench.backends.cuda_session import CudaSession
from gpubench.backends.protocol import DeviceError, LaunchLimitError
from gpubench.errors import KernelError, NoDeviceError
from gpubench.measure import targets
from gpubench.measure.conditions import why_stopped
from gpubench.measure.targets import load_object
from gpubench.measure.worker import FORKED_AFTER_OPENMP, Unanswered, Worker

NO_GPU = "no NVIDIA driver"


def fork_and_hang(with_openmp: bool) -> None:
    """Fork as a pool does, and wait for what never comes."""
    if with_openmp:
        sys.modules["numba.np.ufunc.omppool"] = sys  # as Numba's first parallel function does
    if (child := os.fork()) == 0:
        os._exit(1)
    os.waitpid(child, 0)
    time.sleep(3600)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("with_openmp", [True, False])
def test_a_fork_after_openmp_is_the_cause_of_a_time_out(with_openmp: bool) -> None:
    worker = Worker(fork_and_hang)
    try:
        worker.give(with_openmp, 1.0)
        with pytest.raises(Unanswered) as error:
            worker.answer()
    finally:
        worker.end()
    assert error.value.likely_cause == (FORKED_AFTER_OPENMP if with_openmp else None)
    said = why_stopped(1.0, error.value.likely_cause)
    assert ("spawn" in said, "raise `timeout`" in said) == (with_openmp, not with_openmp)


@pytest.mark.parametrize(
    ("backend", "module"),
    [("numba", "numba.core.caching"), ("numba_cuda", "numba.cuda.core.caching")],
)
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_of_numba_s_cache_is_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, module: str, kind: str
) -> None:
    caching = pytest.importorskip(module)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    files = caching.IndexDataCacheFile(str(tmp_path), "kernel", "stamp")
    files.save("signature", "code")
    (file,) = tmp_path.glob(f"*.{kind}")
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(pickle.UnpicklingError) as error:
        files.load("signature")
    hint = registry.get(backend).hint(error.value)
    assert hint == f"a file of Numba's cache is damaged: remove the folder {tmp_path}"
    assert registry.get(backend).hint(pickle.UnpicklingError("of a kernel's own")) is None


def imported(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> KernelError:
    """Return why a module cannot be imported on a machine without a GPU."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(targets, "no_gpu_reason", lambda: NO_GPU)
    monkeypatch.setattr(targets, "requested", lambda: False)
    with pytest.raises(KernelError) as refusal:
        load_object(f"{name}:kernel")
    return refusal.value


@pytest.mark.parametrize(
    "raised",
    [
        "class CudaSupportError(ImportError): pass\nraise CudaSupportError('Error at driver init')",
        "raise RuntimeError('Found no NVIDIA driver on your system')",
        "class LogicError(Exception): pass\nraise LogicError('cuInit failed: no device')",
        "class CUDARuntimeError(RuntimeError): pass\nraise CUDARuntimeError('cudaErrorNoDevice')",
    ],
)
def test_a_module_that_needs_a_gpu_to_be_imported_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    name = f"needs_a_gpu_{abs(hash(raised))}"
    error = imported(tmp_path, monkeypatch, name, raised)
    assert isinstance(error, NoDeviceError)
    assert str(error).startswith(f"module '{name}' needs a GPU to be imported in <module> ({name}.")
    assert "set GPUBENCH_SOFTCUDA=1" in str(error)


@pytest.mark.parametrize(
    "raised",
    ["import no_such_cuda_package", "raise ValueError('bad')", "from numba.cuda import no_such"],
)
def test_other_errors_of_an_import_stay_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    error = imported(tmp_path, monkeypatch, f"fails_{abs(hash(raised))}", raised)
    assert not isinstance(error, NoDeviceError)
    assert str(error).startswith("cannot import ")


class Session(CudaSession):
    """As much of one as tells errors apart."""

    def __init__(self) -> None:
        self.device, self._raised, self.simulated = "cuda:0", (Exception,), False


Session.__abstractmethods__ = frozenset()


@pytest.mark.parametrize(
    ("words", "is_limit"),
    [
        ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", True),
        ("cudaErrorCooperativeLaunchTooLarge: too many blocks in cooperative launch", True),
        ("The specified grid size (1563 * 1 * 1) exceeds the limit (128)", True),
        ("CUDA_ERROR_INVALID_VALUE", False),
    ],
)
def test_a_cooperative_grid_over_the_limit_is_one(words: str, is_limit: bool) -> None:
    error = Session()._translated(RuntimeError(words))
    assert isinstance(error, DeviceError)
    assert isinstance(error, LaunchLimitError) == is_limit
    assert words in str(error)


def test_a_hidden_device_in_software_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nvml:
        NVMLError = RuntimeError

        def nvmlInit(self) -> None: ...
        def nvmlShutdown(self) -> None: ...
        def nvmlDeviceGetCount(self) -> int:
            return 1

        def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
            return index

    monkeypatch.setitem(sys.modules, "pynvml", Nvml())  # type: ignore[misc]
    monkeypatch.setattr(devices.software, "requested", lambda: True)
    monkeypatch.setattr(devices.software, "software_device", lambda: None)
    assert devices._survey("") == (
        (),
        "CUDA_VISIBLE_DEVICES='' hides softcuda, the device in software; unset it",
    )
