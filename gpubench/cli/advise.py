"""`gpubench advise`: which implementation to use, where, and with how many workers."""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpubench.cli.console import ERR, OUT, print_json
from gpubench.cli.measuring import measured_now
from gpubench.cli.options import (
    environment_option,
    json_option,
    machine_option,
    preset_option,
    results_option,
    suites_option,
    where_option,
)
from gpubench.cli.planning import chosen_cases
from gpubench.cli.reading import read_table
from gpubench.errors import GpubenchError
from gpubench.files import TooLarge, read_regular
from gpubench.suite.folder import MAX_BYTES

if TYPE_CHECKING:  # a command imports what reads results only when it runs: --help answers at once
    from gpubench.analysis.advice import Ask
    from gpubench.analysis.advice_checks import Drifts, Prediction
    from gpubench.analysis.estimates import Way
    from gpubench.measure.direct import Job
    from gpubench.report.site import Site
    from gpubench.results import History, Row, Setup

Key = tuple[str, str]
"""Suite and kernel."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a file of prices holds."""

    per_hour: dict[str, float]
    """By device (``cuda:0``), kind of device (``dask``) or machine."""
    currency: str = ""


@click.command()
@click.argument("target", metavar="SUITE::KERNEL")
@click.option(
    "-a",
    "axes",
    multiple=True,
    metavar="NAME=VALUE",
    help="The size, measured or not, and parameters: -a n=50000000 -a dtype=float32. With "
    "--verify, keep these values.",
)
@click.option(
    "--calls", type=click.IntRange(min=1), default=1, show_default=True, help="How many are made."
)
@click.option(
    "--from",
    "source",
    type=click.Choice(["host", "device"]),
    default="host",
    show_default=True,
    help="Where the arrays are, and the results are wanted.",
)
@click.option("--warm", is_flag=True, help="The process runs: nothing is started or compiled.")
@click.option("--cached", is_flag=True, help="What is compiled is on disk already.")
@click.option(
    "--have",
    metavar="DEVICES",
    help="Only these: cpu,cuda:0,dask:8 (up to 8 workers; 8 are estimated where fewer were "
    "measured).",
)
@click.option("--cost", type=click.Path(path_type=Path), help="YAML: prices of an hour by device.")
@click.option(
    "--refresh",
    is_flag=True,
    help="First measure some sizes of each again, to know how fast the machine is now.",
)
@click.option("--verify", is_flag=True, help="Hide sizes, predict them, and measure them.")
@preset_option
@where_option
@click.option("--samples", type=click.IntRange(min=1), help="Measured now, of each time.")
@results_option
@suites_option
@machine_option
@environment_option
@json_option
def advise(
    target: str,
    axes: tuple[str, ...],
    calls: int,
    source: str,
    warm: bool,
    cached: bool,
    have: str | None,
    cost: Path | None,
    refresh: bool,
    verify: bool,
    preset: str | None,
    where: str | None,
    samples: int | None,
    results: Path,
    suites: Path,
    machine: str | None,
    environment: str | None,
    as_json: bool,
) -> None:
    """Say what gets a result fastest, for a size that may not have been measured.

    It adds what is paid until the result is there: the start of a process, compilation, copies and
    calls, each estimated between the sizes that were measured (`asv run`), with an interval. Beyond
    these it says that it extrapolates.

    --verify hides every second size and the largest number of workers, predicts them from the rest,
    measures them on this machine, and keeps how wrong that was beside the results. A kernel whose
    intervals held less than 90 % gets no advice. Exit code 1 where one did.

    The cases to measure, with --refresh and --verify, are those of a --preset.
    """
    from gpubench.analysis.advice import Ask
    from gpubench.report.site import Site

    with closing(read_table(results, suites)) as table:
        site = Site(table)
        histories = [one for one in site.histories if one.setup.fits(machine, environment)]
        work: list[Job] | None = None
        if verify or refresh:
            from gpubench.measure.direct import jobs

            cases = chosen_cases([target], preset, where, axes if verify else ())
            work, histories = jobs(cases, samples), [_of_here(histories)]
            if verify:
                _verify(work, site, histories[0], results, as_json)
                return
        prices = _prices(cost)
        ask = Ask(
            {},
            calls,
            source == "host",
            "warm" if warm else "cached" if cached else "fresh",
            tuple(filter(None, (one.strip() for one in (have or "").split(",")))),
            prices.per_hour,
        )
        key = _kernel(target, site, histories)
        _advise(key, site, histories, results, _asked(axes), ask, prices, work, as_json)


