"""YAML as a suite file may use it, and its traps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.errors import Fault, SuiteError
from gpubench.suite.loading import load_suite
from gpubench.suite.reader import read_suite_file, read_suite_text


def value_of(text: str) -> object:
    root, faults = read_suite_text(f"x: {text}", "f.yaml")
    assert faults == ()
    assert root is not None
    return root.plain()["x"]


def faults_of(text: str) -> list[str]:
    return [str(fault) for fault in read_suite_text(text, "f")[1]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1.0e-3", 0.001),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("text", "text"),
        ("n", "n"),
        ("y", "y"),
        ("off_by_one", "off_by_one"),
        ("3 * n", "3 * n"),
        ("'on'", "on"),
        ('"1e6"', "1e6"),
        ("'017'", "017"),
        ("[1, a, 2.5]", (1, "a", 2.5)),
        ("{a: {b: 1}}", {"a": {"b": 1}}),
        ("cdiv(n, 16)", "cdiv(n, 16)"),
        ('["cdiv(n, 16)", 1]', ("cdiv(n, 16)", 1)),
        ("(m*k + k*n)", "(m*k + k*n)"),
    ],
)
def test_values_on_which_all_yaml_readers_agree_are_read(text: str, value: object) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e6", "'1e6' is text in YAML 1.1 and a number in YAML 1.2; write 1000000"),
        ("1.0e6", "'1.0e6' is text in YAML 1.1 and a number in YAML 1.2; write 1000000"),
        ("1e-3", "'1e-3' is text in YAML 1.1 and a number in YAML 1.2; write 0.001"),
        ("1e-9", "'1e-9' is text in YAML 1.1 and a number in YAML 1.2; write 1.0e-09"),
        (
            "017",
            "'017' is octal in YAML 1.1 and decimal in YAML 1.2; write 17, or \"017\" for the text",
        ),
        (
            "1:30",
            "'1:30' is a number to the base 60 in YAML 1.1 and text in YAML 1.2;"
            ' write "1:30" for the text',
        ),
        (
            "0x10",
            "'0x10' is not the same in YAML 1.1 and YAML 1.2; write 16, or \"0x10\" for the text",
        ),
        (
            "1_000",
            "'1_000' is a number in YAML 1.1 and text in YAML 1.2;"
            ' write 1000, or "1_000" for the text',
        ),
        ("2026-01-31", "'2026-01-31' is a date in YAML 1.1; write \"2026-01-31\" for the text"),
        (
            "Yes",
            "'Yes' is a boolean in YAML 1.1 and text in YAML 1.2;"
            ' write true, or "Yes" for the text',
        ),
        (
            "off",
            "'off' is a boolean in YAML 1.1 and text in YAML 1.2;"
            ' write false, or "off" for the text',
        ),
        ("-.5", "'-.5' is text in YAML 1.1; write -0.5"),
        (".nan", "'.nan' is not a finite number; a finite one is needed"),
        ("", "there is no value here; write one, or leave the field out"),
        ("null", "'null' is no value; write one, or leave the field out; \"null\" is the text"),
        ("9" * 50, f"'{'9' * 37}...' is too large; numbers go up to 2**128"),
        ("!!int 3", "the tag 'tag:yaml.org,2002:int' is not part of the format; remove it"),
    ],
)
def test_a_spelling_that_yaml_versions_read_differently_says_how_to_write_it(
    text: str, message: str
) -> None:
    (fault,) = faults_of(f"x: {text}")
    assert fault.partition(": ")[2] == message


def test_the_colon_of_a_fault_is_that_of_the_value() -> None:
    assert faults_of("a: 1\nb: {c: 1e6}")[0].startswith("f:2:8: '1e6' is text")


@pytest.mark.parametrize(
    "text", ["on: 1", "1: 2", "true: 2", "~: 1", "? [a]\n: 1", "? {a: 1}\n: 1", "2026-01-01: 1"]
)
def test_a_key_is_text(text: str) -> None:
    assert len(faults_of(text)) >= 1


@pytest.mark.parametrize("text", ["null", "~", "Null"])
def test_a_name_that_yaml_reads_as_nothing_is_to_be_quoted(text: str) -> None:
    message = f'{text} is no name but nothing in YAML; write "{text}" in quotes'
    assert faults_of(f"a:\n  {text}: 2") == [f"f:2:3: {message}"]
    assert faults_of(f'a:\n  "{text}": 2') == []


def test_a_colon_without_a_name_asks_for_one() -> None:
    assert faults_of("?\n: 2")[0] == "f:1:2: there is no name before this colon; write one"


def test_a_duplicate_key_names_the_line_of_the_first() -> None:
    assert faults_of("a: 1\nb: 2\na: 3") == ["f:3:1: 'a' is there twice; the first is in line 1"]


@pytest.mark.parametrize("text", ["a: &x 1", "a: 1\n<<: {b: 1}", "a: 1\nb: *c"])
def test_anchors_aliases_and_merge_keys_are_refused(text: str) -> None:
    (fault,) = faults_of(text)
    assert fault.endswith(
        "anchors (&), aliases (*) and merge keys (<<) are not part of the format;"
        " write the value out, or use extends or presets"
    )


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("x: [cdiv(n, 16), 1]", "cdiv(n, 16)"),
        ("x: [1, min(n, 16, 4)]", "min(n, 16, 4)"),
        ("x: {bytes: max(n, 4, 5), flops: n}", "max(n, 4, 5)"),
        ("x: {flops: n, bytes: max(n, min(n, 2))}", "max(n, min(n, 2))"),
        ("x: [[cdiv(n, 16), 1], 2]", "cdiv(n, 16)"),
        ("x: {cdiv(n, 4): 1}", "cdiv(n, 4)"),
    ],
)
def test_a_formula_that_yaml_cuts_at_the_comma_is_shown_in_quotes(text: str, formula: str) -> None:
    (fault,) = faults_of(text)
    assert fault.endswith(
        "inside brackets and braces YAML cuts a formula at its commas;"
        f' write it in quotes: "{formula}"'
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[(n, [1], 2)]", ("(n", (1,), "2)")),
        ("[(n, 'm', 2]", ("(n", "m", 2)),
        ("{a: (n, b: 1}", {"a": "(n", "b": 1}),
    ],
)
def test_texts_with_open_parentheses_that_are_no_formula_stay_as_they_are(
    text: str, value: object
) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("x: {cdiv(n, 4): 1, a: 3}", {"cdiv(n, 4)": 1, "a": 3}),
        ("x: {cdiv(n, 4), a: 3}", {"cdiv(n, 4)": None, "a": 3}),
    ],
)
def test_a_formula_that_is_cut_among_braces_leaves_keys_with_their_values(
    text: str, content: object
) -> None:
    root, _ = read_suite_text(text, "f")
    assert root is not None
    assert root.plain() == {"x": content}


def test_a_formula_that_is_cut_and_a_comma_that_is_missing_after_it_are_both_told() -> None:
    cut, missing = faults_of("x: {bytes: max(n, 4) flops: y, a: 3}")
    assert cut.startswith("f:1:12: inside brackets and braces YAML cuts a formula at its commas")
    assert missing.startswith("f:1:27: not YAML: did not find expected ',' or '}'")


def test_commas_between_parentheses_of_quoted_texts_part_them() -> None:
    assert value_of("['a (b', 'c) d']") == ("a (b", "c) d")
    assert value_of('[["a (b", 1], "c) d"]') == (("a (b", 1), "c) d")
    assert value_of("a (b, c) d  # (see, there") == "a (b, c) d"


def test_a_formula_that_was_cut_has_the_values_after_it() -> None:
    root, _ = read_suite_text("x: {bytes: max(n, 4), flops: [cdiv(n, 2), 7], a: 3}", "f")
    assert root is not None
    assert root.plain() == {"x": {"bytes": "max(n, 4)", "flops": ("cdiv(n, 2)", 7), "a": 3}}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a:\n\tb: 1", "f:2:1: a tab; indent and separate with blanks"),
        ("a:\xa01", "f:1:3: a non-breaking space (U+00A0); write an ordinary blank"),
        ("\ufeffa: 1", "f:1:1: a byte-order mark (U+FEFF); save the file as UTF-8 without one"),
        ("a: b\u200bc", "f:1:5: the character U+200B, which is not visible; remove it"),
        ("a: \x00", "f:1:4: the character U+0000, which is not visible; remove it"),
    ],
)
def test_characters_that_cannot_be_seen_are_refused(text: str, fault: str) -> None:
    assert faults_of(text) == [fault]


def test_a_byte_that_is_not_utf8_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    message = "byte 0xe9 is not UTF-8; save the file as UTF-8"
    assert read_suite_file(path)[1] == (Fault(str(path), 2, 7, message),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: the file is empty; a suite starts with version: 1"),
        ("# only words", "f: the file is empty; a suite starts with version: 1"),
        ("[1]", "f:1:1: a suite is a mapping; it starts with version: 1"),
        ("a: 1\n---\nb: 1", "f:2:1: a second document; a file holds one suite"),
        ("%YAML 1.1\n---\na: 1", "f:1:1: directives (%) are not part of the format; remove it"),
        (
            "a: b: c",
            "f:1:5: not YAML: mapping values are not allowed in this context;"
            " text with ': ' in it is written in quotes",
        ),
    ],
)
def test_what_is_no_single_mapping_is_refused(text: str, message: str) -> None:
    assert faults_of(text) == [message]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 50_000, "nested deeper than 32 levels"),
        ("{a: " * 50_000, "nested deeper than 32 levels"),
        ("- " * 50_000, "nested deeper than 32 levels"),
        ("a: [" + "a," * 100_000 + "]", "more than 20000 values in one file"),
        ("a: [" + "f(," * 100_000 + "]", "more than 20000 values in one file"),
        ("a: &a [*a, *a]\n" + "b: *a\n" * 50_000, "anchors (&), aliases (*)"),
        ("a: " + "9" * 500_000, "is too large; numbers go up to 2**128"),
        ("x: 1\n" * 50_000, "'x' is there twice; the first is in line 1"),
        # long rows of digits, which are read once
        ("a: " + "0" * 500_000, "is octal in YAML 1.1 and decimal in YAML 1.2"),
        ("a: " + "1:" * 200_000 + "1", "is a number to the base 60 in YAML 1.1"),
        ("1: " + "9" * 500_000 + "x", "a key is text"),
    ],
)
def test_a_hostile_text_is_refused_with_few_words(text: str, message: str) -> None:
    faults = "\n".join(faults_of(text))
    assert message in faults
    assert len(faults) < 20_000


def test_nesting_of_32_levels_is_read() -> None:
    assert faults_of("a: " + "[" * 31 + "]" * 31) == []
    (fault,) = faults_of("a: " + "[" * 32 + "]" * 32)
    assert fault == "f:1:35: nested deeper than 32 levels; write it flatter"


def test_a_file_over_one_mebibyte_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("# " + "x" * 2**20)
    message = "it has 1,048,578 bytes; at most 1,048,576 are read of a suite; split it into"
    message += " several files"
    assert read_suite_file(path) == (None, (Fault(str(path), 0, 0, message),))


def test_what_is_no_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    (fault,) = read_suite_file(pipe)[1]
    assert fault.message == "cannot be read: it is no regular file (a folder, a pipe or a device)"
    missing = read_suite_file(tmp_path / "missing.yaml")[1]
    assert [fault.message for fault in missing] == ["cannot be read: No such file or directory"]


YAML_LIKE = st.text(alphabet="ab:-[]{},'\"&*!|>#%@?n( )\n 01e.~<=", max_size=80)


@settings(max_examples=150, deadline=None)
@given(st.one_of(YAML_LIKE, st.text(max_size=60)))
def test_any_text_is_a_tree_or_faults(text: str) -> None:
    root, faults = read_suite_text(text, "f")
    assert root is not None or faults


@settings(max_examples=100, deadline=None)
@given(st.one_of(YAML_LIKE, st.text(max_size=40)))
def test_any_file_raises_nothing_but_a_suite_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.yaml"
    path.write_bytes(f"version: 1\nsuite: any\nkernels: {text}".encode("utf-8", "replace"))
    with pytest.raises(SuiteError):
        load_suite(path)
