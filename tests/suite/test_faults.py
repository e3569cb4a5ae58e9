"""Every fault of a suite file: where it lies, what was found, what is allowed."""

# ruff: noqa: E501 -- a table with one case a line

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_suite import SUITE

from gpubench.errors import Fault, join_repeats

Faults = Callable[..., list[str]]


def test_the_suite_that_the_tests_change_has_no_fault(faults: Faults) -> None:
    assert faults(SUITE) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        # structure
        ("version: 1", "version: ¦2", "version: version 2 of the format; this release reads version 1"),
        ("version: 1\n", "", "1:1: missing field 'version' in the suite; write version: 1"),
        ("suite: small", "suite: ¦Small", "suite: 'Small' is not a name; allowed are lower-case letters, digits and single underscores, starting with a letter"),
        ("suite: small", "suite: ¦other", "suite 'other' in small.yaml; write suite: small, or rename the file"),
        ("suite: small", "suite: small\n¦titel: x", "unknown field 'titel' in the suite; did you mean 'title'?"),
        ("  add:", "  ¦Add:", "'Add' is not a name; allowed are lower-case letters, digits and single underscores, starting with a letter"),
        ("block: [64]", "¦blocks: [64]", "unknown field 'blocks' in launch; did you mean 'block'?"),
        ("block: [64]", "block: ¦64", "block: found 64; write [64]"),
        ("block: [64]", "block: [¦0]", "block[0]: found 0; allowed: a whole number from 1, or a formula"),
        ("block: [64]", "block: [¦1.5]", "block[0]: found 1.5; allowed: a whole number from 1, or a formula"),
        ("block: [64]", "block: [¦[1, 2, 3, 4]]", "block[0]: found a list of 4; allowed: at most 3"),
        ("block: [64]", "block: [64], grid: ¦[n, n, n, n]", "grid: a flat list with formulas is one grid of up to three extents; put each shape into a list of its own"),
        ("[a, b]\n", "[a, b]\n    work: ¦3\n", "work: found 3; allowed: a mapping of fields"),
        ("[a, b]\n", "[a, b]\n    measure: [¦kernels]\n", "measure[0]: found 'kernels'; did you mean 'kernel'? Allowed: 'kernel', 'end_to_end', 'transfer', 'launch', 'compile', 'cold' or 'start'"),
        ("[a, b]\n", "[a, b]\n    measure: [kernel, ¦kernel]\n", "measure[1]: kernel is there twice"),
        ("[a, b]\n", "[a, b]\n    devices: [¦cuda]\n", "devices[0]: found 'cuda'; allowed: cpu, cuda:0, cuda:*, or another backend's device like cl:0:0"),
        ("[a, b]\n", "[a, b]\n    devices: ['cpu', ¦'cuda:٣']\n", "devices[1]: found 'cuda:٣'; allowed: cpu, cuda:0, cuda:*, or another backend's device like cl:0:0"),
        ("[a, b]\n", "[a, b]\n    sampling: {repeat: ¦0}\n", "repeat: found 0; allowed: a whole number from 1"),
        ("[a, b]\n", "[a, b]\n    sampling: {timeout: ¦soon}\n", "timeout: found 'soon'; allowed: a number of seconds from 0.1"),
        ("[a, b]\n", "[a, b]\n    check: {rtol: {¦float3: 0.1}}\n", "unknown dtype 'float3'; did you mean 'float32'?"),
        ("[a, b]\n", "[a, b]\n    check: {rtol: ¦-1}\n", "rtol: found -1; allowed: a number from 0 to 1, as zeros are right beyond that"),
        ("[a, b]\n", "[a, b]\n    skip: [¦{when: n > 3}]\n", "missing field 'reason' in skip"),
        ("numpy: {function: some.module:add}", "numpy: {function: ¦add}", "function: found 'add'; allowed: module:name, gpubench.kernels.elementwise:vector_add_numpy for example"),
        # axes
        ("{n: [4, 8]}", "{n: ¦[]}", "n: found a list of 0; allowed: at least 1"),
        ("{n: [4, 8]}", "{n: [4, ¦x]}", "n[1]: found 'x'; allowed: a whole number from 0"),
        ("{n: [4, 8]}", "{n: [4, ¦4]}", "n[1]: 4 is there twice"),
        ("{n: [4, 8]}", "{n: ¦4}", "n: found 4; allowed: a list of whole numbers, a range, or zip"),
        ("{n: [4, 8]}", "{n: {pow2: ¦[3, 2]}}", "pow2: runs from 3 to 2; the last is not below the first"),
        ("{n: [4, 8]}", "{n: {pow2: [3, ¦70]}}", "pow2[1]: found 70; allowed: an exponent from 0 to 62"),
        ("{n: [4, 8]}", "{n: {linear: ¦[0, 1000000000000]}}", "linear: found 1000000000001 values; allowed: at most 10000, by larger steps"),
        ("{n: [4, 8]}", "{n: {geometric: ¦[1, 8, 1]}}", "geometric: found the factor 1; allowed: 2 or more"),
        ("{n: [4, 8]}", "{n: {¦pow: [1, 2]}}", "unknown field 'pow' in size 'n'; did you mean 'pow2'?"),
        ("{n: [4, 8]}", "{n: ¦{default: 4}}", "n: exactly one of values, pow2, geometric, linear is needed; found none"),
        ("{n: [4, 8]}", "{s: ¦{zip: {n: [4, 8], m: [1]}}}", "s: axes that move together need equally many values; n has 2, m has 1"),
        ("{n: [4, 8]}", "{n: [4, 8], ¦log2: [1]}", "'log2' has a meaning in formulas; choose another name"),
        ("{n: [4, 8]}", "{n: [4, 8], ¦threads: [1]}", "'threads' has a meaning in rules and in names of cases; choose another"),
        ("{n: [4, 8]}", "{n: [4, 8], ¦m: [1]}", "'m' is used by no array, scalar, call, launch, with or threads; use it, or remove it"),
        ("{n: [4, 8]}", "{n: [4, 8], tile: [1]}", "6:45: 'tile' is declared twice in kernel 'add'; rename one of them"),
        ("tile: [2, 4]", "tile: [¦a b]", "tile[0]: 'a b' cannot be part of a case's name; write text without blanks, '=' and ','"),
        ("tile: [2, 4]", "tile: [¦'2']", "tile[0]: text '2' reads as a number or boolean in a case's name; write it without quotes, or another text, 'v2' for example"),
        ("tile: [2, 4]", "tile: ¦{zip: {t: [1]}}", "tile: what moves together is written once: sizes: {NAME: {zip: {...}}}"),
        ("{n: [4, 8]}", "{s: ¦{zip: {n: [4, 8, 4], x: [0.5, a, 0.5]}}}", "s: n=4 x=0.5 is there twice, as values 1 and 3; remove one of them"),
        # constants and intermediate values
        ("    call:", "    let: {rows: ¦m // 2}\n    call:", "unknown name 'm'; allowed: n, dtype, tile, rows (in 'm // 2')"),
        ("    call:", "    let: {rows: size(¦a)}\n    call:", "itemsize and size are not known in let (in 'size(a)')"),
        ("    call:", "    let: {¦rows: n // 2}\n    call:", "'rows' is used by no formula and not in call; use it, or remove it"),
        ("    call:", "    let: {¦n: 2}\n    call:", "'n' is declared twice in kernel 'add'; rename one of them"),
        ("    call:", "    let: {¦blocks: 2}\n    call:", "'blocks' has a meaning in rules and in names of cases; choose another"),
        ("    call:", "    let: {p: ¦q + 1, q: p * n}\n    call:", "'p' leads back to itself, or over more than 100 other names; a name of let is over axes, or over names that are"),
        ("    call:", "    let: {p: ¦[1]}\n    call:", "p: found a list of 1; allowed: a number, true, false, or a formula"),
        # what was called otherwise
        ("{n: [4, 8]}", "{n: {values: [4, 8], was: ¦tile}}", "was: axis 'n' cannot have been 'tile', which is a name that is in use; remove it, or rename the other"),
        ("{n: [4, 8]}", "{n: {values: [4, 8], was: [m, ¦n]}}", "was: axis 'n' cannot have been 'n', which is a name that is in use; remove it, or rename the other"),
        ("{n: [4, 8]}", "{n: {values: [4, 8], was: ¦b}}", "was: axis 'n' cannot have been 'b', which is a name that is in use; remove it, or rename the other"),
        ("{n: [4, 8]}", "{n: {values: [4, 8], was: ¦4}}", "was: found 4; allowed: text"),
        ("{n: [4, 8]}", "{n: {values: [4, 8], was: [m, ¦m]}}", "was[1]: m is there twice"),
        ("{n: [4, 8]}", "{n: {values: [4, 8], was: ¦threads}}", "was: 'threads' has a meaning in rules and in names of cases; choose another"),
        ("{n: [4, 8]}", "{s: {zip: {n: {values: [4, 8], was: ¦tile}}}}", "was: axis 'n' cannot have been 'tile', which is a name that is in use; remove it, or rename the other"),
        ("{n: [4, 8]}\n    parameters: {dtype: [float32, float64], tile: [2, 4]}", "{n: {values: [4], was: m}}\n    parameters: {dtype: [float32, float64], tile: {values: [2], was: ¦m}}", "was: 'm' cannot have been 'n' and 'tile'; remove one"),
        ("      cuda:\n", "      cuda:\n        was: ¦numpy\n", "was: implementation 'cuda' cannot have been 'numpy', which is a name that is in use; remove it, or rename the other"),
        ("      cuda:\n", "      cuda:\n        was: [gpu, ¦kernels/old.cu]\n", "was: found 'kernels/old.cu'; allowed here: a name, or module:name of a function"),
        ("      cuda:\n", "      cuda:\n        was: ¦Cuda\n", "was: 'Cuda' is not a name; allowed are lower-case letters, digits and single underscores, module:name of a function, or the path of a source"),
        ("    call:", "    was: ¦add\n    call:", "was: kernel 'add' cannot have been 'add', which is a name that is in use; remove it, or rename the other"),
        ("suite: small", "suite: small\nwas: ¦small", "was: suite 'small' cannot have been 'small', which is a name that is in use; remove it, or rename the other"),
        ("kernels:\n", "presets: {smoke: {sizes: {n: {values: [2], ¦was: m}}}}\nkernels:\n", "was: a preset renames nothing; write it where the axis is declared"),
        # names
        ("float64]", "¦flaot64]", "unknown dtype 'flaot64'; did you mean 'float64'?"),
        ("float64]", "¦64]", "unknown dtype 64; allowed: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128"),
        ("dtype: dtype}", "dtype: ¦dtyp}", "unknown dtype 'dtyp'; did you mean 'dtype'?"),
        ("shape: [n], dtype: dtype}", "shape: [2 * ¦m], dtype: dtype}", "unknown name 'm'; allowed: n, dtype, tile (in '2 * m')"),
        ("shape: [n], dtype: dtype}", "shape: ['2 * ¦m'], dtype: dtype}", "unknown name 'm'; allowed: n, dtype, tile (in '2 * m')"),
        ("shape: [n], dtype: dtype}", "shape: [itemsize(¦b)], dtype: dtype}", "itemsize and size are not known in the shape of an array (in 'itemsize(b)')"),
        ("shape: [n], dtype: dtype}", "shape: [n +¦], dtype: dtype}", "not a formula: it ends too early (in 'n +')"),
        ("dtype: dtype}", "dtype: dtype, fill: ¦normall}", "fill: unknown fill 'normall'; did you mean 'normal'?"),
        ("dtype: dtype}", "dtype: dtype, fill: ¦20.0 / n}", "fill: unknown fill '20.0 / n'; allowed: normal, uniform, zeros, ones, arange; a formula is written {formula: ...}"),
        ("dtype: dtype}", "dtype: dtype, fill: {formula: i + ¦j}}", "unknown name 'j'; allowed: n, dtype, tile, i (in 'i + j')"),
        ("dtype: dtype}", "dtype: dtype, fill: {formula: i +¦}}", "not a formula: it ends too early (in 'i +')"),
        ("dtype: dtype}", "dtype: dtype, fill: {formula: ¦size(c)}}".replace("¦size(c", "size(¦c"), "unknown array 'c'; allowed: a, b (in 'size(c)')"),
        ("dtype: dtype}", "dtype: dtype, fill: {formula: 2 * p, indices: ¦[p, q]}}", "found 2 indices; array 'a' needs 1, one for each dimension: indices: [i, j] for example"),
        ("dtype: dtype}", "dtype: dtype, fill: {formula: ¦n, indices: [n]}}", "'n' is an index of array 'a' and something that the kernel declares; name the indices otherwise, indices: [p, q] for example"),
        ("dtype: dtype}", "dtype: dtype, fill: ¦{formulas: i}}", "fill: found a mapping; allowed: normal, uniform, zeros, ones, arange, a number, {formula: ...}, {like: ARRAY} or {function: module:name}"),
        ("dtype: dtype}", "dtype: dtype, fill: {like: ¦c}}", "unknown array 'c'; allowed: a, b"),
        ("dtype: dtype}", "dtype: dtype, fill: {like: ¦a}}", "array 'a' is filled like itself; fill one of them"),
        ("intent: inout", "intent: out, fill: ¦ones", "array 'b' is written only; intent out takes no fill"),
        ("call: [a, b]", "call: [a, b, ¦c]", "unknown argument 'c'; allowed: a, b, n, dtype, tile"),
        ("call: [a, b]", "call: [b]", "8:7: array 'a' is used by nothing; name it in call"),
        ("[a, b]\n", "[a, b]\n    baseline: ¦nump\n", "unknown implementation 'nump'; did you mean 'numpy'?"),
        ("      numpy:", "      plain:", "11:5: kernel 'add' has no implementation 'numpy' to measure against; write baseline: and one of plain, cuda"),
        ("[a, b]\n", "[a, b]\n    exclude: [{when: dtype == ¦float64}]\n", "unknown name 'float64'; text is written in quotes: 'float64' (in 'dtype == float64')"),
        ("[a, b]\n", "[a, b]\n    exclude: [{when: ¦sm_count > 3}]\n", "'sm_count' is a fact of the device; only skip may use it (in 'sm_count > 3')"),
        ("[a, b]\n", "[a, b]\n    work: {flops: ¦blocks}\n", "'blocks' is known only to exclude and skip (in 'blocks')"),
        ("[a, b]\n", "[a, b]\n    work: {flops: 2 * ¦a}\n", "'a' is an array; formulas use itemsize(a) or size(a) (in '2 * a')"),
        ("[a, b]\n", "[a, b]\n    work: {bytes: itemsize(¦c)}\n", "unknown array 'c'; allowed: a, b (in 'itemsize(c)')"),
        ("[a, b]\n", "[a, b]\n    include: [{implementation: ¦cud, values: {n: 4}}]\n", "unknown implementation 'cud'; did you mean 'cuda'?"),
        ("[a, b]\n", "[a, b]\n    include: [{implementation: cuda, values: {¦m: 4}}]\n", "unknown axis 'm'; allowed: n, dtype, tile"),
        # implementations
        ("{function: some.module:add}", "{title: Plain}", "12:7: implementation 'numpy' has exactly one of function, factory, launcher, source, parts; found none"),
        ("{function: some.module:add}", "{function: m:add, ¦factory: m:make}", "implementation 'numpy' has exactly one of function, factory, launcher, source, parts; found function and factory"),
        ("{function: some.module:add}", "{function: m:add, ¦entry: add}", "entry goes with source; found function"),
        ("{function: some.module:add}", "{function: m:add, ¦with: {x: 1}}", "with goes with factory or source; found function"),
        ("{function: some.module:add}", "{¦source: add.cl}", "missing field 'entry' beside source"),
        (", intent: inout", "", "4:3: kernel 'add' writes nothing that could be checked: give the arrays that it writes `intent: out` or `inout`, or name what it returns in `returns`"),
        # what is compared
        ("[a, b]\n", "[a, b]\n    check: {outputs: {¦c: {rtol: 0.1}}}\n", "unknown output 'c'; allowed: b"),
        ("[a, b]\n", "[a, b]\n    check: {outputs: {¦a: {rtol: 0.1}}}\n", "array 'a' has intent in; outputs are b"),
        ("[a, b]\n", "[a, b]\n    check: {outputs: {b: ¦{compare: false}}}\n", "b: compare: false needs a reason: why may this output be anything?"),
        ("[a, b]\n", "[a, b]\n    check: {outputs: {b: ¦{reason: why}}}\n", "b: a reason goes with compare: false; remove one or add the other"),
        ("[a, b]\n", "[a, b]\n    check: {outputs: {b: {compare: false, reason: any, rtol: ¦1}}}\n", "rtol: compare: false takes no rtol; remove one of them"),
        ("[a, b]\n", "[a, b]\n    check: {outputs: ¦{b: {compare: false, reason: any}}}\n", "no output is compared, so that a wrong kernel would get a time; compare one"),
        # presets, pairs
        ("kernels:\n", "presets: {¦1st: {}}\nkernels:\n", "'1st' is not a name; allowed are letters, digits and _ . -, starting with a letter"),
        ("kernels:\n", "presets: {S: {let: {¦m: 1}}}\nkernels:\n", "constant 'm' is not declared by any kernel"),
        ("kernels:\n", "presets: {S: {arrays: {¦c: {fill: ones}}}}\nkernels:\n", "array 'c' is not declared by any kernel; allowed: a, b"),
        ("kernels:\n", "presets: {S: {arrays: {a: {¦intent: out}}}}\nkernels:\n", "unknown field 'intent' in array 'a'; allowed: shape, dtype, fill, order"),
        ("kernels:\n", "presets: {S: {scalars: {¦s: {value: 1}}}}\nkernels:\n", "scalar 's' is not declared by any kernel"),
        ("kernels:\n", "presets: {smoke: {sizes: {¦m: [1]}}}\nkernels:\n", "size 'm' is not declared by any kernel; allowed: n"),
        ("kernels:\n", "presets: {smoke: {kernels: {¦ad: {}}}}\nkernels:\n", "unknown kernel 'ad'; did you mean 'add'?"),
        ("kernels:\n", "presets: {smoke: {implementations: {¦cud: {}}}}\nkernels:\n", "implementation 'cud' is not declared by any kernel; did you mean 'cuda'?"),
        ("kernels:\n", "presets: {smoke: {implementations: {numpy: {¦launch: {}}}}}\nkernels:\n", "implementation 'numpy' declares no launch"),
        ("kernels:\n", "presets: {smoke: {sizes: {n: {¦launch: 1}}}}\nkernels:\n", "unknown field 'launch' in size 'n'; allowed: values, pow2, geometric, linear, default, was, zip"),
        ("kernels:\n", "presets: {smoke: {sizes: {n: [2]}, parameters: {dtype: [¦floot32]}}}\nkernels:\n", "unknown dtype 'floot32'; did you mean 'float32'?"),
        ("kernels:\n", "presets: {smoke: {launch: {block: [¦m]}}}\nkernels:\n", "unknown name 'm'; allowed: n, dtype, tile (in 'm')"),
        ("kernels:\n", "¦pairs: [{name: p, baseline: x, candidate: y}]\nkernels:\n", "both kernels and pairs; a suite has one of them"),
    ],
)  # fmt: skip
def test_a_fault_is_told_once_at_its_place(faults: Faults, old: str, new: str, fault: str) -> None:
    assert old in SUITE
    before, mark, after = SUITE.replace(old, new, 1).partition("¦")
    if mark:
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        fault = f"{line}:{column}: {fault}"
    assert faults(before + after) == [fault]


