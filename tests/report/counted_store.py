"""A transpose on the device in software over three commits, beside a kernel that has times.

``python counted_store.py DIRECTORY`` writes it, with a repository, for looking at the pages.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from result_files import CommitFiles, launch

from gpubench.record import LaunchRecord

NUMPY = "suites.transpose__numpy.time_kernel"
NAIVE, TILED = (f"suites.transpose__{name}.time_kernel" for name in ("cuda_naive", "cuda_tiled"))
SIZES = (64, 256)
BLOCKS = (64, 256)
CODE = """\
from numba import cuda


@cuda.jit
def transpose_naive(a, out):  # <script>alert(1)</script>
    i, j = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        out[j, i] = a[i, j]


@cuda.jit
def transpose_tiled(a, out):
    tile = cuda.shared.array((32, 33), "float32")
    i, j = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[i, j]
    cuda.syncthreads()
    out[j, i] = tile[cuda.threadIdx.x, cuda.threadIdx.y]
"""


def git(folder: Path, *arguments: str) -> str:
    identity = "-c", "user.name=t", "-c", "user.email=t@example.org"
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write_repository(folder: Path) -> list[str]:
    """Three commits whose kernels lie in ``src/kernels``; returns their hashes."""
    (folder / "src/kernels").mkdir(parents=True)
    git(folder.parent, "init", "-q", str(folder))
    hashes = []
    for number in range(3):
        (folder / "src/kernels/transposes.py").write_text(f"{CODE}# {number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", f"Change {number}")
        hashes.append(git(folder, "rev-parse", "HEAD"))
    return hashes


def naive(size: int, block: int, sectors: int) -> LaunchRecord:
    """Loads of so many sectors each, stores side by side."""
    requests = size * size // 32
    return launch(
        "kernels.transposes.transpose_naive", grid=size * size // block, block=block,
        resources={"registers": 20, "spill_store_bytes": 0}, file="kernels/transposes.py",
        lines={
            7: {"ptx_instructions": requests * 6, "ptx_thread_instructions": requests * 192},
            8: {
                "ptx_instructions": requests * 8, "ptx_thread_instructions": requests * 256,
                "global_load_requests": requests, "global_load_sectors": requests * sectors,
                "global_load_ideal_sectors": requests * 4, "global_store_requests": requests,
                "global_store_sectors": requests * 4, "global_store_ideal_sectors": requests * 4,
            },
        },
        warps=requests, threads=size * size, ptx_instructions=requests * 14,
        ptx_thread_instructions=requests * 448, global_load_requests=requests,
        global_load_sectors=requests * sectors, global_load_ideal_sectors=requests * 4,
        global_store_requests=requests, global_store_sectors=requests * 4,
        global_store_ideal_sectors=requests * 4,
    )  # fmt: skip


def tiled(size: int, block: int) -> LaunchRecord:
    """No excess anywhere, and a barrier."""
    requests = size * size // 32
    return launch(
        "kernels.transposes.transpose_tiled", grid=size * size // block, block=block,
        file="kernels/transposes.py", lines={15: {"ptx_instructions": requests}},
        ptx_instructions=requests * 20, ptx_thread_instructions=requests * 640,
        global_load_requests=requests, global_load_sectors=requests * 4,
        global_load_ideal_sectors=requests * 4, shared_load_requests=requests,
        shared_load_wavefronts=requests, shared_load_ideal_wavefronts=requests,
        barriers=requests,
    )  # fmt: skip


def write_counted(directory: Path, hashes: list[str], machine: str = "runner") -> None:
    """The naive transpose begins to touch 32 sectors for each load at the second commit; at the
    third one Numba is another and the tiled one is wrong."""
    for number, commit in enumerate(hashes):
        files = CommitFiles(directory, commit, 86_400 * (20_000 + number), machine)
        files.facts(cpu="Example", numba=f"0.{68 + number // 2}.0")
        for size in SIZES:
            files.time(NUMPY, f"n={size}", 1e-6 * size)
            files.record(NUMPY, f"n={size}", values={"n": size}, sizes=("n",), device="cpu")
            for block in BLOCKS:
                case = f"n={size} block={block}"
                how = {
                    "values": {"n": size}, "sizes": ("n",), "backend": "numba_cuda",
                    "device": "cuda:0", "block": (block, 1, 1),
                    "baseline_benchmark": NUMPY, "baseline_case": f"n={size}",
                    "grid": (size * size // block, 1, 1),
                }  # fmt: skip
                reason = "right on softcuda, which has no times"
                files.not_applicable(NAIVE, case).not_applicable(TILED, case)
                files.record(NAIVE, case, "verified", reason=reason, **how)
                files.counts(NAIVE, case, naive(size, block, 32 if number else 4))
                is_wrong = number == 2
                status, why = ("wrong", "out differs") if is_wrong else ("verified", reason)
                files.record(TILED, case, status, reason=why, **how)
                files.counts(TILED, case, tiled(size, block))
        files.write()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_counted(folder / "results", write_repository(folder / "repository"))
