"""What ``gpubench choose`` shows, from the view model of the report's page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from gpubench.report import text
from gpubench.report.choose import NOT_MEASURED, ChoiceView, ChoosePage
from gpubench.results import Ratio


def choose_page(page: ChoosePage) -> Iterator[Text]:
    """Yield lines on one setup: the verdict, then each kernel."""
    yield Text(page.verdict, style="bold")
    yield Text(page.details)
    yield from (Text(f"{s.title}: {s.why} Next: {s.command}") for s in page.states)
    for kernel in page.kernels:
        if not kernel.choices:
            yield Text(f"\n{kernel.kernel.label} at {kernel.commit.short}", style="bold")
        for choice in kernel.choices:
            title = f"\n{kernel.kernel.label} {choice.parameters}".rstrip()
            yield Text(f"{title} at {kernel.commit.short}", style="bold")
            yield from _choice(choice)
        yield from (Text(f"  {sentence}") for sentence in kernel.elsewhere)
        for group in kernel.reasons:
            count = text.plural(group.count, "case")
            yield Text(f"  {count} {text.status_label(group.status)}: {group.reason}")


def _choice(choice: ChoiceView) -> Iterator[Text]:
    """Return a choice in lines, as sentences make narrow columns: what to use, then each against
    the baseline."""
    resident = "arrays already where the implementation works" if choice.host else "fastest"
    yield Text(f"  {resident}:")
    yield from (Text(f"    {recommended.words}") for recommended in choice.resident)
    if choice.host:
        yield Text("  arrays in host memory, copies included:")
        yield from (Text(f"    {recommended.words}") for recommended in choice.host)
    if choice.rows:
        yield Text("  against the baseline:")
    for row in choice.rows:
        device = f" on {row.device}" if row.device and not row.label.endswith(row.device) else ""
        end_to_end = f", end to end {_ratio(row.end_to_end)}" if row.end_to_end else ""
        largest = f" at {row.largest}" if row.largest else ""
        yield Text(f"    {row.label}{device}: {_ratio(row.speedup)}{end_to_end}{largest}")
        yield Text(f"      faster {row.wins}")
        if choice.copies and row.transfers not in ("", NOT_MEASURED):
            yield Text(f"      copies: {row.transfers}")
        if row.compilation != NOT_MEASURED:
            yield Text(f"      compilation: {row.compilation}")
        if row.start is not None:
            yield Text(f"      start of a fresh process: {text.seconds(row.start)}")
    yield from (Text(f"  {note}") for note in choice.notes)


def _ratio(value: Ratio | None) -> str:
    return f"{text.speedup(value)} ({text.interval(value)})" if value else ""