def test_all_faults_of_a_file_come_at_once_and_in_its_order(faults: Faults) -> None:
    text = (
        SUITE.replace("suite: small", "suite: small\ntitel: x")
        .replace("[4, 8]", "[4, 1e3]")
        .replace("tile: [2, 4]", "tile: [2, 2]")
        .replace("call: [a, b]", "call: [a, c]")
        .replace("block: [64]", "blocks: [64]")
        .replace("with: {tile: tile}", "with: {tile: tiel}")
    )
    assert [fault.split(" ")[0] for fault in faults(text)] == [
        "3:1:", "6:20:", "7:55:", "11:15:", "16:22:", "17:18:",
    ]  # fmt: skip


def test_what_follows_from_a_fault_is_not_told(faults: Faults) -> None:
    broken_axis = SUITE.replace("{n: [4, 8]}", "{n: [x]}")
    assert faults(broken_axis) == ["5:17: n[0]: found 'x'; allowed: a whole number from 0"]
    broken_array = SUITE.replace("a: {shape: [n], dtype: dtype}", "a: {shape: [n], dtpe: dtype}")
    assert faults(broken_array) == [
        "8:23: unknown field 'dtpe' in array 'a'; did you mean 'dtype'?"
    ]


def test_two_declarations_at_fault_do_not_hide_a_third_in_a_rule(faults: Faults) -> None:
    text = SUITE.replace(
        "[a, b]\n", "[a, b]\n    skip: [{when: x, raeson: y}, {when: nn, reason: z}]\n"
    )
    assert [fault.split(" ")[0] for fault in faults(text)] == ["11:22:", "11:41:"]


