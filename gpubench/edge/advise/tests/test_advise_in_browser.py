"""What the page *Advise* calculates in a browser is what Python calculates."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from advise_sample import write_divided, write_scale
from playwright.sync_api import Browser, Page
from result_files import CommitFiles

from gpubench.edge.advise.advice import MEMORY, Ask, advise
from gpubench.edge.advise.estimates import Way
from gpubench.edge.advise.page import know
from gpubench.edge.advise.table import stretch_lines
from gpubench.report.exports import plain
from gpubench.report.render import write_report
from gpubench.report.site import Site
from gpubench.results import Table, open_table

pytestmark = pytest.mark.browser

CLOSE = 1e-9
"""Relative; logarithms of two languages may differ in the last digit."""


def write_grid(files: CommitFiles) -> None:
    """Write a second kernel, with two sizes that do not grow together, and a parameter."""
    for dtype, n, d in product(("float32", "float64"), (64, 256, 1024), (8, 16)):
        for name, factor in (("numpy", 1.0), ("numba", 0.4)):
            benchmark, case = f"suites.rows__{name}.time_kernel", f"n={n} d={d} dtype={dtype}"
            files.time(benchmark, case, 1e-6 + factor * n * d * 1e-9, spread=0.03)
            baseline = {"baseline_benchmark": "suites.rows__numpy.time_kernel"}
            files.record(
                benchmark, case, values={"n": n, "d": d, "dtype": dtype}, sizes=("n", "d"),
                device="cpu", compiled=name == "numba",
                **({**baseline, "baseline_case": case} if name == "numba" else {}),
            )  # fmt: skip


def write_moves(files: CommitFiles) -> None:
    """Write a kernel that moves 8 bytes for each element, on a GPU of 1 GB/s with room for 400
    KB."""
    conditions = {"copy_bytes_per_second": 1e9, "gpu_memory_bytes": 400_000}
    for name, device in (("numpy", "cpu"), ("cuda", "cuda:0")):
        for n in (1000, 2000, 4000, 16_000):
            benchmark = f"suites.moves__{name}.time_kernel"
            case = f"n={n}" + ("" if device == "cpu" else " device=cuda:0")
            files.time(benchmark, case, 2e-6 if n < 4000 else n * 1.1e-8, spread=0.02)
            baseline = {"baseline_benchmark": "suites.moves__numpy.time_kernel"}
            files.record(
                benchmark, case, values={"n": n}, sizes=("n",), device=device, bytes=8 * n,
                conditions={"array_bytes": 8 * n, **(conditions if name == "cuda" else {})},
                **({**baseline, "baseline_case": f"n={n}"} if name == "cuda" else {}),
            )  # fmt: skip
            files.time(benchmark.replace("kernel", "end_to_end"), case, n * 3e-8, spread=0.02)
            files.record(
                benchmark.replace("kernel", "end_to_end"), case, values={"n": n}, sizes=("n",),
                device=device, bytes=8 * n, conditions={"array_bytes": 8 * n},
                **({**baseline, "baseline_case": f"n={n}"} if name == "cuda" else {}),
            )  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    directory = tmp_path_factory.mktemp("advise") / "results"
    write_scale(
        directory,
        noise=0.04,
        others=lambda files: (write_grid(files), write_divided(files), write_moves(files)),
    )
    return open_table(directory)


@pytest.fixture(scope="module")
def page(
    table: Table, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    first = write_report(table, tmp_path_factory.mktemp("site") / "html")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.set_default_timeout(20_000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: said.type == "error" and faults.append(said.text))
    page.goto(first.with_name("advise.html").as_uri())
    yield page
    context.close()
    assert faults == []


def ways_of_kernel(table: Table, kernel: str) -> tuple[Way, ...]:
    site = Site(table)
    return know(site.histories[0], (kernel, kernel), site).ways


def loaded(page: Page, kernel: str) -> None:
    page.select_option("select[name=kernel]", label=kernel)
    page.wait_for_selector("#advice table")


def in_browser(page: Page, *asks: Ask) -> list[list[dict[str, Any]]]:
    """Return the advices of each ask, all by one call."""
    asked = [{**asdict(ask), "have": list(ask.have)} for ask in asks]
    script = """(asks) => {
      const finite = (key, value) => (value === Infinity ? null : value);
      const data = gpubenchAdvice.kernels.get(document.querySelector("select[name=kernel]").value);
      const answers = asks.map((ask) => gpubenchAdvice.advise(data, ask));
      return JSON.parse(JSON.stringify(answers, finite));
    }"""
    answers: list[list[dict[str, Any]]] = page.evaluate(script, asked)
    totals = (total for advices in answers for one in advices for total in one["totals"])
    for part in (part for total in totals for part in total["parts"]):
        del part["kind"]
    return answers


def in_python(ways: tuple[Way, ...], ask: Ask) -> list[dict[str, Any]]:
    """Return it as the page has it."""
    made = []
    for one in advise(ways, ask):
        content = plain(one)
        for shown in content["totals"]:
            shown["parts"] = [{"name": p["name"], **p["estimate"]} for p in shown["parts"]]
            for name in ("implementation", "price"):
                del shown[name]
            for part in shown["parts"]:
                del part["kind"]
        made.append(content)
    return made


def compared(one: Any, other: Any, path: str = "") -> None:
    """Fail where the two differ, with the place."""
    if isinstance(one, dict):
        assert isinstance(other, dict) and one.keys() == other.keys(), path
        for name in one:
            compared(one[name], other[name], f"{path}.{name}")
    elif isinstance(one, list):
        assert isinstance(other, list) and len(one) == len(other), (path, one, other)
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            compared(left, right, f"{path}[{place}]")
    elif isinstance(one, float | int) and isinstance(other, float | int):
        assert math.isclose(one, other, rel_tol=CLOSE, abs_tol=1e-15), (path, one, other)
    else:
        assert one == other, path


def test_every_ask_is_answered_as_in_python(page: Page, table: Table) -> None:
    ways = ways_of_kernel(table, "scale")
    loaded(page, "scale")
    sizes = (200.0, 512.0, 2**14, 50_000.0, 3_000_000.0, 2**24, 50_000_000.0, 10**9)
    haves = ((), ("cpu",), ("cuda:0", "processes:8"), ("processes:3", "nothing:2"))
    asks = product(sizes, (1, 20, 1000), (True, False), ("fresh", "cached", "warm"), haves)
    answered = 0

    for n, calls, from_host, process, have in [*asks][::11]:
        ask = Ask({"n": float(n)}, calls, from_host, process, have)
        python = in_python(ways, ask)
        compared([python], in_browser(page, ask))
        answered += len(python)

    assert answered > 20


ESTIMATES = """(places) => {
  const { ways } = gpubenchAdvice.kernels.get(document.querySelector("select[name=kernel]").value);
  return ways.map(({ times }) => Object.fromEntries(Object.entries(times).map(
    ([time, curve]) => [time, places.map((place) => gpubenchAdvice.estimate(curve, place))])));
}"""


@pytest.mark.parametrize(("kernel", "axes"), [("scale", 1), ("rows", 2), ("moves", 1)])
def test_a_thousand_random_sizes_are_estimated_as_in_python(
    page: Page, table: Table, kernel: str, axes: int
) -> None:
    ways = ways_of_kernel(table, kernel)
    loaded(page, kernel)
    chance = random.Random(35)
    places = [
        tuple(float(round(2 ** chance.uniform(2, 27 // axes))) for _ in range(axes))
        for _ in range(1500)
    ]

    found = page.evaluate(ESTIMATES, places)

    estimated = 0
    for way, times in zip(ways, found, strict=True):
        for (time, curve), here in zip(way.curves.items(), times.values(), strict=True):
            for place, in_browser in zip(places, here, strict=True):
                expected = curve.estimate(place)
                if isinstance(expected, str):
                    assert in_browser == expected
                    continue
                del in_browser["kind"]  # an index, which the page makes words of
                numbers = {"seconds": expected.seconds, "low": expected.low, "high": expected.high}
                compared(numbers, in_browser, f"{way.label} {time} {place}")
                estimated += 1
    assert estimated > 1000


def test_a_grid_of_sizes_and_parameters_too(page: Page, table: Table) -> None:
    ways = ways_of_kernel(table, "rows")
    loaded(page, "rows")

    for n, d in product((64.0, 100.0, 700.0, 5000.0), (8.0, 11.0, 16.0)):
        ask = Ask({"n": n, "d": d}, 3)
        python = in_python(ways, ask)
        assert [one["parameters"] for one in python] == ["dtype=float32", "dtype=float64"]
        compared([python], in_browser(page, ask))


def test_bound_memory_and_caches_count_in_the_browser_too(page: Page, table: Table) -> None:
    """Take the sample of a kernel that moves bytes, of which small sizes stay in a cache."""
    ways = ways_of_kernel(table, "moves")
    loaded(page, "moves")
    reasons = set()

    for n in (900, 1500, 2500, 20_000, 40_000, 60_000, 100_000):
        ask = Ask({"n": float(n)}, 2, process="warm")
        python = in_python(ways, ask)
        reasons |= {each["reason"] for one in python for each in one["unranked"]}
        compared([python], in_browser(page, ask))

    assert MEMORY in reasons
    (kernel,) = [way.curves["kernel"] for way in ways if way.implementation == "cuda"]
    assert kernel.cached and kernel.bounds and kernel.held


def test_where_a_way_is_the_fastest_is_said_as_on_the_command_line(
    page: Page, table: Table
) -> None:
    ways = ways_of_kernel(table, "scale")
    loaded(page, "scale")
    page.fill("input[name=size-n]", "3000000")
    page.select_option("select[name=process]", "warm")
    page.dispatch_event("input[name=size-n]", "change")

    (one,) = advise(ways, Ask({"n": 3_000_000.0}, process="warm"))
    said = list(stretch_lines(one.over_size, "n", "at 1 call"))
    assert said
    for line in said:
        assert line.strip() in page.inner_text("#advice .sentences")
    page.select_option("select[name=process]", "fresh")  # as the other tests find it


def test_the_page_shows_what_is_asked_for_and_keeps_it_in_its_address(page: Page) -> None:
    loaded(page, "scale")
    page.fill("input[name=size-n]", "3000000")
    page.fill("input[name=calls]", "20")
    page.select_option("select[name=process]", "warm")
    page.fill("input[name=have]", "cpu, cuda")
    page.fill("input[name=prices]", "cpu=3600, cuda:0=7200")
    page.dispatch_event("input[name=prices]", "change")

    first = page.inner_text("#advice tbody tr:first-child")
    assert first.startswith("cuda on cuda:0")
    assert "19 calls" in first
    assert page.locator("#advice tbody tr").count() == 3
    assert page.locator("#advice thead th").all_inner_texts()[2].upper() == "PRICE"
    assert "cuda on cuda:0 in" in page.inner_text("#told")
    command = "gpubench advise --verify scale::scale"
    assert page.locator("#advice code").all_inner_texts() == [command]
    address = page.evaluate("location.hash")
    assert "size-n=3000000" in address and "kernel=scale" in address

    page.reload()
    page.wait_for_selector("#advice table")

    assert page.input_value("input[name=calls]") == "20"
    assert page.inner_text("#advice tbody tr:first-child") == first


def test_what_is_changed_while_a_kernel_is_loaded_waits_for_it(page: Page) -> None:
    page.reload()
    page.wait_for_selector("#advice table")
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))

    label = page.evaluate("""() => {
      const { kernel, calls } = document.getElementById("ask").elements;
      kernel.selectedIndex = (kernel.selectedIndex + 1) % kernel.options.length;
      const change = () => new Event("change", { bubbles: true });
      for (const field of [kernel, calls]) field.dispatchEvent(change());
      return kernel.selectedOptions[0].dataset.label;
    }""")

    page.locator("#told", has_text=f"{label}: ").wait_for(state="attached")
    assert faults == []


def test_what_is_no_size_is_said(page: Page) -> None:
    loaded(page, "scale")
    page.fill("input[name=calls]", "0")
    page.dispatch_event("input[name=calls]", "change")

    assert "Sizes and calls are whole numbers above 0." in page.inner_text("#advice")
    page.fill("input[name=calls]", "1")
    page.dispatch_event("input[name=calls]", "change")


def test_the_script_of_a_kernel_stands_beside_the_pages(page: Page) -> None:
    folder = Path(page.url.partition("#")[0].removeprefix("file://")).parent
    names = [path.name for path in (folder / "compare-data").glob("advice-*.js")]

    assert sorted(name.rpartition("-")[2] for name in names) == [
        "divided.js",
        "moves.js",
        "rows.js",
        "scale.js",
    ]
