"""Lend an environment of asv the packages that run the tests: ``python borrow.py PLACE`` there.

Where a test is not about the installation of gpubench, its environment is made in seconds.
"""

import sys
import sysconfig
from pathlib import Path

place = sys.argv[1]
packages = Path(sysconfig.get_path("purelib"))
(packages / "borrowed.pth").write_text(f"import site; site.addsitedir({place!r})\n")
lent = packages / "nvidia"  # NVIDIA's libraries are looked for beside other packages
if not lent.exists() and Path(place, "nvidia").exists():
    lent.symlink_to(Path(place, "nvidia"))