def test_a_suite_without_kernels_and_pairs_says_so(faults: Faults) -> None:
    assert faults("version: 1\nsuite: small\n") == [
        "1:1: missing field 'kernels' in the suite (or 'pairs' instead)"
    ]


@pytest.mark.parametrize("misspelt", ["kernel", "kernals", "pair"])
def test_misspelt_kernels_are_not_missing_beside_it(faults: Faults, misspelt: str) -> None:
    (fault,) = faults(f"version: 1\nsuite: small\n{misspelt}:\n  x: {{}}\n")
    assert fault.startswith(f"3:1: unknown field {misspelt!r} in the suite; did you mean")


def test_pairs_of_one_name_are_refused(faults: Faults) -> None:
    pair = "{name: p, baseline: x, candidate: y}"
    text = f"version: 1\nsuite: small\npairs: [{pair}, {pair}]\n"
    assert faults(text) == ["3:54: the pair 'p' is there twice"]


@pytest.mark.parametrize("written", ["{a: 1}", "[small]", "3"])
def test_a_name_that_is_no_text_is_a_fault(faults: Faults, written: str) -> None:
    (fault,) = faults(SUITE.replace("suite: small", f"suite: {written}"))
    assert fault.startswith("2:8: suite: found ")
    assert fault.endswith("; allowed: text")


