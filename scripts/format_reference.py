"""Writes docs/suite.schema.json and the references in docs/suite-format.md and
docs/counts.md again, from the model of suites and the definitions of counts."""

from __future__ import annotations

from pathlib import Path

from gpubench.counts.instructions import format_cpu_reference
from gpubench.suite.schema import END, START, reference_markdown, schema_text
from softcuda.counts import format_reference

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "suite-format.md"
COUNTS_START = "<!-- counts -->"
COUNTS_END = "<!-- end of counts -->"
CPU_COUNTS_START = "<!-- counts on the CPU -->"
CPU_COUNTS_END = "<!-- end of counts on the CPU -->"


def main() -> None:
    (DOCS / "suite.schema.json").write_text(schema_text(), encoding="utf-8")
    _replace(PAGE, START, reference_markdown(), END)
    _replace(DOCS / "counts.md", COUNTS_START, format_reference(), COUNTS_END)
    _replace(DOCS / "counts.md", CPU_COUNTS_START, format_cpu_reference(), CPU_COUNTS_END)


def _replace(page: Path, first: str, text: str, last: str) -> None:
    """Write ``text`` between two marks of a page."""
    before, start, rest = page.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    page.write_text(f"{before}{start}\n{text}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
