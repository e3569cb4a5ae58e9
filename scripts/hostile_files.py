"""Breaks suites, result files and records at random and counts what `check` and `report` make of
them: `python scripts/hostile_files.py --minutes 5`.

Tries are made in processes with limits of memory and time, some in each; one that ends in a
traceback, at a limit or late is tried again in a process of its own, which counts, and is printed
with its seed: `--only SEED` does it again. Exit code 1 where one escaped. `scripts/robustness.py`
tries more, in more ways.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import platform
import random
import resource
import shutil
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "results"))

SECONDS = 300.0
"""Until a try is ended: on a busy machine a report of the sample takes five."""

SUITES = tuple(
    path
    for folder in ("suites", "tests/wrong", "tests/suite/examples")
    for path in sorted((ROOT / folder).rglob("*.yaml"))
)
"""That are broken."""

TOGETHER = 20
"""Tries in one process: to start it takes longer than most of them."""

ADDRESSES = 4 * 2**30
"""Bytes of addresses that a try may have; DuckDB reserves more than it uses."""

SLOW, LARGE = 2.0, 300
"""Processor time in seconds and memory in MB from which a try is counted."""

TRIES = 40
"""Without ``--minutes``, of each kind."""

# A try that ends at once leaves it to another process to tidy up, which would tell of each.
os.environ["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"

EVIL: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, -1e308, 5e-324, math.nan, math.inf, 2**63, 10**400),
    *("", "\ud800", "a\0b", "\x1b[31m", "<script>", "../../etc/passwd", "x" * 100_000, "9" * 5000),
    *([], {}, [[]], {"a": []}, [1] * 10_000, "²", "\u202e", "n=1 n=1", "=", "(" * 2000),
)
"""In place of a value of JSON."""

EVIL_YAML = (
    *("[]", "{}", "~", "!!python/object:os.system x", "*a", "&a [*a]", "{linear: [1, 10000]}"),
    *("{pow2: [0, 62]}", "1e400", "9" * 5000, "x" * 600, "[[[[[[[[[[[[[[1]]]]]]]]]]]]]]", "yes"),
    *("n ** n ** n", "'\\ud800'", '"\\ud800"', "cdiv(n, 0)", "2**127", "-1", "0.1", "os:system"),
    *("(" * 400, "[1, 2, 3, 4, 5, 6, 7, 8, 9]", "%", "/dev/zero", "cuda:*", "a b", "<<"),
)
"""In place of a value of a suite."""


NAMES = ("a", "b", "n", "m", "x", "numpy", "numba", "sum")
"""Of arrays, sizes and implementations, in a suite that is generated."""

WORDS = (
    *("a", "b", "n", "m", "n * 2", "cdiv(n, m)", "itemsize(a)", "float32", "int8", "cpu", "cuda:0"),
    *("numpy", "numba", "os:getcwd", "math:sqrt", "normal", "kernel", "out", "", "x y", "{n}"),
)
"""Where the schema asks for text."""

SAFE_YAML = (
    *(
        "[]",
        "{}",
        "~",
        "[[1]]",
        "{a: 1}",
        "{a: b}",
        "[a]",
        "[{a: b}]",
        "[[a]]",
        "a",
        "2",
        "-1",
        "1.5",
        "yes",
        "9",
        "'n ** n ** n'",
        "''",
    ),
)
"""Of another kind than the schema asks for."""


@dataclass(frozen=True)
class Outcome:
    """What became of one try."""

    how: str
    """``refused``, ``accepted``, ``named`` (accepted, and the report names what it left out), or
    ``escaped``."""
    seconds: float = 0.0
    """Of the processor."""
    megabytes: float = 0.0
    """Most at a time."""
    words: str = ""
    """Last line of a traceback, or what ended it."""


def broken_suite(rng: random.Random, folder: Path) -> list[str]:
    """Write one of the project's suites with one to three things wrong; the command for it."""
    source = rng.choice(SUITES)
    text = source.read_text(encoding="utf-8")
    for _ in range(rng.randint(1, 3)):
        text = rng.choice((_line, _value, _character, _cut))(rng, text)
    for module in source.parents[1].glob("wrong_*.py"):  # of the tests' own suites
        shutil.copy(module, folder)
    return _checked(folder, source.name, text)