def test_an_index_that_is_also_an_axis_is_named_otherwise(faults: Faults) -> None:
    text = SUITE.replace("n: [4, 8]", "i: [4, 8]").replace("[n]", "[i]")
    both = (
        "8:53: 'i' is an index of array 'a' and something that the kernel declares; name the"
        " indices otherwise, indices: [p, q] for example"
    )

    def filled(fill: str) -> str:
        return text.replace("dtype: dtype}", f"dtype: dtype, fill: {fill}}}", 1)

    assert faults(filled("{formula: 2 * i}")) == [both]
    assert faults(filled("{formula: p / i, indices: [p]}")) == []
    assert faults(filled("ones")) == []


def test_every_array_whose_fill_leads_into_a_circle_is_told(faults: Faults) -> None:
    chain = "".join(
        f"      {name}: {{shape: [n], dtype: dtype, fill: {{like: {other}}}}}\n"
        for name, other in (("c", "d"), ("d", "e"), ("e", "d"), ("f", "g"), ("g", "a"))
    )
    text = SUITE.replace("    call: [a, b]", f"{chain}    call: [a, b, c, d, e, f, g]")
    assert [fault.partition(": ")[2] for fault in faults(text)] == [
        f"array {name!r} is filled like itself; fill one of them" for name in "cde"
    ]


def test_faults_of_one_message_are_one_with_the_places_of_the_others() -> None:
    places = [("a.yaml", 3), ("a.yaml", 5), ("a.yaml", 4), ("b.yaml", 3), ("c.yaml", 9)]
    (joined,) = join_repeats(Fault(path, line, 1, "no module") for path, line in places)
    assert str(joined) == "a.yaml:3:1: no module (so in lines 4 and 5, b.yaml:3 and c.yaml:9)"


def test_of_many_places_some_are_named() -> None:
    (joined,) = join_repeats(Fault(f"{number}.yaml", 1, 1, "no module") for number in range(20))
    assert str(joined).endswith("4.yaml:1, 5.yaml:1, 6.yaml:1 and 13 places more)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("suite: small", "suite: small\nwas: {a: b}"),
        ("  add:\n", "  add:\n    was: {a: b}\n"),
        ("  add:\n", "  add:\n    was: [{a: b}]\n"),
        ("  add:\n", "  add:\n    was: [[a]]\n"),
    ],
)
def test_old_names_that_are_no_texts_are_faults(faults: Faults, old: str, new: str) -> None:
    assert old in SUITE
    assert any("was" in fault for fault in faults(SUITE.replace(old, new, 1)))
