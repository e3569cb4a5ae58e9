"""CUDA without a GPU for ``make bench``: whether it runs here, and what it needs.

    python scripts/softcuda_here.py                     # exit code 0, or 2 with the reason
    python scripts/softcuda_here.py --install CHECKOUT  # into the Python that runs this

asv's environments install by the second, from asv's checkout of the commit. It does nothing unless
GPUBENCH_SOFTCUDA=1 asks for CUDA in software, and never fails: cases of CUDA are skipped where its
packages are not to be had.
Any Python from 3.11 on runs it; gpubench need not be installed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

SWITCH = "GPUBENCH_SOFTCUDA"
COMPILERS = ("cc", "gcc", "clang")
MACHINES = ("x86_64", "aarch64")
"""As of ``softcuda``."""


def main() -> int:
    match sys.argv[1:]:
        case ["--install", checkout]:
            if os.environ.get(SWITCH, "") not in ("", "0"):
                install(Path(checkout))
            return 0
    reason = why_none()
    if reason is not None:
        print(f"CUDA is skipped: there is no GPU, and no CUDA in software: {reason}")
    return 0 if reason is None else 2


def why_none() -> str | None:
    """Return why CUDA does not run in software here, with the next step; ``None`` where it does."""
    if platform.system() != "Linux" or platform.machine() not in MACHINES:
        return f"that runs on Linux on x86-64 and 64-bit Arm, not on {platform.platform()}"
    if not any(map(shutil.which, filter(None, (os.environ.get("CC"), *COMPILERS)))):
        return (
            f"that needs a C compiler, and none of {', '.join(COMPILERS)} is on the PATH; "
            "install one (Debian: apt install gcc libc6-dev) or name it in CC"
        )
    return None


def requirements(checkout: Path) -> list[str]:
    """Return what pip installs for CUDA in software: softcuda of a checkout, or where that has
    softcuda in gpubench's own wheel, the packages that its extra ``cuda`` names."""
    if (checkout / "softcuda/pyproject.toml").is_file():
        return [str(checkout / "softcuda")]
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
    required: list[str] = tomllib.loads(text)["project"].get("optional-dependencies", {})["cuda"]
    return required


def install(checkout: Path) -> None:
    """Install what CUDA needs; where that cannot be, say so and leave everything as it is."""
    try:
        wanted = requirements(checkout)
    except (OSError, KeyError, ValueError) as error:
        print(f"CUDA is skipped: {checkout} does not tell what it needs: {error}")
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", *wanted]
    if subprocess.run(command, check=False).returncode:
        print(f"CUDA is skipped: {' '.join(wanted)} cannot be installed")


if __name__ == "__main__":
    sys.exit(main())
