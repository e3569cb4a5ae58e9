"""Writes docs/suite.schema.json and the reference in docs/suite-format.md again, from the model."""

from __future__ import annotations

from pathlib import Path

from gpubench.suite.schema import END, START, reference_markdown, schema_text

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "suite-format.md"


def main() -> None:
    (DOCS / "suite.schema.json").write_text(schema_text(), encoding="utf-8")
    before, start, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, end, after = rest.partition(END)
    PAGE.write_text(f"{before}{start}\n{reference_markdown()}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
