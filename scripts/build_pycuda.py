"""Build PyCUDA against the CUDA device in software, and install it beside this Python.

    python scripts/build_pycuda.py

PyCUDA is published as source. Its build asks for CUDA's headers, which NVIDIA's wheels have, and
for a driver library to link with, which softcuda is. Takes two minutes on two cores, and needs a
C++ compiler.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from softcuda.build import build_libraries, find_cuda_header

VERSION = "2026.1"
PROFILER = "nvidia-cuda-profiler-api"
"""The wheel with ``cudaProfiler.h``, which PyCUDA includes."""

SETTINGS = """
USE_SHIPPED_BOOST = True
BOOST_INC_DIR = BOOST_LIB_DIR = []
BOOST_COMPILER = "gcc43"
BOOST_PYTHON_LIBNAME = ["boost_python3"]
BOOST_THREAD_LIBNAME = ["boost_thread"]
CUDA_TRACE = CUDA_ENABLE_GL = CUDA_ENABLE_CURAND = False
CUDA_ROOT = {root!r}
CUDA_INC_DIR = [{include!r}]
CUDADRV_LIB_DIR = [{driver!r}]
CUDADRV_LIBNAME = ["cuda"]
CUDART_LIB_DIR = CUDART_LIBNAME = CURAND_LIB_DIR = CURAND_LIBNAME = []
CXXFLAGS = ["-O1", "-w"]
LDFLAGS = []
"""
"""PyCUDA's ``siteconf.py``: without cuRAND and OpenGL, with the parts of Boost that it brings."""


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True)


def main() -> None:
    pip("install", "--quiet", PROFILER)
    with tempfile.TemporaryDirectory() as folder:
        # -lcuda asks for libcuda.so; what is built asks for libcuda.so.1, its soname.
        Path(folder, "libcuda.so").symlink_to(build_libraries().driver)
        pip(
            *("download", "--quiet", "--no-deps", "--no-binary", "pycuda"),
            *("--dest", folder, f"pycuda=={VERSION}"),
        )
        with tarfile.open(Path(folder, f"pycuda-{VERSION}.tar.gz")) as archive:
            archive.extractall(folder, filter="data")
        source, include = Path(folder, f"pycuda-{VERSION}"), find_cuda_header()
        settings = SETTINGS.format(root=str(include.parent), include=str(include), driver=folder)
        Path(source, "siteconf.py").write_text(settings)
        pip("install", "--quiet", str(source))


if __name__ == "__main__":
    main()