def generated_suite(rng: random.Random, folder: Path) -> list[str]:
    """Write a suite as the schema allows, with some values that it does not; the command for it."""
    suite = _generated(rng, _schema())
    if isinstance(suite, dict) and rng.random() < 0.9:
        suite |= {"version": 1, "suite": "tried"}
    return _checked(folder, "tried.yaml", yaml.safe_dump(suite, width=10**6))


def misplaced_suite(rng: random.Random, folder: Path) -> list[str]:
    """Write one of the project's suites with one or two values of any kind where the format has a
    field, or in a list; the command for it."""
    source = rng.choice([path for path in SUITES if "wrong" not in path.parts])
    suite = yaml.safe_load(source.read_text(encoding="utf-8"))
    for _ in range(rng.randint(1, 2)):
        place = rng.choice([*_places(suite)])
        key = rng.randrange(len(place)) if isinstance(place, list) else rng.choice(_fields())
        place[key] = yaml.safe_load(rng.choice(SAFE_YAML))
    return _checked(folder, source.name, yaml.safe_dump(suite, width=10**6))


def _places(part: Any) -> Iterator[Any]:
    """Yield all mappings and all lists that hold something."""
    if isinstance(part, dict) or (isinstance(part, list) and part):
        yield part
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _places(inner)


@cache
def _fields() -> tuple[str, ...]:
    """Names of all fields of the format, wherever they belong."""
    parts, names = [_schema()], set[str]()
    while parts:
        part: Any = parts.pop()
        if isinstance(part, dict):
            properties = part.get("properties")
            names |= properties.keys() if isinstance(properties, dict) else set()
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return tuple(sorted(names))


def _checked(folder: Path, name: str, text: str) -> list[str]:
    path = folder / "suites" / name
    path.parent.mkdir()
    path.write_bytes(text.encode(errors="surrogatepass"))
    return ["check", f"suites/{name}"]


@cache
def _schema() -> dict[str, Any]:
    from gpubench.suite.schema import suite_schema

    schema = suite_schema()
    return {"type": "object", **schema["else"], "definitions": schema["definitions"]}


def _generated(rng: random.Random, schema: Any, depth: int = 0) -> Any:
    """A value that a part of the schema allows, or in one of forty times any other."""
    if rng.random() < 0.025 or depth > 12 or not isinstance(schema, dict):
        return yaml.safe_load(rng.choice(SAFE_YAML))
    if "$ref" in schema:
        part: Any = _schema()
        for name in schema["$ref"].split("/")[1:]:
            part = part[name]
        return _generated(rng, part, depth + 1)
    for key in ("anyOf", "oneOf"):
        if key in schema and "properties" not in schema:
            return _generated(rng, rng.choice(schema[key]), depth + 1)
    if "enum" in schema or "const" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    match schema.get("type"):
        case "object":
            return _mapping(rng, schema, depth)
        case "array":
            items = schema.get("items")
            if not isinstance(items, list):
                items = [items] * rng.randint(schema.get("minItems", 1), 3)
            return [_generated(rng, item, depth + 1) for item in items]
        case "integer" | "number":
            return rng.choice((0, 1, 2, 3, 8, 100, -1, 0.5))
        case "boolean":
            return rng.random() < 0.5
    return rng.choice(WORDS)


