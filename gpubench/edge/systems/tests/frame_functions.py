"""Functions over tables as tests want them: right, and wrong in one way each."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numba import njit

# --- what fills columns


def few(values: Any, generator: np.random.Generator) -> Any:
    words = [f"word {i}" for i in range(5)]
    return generator.integers(0, 5, values["n"]), words


def unique(values: Any, generator: np.random.Generator) -> Any:
    return [f"row {i}" for i in generator.permutation(values["n"])]


def drawn(values: Any, generator: np.random.Generator) -> Any:
    return generator.standard_normal(values["n"])


def too_long(values: Any, generator: np.random.Generator) -> Any:
    return ["a"] * (values["n"] + 1)


def numbers_for_text(values: Any, generator: np.random.Generator) -> Any:
    return list(range(values["n"]))


def another_dtype(values: Any, generator: np.random.Generator) -> Any:
    return np.zeros(values["n"], np.float32)


# --- sums by word, in pandas: of v (float64), and of c (int32)


def sums(x: Any) -> Any:
    return x.groupby("word", as_index=False, observed=True).agg({"v": "sum", "c": "sum"})


def sums_in_another_order(x: Any) -> Any:
    """Return them in another order of rows and of columns."""
    return sums(x).iloc[::-1][["c", "word", "v"]]


def sums_of_narrow_integers(x: Any) -> Any:
    return sums(x).astype({"c": "int16", "word": "str"})


def sums_as_floating_point(x: Any) -> Any:
    return sums(x).astype({"c": "float64"})


def sums_without_one(x: Any) -> Any:
    return sums(x)[["word", "v"]]


def sums_with_one_more(x: Any) -> Any:
    return sums(x).assign(w=1)


def sums_without_a_row(x: Any) -> Any:
    return sums(x).iloc[:-1]


def sums_slightly_off(x: Any) -> Any:
    return sums(x).assign(v=lambda s: s["v"] * (1 + 1e-6))


def sums_one_too_large(x: Any) -> Any:
    return sums(x).assign(c=lambda s: s["c"] + (s.index == 2))


def sums_with_halves(x: Any) -> Any:
    return sums(x).assign(c=lambda s: s["c"] + 0.5)


def sums_with_a_hole(x: Any) -> Any:
    return sums(x).assign(c=lambda s: s["c"].where(s.index != 2))


def sums_of_other_words(x: Any) -> Any:
    return sums(x).assign(word=lambda s: s["word"].astype(str) + "s")


def sums_by_index(x: Any) -> Any:
    return sums(x).set_index("word")["v"]


def sums_named_by_numbers(x: Any) -> Any:
    return sums(x).rename(columns={"v": 7})


def sums_of_lists(x: Any) -> Any:
    return sums(x).assign(v=[[1.0]] * 5)


def sums_after_writing(x: Any) -> Any:
    result = sums(x)
    x.loc[3, "v"] = 0.0
    return result


def sums_after_a_new_column(x: Any) -> Any:
    x["w"] = 1
    return sums(x)


def sums_after_sorting(x: Any) -> Any:
    x.sort_values("v", inplace=True, ignore_index=True)
    return sums(x)


def sums_that_differ(x: Any) -> Any:
    """Return another column the second time."""
    calls = vars(sys.modules[__name__])
    calls["count"] = calls.get("count", 0) + 1
    return sums(x) if calls["count"] % 2 else sums_with_one_more(x)


# --- the same elsewhere


def sums_polars(x: Any) -> Any:
    import polars

    return x.group_by("word").agg(polars.col("v", "c").sum())


def sums_as_a_query(x: Any) -> Any:
    return sums_polars(x.lazy())


def sums_numpy(x: Any) -> Any:
    words = x["word categories"]
    v, c = (np.bincount(x["word"], x[name], len(words)) for name in ("v", "c"))
    return {"word": words, "v": v, "c": c.astype(np.int64)}


@njit
def _sum_by_word(words: Any, values: Any, length: int) -> Any:
    sums = np.zeros(length)
    for i in range(words.size):
        sums[words[i]] += values[i]
    return sums


def sums_numba(x: Any) -> Any:
    words = x["word categories"]
    v, c = (_sum_by_word(x["word"], x[name], len(words)) for name in ("v", "c"))
    return {"word": words, "v": v, "c": c.astype(np.int64)}


def sums_numpy_as_a_list(x: Any) -> Any:
    return list(sums_numpy(x).values())


def sums_numpy_uneven(x: Any) -> Any:
    return {**sums_numpy(x), "c": np.zeros(3)}


# --- rows with missing values


def present(x: Any) -> Any:
    """Return rows as they are, and whether each number is there."""
    return x.assign(there=x["i"].notna())


def present_polars(x: Any) -> Any:
    import polars

    return x.with_columns(there=polars.col("i").is_not_null())


def present_numpy(x: Any) -> Any:
    return {**x, "there": ~x["i is null"]}


def filled(x: Any) -> Any:
    """Put zeros in place of what is missing."""
    return present(x).fillna({"i": 0, "f": 0.0, "s": ""})


# --- rows


def same(x: Any) -> Any:
    return x


def by_c(x: Any) -> Any:
    return x[["c", "v"]].sort_values(["c", "v"], ignore_index=True)


def by_falling_v(x: Any) -> Any:
    return x[["c", "v"]].sort_values(["c", "v"], ascending=[True, False], ignore_index=True)


def only_c(x: Any) -> Any:
    return x[["c"]]
