"""Breaks suites, result files and records at random and counts what `check` and `report` make of
them: `python scripts/hostile_files.py --minutes 5`.

Each try is a process of its own, with limits of memory and time. A try that ends in a traceback or
at a limit is printed with its seed: `--only SEED` does it again. Exit code 1 where there is one.
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
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "results"))

SECONDS = 30.0
"""Until a try is ended: on a busy machine a report of the sample takes five."""

ADDRESSES = 4 * 2**30
"""Bytes of addresses that a try may have; DuckDB reserves more than it uses."""

SLOW, LARGE = 2.0, 300
"""Processor time in seconds and memory in MB from which a try is counted."""

TRIES = 40
"""Without ``--minutes``, of each of the two: a minute on two cores."""

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
    source = rng.choice(sorted((ROOT / "suites").glob("*.yaml")))
    text = source.read_text(encoding="utf-8")
    for _ in range(rng.randint(1, 3)):
        text = rng.choice((_line, _value, _character, _cut))(rng, text)
    path = folder / "suites" / source.name
    path.parent.mkdir()
    path.write_bytes(text.encode(errors="surrogatepass"))
    return ["check", str(path.relative_to(folder))]


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
    """Another value behind a colon."""
    colons = [place for place, character in enumerate(text) if character == ":"]
    start = rng.choice(colons) + 1
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
    """Two commits with times and records, as asv and the recorder write them."""
    from result_files import CommitFiles

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


def attempt(seed: str, folder: str, told: Connection) -> None:
    """One try, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    rng = random.Random(seed)
    os.chdir(folder)
    kind = broken_suite if seed.startswith("suite") else broken_results
    command = kind(rng, Path(folder))
    before = _processor()
    outcome = _outcome(command)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told.send((*outcome, _processor() - before, memory))


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
    """One try, ended where it takes too long."""
    context = get_context("forkserver")
    context.set_forkserver_preload(
        ["gpubench.cli.suites", "gpubench.report.render", "gpubench.plan.plan"]
    )
    telling, told = context.Pipe(duplex=False)
    with TemporaryDirectory(prefix="gpubench-hostile-") as folder:
        process = context.Process(target=attempt, args=(seed, folder, told))
        process.start()
        told.close()
        try:
            if not telling.poll(SECONDS):
                return Outcome("escaped", SECONDS, words=f"not ended after {SECONDS:g} s")
            how, words, seconds, megabytes = telling.recv()
            return Outcome(how, seconds, megabytes, words)
        except EOFError:
            process.join()
            return Outcome("escaped", words=f"the process ended with {process.exitcode}")
        finally:
            process.kill()
            process.join()


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
    counts: dict[str, Counter[str]] = {"suites": Counter(), "results": Counter()}
    number = 0
    while time.monotonic() < end and (options.minutes or number < TRIES):
        for what, count in counts.items():
            seed = f"{what}-{options.seed}-{number}"
            outcome = tried(seed)
            count["tried"] += 1
            count[outcome.how] += 1
            count["slow"] += outcome.seconds > SLOW
            count["large"] += outcome.megabytes > LARGE
            if outcome.how == "escaped" or outcome.seconds > SLOW or outcome.megabytes > LARGE:
                print(f"{seed}: {outcome}", flush=True)
        number += 1
    columns = ("tried", "refused", "named", "accepted", "escaped", "slow", "large")
    print(f"| broken | {' | '.join(columns)} |\n|{' --- |' * (len(columns) + 1)}")
    for what, count in counts.items():
        print(f"| {what} | {' | '.join(str(count[column]) for column in columns)} |")
    packages = ("numpy", "duckdb", "pydantic", "msgspec", "PyYAML", "asv")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    print(f"\nPython {platform.python_version()}, {versions}; {os.cpu_count()} processors")
    sys.exit(any(count["escaped"] for count in counts.values()))


if __name__ == "__main__":
    main()