def _mapping(rng: random.Random, schema: dict[str, Any], depth: int) -> dict[str, Any]:
    """All fields that are required and some of the others; few where one is deep inside."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    chance = 0.5 / (1 + depth)
    filled = {
        name: _generated(rng, part, depth + 1)
        for name, part in properties.items()
        if name in required or rng.random() < chance
    }
    more = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
    for part in filter(None, more):
        for name in rng.sample(NAMES, rng.randint(1, 3)):
            filled[name] = _generated(rng, part, depth + 1)
    return filled


def _line(rng: random.Random, text: str) -> str:
    """A line gone, there twice, elsewhere, or further in."""
    lines = text.splitlines()
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[place]
    match rng.randrange(4):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, line)
        case 2:
            lines[place], lines[other] = lines[other], line
        case _:
            lines[place] = " " * rng.randint(1, 60) + line
    return "\n".join(lines) + "\n"


def _value(rng: random.Random, text: str) -> str:
    """Another value behind a colon, or at the end where a cut has left none."""
    colons = [place for place, character in enumerate(text) if character == ":"]
    start = rng.choice(colons or [len(text) - 1]) + 1
    ends = (text.find(character, start) for character in "\n,}")
    end = min((end for end in ends if end >= 0), default=len(text))
    return f"{text[:start]} {rng.choice(EVIL_YAML)}{text[end:]}"


def _character(rng: random.Random, text: str) -> str:
    """Some other characters."""
    place = rng.randrange(len(text))
    strange = "\x00\x1b\ud800\u202e\t{}[]&*!|>'\"%@`#,:-\\é𝟙"
    inserted = "".join(rng.choices(strange, k=rng.randint(1, 4)))
    return text[:place] + inserted + text[place + rng.randint(0, 3) :]


def _cut(rng: random.Random, text: str) -> str:
    """A part gone, or very often there."""
    start = rng.randrange(len(text))
    part = text[start : start + rng.randint(1, 200)]
    return text[:start] + part * rng.choice((0, 2, 50)) + text[start + len(part) :]


def broken_results(rng: random.Random, folder: Path) -> list[str]:
    """Write a small project with a damaged file; the command for it."""
    results = folder / ".asv" / "results"
    _sample(results)
    path = rng.choice(sorted(file for file in results.rglob("*") if file.is_file()))
    for _ in range(rng.randint(1, 2)):
        rng.choice((_json, _json, _json, _bytes, _bytes, _kind))(rng, path)
        if not path.is_file() or path.is_symlink() or path.stat().st_size > 10**8:
            break  # which is broken enough, and nothing to read
    return ["report"]


def _sample(results: Path) -> None:
    """Two commits with times and records, as asv and the recorder write them, and what a
    verification of advice found."""
    from result_files import CommitFiles

    from gpubench.edge.advise.checks import Prediction, keep, verification_path
    from gpubench.results import Setup

    names = [f"suites.norm__{name}.time_kernel" for name in ("numpy", "numba")]
    for day, commit in enumerate("ab", 19_000):
        files = CommitFiles(results, commit * 40, day * 86_400).facts(run=commit, cpu="a processor")
        for speed, name in enumerate(names, 1):
            for n in (64, 128, 256):
                values: dict[str, Any] = {"values": {"n": n}, "sizes": ("n",), "bytes": 8 * n}
                files.time(name, f"n={n}", n / speed * 1e-6)
                files.record(name, f"n={n}", device="cpu", backend="numpy", **values)
                files.rounds(name, f"n={n}", *(n / speed * 1e-6 * (1 + k / 100) for k in range(6)))
        files.write()
    described = {name: {"name": name, "param_names": ["case"], "code": "x"} for name in names}
    (results / "benchmarks.json").write_text(json.dumps({"version": 2, **described}))
    verified = [
        Prediction(
            *("norm", "norm", "numpy", "cpu", "", {"n": n}, "kernel", "predicted"),
            *(1e-4, 5e-5, 2e-4, 1e-4, 1e-4, 1e-4, "2026-03-01T10:00:00"),
        )
        for n in (64.0, 128.0, 256.0)
    ]
    keep(verified, verification_path(results, Setup(files.machine, files.environment)), results)


def _json(rng: random.Random, path: Path) -> None:
    """Another value at some place of a JSON text, or of one of its lines."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    place = rng.randrange(len(lines))
    try:
        content: Any = [json.loads(lines[place])]
    except (ValueError, RecursionError):  # broken already
        return
    nodes = [(content, 0)]
    for holder, key in nodes:  # which grows meanwhile
        inner = holder[key]
        if isinstance(inner, dict | list):
            keys = inner if isinstance(inner, dict) else range(len(inner))
            nodes += [(inner, key) for key in keys]
    holder, key = rng.choice(nodes)
    evil = rng.choice(EVIL)
    match rng.randrange(4):
        case 0 if holder is not content:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[str(evil)] = holder.pop(key)
        case 2 if isinstance(holder[key], list):
            holder[key] *= rng.choice((0, 2, 1000))
        case _:
            holder[key] = evil
    lines[place] = json.dumps(content[0]) if content else ""
    path.write_text("\n".join(lines) + "\n")


