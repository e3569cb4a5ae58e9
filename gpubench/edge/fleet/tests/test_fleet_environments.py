"""Several commits by several machines, in environments that asv makes on each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="make test-systems has it")

from fleet_project import SUITES, fleet_at, imports

from gpubench.edge.fleet.parcels import rows_of, stored

pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

INSTALL = "in-dir={build_dir} python install.py"
"""In place of a wheel: the project is one module, and its requirements are where the tests have
them. (In environments that asv has made it takes away again what ASV_PYTHONPATH says.)"""

SCRIPT = """\
import os, shutil, sysconfig
from pathlib import Path
here = Path(sysconfig.get_path("purelib"))
shutil.copy("fleet_kernels.py", here)
(here / "requirements.pth").write_text(os.environ["FLEET_IMPORTS"].replace(os.pathsep, "\\n"))
"""


def test_each_machine_measures_commits_in_environments_that_asv_makes(tmp_path: Path) -> None:
    with fleet_at(tmp_path / "fleet") as fleet:
        project = fleet.project
        configuration = json.loads((project.path / "asv.conf.json").read_text())
        configuration |= {"build_command": [], "install_command": [INSTALL]}
        (project.path / "asv.conf.json").write_text(json.dumps(configuration))
        (project.path / "install.py").write_text(SCRIPT)
        for name in SUITES[1:]:  # one share of each commit
            (project.path / f"suites/{name}.yaml").unlink()
        project.commit("environments", 2)
        project.edit("fleet_kernels.py", "4e-3)", "8e-3)")
        project.commit("slower", 3)
        fleet.python = ()
        for name in ("alpha", "beta"):
            fleet.start(name, FLEET_IMPORTS=imports())
        said = fleet.run("run", "HEAD~2..HEAD", "--share", "lab").stdout
        assert "alpha, beta divide the work" in said
        assert "2 of 2 shares are measured and kept in .asv/results" in said
        assert all(f"] {name}: " in said for name in ("alpha", "beta"))
        times = {}
        for path in (project.results / "lab").glob("*-*.json"):
            content = stored(path)
            row = rows_of(content)[f"suites.{SUITES[0]}__plain.time_kernel"]
            times[content["commit_hash"]] = row["result"]
        commits = project.git("rev-list", "HEAD~2..HEAD").split()
        assert [times[commit] for commit in commits] == [
            pytest.approx([seconds] * 2) for seconds in (8e-3, 4e-3)
        ]
