"""The steps of `gpubench advise`: what is asked for, an answer from stored times, measuring."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpubench.cli.console import ERR, OUT, print_json
from gpubench.cli.measuring import measured_now
from gpubench.cli.planning import chosen_cases
from gpubench.edge.advise import checks
from gpubench.edge.advise.advice import COPIES, MEMORY, Advice, Ask, advise, fits
from gpubench.edge.advise.estimates import AND, ONCE, Way, build_ways
from gpubench.edge.advise.page import Known, disturbed_words, find_conditions, know, verified_lines
from gpubench.edge.advise.table import MAX_NAMED_WAYS, advice_lines, measured_lines
from gpubench.errors import Exit, GpubenchError
from gpubench.files import TooLarge, read_regular
from gpubench.measure.direct import Job, jobs
from gpubench.measure.recorder import now, run_facts
from gpubench.names import CURVE_TIMES, KernelKey, device_kind, parse_identity
from gpubench.report import text
from gpubench.report.exports import plain
from gpubench.report.navigation import kernel_label, setup_label
from gpubench.report.site import Site
from gpubench.report.work import bounds_at_sizes
from gpubench.results import History, Row
from gpubench.suite.folder import MAX_SUITE_BYTES
from gpubench.suite.naming import find_kernels


@dataclass(frozen=True, slots=True)
class Prices:
    """What a file of prices holds."""

    per_hour: dict[str, float]
    """By device (``cuda:0``), kind of device (``dask``) or machine."""
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured now, and how."""

    target: str
    preset: str | None
    where: str | None
    samples: int | None

    def find_jobs(self, axes: Iterable[str]) -> list[Job]:
        """Find every labelled time at these values of the axes, as ``-a`` takes them."""
        return jobs(chosen_cases([self.target], self.preset, self.where, tuple(axes)), self.samples)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked on the command line."""

    target: str
    values: Mapping[str, str]
    """By axis, as written."""
    ask: Ask
    """Without sizes."""
    prices: Prices
    measuring: Measuring | None
    """``None`` where nothing is measured now."""


BOUNDS_ARE = "Counted work allows no less than these bounds, which nobody has timed:"
"""Stands above the bounds, apart from the ranking."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one setup says."""

    label: str
    """Of the kernel."""
    history: History
    known: Known
    ask: Ask
    advices: tuple[Advice, ...]
    notes: tuple[str, ...]
    measured: Mapping[str, Advice]
    """By their parameters, where the size was measured now."""
    disturbed: int = 0
    """How many of those times other work disturbed."""
    bounds: tuple[str, ...] = ()
    """What counts allow each implementation on each GPU: bounds, and no times."""

    @property
    def has_ranking(self) -> bool:
        return any(one.totals for one in (*self.advices, *self.measured.values()))


