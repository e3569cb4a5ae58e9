"""scikit-learn on the CPU: functions over NumPy arrays that fit its estimators or ask them.

Arrays are as NumPy makes them, in C order; an estimator that wants another order copies, which is
in its time. What differs from NumPy's backend is what has a number of threads: beside BLAS, OpenMP
inside scikit-learn's own loops, and joblib's jobs, of which an estimator whose ``n_jobs`` is left
out takes one. While a session is open it takes as many as everything else: ``threads``, or one for
each processor.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module

from threadpoolctl import ThreadpoolController

from gpubench.backends.host import HostBackend, HostSession, cpu
from gpubench.backends.numpy import blas_facts
from gpubench.distribution import require_extra
from gpubench.errors import BackendError
from gpubench.names import Value

_WITH_ITS_LIBRARIES = "sklearn.utils.extmath"
"""A module that brings all libraries whose threads are set: SciPy's BLAS and scikit-learn's OpenMP.
"""


class ScikitLearnSession(HostSession):
    """Plain calls; ``threads`` is how many everything uses until the session is closed.

    Raises ``BackendError`` where a library does not take that many, and where ``cuml.accel`` has
    put other estimators in place of scikit-learn's.
    """

    def __init__(self, threads: int | None) -> None:
        super().__init__("scikit_learn")
        if "cuml.accel" in sys.modules and sys.modules["cuml.accel"].enabled():
            raise BackendError(
                "cuml.accel is enabled in this process and would compute this too; leave "
                "`python -m cuml.accel` and cuml.accel.install() out"
            )
        import_module(_WITH_ITS_LIBRARIES)
        self._jobs = threads or cpu().threads
        self._libraries = ThreadpoolController()
        with self.opening() as ending:
            ending.enter_context(import_module("joblib").parallel_config(n_jobs=self._jobs))
            if threads is not None:
                limiter = self._libraries.limit(limits=threads)
                ending.callback(limiter.restore_original_limits)
                for library in self._libraries.info():
                    if library["num_threads"] != threads:
                        raise BackendError(
                            f"threads of {threads}: {library['internal_api']} of "
                            f"{library['filepath']} uses {library['num_threads']} all the same; "
                            f"use {library['num_threads']}"
                        )

    def facts(self) -> Mapping[str, Value]:
        """Versions, joblib's jobs, OpenMP's threads, and each BLAS that is loaded."""
        loaded = self._libraries.info()
        openmp = [library["num_threads"] for library in loaded if library["user_api"] == "openmp"]
        return {
            **super().facts(),
            **blas_facts([library for library in loaded if library["user_api"] == "blas"]),
            "scikit_learn": str(import_module("sklearn").__version__),
            "scikit_learn_jobs": self._jobs,
            "openmp_threads": int(max(openmp, default=1)),
        }


class ScikitLearnBackend(HostBackend):
    name = "scikit_learn"
    title = "scikit-learn"
    times = ("kernel", "cold", "start")
    capabilities = ("in_place",)
    requires = (require_extra("scikit_learn"),)
    modules = ("sklearn",)
    preloads = _WITH_ITS_LIBRARIES  # its OpenMP starts with the first loop
    software = ("scikit-learn", "scipy", "joblib", "numpy")
    concerns = ("scikit_learn", "scipy", "joblib")

    def start(self, device: str, threads: int | None) -> ScikitLearnSession:
        return ScikitLearnSession(threads)
