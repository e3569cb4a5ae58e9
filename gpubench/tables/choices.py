"""What ``gpubench choose`` shows, from the view model of the report's page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpubench.report import text
from gpubench.report.choose import ChoiceView, ChoosePage, KernelChoice, Recommendation
from gpubench.results import Ratio


def choose_page(page: ChoosePage) -> Group:
    """One setup: the verdict, then each kernel in words and as a table."""
    parts: list[RenderableType] = [Text(page.verdict, style="bold"), Text(page.details)]
    parts += (Text(f"{s.title}: {s.why} Next: {s.command}") for s in page.states)
    for kernel in page.kernels:
        parts += _kernel(kernel)
    return Group(*parts)


def _kernel(kernel: KernelChoice) -> Iterator[RenderableType]:
    for choice in kernel.choices:
        title = f"\n{kernel.kernel.label} {choice.parameters}".rstrip()
        yield Text(f"{title} at {kernel.commit.short}", style="bold")
        yield from _words(choice)
        if choice.rows:
            yield _table(choice)
        yield from map(Text, choice.notes)
    for sentence in kernel.elsewhere:
        yield Text(sentence)
    for group in kernel.reasons:
        count = text.plural(group.count, "case")
        yield Text(f"{count} {text.status_label(group.status)}: {group.reason}")


def _words(choice: ChoiceView) -> Iterator[Text]:
    resident = "arrays already where the implementation works" if choice.host else "fastest"
    yield from _recommendations(resident, choice.resident)
    if choice.host:
        yield from _recommendations("arrays in host memory, copies included", choice.host)


def _recommendations(title: str, recommendations: Iterable[Recommendation]) -> Iterator[Text]:
    yield Text(f"  {title}:")
    yield from (Text(f"    {recommendation.words}") for recommendation in recommendations)


def _table(choice: ChoiceView) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 2))
    for column in ("implementation", "device", "faster than the baseline"):
        table.add_column(column)
    table.add_column("speedup", justify="right", no_wrap=True)
    if choice.copies:
        table.add_column("end to end", justify="right", no_wrap=True)
        table.add_column("copies")
    table.add_column("compilation")
    for row in choice.rows:
        cells = [row.label, row.device, row.wins, _ratio(row.speedup)]
        cells += [_ratio(row.end_to_end), row.transfers] if choice.copies else []
        table.add_row(*map(Text, [*cells, row.compilation]))
    return table


def _ratio(value: Ratio | None) -> str:
    return f"{text.speedup(value)} ({text.interval(value)})" if value else ""
