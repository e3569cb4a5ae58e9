"""Rules that stand in Python and in JavaScript, over thousands of random rows and numbers."""

from __future__ import annotations

import math
import random

import pytest
from playwright.sync_api import BrowserContext

from gpubench.report import text
from gpubench.report.render import packaged_templates
from gpubench.results import Ratio
from gpubench.results.ratio import independent_quotient

pytestmark = pytest.mark.browser

WORDS_OF = """(rows) => rows.map(([value, low, high, other]) => {
  const { digits, quantity, ratioText, seconds, secondsInterval } = gpubenchText;
  const quotient = gpubenchText.independentQuotient(
    { value, low, high }, { value: other, low: 0.9 * other, high: 1.2 * other }, "value");
  return [
    digits(value), seconds(value), secondsInterval(low, high), ratioText(value),
    quantity(Math.round(1e12 * value), "bytes"), quotient.value, quotient.low, quotient.high,
  ];
})"""


def test_thousands_of_random_numbers_are_written_and_divided_as_in_python(
    scripted: BrowserContext,
) -> None:
    page = scripted.new_page()
    page.add_script_tag(path=packaged_templates() / "text.js")
    chance = random.Random(36)
    values = [10 ** chance.uniform(-11, 7) for _ in range(2000)]
    rows = [(value, value * 0.97, value * 1.04, value * chance.uniform(0.1, 9)) for value in values]

    found = page.evaluate(WORDS_OF, rows)

    for (value, low, high, other), words in zip(rows, found, strict=True):
        one, another = Ratio(value, low, high), Ratio(other, 0.9 * other, 1.2 * other)
        quotient = independent_quotient(one, another)
        assert words[:5] == [
            text.digits(value), text.seconds(value), text.seconds_interval(low, high),
            text.ratio(value), text.quantity(math.floor(1e12 * value + 0.5), "bytes"),
        ]  # fmt: skip
        assert words[5:] == pytest.approx([quotient.value, quotient.low, quotient.high])
    page.close()
