"""Hooks of mkdocs: pages that stand outside of docs/ become pages of the site, and their links too.

The Markdown in the repository links to files as they lie there, so that it reads in an editor and
where the repository is hosted. ``mkdocs.yml`` names this file.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # tests read this file without mkdocs
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "softcuda/README.md": "softcuda-device.md",
    "examples/sample/README.md": "sample.md",
    "gpubench/edge/advise/advice.md": "advice.md",
    "gpubench/edge/fleet/fleet-kubernetes.md": "fleet-kubernetes.md",
    "gpubench/edge/fleet/fleet-slurm.md": "fleet-slurm.md",
    "gpubench/edge/fleet/fleet-ssh.md": "fleet-ssh.md",
    "gpubench/edge/fleet/fleet-ten-machines.md": "fleet-ten-machines.md",
    "gpubench/edge/fleet/fleet.md": "fleet.md",
    "gpubench/edge/systems/systems-figures.md": "systems-figures.md",
    "gpubench/edge/systems/systems.md": "systems.md",
}
"""Files of the repository, and the pages that they become."""
PLACES = {page: file for file, page in OUTSIDE.items()}
SAMPLE = ROOT / "examples/sample"
REPORT = "sample/index.html"
"""First page of the sample's report, in the site."""

_LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)\s#]+)")


def on_files(files: Files, config: Any) -> Files:
    """Add what stands outside of docs/."""
    from mkdocs.structure.files import File

    for path, page in OUTSIDE.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links at pages where they point at files of the repository."""
    page_path = page.file.src_uri
    text = relink(markdown, PLACES.get(page_path, f"docs/{page_path}"))
    if page_path == OUTSIDE["examples/sample/README.md"]:  # in the repository there is no report
        text += f'\n<a class="md-button" href="{REPORT}">Open the report</a>\n'
    return text


def on_post_build(config: Any) -> None:
    """Write the sample's report into the site."""
    write_sample((Path(config["site_dir"]) / REPORT).parent)


def write_sample(output: Path) -> None:
    """Write the report of the results in examples/sample, in place of what is there."""
    with TemporaryDirectory() as folder:
        project = Path(folder) / "norms"
        run = partial(subprocess.run, check=True, stdout=subprocess.DEVNULL)
        run(["git", "clone", "--quiet", SAMPLE / "history.bundle", project])
        shutil.copytree(SAMPLE / "results", project / ".asv/results")
        run([sys.executable, "-m", "gpubench", "report"], cwd=project)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(project / "reports/html", output)


def relink(markdown: str, path: str) -> str:
    """Return the text of a file of the repository with the links of its page of the site.

    A link to what is no page is left alone: a strict build refuses it.
    """

    def target(found: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        if file in OUTSIDE:
            return f"{found[1]}{OUTSIDE[file]}"
        return f"{found[1]}{file.removeprefix('docs/')}" if file.startswith("docs/") else found[0]

    return _LINK.sub(target, markdown)