def read_prices(path: Path | None) -> Prices:
    """Read a file of prices; raise ``GpubenchError`` for one that holds no prices."""
    if path is None:
        return Prices({})
    form = "currency: EUR, per_hour: {cpu: 0.10, 'cuda:0': 2.50}"
    try:
        prices = msgspec.convert(yaml.safe_load(read_regular(path, MAX_SUITE_BYTES)), Prices)
    except (OSError, TooLarge, yaml.YAMLError, msgspec.ValidationError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise GpubenchError(f"{path} holds no prices: {what}\nwrite {form}") from error
    if wrong := [n for n, each in prices.per_hour.items() if not 0 <= each < math.inf]:
        raise GpubenchError(f"{path}: the price of {wrong[0]} is no amount\nwrite {form}")
    return prices


def read_values(axes: Iterable[str]) -> dict[str, str]:
    """Read ``NAME=VALUE`` of each ``-a``."""
    asked = {}
    for given in axes:
        name, equals, value = (part.strip() for part in given.partition("="))
        if not (equals and name and value) or "," in value:
            raise GpubenchError(f"-a {given}: one value is needed, as in -a n=50000000")
        asked[name] = value
    return asked


def find_kernel(target: str, site: Site, histories: Sequence[History]) -> KernelKey:
    """Return the one kernel that a name stands for: a suite's name too, where the suite has one
    kernel, or one that is called like it."""
    there = dict.fromkeys(key for history in histories for key in site.kernels(history))
    keys = sorted(find_kernels([target], there))
    if (target, target) in keys:
        return target, target
    if len(keys) != 1:
        names = text.some(["::".join(key) for key in keys])
        raise GpubenchError(f"{target} has {len(keys)} kernels; name one of {names}")
    return keys[0]


def find_sizes(question: Question, rows: Sequence[Row], label: str) -> dict[str, float]:
    """Return the sizes among the values; raises ``GpubenchError`` for what the kernel has not."""
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
    words |= {name: f"{name} ({text.some(sorted(each))})" for name, each in parameters.items()}
    sizes = {}
    for name, said in question.values.items():
        if name not in words:
            there = ", ".join(words.values()) or "none"
            raise GpubenchError(f"{label} has no axis {name!r}\nit has {there}")
        if name in measured:
            sizes[name] = read_size(name, said)
        elif said not in parameters[name]:
            raise GpubenchError(
                f"{name}={said} was not measured of {label}\nmeasured: {words[name]}\n"
                f"measure it now: `gpubench time {question.target} -a {name}={said}`"
            )
    return sizes


def read_size(name: str, said: str) -> float:
    """Read a whole number above 0."""
    try:
        size = float(said)
    except ValueError:
        size = math.nan
    if not (0 < size < math.inf and size.is_integer()):
        raise GpubenchError(f"-a {name}={said}: a size is a whole number above 0")
    return size


def answer(question: Question, key: KernelKey, site: Site, history: History) -> Answer:
    """Answer from the stored times of one setup; raises ``GpubenchError`` where there are none."""
    label = kernel_label(key)
    first = know(history, key, site)
    timed = [row for row in first.rows if row.name.time in CURVE_TIMES]
    if not timed:
        words = disturbed_words(first) or f"`gpubench choose {label}` has the reasons"
        raise GpubenchError(f"{label} has no times that can be ranked\n{words}")
    sizes = find_sizes(question, timed, label)
    known = know(history, key, site, sizes)
    if missing := [name for name in known.axes if name not in sizes]:
        values = [row.sizes[missing[0]] for row in timed if missing[0] in row.sizes]
        span = f"{text.whole(min(values))} to {text.whole(max(values))}"
        raise GpubenchError(f"give every size of {label}\n-a {missing[0]}=..., measured: {span}")
    ask = replace(
        question.ask,
        sizes={name: sizes[name] for name in known.axes},
        prices=question.prices.per_hour,
        machine=history.setup.machine,
    )
    ways = [way for way in known.ways if fits_parameters(way.parameters, question.values)]
    notes = [*have_notes(ways, ask.have), *price_notes(ways, ask)]
    if known.disturbed:
        notes.append(disturbed_words(known))
    advices = () if known.is_refused else advise(ways, ask)
    notes += missing_notes(question, known, advices)
    bounds = tuple(bounds_at_sizes(site, history, key, ask.sizes))
    return Answer(label, history, known, ask, advices, tuple(notes), {}, bounds=bounds)


def answer_question(question: Question, site: Site, histories: Sequence[History]) -> list[Answer]:
    """Answer from each setup that has the kernel; raises ``GpubenchError`` without any ranking."""
    key = find_kernel(question.target, site, histories)
    its = [one for one in histories if key in site.kernels(one)]
    if question.measuring:
        its = [find_history_of_here(its)]
    answers = answer_all(question, key, site, its)
    if question.measuring:
        sizes = {name: f"{size:.0f}" for name, size in answers[0].ask.sizes.items()}
        texts = (f"{name}={value}" for name, value in {**question.values, **sizes}.items())
        answers = [measure_answer(answers[0], question.measuring.find_jobs(texts))]
    if not any(one.has_ranking for one in answers):
        raise_no_ranking(question, answers)
    return answers


def answer_all(
    question: Question, key: KernelKey, site: Site, histories: Iterable[History]
) -> list[Answer]:
    """Answer from each setup that has something to say; raises ``GpubenchError`` where none has."""
    answers: list[Answer] = []
    failures: list[GpubenchError] = []
    for history in histories:
        try:
            answers.append(answer(question, key, site, history))
        except GpubenchError as error:
            failures.append(error)
    if not answers:
        raise failures[0]
    return answers


def fits_parameters(parameters: str, values: Mapping[str, str]) -> bool:
    """Return whether an identity has the values that are asked for."""
    return all(
        values.get(name, str(value)) == str(value)
        for name, value in parse_identity(parameters).items()
    )


def missing_notes(question: Question, known: Known, advices: Sequence[Advice]) -> Iterator[str]:
    """Name the commands that measure what a ranking lacks."""
    reasons = {each.reason for one in advices for each in one.unranked}
    parts = [part for part in ONCE if any(one.totals and part in one.left_out for one in advices)]
    if COPIES in reasons:
        parts.append("end_to_end")
    if parts:
        yield f"to count {text.join(parts)}: list it under `measure` in the suite, {known.command}"
    if reasons - {COPIES, MEMORY} and not question.measuring:
        given = "".join(f" -a {name}={value}" for name, value in question.values.items())
        yield f"measure it now: `gpubench advise {question.target}{given} --measure`"


def have_notes(ways: Iterable[Way], have: Iterable[str]) -> Iterator[str]:
    """Say which of the devices that the asker has were not measured, and which were."""
    devices = {device: way for way in ways for device in way.device.split(AND)}
    for one in have:
        fitting = [device for device, way in devices.items() if fits(way, device, one)]
        name = one.rpartition(":")[0]
        is_exact = one in devices or not name or not any(devices[d].workers for d in fitting)
        if not fitting or not is_exact:
            there = text.join(sorted(fitting or devices))
            yield f"{one} was not measured; measured: {there}"


def price_notes(ways: Iterable[Way], ask: Ask) -> Iterator[str]:
    """Say which names of the file of prices no way has."""
    devices = dict.fromkeys(device for way in ways for device in way.device.split(AND) if device)
    there = {*devices, *(device_kind(device) for device in devices), ask.machine}
    if unknown := [name for name in ask.prices if name not in there]:
        names = text.join([*devices, ask.machine])
        yield f"prices of {text.some(unknown)} are of no way here; names are {names}"


def raise_no_ranking(question: Question, answers: Sequence[Answer]) -> None:
    """Raise why no setup has a ranking, with the command that measures what is missing."""
    lines = []
    for one in answers:
        at = setup_label(one.history.setup) if len(answers) > 1 else ""
        prefix = f"{at}: " if at else ""
        if one.known.is_refused:
            lines += [f"{prefix}{line}" for line in verified_lines(one.known, question.target)]
            continue
        sizes = text.sizes(one.ask.sizes)
        lines.append(f"{prefix}no ranking of {one.label} at {sizes}")
        unranked = [each for advice in one.advices for each in advice.unranked]
        lines += [f"{each.label}: {each.reason}" for each in unranked[:MAX_NAMED_WAYS]]
        lines += [f"and {len(unranked) - MAX_NAMED_WAYS} more"] * (len(unranked) > MAX_NAMED_WAYS)
        values = [row.sizes for row in one.known.rows]
        for name in one.ask.sizes:
            its = [sizes[name] for sizes in values if name in sizes]
            lines.append(f"measured: {name} from {text.whole(min(its))} to {text.whole(max(its))}")
        lines += one.notes
    raise GpubenchError("\n".join(dict.fromkeys(lines)))


def show(question: Question, answers: Sequence[Answer]) -> None:
    """Print what each setup says: what verification found first, then the ranking."""
    for one in answers:
        if len(answers) > 1:
            OUT.print(f"{setup_label(one.history.setup)}:")
        for line in verified_lines(one.known, question.target):
            OUT.print(line)
        for advice in one.advices:
            for line in advice_lines(advice, one.ask, one.label, question.prices.currency):
                OUT.print(line)
        for parameters, measured in one.measured.items():
            said = next((each for each in one.advices if each.parameters == parameters), None)
            for line in measured_lines(said, measured, one.disturbed > 0):
                OUT.print(line)
        for note in one.notes:
            OUT.print(note)
        if one.bounds:
            OUT.print("\n" + BOUNDS_ARE)
        for line in one.bounds:
            OUT.print(f"  {line}")


def show_json(question: Question, answers: Sequence[Answer]) -> None:
    """Print all of it as JSON."""
    ask = answers[0].ask
    listed: list[dict[str, Any]] = []
    for one in answers:
        said = {each.parameters: each for each in one.advices}
        for parameters in dict.fromkeys((*said, *one.measured)):
            content: dict[str, Any] = {"setup": setup_label(one.history.setup)}
            content |= plain(said[parameters]) if parameters in said else {"parameters": parameters}
            measured = one.measured.get(parameters)
            listed.append(content | {"measured": plain(measured.totals) if measured else None})
    print_json(
        {
            "kernel": answers[0].label,
            "sizes": ask.sizes,
            "calls": ask.calls,
            "from": "host" if ask.from_host else "device",
            "process": ask.process,
            "currency": question.prices.currency,
            "verification": {
                setup_label(one.history.setup): verified_lines(one.known, question.target)
                for one in answers
            },
            "notes": [note for one in answers for note in one.notes],
            "bounds": {setup_label(one.history.setup): one.bounds for one in answers},
            "advice": listed,
        }
    )


# --- measured now


def find_history_of_here(histories: Sequence[History]) -> History:
    """Return the one history whose times can be measured again here."""
    if len(histories) != 1:
        setups = "; ".join(f"{h.setup.machine}, {h.setup.environment}" for h in histories)
        raise GpubenchError(
            f"one machine and environment can be measured at a time\nthere are "
            f"{setups or 'none'}\nchoose with --machine and --environment"
        )
    stored, here = histories[0].snapshots[-1].facts.get("cpu"), run_facts().get("cpu")
    if stored is not None and stored != here:
        raise GpubenchError(
            f"the results are of another machine ({stored})\nthis is {here}\nmeasure them there"
        )
    return histories[0]


def measure_answer(one: Answer, work: Sequence[Job]) -> Answer:
    """Measure the size that is asked for, and rank what was measured."""
    times = {*CURVE_TIMES, *(ONCE if one.ask.process != "warm" else ())}
    rows = measure_rows([job for job in work if job.time in times], "measuring")
    if not rows:
        raise GpubenchError("nothing was measured: no case could run\n`gpubench time` says why")
    disturbed = sum(row.is_disturbed for row in rows)
    notes = [f"other work disturbed {disturbed} of {text.plural(len(rows), 'time')} measured now"]
    # They are shown all the same, as medians: who asks wants to see them, and is told.
    rows = [replace(row, disturbed=None, low=None, high=None, q25=None, q75=None) for row in rows]
    # Parts that were left out of the prediction are left out of what was measured.
    counted = {part for advice in one.advices for part in ONCE if part not in advice.left_out}
    its = [row for row in rows if not one.advices or row.name.time in {*CURVE_TIMES, *counted}]
    ways = build_ways(its, [*one.ask.sizes])
    return replace(
        one,
        measured={each.parameters: each for each in advise(ways, one.ask)},
        notes=(*one.notes, *(notes if disturbed else ())),
        disturbed=disturbed,
    )


def measure_rows(work: Sequence[Job], what: str) -> list[Row]:
    """Measure these jobs now, and return those that have a time."""
    rows, interrupted = measured_now(work, what)
    if interrupted:
        raise GpubenchError(f"interrupted while {what}: nothing is kept")
    return [row for row in rows if row.seconds]


def leave_out_disturbed(rows: Sequence[Row]) -> list[Row]:
    """Return the times that nothing disturbed, and print how many do not count."""
    fresh = [row for row in rows if not row.is_disturbed]
    if len(fresh) < len(rows):
        ERR.print(
            f"{len(rows) - len(fresh)} of {len(rows)} times do not count: other work on the "
            "machine disturbed them"
        )
    return fresh


def verify(work: Sequence[Job], site: Site, history: History, as_json: bool) -> None:
    """Hide, predict, measure afresh, keep and print."""
    jobs_of: dict[KernelKey, list[Job]] = {}
    for job in work:
        jobs_of.setdefault((job.case.suite.suite, job.case.kernel_name), []).append(job)
    hidden, wanted = [], []
    for key, its in jobs_of.items():
        kernel = site.current(history).get(key)
        rows = [*kernel.cases.values()] if kernel else []
        one = checks.hide(key, rows, find_conditions(history, key, site))
        hidden.append(one)
        names = one.cases
        wanted += [
            job
            for job in its
            if (job.case.implementation_name, job.time, job.case.identity) in names
        ]
    if not wanted:
        raise GpubenchError(
            "there is nothing to hide\nthree sizes of a kernel at least have to be measured with "
            "`asv run`, and be cases here too (see --preset)"
        )
    fresh, when = leave_out_disturbed(measure_rows(wanted, "verifying")), now()
    predictions = {}
    for one in hidden:
        rows = [row for row in fresh if (row.name.suite, row.name.kernel) == one.key]
        if predicted := checks.predict(one, rows, when):
            predictions[one.key] = predicted
    path = checks.verification_path(site.table.folder, history.setup)
    checks.keep(chain.from_iterable(predictions.values()), path, site.table.folder)
    site.made.clear()  # what was read of that file before
    show_verified(predictions, [one.key for one in hidden], site, history, as_json)


def show_verified(
    predictions: Mapping[KernelKey, Sequence[checks.Prediction]],
    keys: Sequence[KernelKey],
    site: Site,
    history: History,
    as_json: bool,
) -> None:
    """Print what a verification found; exit code 1 where a kernel may not be ranked."""
    verified = {key: checks.check(predictions.get(key, ())) for key in keys}
    if as_json:
        print_json(
            [
                {"kernel": "::".join(key), **plain(one), "holds": one.holds}
                for key, one in verified.items()
                if one
            ]
        )
    else:
        for key, result in verified.items():
            OUT.print(f"{'::'.join(key)}:")
            if result is None:
                OUT.print("  nothing was predicted and measured")
                continue
            for line in verified_lines(know(history, key, site), "::".join(key)):
                OUT.print(f"  {line}")
    if not all(one and one.holds for one in verified.values()):
        sys.exit(Exit.FOUND)