def _bytes(rng: random.Random, path: Path) -> None:
    """Bytes changed, gone, repeated, or the file cut off."""
    data = path.read_bytes() or b" "
    place = rng.randrange(len(data))
    part = data[place : place + rng.randint(1, 400)]
    new = rng.choice((b"", bytes([rng.randrange(256)]), part * 2, part * 500, b"[" * 50_000))
    rest = b"" if rng.random() < 0.2 else data[place + len(part) :]
    path.write_bytes(data[:place] + new + rest)


def _kind(rng: random.Random, path: Path) -> None:
    """Something else in its place."""
    path.unlink()
    match rng.randrange(6):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to(rng.choice(("/dev/zero", "/dev/full", path.name, "nowhere")))
        case 3:
            path.touch()
            os.truncate(path, 2**32)
        case 4:
            path.write_bytes(b'{"version": 2, "x": "' + b"x" * 30_000_000 + b'"}')
        case _:
            path.write_text(json.dumps({str(key): key for key in range(300_000)}))


KINDS = {
    "suites": broken_suite,
    "generated": generated_suite,
    "misplaced": misplaced_suite,
    "results": broken_results,
}


def attempts(seeds: Sequence[str], folder: str, told: Connection) -> None:
    """Some tries, in a process of their own."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    for seed in seeds:
        # What is written outside of the project shows beside it.
        project = Path(folder, seed, "project")
        project.mkdir(parents=True)
        os.chdir(project)
        command = KINDS[seed.partition("-")[0]](random.Random(seed), project)
        before, files = _processor(), _files(project.parent)
        _forget_peak()
        how, words = _outcome(command)
        seconds, memory = _processor() - before, _peak()
        if written := _files(project.parent) - files:
            how, words = "escaped", f"it wrote {sorted(written)[0]}"
        told.send((how, seconds, memory, words))
        shutil.rmtree(project.parent, ignore_errors=True)


def _files(folder: Path) -> set[str]:
    """All paths, without those that a report is to write."""
    written = ("project/reports/html", "project/.asv/.gpubench-cache", "project/reports")
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return {path for path in paths if not path.startswith(written)}


def _forget_peak() -> None:
    """Most memory so far is forgotten (Linux: proc_pid_clear_refs(5))."""
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """Most memory since then, MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _outcome(command: list[str]) -> tuple[str, str]:
    """How it ended, and the last line of a traceback."""
    from gpubench.cli import main
    from gpubench.results import open_table

    output, errors = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                main(command)
            except SystemExit as end:
                code = end.code
        if code not in (0, None, 2):
            return "escaped", f"exit code {code}: {errors.getvalue()[-200:]}"
        if code == 2:
            told = errors.getvalue().strip()
            return ("refused", "") if told else ("escaped", "exit code 2 without a word")
        if command == ["report"]:
            with contextlib.closing(open_table(Path(".asv/results"))) as table:
                return "named" if table.problems else "accepted", ""
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "escaped", f"{Path(place.filename).name}:{place.lineno}: {error!r:.150}"
    return "accepted", ""


