"""The steps of `gpubench advise`: what is asked for, stored times, some measured again, checks."""

from __future__ import annotations

import math
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import msgspec
import yaml

from gpubench.analysis import advice_checks as checks
from gpubench.analysis.estimates import (
    CURVES,
    Way,
    axes_of,
    references,
    refreshed,
    time_of_way,
    ways_of,
)
from gpubench.cli.console import ERR, OUT, print_json
from gpubench.cli.measuring import measured_now
from gpubench.errors import GpubenchError
from gpubench.files import TooLarge, read_regular
from gpubench.measure.direct import Job
from gpubench.measure.recorder import now, run_facts
from gpubench.names import parse_identity
from gpubench.report import text
from gpubench.report.advise import checked_words, refusal, verified_words
from gpubench.report.exports import plain
from gpubench.report.site import Site, kernel_label, setup_label
from gpubench.results import History, Row
from gpubench.suite.folder import MAX_BYTES

Key = tuple[str, str]
"""Suite and kernel."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a file of prices holds."""

    per_hour: dict[str, float]
    """By device (``cuda:0``), kind of device (``dask``) or machine."""
    currency: str = ""


def read_prices(path: Path | None) -> Prices:
    """Raises ``GpubenchError`` for a file that holds no prices."""
    if path is None:
        return Prices({})
    form = "currency: EUR, per_hour: {cpu: 0.10, 'cuda:0': 2.50}"
    try:
        prices = msgspec.convert(yaml.safe_load(read_regular(path, MAX_BYTES)), Prices)
    except (OSError, TooLarge, yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise GpubenchError(f"{path} holds no prices: {what}; write {form}") from error
    if wrong := [n for n, each in prices.per_hour.items() if not 0 <= each < math.inf]:
        raise GpubenchError(f"{path}: the price of {wrong[0]} is no amount; write {form}")
    return prices


def kernel_asked(target: str, site: Site, histories: Sequence[History]) -> Key:
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


def values_asked(axes: Iterable[str]) -> dict[str, str]:
    asked = {}
    for given in axes:
        name, equals, value = given.partition("=")
        if not (equals and name and value) or "," in value:
            raise GpubenchError(f"-a {given}: one value is needed, as in -a n=50000000")
        asked[name] = value
    return asked


def sizes_asked(asked: Mapping[str, str], rows: Sequence[Row], label: str) -> dict[str, float]:
    """The sizes among what is asked for; raises ``GpubenchError`` for what the kernel has not."""
    measured: dict[str, set[float]] = {}
    parameters: dict[str, set[str]] = {}
    for row in rows:
        for name, size in row.sizes.items():
            measured.setdefault(name, set()).add(size)
        for name, value in parse_identity(row.parameters).items():
            parameters.setdefault(name, set()).add(str(value))
    words = {
        name: f"{name} ({text.whole(min(values))} to {text.whole(max(values))})"
        for name, values in measured.items()
    }
    words |= {name: f"{name} ({', '.join(sorted(each))})" for name, each in parameters.items()}
    sizes = {}
    for name, said in asked.items():
        if name not in words:
            there = ", ".join(words.values()) or "none"
            raise GpubenchError(f"{label} has no axis {name!r}; it has {there}")
        if name in measured:
            try:
                sizes[name] = float(said)
            except ValueError:
                sizes[name] = 0.0
            if not 0 < sizes[name] < math.inf:
                raise GpubenchError(f"-a {name}={said}: a size is a number above 0")
    if missing := [name for name in axes_of(rows, sizes) if name not in sizes]:
        raise GpubenchError(f"give every size of {label}: -a {missing[0]}=..., {words[missing[0]]}")
    return sizes


def stored_times(
    key: Key, site: Site, histories: Iterable[History]
) -> list[tuple[History, list[Row]]]:
    """What has a time of a kernel, by setup; raises ``GpubenchError`` where nothing has."""
    stored = [
        (history, [row for row in now.cases.values() if row.seconds])
        for history in histories
        if (now := site.current(history).get(key))
    ]
    if not any(row.name.time in CURVES for _, rows in stored for row in rows):
        label = kernel_label(key)
        raise GpubenchError(f"{label} has no times: run `gpubench choose {label}` for the reasons")
    return stored


def trusted_ways(
    key: Key,
    site: Site,
    stored: Iterable[tuple[History, Sequence[Row]]],
    asked: Mapping[str, str],
    axes: Sequence[str],
    anew: bool,
) -> tuple[list[Way], list[str]]:
    """The ways of each setup at the parameters that are asked for, without those of a setup whose
    verification did not hold; and what verification found of each. ``anew``: for when some of their
    sizes are measured again. Raises ``GpubenchError`` where there is no way."""
    ways: list[Way] = []
    notes: list[str] = []
    for history, rows in stored:
        kept = []
        for row in rows:
            parameters = parse_identity(row.parameters).items()
            if all(asked.get(name, str(value)) == str(value) for name, value in parameters):
                kept.append(row)
        setup, verified = setup_label(history.setup), site.verified(history)
        drifts = checks.drifts_of(verified.values())
        its = ways_of(kept, axes, setup, drifts.refreshed if anew else drifts.stored)
        outcome = checks.checked(verified.get(key, ()))
        judged = (anew and outcome and outcome.refreshed) or outcome
        if judged and not judged.holds:
            notes.append(f"{setup}: {refusal(judged)}")
            continue
        left_out = checks.checked(checks.left_out(key, its))
        notes.append(verified_words(outcome, left_out, "::".join(key)))
        ways += its
    if not ways:
        what = f"{kernel_label(key)} has no times with these parameters"
        raise GpubenchError("; ".join(notes) or what)
    return ways, notes


def refreshed_ways(
    ways: Sequence[Way], rows: Iterable[Row], axes: Sequence[str], work: Iterable[Job]
) -> tuple[list[Way], str]:
    """The ways with times as they are now, and what that came to."""
    telling = references(ways)
    stored = {at: row for row in rows if (at := time_of_way(row, axes)) in telling}
    names = {(row.name.implementation, row.name.time, row.name.case) for row in stored.values()}
    wanted = _named(work, names)
    if not wanted:
        raise GpubenchError(
            "none of the stored sizes is a case here, to be measured again: give the --preset of "
            "the results"
        )
    placed = ((time_of_way(row, axes), row.seconds) for row in _fresh_rows(wanted))
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


def history_of_here(histories: Sequence[History]) -> History:
    """The one history whose times can be measured again here."""
    if len(histories) != 1:
        setups = "; ".join(f"{h.setup.machine}, {h.setup.environment}" for h in histories)
        raise GpubenchError(
            f"one machine and environment can be measured again at a time: there are "
            f"{setups or 'none'}; choose with --machine and --environment"
        )
    stored, here = histories[0].snapshots[-1].facts.get("cpu"), run_facts().get("cpu")
    if stored is not None and stored != here:
        raise GpubenchError(
            f"the results are of another machine ({stored}; this is {here}): measure them there"
        )
    return histories[0]


def verify(work: Sequence[Job], site: Site, history: History, as_json: bool) -> None:
    """Hide, predict, measure afresh, keep and print."""
    drifts = checks.drifts_of(site.verified(history).values())
    jobs_of: dict[Key, list[Job]] = {}
    for job in work:
        jobs_of.setdefault((job.case.suite.suite, job.case.kernel_name), []).append(job)
    hidden, wanted = [], []
    for key, its in jobs_of.items():
        kernel = site.current(history).get(key)
        hidden.append(checks.hide(key, [*kernel.cases.values()] if kernel else [], drifts))
        wanted += _named(its, hidden[-1].cases)
    if not wanted:
        raise GpubenchError(
            "there is nothing to hide: three sizes of a kernel at least have to be measured with "
            "`asv run`, and be cases here too (see --preset)"
        )
    fresh, when = _fresh_rows(wanted), now()
    predictions = {}
    for one in hidden:
        rows = [row for row in fresh if (row.name.suite, row.name.kernel) == one.key]
        if predicted := checks.predictions_of(one, rows, when):
            predictions[one.key] = predicted
    results = site.table.folder
    path = checks.verification_path(results, history.setup)
    checks.keep(chain.from_iterable(predictions.values()), path, results)
    verified = {key: checks.checked(its) for key, its in predictions.items()}
    if as_json:
        print_json(
            [{"kernel": "::".join(key), **plain(one)} for key, one in verified.items() if one]
        )
    else:
        for key, result in verified.items():
            words = checked_words(result) if result else "nothing between sizes could be predicted"
            OUT.print(f"{'::'.join(key)}: {words}")
            if result and not result.holds:
                OUT.print(f"  {refusal(result)}")
    if not all(one and one.holds for one in verified.values()):
        sys.exit(1)


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
            "machine disturbed them"
        )
    return fresh