def _prices(path: Path | None) -> Prices:
    """Raises ``GpubenchError`` for a file that holds no prices."""
    if path is None:
        return Prices({})
    import msgspec
    import yaml

    form = "currency: EUR, per_hour: {cpu: 0.10, 'cuda:0': 2.50}"
    try:
        content = yaml.safe_load(read_regular(path, MAX_BYTES))
        prices = msgspec.convert(content, Prices)
    except (OSError, TooLarge, yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise GpubenchError(f"{path} holds no prices: {what}; write {form}") from error
    if wrong := [n for n, each in prices.per_hour.items() if not 0 <= each < math.inf]:
        raise GpubenchError(f"{path}: the price of {wrong[0]} is no amount; write {form}")
    return prices


def _kernel(target: str, site: Site, histories: Sequence[History]) -> Key:
    """The kernel that is asked for, by its suite and its name, which may be left out of one."""
    suite, _, kernel = target.partition("::")
    suite = Path(suite).stem if suite.endswith(".yaml") else suite
    there = dict.fromkeys(key for history in histories for key in site.kernels(history))
    keys = [key for key in there if key[0] == suite and kernel in ("", key[1])]
    if len(keys) != 1:
        names = ", ".join("::".join(key) for key in keys or there)
        raise GpubenchError(
            f"{'several kernels are' if keys else 'there are no results of'} {target}: "
            f"{'name one of' if keys else 'measured are'} {names or 'none; run `asv run`'}"
        )
    return keys[0]


def _asked(axes: Iterable[str]) -> dict[str, str]:
    asked = {}
    for text in axes:
        name, equals, value = text.partition("=")
        if not (equals and name and value) or "," in value:
            raise GpubenchError(f"-a {text}: one value is needed, as in -a n=50000000")
        asked[name] = value
    return asked


def _sizes(asked: Mapping[str, str], rows: Sequence[Row], label: str) -> dict[str, float]:
    """The sizes among what is asked for; raises ``GpubenchError`` for what the kernel has not."""
    from gpubench.analysis.estimates import axes_of
    from gpubench.names import parse_identity
    from gpubench.report import text

    measured: dict[str, set[float]] = {}
    parameters: dict[str, set[str]] = {}
    for row in rows:
        for name, size in row.sizes.items():
            measured.setdefault(name, set()).add(size)
        for name, value in parse_identity(row.parameters).items():
            parameters.setdefault(name, set()).add(str(value))

    def words(name: str) -> str:
        if name in parameters:
            return f"{name} ({', '.join(sorted(parameters[name]))})"
        return f"{name} ({text.whole(min(measured[name]))} to {text.whole(max(measured[name]))})"

    sizes = {}
    for name, said in asked.items():
        if name not in measured and name not in parameters:
            there = ", ".join(map(words, [*measured, *parameters])) or "none"
            raise GpubenchError(f"{label} has no axis {name!r}; it has {there}")
        if name in measured:
            try:
                sizes[name] = float(said)
            except ValueError:
                sizes[name] = 0.0
            if not 0 < sizes[name] < math.inf:
                raise GpubenchError(f"-a {name}={said}: a size is a number above 0")
    if missing := [name for name in axes_of(rows, sizes) if name not in sizes]:
        raise GpubenchError(f"give every size of {label}: -a {missing[0]}=..., {words(missing[0])}")
    return sizes


def _advise(
    key: Key,
    site: Site,
    histories: Sequence[History],
    results: Path,
    asked: Mapping[str, str],
    ask: Ask,
    prices: Prices,
    work: Sequence[Job] | None,
    as_json: bool,
) -> None:
    """Print what to use. ``work``: of which some is measured first; ``ask`` is without sizes."""
    from gpubench.analysis import advice
    from gpubench.analysis.estimates import CURVES
    from gpubench.report.exports import plain
    from gpubench.report.site import kernel_label
    from gpubench.tables.advice import advice_lines

    label = kernel_label(key)
    of_setup = {
        history.setup: [row for row in now.cases.values() if row.seconds]
        for history in histories
        if (now := site.current(history).get(key))
    }
    every = [row for rows in of_setup.values() for row in rows if row.name.time in CURVES]
    if not every:
        raise GpubenchError(f"{label} has no times: run `gpubench choose {label}` for the reasons")
    sizes = _sizes(asked, every, label)
    ways, notes = _trusted_ways(key, of_setup, results, asked, tuple(sizes), work is not None)
    if not ways:
        raise GpubenchError("; ".join(notes) or f"{label} has no times with these parameters")
    if work is not None:
        ways, words = _refreshed(ways, every, tuple(sizes), work)
        notes.append(words)
    ask = replace(ask, sizes=sizes)
    advices = advice.advise(ways, ask)
    if not advices:
        raise GpubenchError(f"{label}: nothing is left of what was measured; see --have and -a")
    if as_json:
        print_json(
            {
                "kernel": label,
                "sizes": sizes,
                "calls": ask.calls,
                "from": "host" if ask.from_host else "device",
                "process": ask.process,
                "currency": prices.currency,
                "notes": notes,
                "advice": [plain(one) for one in advices],
            }
        )
        return
    several = len({way.place for way in ways}) > 1
    for one in advices:
        for line in advice_lines(one, ask, label, prices.currency, several):
            OUT.print(line, markup=False)
    for note in notes:
        OUT.print(note, markup=False)


def _trusted_ways(
    key: Key,
    of_setup: Mapping[Setup, Sequence[Row]],
    results: Path,
    asked: Mapping[str, str],
    axes: tuple[str, ...],
    anew: bool,
) -> tuple[list[Way], list[str]]:
    """The ways of each setup at the parameters that are asked for, without those of a setup whose
    verification did not hold; and what verification found of each. ``anew``: for when some of their
    sizes are measured again."""
    from gpubench.analysis.advice_checks import (
        checked,
        drifts_of,
        left_out,
        verification_path,
        verifications,
    )
    from gpubench.analysis.estimates import ways_of
    from gpubench.names import parse_identity
    from gpubench.report.advise import refusal, verified_words
    from gpubench.report.site import setup_label

    ways: list[Way] = []
    notes: list[str] = []
    for setup, rows in of_setup.items():
        kept = [
            row
            for row in rows
            if all(
                asked.get(name, str(value)) == str(value)
                for name, value in parse_identity(row.parameters).items()
            )
        ]
        verified = verifications(verification_path(results, setup), results)
        drifts = drifts_of(verified.values())
        drift = drifts.refreshed if anew else drifts.stored
        its = ways_of(kept, axes, setup_label(setup), drift)
        found = checked(verified.get(key, ()))
        judged = (anew and found and found.refreshed) or found
        if judged and not judged.holds:
            notes.append(f"{setup_label(setup)}: {refusal(judged)}")
            continue
        notes.append(verified_words(found, checked(left_out(key, its)), "::".join(key)))
        ways += its
    return ways, notes


def _refreshed(
    ways: Sequence[Way], rows: Sequence[Row], axes: tuple[str, ...], work: Sequence[Job]
) -> tuple[list[Way], str]:
    """The ways with times as they are now, and what that came to."""
    from gpubench.analysis.estimates import place_of, references, refreshed
    from gpubench.report import text

    telling = references(ways)
    stored = {at: row for row in rows if (at := place_of(row, axes)) in telling}
    names = {(row.name.implementation, row.name.time, row.name.case) for row in stored.values()}
    wanted = _named(work, names)
    if not wanted:
        raise GpubenchError(
            "none of the stored sizes is a case here, to be measured again: give the --preset of "
            "the results"
        )
    placed = ((place_of(row, axes), row.seconds) for row in _fresh_rows(wanted))
    fresh = {at: seconds for at, seconds in placed if at and seconds}
    factors = [seconds / (stored[at].seconds or seconds) for at, seconds in fresh.items()]
    if not factors:
        raise GpubenchError("other work disturbed all times: end it, or ask later")
    words = (
        f"refreshed: {text.plural(len(factors), 'time')} measured now took {min(factors):.2f}x to "
        f"{max(factors):.2f}x as long as stored, and the others of each way are taken to have "
        "changed by what lies between"
    )
    return [refreshed(way, fresh) for way in ways], words


def _named(work: Iterable[Job], names: Container[tuple[str, str, str]]) -> list[Job]:
    """The jobs of these implementations, labelled times and identities."""
    return [
        job for job in work if (job.case.implementation_name, job.time, job.case.identity) in names
    ]


def _of_here(histories: Sequence[History]) -> History:
    """The one history whose times can be measured again here."""
    from gpubench.measure.recorder import run_facts

    if len(histories) != 1:
        setups = "; ".join(f"{h.setup.machine}, {h.setup.environment}" for h in histories)
        raise GpubenchError(
            f"one machine and environment can be measured again at a time: there are "
            f"{setups or 'none'}; choose with --machine and --environment"
        )
    (history,) = histories
    stored, here = history.snapshots[-1].facts.get("cpu"), run_facts().get("cpu")
    if stored is not None and stored != here:
        raise GpubenchError(
            f"the results are of another machine ({stored}; this is {here}): measure them there"
        )
    return history


def _verify(
    work: Sequence[Job], site: Site, history: History, results: Path, as_json: bool
) -> None:
    """Hide, predict, measure afresh, keep and print."""
    from gpubench.analysis.advice_checks import (
        checked,
        drifts_of,
        keep,
        verification_path,
        verifications,
    )
    from gpubench.report.advise import checked_words, refusal

    path = verification_path(results, history.setup)
    drifts = drifts_of(verifications(path, results).values())
    predictions = _measured(work, site, history, drifts)
    keep(predictions, path, results)
    of_kernel: dict[Key, list[Prediction]] = {}
    for one in predictions:
        of_kernel.setdefault((one.suite, one.kernel), []).append(one)
    verified = {key: checked(its) for key, its in of_kernel.items()}
    if as_json:
        from gpubench.report.exports import plain

        print_json(
            [{"kernel": "::".join(key), **plain(one)} for key, one in verified.items() if one]
        )
    else:
        for key, found in verified.items():
            words = checked_words(found) if found else "nothing between sizes could be predicted"
            OUT.print(f"{'::'.join(key)}: {words}", markup=False)
            if found and not found.holds:
                OUT.print(f"  {refusal(found)}", markup=False)
    if not all(one and one.holds for one in verified.values()):
        sys.exit(1)


def _measured(
    work: Sequence[Job], site: Site, history: History, drifts: Drifts
) -> list[Prediction]:
    """Predictions of what is hidden, beside what was measured now."""
    from gpubench.analysis.advice_checks import hide, predictions_of
    from gpubench.measure.recorder import now

    there: dict[Key, list[Job]] = {}
    for job in work:
        there.setdefault((job.case.suite.suite, job.case.kernel_name), []).append(job)
    hidden, wanted = [], []
    for key, its in there.items():
        kernel = site.current(history).get(key)
        one = hide(key, [*kernel.cases.values()] if kernel else [], drifts)
        hidden.append(one)
        wanted += _named(its, one.cases)
    if not wanted:
        raise GpubenchError(
            "there is nothing to hide: three sizes of a kernel at least have to be measured with "
            "`asv run`, and be cases here too (see --preset)"
        )
    fresh, when = _fresh_rows(wanted), now()
    predictions: list[Prediction] = []
    for one in hidden:
        rows = [row for row in fresh if (row.name.suite, row.name.kernel) == one.key]
        predictions += predictions_of(one, rows, when)
    return predictions


def _fresh_rows(wanted: Sequence[Job]) -> list[Row]:
    """Times of these jobs, measured now; without those that other work disturbed."""
    rows, interrupted = measured_now(wanted, "verifying")
    if interrupted:
        raise GpubenchError("a verification that was interrupted is not kept")
    rows = [row for row in rows if row.seconds]
    fresh = [row for row in rows if not row.is_disturbed]
    if len(fresh) < len(rows):
        ERR.print(
            f"{len(rows) - len(fresh)} of {len(rows)} times do not count: other work on the "
            "machine disturbed them",
            markup=False,
        )
    return fresh