def tried(seed: str) -> Outcome:
    """One try in a process of its own."""
    ((_, outcome),) = _together((seed,))
    return outcome


def all_tried(seeds: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Tries of a few in one process; what looks suspicious is tried again alone."""
    rest = list(seeds)
    while rest:
        for seed, outcome in _together(tuple(rest)):  # which is shortened meanwhile
            rest.remove(seed)
            yield seed, tried(seed) if suspicious(outcome) else outcome


def suspicious(outcome: Outcome) -> bool:
    """Whether there may be something to mend."""
    is_large = outcome.megabytes > LARGE
    return outcome.how == "escaped" or outcome.seconds > SLOW or is_large


def _together(seeds: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Tries in one process, up to the one that it ends with."""
    context = get_context("forkserver")
    context.set_forkserver_preload(
        ["gpubench.cli.suites", "gpubench.report.render", "gpubench.plan.plan"]
    )
    telling, told = context.Pipe(duplex=False)
    with TemporaryDirectory(prefix="gpubench-hostile-", ignore_cleanup_errors=True) as folder:
        process = context.Process(target=attempts, args=(seeds, folder, told))
        process.start()
        told.close()
        try:
            for seed in seeds:
                # In pieces: a clock would go on where the machine is suspended.
                if not any(telling.poll(0.5) for _ in range(int(SECONDS / 0.5))):
                    yield seed, Outcome("escaped", SECONDS, words=f"not ended after {SECONDS:g} s")
                    return
                yield seed, Outcome(*telling.recv())
        except EOFError:
            process.join()
            yield seed, Outcome("escaped", words=f"the process ended with {process.exitcode}")
        finally:
            process.kill()
            process.join()


@dataclass
class Counts:
    """Of the tries of one kind."""

    of: Counter[str] = field(default_factory=Counter)

    def add(self, seed: str, outcome: Outcome) -> None:
        """Count one, and print it where there may be something to mend."""
        self.of.update(
            tried=1,
            **{outcome.how: 1},
            slow=outcome.seconds > SLOW,
            large=outcome.megabytes > LARGE,
        )
        if suspicious(outcome):
            print(f"{seed}: {outcome}", flush=True)

    def line(self, what: str) -> str:
        """Of the table."""
        return f"| {what} | {' | '.join(f'{self.of[column]:,}' for column in COLUMNS)} |"


COLUMNS = ("tried", "refused", "named", "accepted", "escaped", "slow", "large")
HEAD = f"| broken | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 1)}"


def versions() -> str:
    """What the table was made with."""
    packages = ("numpy", "duckdb", "pydantic", "msgspec", "PyYAML", "asv")
    named = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"Python {platform.python_version()}, {named}; {os.cpu_count()} processors"


def main() -> None:
    """Try, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="how long; without it some tries of each")
    parser.add_argument("--seed", type=int, default=1, help="other tries for another number")
    parser.add_argument("--only", help="one try, as it was printed: suites-1-17")
    options = parser.parse_args()
    if options.only:
        print(tried(options.only))
        return
    end = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
    counts = {what: Counts() for what in KINDS}
    number = 0
    while time.monotonic() < end and (options.minutes or number < TRIES):
        for what, count in counts.items():
            seeds = [f"{what}-{options.seed}-{number + each}" for each in range(TOGETHER)]
            for seed, outcome in all_tried(seeds):
                count.add(seed, outcome)
        number += TOGETHER
    print(HEAD, *(count.line(what) for what, count in counts.items()), sep="\n")
    print(f"\n{versions()}")
    sys.exit(any(count.of["escaped"] for count in counts.values()))


if __name__ == "__main__":
    main()
