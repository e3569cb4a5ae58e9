"""Templates of the files that gpubench writes into projects, and the schema's name there."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

SCHEMA = Path("gpubench.schema.json")
"""What editors complete and check suites by: the first line of a suite names it."""


def template_environment() -> Environment:
    """Return the environment of the templates of files that gpubench writes into projects."""
    return Environment(
        loader=PackageLoader("gpubench.scaffold"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
