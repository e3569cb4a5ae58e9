"""Translated PTX does what the PTX ISA says: compiled by the C compiler, one thread at a time."""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exact_numbers import FORMS, corners
from instruction_cases import CASES, Case, kernel
from translated import ATOMIC, COMPILER, HEAD, READ, WRITE, Thread, Translated

from softcuda.translation.translate import TranslationError, translate

pytestmark = pytest.mark.skipif(not COMPILER, reason="there is no C compiler")

Compile = Callable[..., Translated]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    return lambda ptx, *flags: Translated(HEAD + ptx, tmp_path, *flags)


def entry(body: str, parameters: str = ".param .u64 out", more: str = "", name: str = "k") -> str:
    """Return a kernel, whose first parameter is in %out, with some registers declared."""
    return f"""
        .visible .entry {name}({parameters}) {more}
        {{
            .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
            .reg .f32 %f<9>; .reg .f64 %fd<9>; .reg .b64 %out;
            ld.param.u64 %out, [out];
            {body}
            ret;
        }}
        """


def address(buffer: Any) -> int:
    return ctypes.addressof(buffer)


def run(
    translated: Translated, size: int = 64, given: bytes = b"", name: str = "k"
) -> tuple[Thread, Any]:
    """Run a kernel on a buffer that begins with ``given``."""
    thread = Thread(translated)
    out = thread.buffer(size)
    out[: len(given)] = given
    thread.run(name, "Q", address(out))
    return thread, out


def words(buffer: Any, count: int) -> list[int]:
    return list(struct.unpack_from(f"{count}I", buffer))


# ---- single instructions -----------------------------------------------------------------------


@pytest.fixture(scope="session")
def instructions(tmp_path_factory: pytest.TempPathFactory) -> Translated:
    text = HEAD + "".join(kernel(number, case) for number, case in enumerate(CASES))
    return Translated(text, tmp_path_factory.mktemp("instructions"))


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_an_instruction_gives_what_the_isa_says(number: int, instructions: Translated) -> None:
    case = CASES[number]
    thread = Thread(instructions)
    out = thread.buffer(8)
    form = "Q" + "".join(FORMS[kind] for kind in case.sources)
    for values in itertools.product(*(case.values or map(corners, case.sources))):
        thread.run(f"k{number}", form, address(out), *values)
        (found,) = struct.unpack_from(FORMS[case.result], out)
        expected = case.expected(*values)
        assert same(found, expected, case), f"{values} gave {found!r}, not {expected!r}"


def same(found: float, expected: float, case: Case) -> bool:
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    if case.tolerance:
        return math.isclose(found, expected, rel_tol=case.tolerance)
    return found == expected and math.copysign(1, found) == math.copysign(1, expected)


ATOMICS = [
    ("add.u32", "I", 0xFFFFFFFF, 3, 2),
    ("add.s32", "i", -5, 3, -2),
    ("add.u64", "Q", 2**64 - 1, 3, 2),
    ("add.f32", "f", 1.5, 2.25, 3.75),
    ("add.f64", "d", 1.5, 2.25, 3.75),
    ("add.noftz.f16", "e", 1.5, 2.25, 3.75),
    ("add.noftz.bf16", "H", 0x3F80, 0x4000, 0x4040),
    ("add.noftz.f16x2", "I", 0x3C004000, 0x3C003C00, 0x40004200),
    ("add.noftz.bf16x2", "I", 0x3F803F80, 0x40003F80, 0x40404000),
    ("min.s32", "i", -5, 3, -5),
    ("min.u32", "I", 0xFFFFFFFB, 3, 3),
    ("max.s64", "q", -5, 3, 3),
    ("max.u64", "Q", 2**64 - 5, 3, 2**64 - 5),
    ("and.b32", "I", 12, 10, 8),
    ("or.b64", "Q", 12, 10, 14),
    ("xor.b32", "I", 12, 10, 6),
    ("exch.b64", "Q", 12, 10, 10),
    ("inc.u32", "I", 6, 7, 7),
    ("inc.u32", "I", 7, 7, 0),
    ("dec.u32", "I", 0, 7, 7),
    ("dec.u32", "I", 9, 7, 7),
    ("dec.u32", "I", 5, 7, 4),
]


def atomic_kernel(number: int) -> str:
    operation, form, *_ = ATOMICS[number]
    size = struct.calcsize(form)
    kind = {2: "b16", 4: "b32", 8: "b64"}[size]
    register = {"f32": "%f", "f64": "%fd"}.get(operation.split(".")[-1])
    name = register or {2: "%h", 4: "%r", 8: "%rd"}[size]
    load = operation.split(".")[-1] if register else kind
    body = f"""
        ld.global.{load} {name}1, [%out+8];
        atom.global.{operation} {name}2, [%out], {name}1;
        st.global.{load} [%out+16], {name}2;
        red.relaxed.gpu.global.{operation} [%out+24], {name}1;
        """
    return entry(body, name=f"k{number}")


@pytest.fixture(scope="session")
def atomics(tmp_path_factory: pytest.TempPathFactory) -> Translated:
    text = HEAD + "".join(map(atomic_kernel, range(len(ATOMICS))))
    return Translated(text, tmp_path_factory.mktemp("atomics"))


@pytest.mark.parametrize("number", range(len(ATOMICS)), ids=[one[0] for one in ATOMICS])
def test_an_atomic_operation_changes_memory_and_gives_the_old_value(
    number: int, atomics: Translated
) -> None:
    _, form, old, value, new = ATOMICS[number]
    given = b"".join(struct.pack(form, one).ljust(8, b"\0") for one in (old, value, 0, old))
    thread, out = run(atomics, given=given, name=f"k{number}")
    found = [struct.unpack_from(form, out, at)[0] for at in (0, 16, 24)]
    assert found == [new, old, new]
    assert thread.asked_for("access")[1] == ("access", address(out), struct.calcsize(form), ATOMIC)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_compare_and_swap_puts_the_value_only_where_the_old_one_is_as_compared(
    compiled: Compile, bits: int
) -> None:
    register = {16: "%h", 32: "%r", 64: "%rd"}[bits]
    body = f"""
        mov.b{bits} {register}1, 5; mov.b{bits} {register}2, 9;
        atom.global.cas.b{bits} {register}3, [%out], {register}1, {register}2;
        atom.global.cas.b{bits} {register}4, [%out+8], {register}1, {register}2;
        st.global.b{bits} [%out+16], {register}3;
        st.global.b{bits} [%out+24], {register}4;
        """
    _, out = run(compiled(entry(body)), given=struct.pack("2Q", 5, 6))
    assert struct.unpack_from("4Q", out) == (9, 6, 5, 6)


# ---- memory ------------------------------------------------------------------------------------


def test_a_vector_is_one_access_of_all_its_bytes(compiled: Compile) -> None:
    body = """
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out];
        st.global.v2.u32 [%out+16], {%r4, %r1}; st.global.v2.u32 [%out+32], {%r2, %r3};
        ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%out+4];
        add.u16 %h1, %h1, %h2; add.u16 %h1, %h1, %h3; add.u16 %h1, %h1, %h4;
        st.global.u16 [%out+24], %h1;
        """
    thread, out = run(compiled(entry(body)), given=struct.pack("4I", 1, 0x12345678, 3, 4))
    at = address(out)
    assert thread.asked_for("access") == [
        ("access", at, 16, READ),
        ("access", at + 16, 8, WRITE),
        ("access", at + 32, 8, WRITE),
        ("access", at + 4, 4, READ),
        ("access", at + 24, 2, WRITE),
    ]
    assert words(out, 7) == [1, 0x12345678, 3, 4, 4, 1, 0x12 + 0x34 + 0x56 + 0x78]


def test_a_part_of_a_vector_that_nobody_reads_is_not_loaded(compiled: Compile) -> None:
    body = """
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%out+16];
        st.global.u32 [%out], %r1; st.global.v2.u32 [%out+8], {%r2, %r3};
        """
    thread, out = run(compiled(entry(body)), given=struct.pack("8I", *range(8)))
    at = address(out)
    assert [one[1:3] for one in thread.asked_for("access")[:3]] == [
        (at + 16, 4),
        (at + 20, 4),
        (at + 24, 4),
    ]
    assert words(out, 4) == [4, 1, 5, 6]


def test_loads_of_small_types_carry_on_their_sign_where_they_have_one(compiled: Compile) -> None:
    body = """
        ld.global.s8 %r1, [%out]; ld.global.u8 %r2, [%out]; ld.global.s16 %rd1, [%out];
        st.global.u32 [%out+8], %r1; st.global.u32 [%out+12], %r2; st.global.u64 [%out+16], %rd1;
        st.global.u8 [%out+24], %rd1;
        """
    _, out = run(compiled(entry(body)), given=b"\xfe\xff")
    assert struct.unpack_from("iIqB", out, 8) == (-2, 0xFE, -2, 0xFE)


ACCESSES = entry("ld.global.u32 %r1, [%out]; st.global.u32 [%out+4], %r1;")


def recent(translated: Translated, begin: int, size: int, offset: int = 0) -> list[Any]:
    """Return what a thread asks for that lately touched the bytes from ``begin`` of its buffer."""
    thread = Thread(translated)
    out = thread.buffer(64)
    thread.state.recent_at, thread.state.recent_size = address(out) + begin, size
    thread.run("k", "Q", address(out) + offset)
    return [one[1] - address(out) for one in thread.asked_for("access")]


def test_an_access_where_the_last_one_went_is_not_asked_for(compiled: Compile) -> None:
    assert recent(compiled(ACCESSES), 0, 8) == []


def test_an_access_beyond_where_the_last_one_went_is_asked_for(
    compiled: Compile,
) -> None:
    assert recent(compiled(ACCESSES), 0, 7) == [4]
    assert recent(compiled(ACCESSES), 2, 64) == [0]
    assert recent(compiled(ACCESSES), 8, 8) == [0, 4]


def test_a_misaligned_access_is_asked_for(compiled: Compile) -> None:
    assert recent(compiled(ACCESSES), 0, 64, offset=2) == [2, 6]


def test_an_access_to_the_frame_is_not_asked_for_and_one_beyond_it_is(compiled: Compile) -> None:
    body = """
        .local .align 4 .b8 depot[12]; mov.u64 %rd1, depot;
        st.local.u32 [%rd1], 1; st.local.u32 [%rd1+8], 1; st.u32 [%rd1+4], 1;
        st.local.u32 [%rd1+12], 1; st.local.u32 [%rd1-4], 1; st.local.u16 [%rd1+3], 1;
        """
    thread = Thread(compiled(entry(body)))
    memory = thread.buffer(64)
    thread.answers["enter"] = lambda _: address(memory) + 16
    thread.run("k", "Q", 0)
    asked = [one[1] - address(memory) for one in thread.asked_for("access")]
    assert asked == [28, 12, 19]


def test_shared_and_global_memory_are_remembered_apart(compiled: Compile) -> None:
    body = """
        ld.global.u32 %r1, [%out]; st.shared.u32 [aligned], %r1; st.global.u32 [%out+4], %r1;
        st.shared.u32 [aligned+36], %r1; ld.global.u32 %r1, [%out]; st.shared.u8 [small], %r1;
        st.shared.u32 [aligned+40], %r1;
        """
    translated = compiled(SHARED + entry(body))
    thread = Thread(translated)
    out = thread.buffer(8)
    window = address(thread.shared)
    spans = {address(out): 8, window + 32: 40, window: 6}

    def access(at: int, *_: int) -> int:
        """Remember all of the variable, as the device does."""
        for begin, size in spans.items():
            if begin <= at < begin + size:
                thread.state.recent_at, thread.state.recent_size = begin, size
        return at

    thread.answers["access"] = access
    thread.run("k", "Q", address(out))
    asked = [one[1] for one in thread.asked_for("access")]
    assert asked == [address(out), window + 32, window, window + 72]


def test_the_sanitizer_is_asked_for_every_access(compiled: Compile) -> None:
    assert recent(compiled(ACCESSES, "-DSC_SANITIZE"), 0, 64) == [0, 4]


def test_many_accesses_are_checked_as_well(compiled: Compile) -> None:
    many = "".join(f"st.global.u32 [%out+{4 * i}], {i};" for i in range(400))
    thread, out = run(compiled(entry(many)), size=1600)
    assert words(out, 400) == list(range(400))
    assert len(thread.asked_for("access")) == 400


def test_parameters_are_read_without_asking_and_at_their_aligned_places(compiled: Compile) -> None:
    parameters = """.param .u64 .ptr .global .align 4 out, .param .u8 a, .param .align 8 .b8 b[12],
        .param .f64 c, .param .u16 d"""
    body = """
        ld.param.u8 %h1, [a]; ld.param.u32 %r1, [b+8]; ld.param.f64 %fd1, [c];
        ld.param.u16 %h2, [d];
        st.global.u8 [%out], %h1; st.global.u32 [%out+4], %r1; st.global.f64 [%out+8], %fd1;
        st.global.u16 [%out+16], %h2;
        """
    translated = compiled(entry(body, parameters))
    one = translated.kernels["k"]
    assert [one.offsets[i] for i in range(5)] == [0, 8, 16, 32, 40]
    assert [one.sizes[i] for i in range(5)] == [8, 1, 12, 8, 2]
    assert one.parameter_bytes == 42
    thread = Thread(translated)
    out = thread.buffer(32)
    thread.run("k", "QB7xQI4xdH", address(out), 7, 1, 77, 2.5, 9)
    assert struct.unpack_from("B3xIdH", out) == (7, 77, 2.5, 9)
    assert len(thread.asked_for("access")) == 4


def test_parameters_whose_address_is_taken_lie_in_the_frame(compiled: Compile) -> None:
    body = """
        mov.b64 %rd1, a; cvta.param.u64 %rd2, %rd1; ld.u32 %r1, [%rd2+4]; st.global.u32 [%out], %r1;
        """
    translated = compiled(entry(body, ".param .u64 out, .param .align 8 .b8 a[8]"))
    thread = Thread(translated)
    out = thread.buffer(8)
    thread.run("k", "QII", address(out), 5, 6)
    assert words(out, 1) == [6]
    frame = thread.asked_for("enter")
    assert frame == [("enter", 16)]
    assert translated.kernels["k"].local_bytes == 16


SHARED = """
    .shared .align 4 .b8 small[6];
    .shared .align 32 .b8 aligned[40];
    .shared .f64 number;
    .extern .shared .align 16 .b8 dynamic[];
    """


def test_shared_variables_have_guards_between_them(compiled: Compile) -> None:
    module = compiled(SHARED + entry("st.shared.u8 [small], 1;")).module
    places = [module.shared[i] for i in range(module.shared_count)]
    assert [(one.name, one.at, one.bytes) for one in places] == [
        (b"small", 0, 6),
        (b"aligned", 32, 40),
        (b"number", 88, 8),
    ]
    assert module.shared_window == 128
    assert module.shared_bytes == 80


def test_shared_addresses_are_offsets_and_generic_ones_lie_in_the_window(compiled: Compile) -> None:
    body = """
        mov.u64 %rd1, aligned; mov.u32 %r1, number; mov.u64 %rd2, dynamic;
        mov.f64 %fd1, 0d4000000000000000; mov.b32 %r2, 7;
        st.shared.u32 [%rd1+4], %r2; st.shared.f64 [%r1], %fd1; st.shared.u32 [dynamic+8], %r2;
        cvta.shared.u64 %rd3, %rd1; ld.u32 %r3, [%rd3+4];
        cvta.to.shared.u64 %rd4, %rd3; sub.s64 %rd5, %rd4, %rd1;
        isspacep.shared %p1, %rd3; isspacep.global %p2, %out; selp.b32 %r4, 1, 0, %p1;
        selp.b32 %r5, 2, 0, %p2; or.b32 %r6, %r4, %r5;
        st.global.u32 [%out], %r3; st.global.u64 [%out+8], %rd5; st.global.u64 [%out+16], %rd2;
        st.global.u32 [%out+24], %r6;
        """
    thread, out = run(compiled(SHARED + entry(body)))
    begin = address(thread.shared)
    touched = [one[1] - begin for one in thread.asked_for("access")[:4]]
    assert touched == [36, 88, 128 + 8, 36]
    assert struct.unpack_from("I4xQQI", out) == (7, 0, 128, 3)
    assert struct.unpack_from("d", thread.shared, 88) == (2.0,)


def test_the_space_of_a_generic_address(compiled: Compile) -> None:
    spaces = ("shared", "local", "const", "global")
    variables = SHARED + ".const .b8 text[4]; .global .u32 number_in_global;"
    addresses = """
        .local .b8 depot[8];
        cvta.shared.u64 %rd1, aligned; cvta.local.u64 %rd2, depot; cvta.const.u64 %rd3, text;
        mov.u64 %rd4, number_in_global;
        """
    tests = "".join(
        f"isspacep.{space} %p1, %rd{address}; selp.u32 %r1, 1, 0, %p1;"
        f"st.global.u32 [%out+{16 * address + 4 * place - 16}], %r1;"
        for address in (1, 2, 3, 4)
        for place, space in enumerate(spaces)
    )
    thread = Thread(compiled(variables + entry(addresses + tests)))
    local = thread.buffer(64)
    thread.state.local, thread.state.local_bytes = address(local), 64
    thread.answers["enter"] = lambda _: address(local) + 16
    out = thread.buffer(64)
    thread.run("k", "Q", address(out))
    assert words(out, 16) == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]


def test_a_load_that_another_thread_may_change_is_volatile() -> None:
    """Leave the value of any other to the C compiler, which may keep it."""
    for order in ("volatile", "relaxed.gpu", "acquire.sys"):
        text = translate(HEAD + entry(f"ld.{order}.global.u32 %r1, [%out];"))
        assert "*(volatile uint32_t *)sc_at" in text
    assert "volatile" not in translate(HEAD + entry("ld.global.u32 %r1, [%out];"))


def test_local_memory_is_a_frame_for_each_call(compiled: Compile) -> None:
    body = """
        .local .align 8 .b8 depot[20]; .local .align 16 .b8 other[8];
        mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1; mov.b32 %r1, 5;
        st.local.u32 [%rd1+16], %r1; st.u32 [other], %r1; ld.u32 %r2, [%rd2+16];
        st.global.u32 [%out], %r2;
        """
    translated = compiled(entry(body), "-DSC_SANITIZE")
    thread, out = run(translated)
    assert translated.kernels["k"].local_bytes == 48
    assert thread.asked_for("enter") == [("enter", 40)]
    assert len(thread.asked_for("leave")) == 1
    frame = thread.asked_for("leave")[0][1]
    places = [one[1] - frame for one in thread.asked_for("access")[:3]]
    assert places == [16, 32, 16]
    assert words(out, 1) == [5]


def test_global_variables_belong_to_the_load_and_start_with_their_values(compiled: Compile) -> None:
    variables = """
        .global .align 4 .u32 counter = 5;
        .visible .global .align 8 .f64 real = 0d3FF8000000000000;
        .const .align 1 .b8 text[4] = {72, 0x69};
        .global .s16 table[2][3] = {{-1, 2}, {4}};
        .global .f32 pair[2] = {0f3F800000, 1.5};
        .global .align 16 .b8 zeros[32];
        .common .global .align 8 .u64 environment;
        """
    body = """
        ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, 1; st.global.u32 [counter], %r1;
        mov.u64 %rd1, text; cvta.const.u64 %rd2, %rd1; ld.u8 %h1, [%rd2+1];
        st.global.u8 [%out], %h1;
        ld.global.s16 %r2, [table+6]; st.global.u32 [%out+4], %r2;
        """
    translated = compiled(variables + entry(body))
    rows = translated.globals()
    assert [(one.name.decode(), one.bytes, one.align, one.constant) for one in rows] == [
        ("counter", 4, 4, 0),
        ("real", 8, 8, 0),
        ("text", 4, 1, 1),
        ("table", 12, 2, 0),
        ("pair", 8, 4, 0),
        ("zeros", 32, 16, 0),
        ("environment", 8, 8, 0),
    ]
    assert not rows[5].initial
    first, second = Thread(translated), Thread(translated)
    out = first.buffer(16)
    first.run("k", "Q", address(out))
    assert struct.unpack_from("B3xI", out) == (0x69, 4)
    assert struct.unpack_from("I", first.globals[0]) == (6,)
    assert struct.unpack_from("I", second.globals[0]) == (5,)
    assert struct.unpack_from("d", first.globals[1]) == (1.5,)
    assert struct.unpack_from("6h", first.globals[3]) == (-1, 2, 0, 4, 0, 0)
    assert struct.unpack_from("2f", first.globals[4]) == (1.0, 1.5)


def test_an_asynchronous_copy_is_done_at_once(compiled: Compile) -> None:
    body = """
        cp.async.ca.shared.global [small], [%out], 4;
        cp.async.cg.shared.global [aligned], [%out], 16, 8;
        cp.async.commit_group; cp.async.wait_group 0;
        """
    thread, _ = run(compiled(SHARED + entry(body)), given=bytes(range(1, 17)))
    assert thread.shared[:4] == bytes([1, 2, 3, 4])
    assert thread.shared[32:48] == bytes([1, 2, 3, 4, 5, 6, 7, 8]) + bytes(8)


# ---- control -----------------------------------------------------------------------------------


def test_branches_guards_and_loops(compiled: Compile) -> None:
    body = """
        mov.u32 %r1, 0; mov.u32 %r2, 0;
        LOOP: add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10;
        @%p1 bra LOOP;
        @!%p1 add.u32 %r2, %r2, 1000;
        @%p1 st.global.u32 [%out+4], %r1;
        bra.uni END;
        mov.u32 %r2, 0;
        END: st.global.u32 [%out], %r2;
        """
    _, out = run(compiled(entry(body)))
    assert words(out, 2) == [1045, 0]


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 20), (2, 10)])
def test_a_branch_by_an_index(compiled: Compile, index: int, expected: int) -> None:
    body = """
        ld.global.u32 %r1, [%out];
        targets: .branchtargets FIRST, SECOND, FIRST;
        brx.idx %r1, targets;
        FIRST: mov.u32 %r2, 10; bra END;
        SECOND: mov.u32 %r2, 20;
        END: st.global.u32 [%out], %r2;
        """
    _, out = run(compiled(entry(body)), given=struct.pack("I", index))
    assert words(out, 1) == [expected]


def test_inner_scopes_have_registers_and_labels_of_their_own(compiled: Compile) -> None:
    scope = """
        { .reg .b32 %r1; .reg .f64 %only; .reg .b32 plain; mov.u32 %r1, 7; mov.u32 plain, %r1;
          bra SKIP; mov.u32 plain, 0; SKIP: add.u32 %r2, %r2, plain; }
        """
    body = f"mov.u32 %r1, 1; mov.u32 %r2, 0; {scope} {scope} add.u32 %r2, %r2, %r1;"
    _, out = run(compiled(entry(f"{body} st.global.u32 [%out], %r2;")))
    assert words(out, 1) == [15]


STRUCT = """
    .visible .func (.param .align 8 .b8 result[16]) both
        (.param .align 8 .b8 given[16], .param .b32 n);
    .func (.param .b32 r) twice(.param .b32 n)
    { .reg .b32 %a; ld.param.b32 %a, [n]; shl.b32 %a, %a, 1; st.param.b32 [r+0], %a; ret; }
    .func (.param .b32 r) thrice(.param .b32 n)
    { .reg .b32 %a; ld.param.b32 %a, [n]; mul.lo.u32 %a, %a, 3; st.param.b32 [r+0], %a; ret; }
    """
BOTH = """
    .visible .func (.param .align 8 .b8 result[16]) both
        (.param .align 8 .b8 given[16], .param .b32 n)
    {
        .reg .b64 %a; .reg .b32 %n;
        ld.param.b64 %a, [given+8]; ld.param.b32 %n, [n];
        st.param.b64 [result+0], %a; st.param.b32 [result+8], %n; st.param.b32 [result+12], 4;
        ret;
    }
    """


def test_a_function_takes_and_returns_structures(compiled: Compile) -> None:
    body = """
        { .param .align 8 .b8 a[16]; .param .b32 b; .param .align 8 .b8 r[16];
          st.param.b64 [a+0], 1; st.param.b64 [a+8], 22; st.param.b32 [b], 3;
          call.uni (r), both, (a, b);
          ld.param.b64 %rd1, [r]; ld.param.v2.b32 {%r1, %r2}, [r+8]; }
        st.global.u64 [%out], %rd1; st.global.v2.u32 [%out+8], {%r1, %r2};
        """
    _, out = run(compiled(STRUCT + entry(body) + BOTH))
    assert struct.unpack_from("QII", out) == (22, 3, 4)


@pytest.mark.parametrize(("choice", "expected"), [(0, 10), (1, 15)])
def test_a_function_is_called_by_its_address(compiled: Compile, choice: int, expected: int) -> None:
    body = """
        ld.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0;
        mov.u64 %rd1, twice; mov.u64 %rd2, thrice; selp.b64 %rd3, %rd1, %rd2, %p1;
        { .param .b32 a; .param .b32 r; st.param.b32 [a], 5;
          proto : .callprototype (.param .b32 _) _ (.param .b32 _);
          call (r), %rd3, (a), proto;
          ld.param.b32 %r2, [r]; }
        st.global.u32 [%out], %r2;
        """
    thread, out = run(compiled(STRUCT + entry(body)), given=struct.pack("I", choice))
    assert words(out, 1) == [expected]
    assert not thread.asked_for("trap")


def test_a_call_of_an_address_is_no_fault_where_it_is_never_made(compiled: Compile) -> None:
    body = """
        mov.u64 %rd1, 4096; setp.eq.u64 %p1, %rd1, 4096;
        { .param .b32 a; st.param.b32 [a], 5; proto : .callprototype _ (.param .b32 _);
          @!%p1 call %rd1, (a), proto; }
        st.global.u32 [%out], 1;
        """
    _, out = run(compiled(entry(body)))
    assert words(out, 1) == [1]


RECURSIVE = """
    .func (.param .b32 r) factorial(.param .b32 n)
    {
        .local .align 4 .b8 depot[4]; .reg .b32 %n, %m; .reg .pred %p; .reg .b64 %d;
        ld.param.b32 %n, [n]; mov.u64 %d, depot; st.local.b32 [%d], %n;
        setp.lt.u32 %p, %n, 2; @%p bra ONE;
        { .param .b32 a; .param .b32 b; sub.u32 %m, %n, 1; st.param.b32 [a], %m;
          call (b), factorial, (a); ld.param.b32 %m, [b]; }
        ld.local.b32 %n, [%d]; mul.lo.u32 %m, %m, %n; st.param.b32 [r], %m; ret;
        ONE: st.param.b32 [r], 1; ret;
    }
    """
CALL_RECURSIVE = """
    { .param .b32 a; .param .b32 b; st.param.b32 [a], 6; call (b), factorial, (a);
      ld.param.b32 %r1, [b]; }
    st.global.u32 [%out], %r1;
    """


def test_each_call_of_a_recursive_function_has_a_frame(compiled: Compile) -> None:
    translated = compiled(RECURSIVE + entry(CALL_RECURSIVE))
    thread, out = run(translated)
    assert words(out, 1) == [720]
    assert len(thread.asked_for("enter")) == len(thread.asked_for("leave")) == 6
    assert translated.kernels["k"].local_bytes == 1 << 20


def test_a_thread_may_end_in_a_function(compiled: Compile) -> None:
    function = """
        .func leave(.param .b32 n)
        { .reg .b32 %n; .reg .pred %p; ld.param.b32 %n, [n]; setp.eq.u32 %p, %n, 1; @%p exit; ret; }
        """
    body = """
        .local .b8 depot[8]; ld.global.u32 %r1, [%out];
        { .param .b32 a; st.param.b32 [a], %r1; call leave, (a); }
        st.global.u32 [%out+4], 1;
        """
    translated = compiled(function + entry(body))
    for given, expected in ((0, 1), (1, 0)):
        thread, out = run(translated, given=struct.pack("I", given))
        assert words(out, 2) == [given, expected]
        assert len(thread.asked_for("leave")) == 1


def test_local_bytes_are_those_of_the_deepest_path_of_calls(compiled: Compile) -> None:
    functions = """
        .func deep() { .local .b8 d[100]; .reg .b64 %a; mov.u64 %a, d; ret; }
        .func flat() { .local .b8 d[32]; .reg .b64 %a; mov.u64 %a, d; ret; }
        .func middle() { .local .b8 d[16]; .reg .b64 %a; mov.u64 %a, d; call deep; ret; }
        """
    body = ".local .b8 d[16]; mov.u64 %rd1, d; call flat; call middle;"
    assert compiled(functions + entry(body)).kernels["k"].local_bytes == 16 + 16 + 112


# ---- what threads ask of the device --------------------------------------------------------------


def test_functions_of_the_runtime(compiled: Compile) -> None:
    declared = """
        .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
        .extern .func __assertfail
            (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
        .extern .func (.param .b64 r) malloc(.param .b64 a);
        .extern .func free(.param .b64 a);
        .extern .func nowhere(.param .b64 a);
        """
    body = """
        { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], 11; st.param.b64 [b], 12;
          call.uni (r), vprintf, (a, b); ld.param.b32 %r1, [r]; st.global.u32 [%out], %r1; }
        { .param .b64 a; .param .b64 r; st.param.b64 [a], 64;
          call.uni (r), malloc, (a); ld.param.b64 %rd1, [r]; st.global.u64 [%out+8], %rd1; }
        { .param .b64 a; st.param.b64 [a], %rd1; call.uni free, (a); }
        { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
          st.param.b64 [a], 1; st.param.b64 [b], 2; st.param.b32 [c], 3; st.param.b64 [d], 4;
          call.uni __assertfail, (a, b, c, d, e); }
        """
    translated = compiled(declared + entry(body))
    thread = Thread(translated)
    thread.answers |= {"print": lambda *_: 3, "take": lambda _: 4096}
    out = thread.buffer(16)
    thread.run("k", "Q", address(out))
    assert thread.asked_for("print", "take", "give_back", "fail") == [
        ("print", 11, 12),
        ("take", 64),
        ("give_back", 4096),
        ("fail", 1, 2, 3, 4),
    ]
    assert struct.unpack_from("I4xQ", out) == (3, 4096)
    assert not translated.kernels["k"].waits


def test_synchronising_the_grid(compiled: Compile) -> None:
    declared = """
        .extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 a);
        .extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 a, .param .b32 b);
        .func sync() {
            .reg .b64 %h;
            { .param .b32 a; .param .b64 r; st.param.b32 [a], 1;
              call.uni (r), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %h, [r]; }
            { .param .b64 a; .param .b32 b; .param .b32 r; st.param.b64 [a], %h;
              st.param.b32 [b], 0;
              call.uni (r), cudaCGSynchronize, (a, b); }
            ret; }
        """
    translated = compiled(declared + entry("call sync;"))
    thread, _ = run(translated)
    assert len(thread.asked_for("grid")) == 1
    one = translated.kernels["k"]
    assert (one.waits, one.cooperative) == (1, 1)


def test_barriers(compiled: Compile) -> None:
    body = """
        mov.u32 %r1, 3; mov.u32 %r2, 64; setp.eq.u32 %p1, %r1, 3;
        bar.sync 0; barrier.sync.aligned %r1, %r2; barrier.cta.sync 1; bar.arrive 2, 96;
        bar.red.popc.u32 %r3, 4, %p1; bar.red.and.pred %p2, 5, 32, !%p1;
        st.global.u32 [%out], %r3;
        membar.cta; membar.gl; fence.acq_rel.sys; nanosleep.u32 20;
        """
    translated = compiled(entry(body))
    thread = Thread(translated)
    thread.answers["barrier"] = lambda *given: 17 if given[2] else 0
    out = thread.buffer(8)
    thread.run("k", "Q", address(out))
    asked = thread.asked_for("barrier", "arrive", "fence", "yield")
    assert [one[:-1] if one[0] in ("barrier", "arrive") else one for one in asked] == [
        ("barrier", 0, 0, 0, 0),
        ("barrier", 3, 64, 0, 0),
        ("barrier", 1, 0, 0, 0),
        ("arrive", 2, 96),
        ("barrier", 4, 0, 1, 1),
        ("barrier", 5, 32, 2, 0),
        ("fence", 0),
        ("fence", 1),
        ("fence", 2),
        ("yield",),
    ]
    sites = [one[-1] for one in asked if one[0] in ("barrier", "arrive")]
    assert len(set(sites)) == len(sites)
    assert words(out, 1) == [17]
    assert translated.kernels["k"].waits


WARPS = [
    ("bar.warp.sync 255;", (0, 255, 0, 0, 0)),
    ("shfl.sync.up.b32 %r3|%p2, %r1, 2, 0, -1;", (1, 0xFFFFFFFF, 7, 2, 0)),
    ("shfl.sync.down.b32 %r3, %r1, %r2, 31, 15;", (2, 15, 7, 9, 31)),
    ("shfl.sync.bfly.b32 %r3|%p2, %r1, 1, 0x1c1f, -1;", (3, 0xFFFFFFFF, 7, 1, 0x1C1F)),
    ("shfl.sync.idx.b32 %r3|%p2, %r1, 5, 31, -1;", (4, 0xFFFFFFFF, 7, 5, 31)),
    ("vote.sync.all.pred %p2, %p1, -1;", (5, 0xFFFFFFFF, 1, 0, 0)),
    ("vote.sync.any.pred %p2, !%p1, -1;", (6, 0xFFFFFFFF, 0, 0, 0)),
    ("vote.sync.uni.pred %p2, %p1, -1;", (7, 0xFFFFFFFF, 1, 0, 0)),
    ("vote.sync.ballot.b32 %r3, %p1, %r1;", (8, 7, 1, 0, 0)),
    ("match.any.sync.b64 %r3, %rd1, -1;", (9, 0xFFFFFFFF, 2**40, 0, 0)),
    ("match.all.sync.b32 %r3|%p2, %r1, -1;", (10, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.add.s32 %r3, %r1, -1;", (11, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.min.u32 %r3, %r1, -1;", (12, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.max.u32 %r3, %r1, -1;", (13, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.min.s32 %r3, %r1, -1;", (14, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.max.s32 %r3, %r1, -1;", (15, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.and.b32 %r3, %r1, -1;", (16, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.or.b32 %r3, %r1, -1;", (17, 0xFFFFFFFF, 7, 0, 0)),
    ("redux.sync.xor.b32 %r3, %r1, -1;", (18, 0xFFFFFFFF, 7, 0, 0)),
    ("elect.sync %r3|%p2, -1;", (19, 0xFFFFFFFF, 0, 0, 0)),
    ("activemask.b32 %r3;", (20, 0xFFFFFFFF, 0, 0, 0)),
]


def warp_kernel(number: int) -> str:
    body = f"""
        mov.u32 %r1, 7; mov.u32 %r2, 9; mov.u64 %rd1, 0x10000000000; setp.eq.u32 %p1, %r1, 7;
        setp.ne.u32 %p2, %r1, 7; mov.u32 %r3, 0;
        {WARPS[number][0]}
        selp.u32 %r4, 1, 0, %p2; st.global.u32 [%out], %r3; st.global.u32 [%out+4], %r4;
        """
    return entry(body, name=f"k{number}")


@pytest.fixture(scope="session")
def warps(tmp_path_factory: pytest.TempPathFactory) -> Translated:
    text = HEAD + "".join(map(warp_kernel, range(len(WARPS))))
    return Translated(text, tmp_path_factory.mktemp("warps"))


@pytest.mark.parametrize("number", range(len(WARPS)), ids=[text for text, _ in WARPS])
def test_operations_of_a_warp(number: int, warps: Translated) -> None:
    text, asked = WARPS[number]
    thread = Thread(warps)
    thread.answers["warp"] = lambda _: (1, 1)
    out = thread.buffer(8)
    thread.run(f"k{number}", "Q", address(out))
    assert thread.asked_for("warp") == [("warp", *asked)]
    assert words(out, 2) == [int("%r3" in text), int("%p2" in text)]
    assert warps.kernels[f"k{number}"].waits


def test_special_registers(compiled: Compile) -> None:
    names = [
        *("%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ctaid.y", "%nctaid.z", "%laneid", "%warpid"),
        *("%nwarpid", "%lanemask_lt", "%lanemask_le", "%lanemask_eq", "%lanemask_gt"),
        *("%lanemask_ge", "%dynamic_smem_size", "%total_smem_size", "%clock"),
    ]
    body = "".join(
        f"mov.u32 %r1, {name}; st.global.u32 [%out+{4 * i}], %r1;" for i, name in enumerate(names)
    )
    body += "mov.u64 %rd1, %clock64; st.global.u64 [%out+96], %rd1;"
    thread = Thread(compiled(SHARED + entry(body)))
    thread.state.tid[:] = 3, 2, 1
    thread.state.ntid[:] = 10, 5, 2
    thread.state.ctaid[:] = 0, 6, 0
    thread.state.nctaid[:] = 1, 7, 8
    thread.state.linear = 73
    thread.answers["clock"] = lambda: (5 << 32) + 1
    out = thread.buffer(128)
    thread.run("k", "Q", address(out))
    lane, ones = 9, 0xFFFFFFFF
    masks = [
        (1 << lane) - 1,
        (2 << lane) - 1,
        1 << lane,
        ones << lane + 1 & ones,
        ones << lane & ones,
    ]
    assert words(out, len(names)) == [3, 2, 1, 10, 6, 8, lane, 2, 4, *masks, 256, 256 + 80, 1]
    assert struct.unpack_from("Q", out, 96) == ((5 << 32) + 1,)


def test_the_source_line_is_known_at_every_access(compiled: Compile) -> None:
    body = """
        .loc 1 10 5
        ld.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0;
        ld.global.u32 %r1, [%out];
        .loc 2 11 5
        ld.global.u32 %r1, [%out]; @!%p1 bra OVER;
        .loc 1 12 5
        st.global.u32 [%out], %r1;
        OVER:
        .loc 1 13 5, function_name $L__info_string0, inlined_at 1 40 2
        add.u32 %r1, %r1, 1; st.global.u32 [%out], %r1;
        """
    translated = compiled(entry(body) + '.file 1 "/a b/kernel.py"\n.file 2 "other//\\"\n')
    for first, lines in ((0, [10, 10, 11, 12, 13]), (1, [10, 10, 11, 13])):
        thread = Thread(translated)
        seen: list[tuple[int, int]] = []

        def access(at: int, *_: int, thread: Thread = thread, seen: Any = seen) -> int:
            seen.append((thread.state.file, thread.state.line))
            return at

        thread.answers["access"] = access
        out = thread.buffer(8)
        struct.pack_into("I", out, 0, first)
        thread.run("k", "Q", address(out))
        assert seen == [(2 if line == 11 else 1, line) for line in lines]
    module = translated.module
    assert [module.files[i] for i in range(module.file_count)] == [
        b"",
        b"/a b/kernel.py",
        b"other//\\",
    ]


def test_launch_bounds_are_known(compiled: Compile) -> None:
    one = compiled(entry("", more=".maxntid 128, 2, 1\n.minnctapersm 2")).kernels["k"]
    assert (one.max_threads, one.waits, one.cooperative, one.local_bytes) == (256, 0, 0, 0)


WAITING = {
    "a flag": "ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0;",
    "an acquired flag": "ld.acquire.gpu.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0;",
    "a lock": "atom.global.cas.b32 %r1, [%out], 0, 1; setp.ne.u32 %p1, %r1, 0;",
    "an exchanged lock": "atom.global.exch.b32 %r1, [%out], 1; setp.ne.u32 %p1, %r1, 0;",
    "a counter": "atom.global.add.u32 %r1, [%out], 0; setp.ne.u32 %p1, %r1, 0;",
}


@pytest.mark.parametrize("loop", WAITING.values(), ids=list(WAITING))
def test_a_loop_that_waits_for_another_thread_lets_it_run(compiled: Compile, loop: str) -> None:
    translated = compiled(entry(f"LOOP: {loop} @%p1 bra LOOP;"))
    assert translated.kernels["k"].waits
    thread = Thread(translated)
    out = thread.buffer(8)
    struct.pack_into("I", out, 0, 0 if "ld." in loop else 1)

    def another() -> None:
        if len(thread.asked_for("yield")) == 3:
            struct.pack_into("I", out, 0, 1 if "ld." in loop else 0)

    thread.answers["yield"] = another
    thread.run("k", "Q", address(out))
    assert len(thread.asked_for("yield")) == 3


def test_a_loop_that_repeats_an_update_does_not_wait(compiled: Compile) -> None:
    body = """
        ld.volatile.global.u32 %r1, [%out];
        LOOP: mov.u32 %r2, %r1; add.u32 %r3, %r2, 1; atom.global.cas.b32 %r1, [%out], %r2, %r3;
        setp.ne.u32 %p1, %r1, %r2; @%p1 bra LOOP;
        """
    translated = compiled(entry(body))
    assert not translated.kernels["k"].waits
    thread, out = run(translated)
    assert words(out, 1) == [1]
    assert not thread.asked_for("yield")


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "wgmma.fence.sync.aligned;": "this instruction is not supported",
    "add.wild.u32 %r1, %r2, %r3;": ".wild is not supported here",
    "mov.u32 %r1, %unknown;": "the register %unknown is not declared, or not supported",
    "mov.u64 %rd1, nothing;": "the name nothing is defined in no module here",
    "bra NOWHERE;": "the label NOWHERE is not in this function",
    "call nowhere;": "the function nowhere is defined in no module here",
    "add.u32 %r1, %r2;": "not supported in this form",
    "cvt.u32.f32 %r1, %r2;": "a conversion to an integer has to say how it rounds",
    "shfl.sync.b32 %r1, %r2, 1, 31, -1;": "shfl needs one of up, down, bfly, idx",
    "shfl.up.b32 %r1, %r2, 1, 31;": "shfl without .sync is not supported",
    "atom.global.u32 %r1, [%rd1], 1;": "not supported in this form",
    "mov.u32 %r1, 0q12;": "'0q12' is no number",
    "ld.global.u64 %rd1, [outside];": "the name outside is defined in no module here",
    "ld.global.u64 %rd1, [table];": "addresses in initial values are not supported",
}
DECLARED = """
    .extern .func nowhere(); .extern .global .u64 outside; .global .u64 other;
    .global .u64 table[2] = {other, 5};
    """


@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal_names_the_instruction_and_its_line(text: str) -> None:
    registers = ".reg .b32 %r<5>;\n.reg .b64 %rd<5>;"
    kernel_text = f".visible .entry k()\n{{\n{registers}\n{text}\nret;\n}}\n"
    with pytest.raises(TranslationError) as caught:
        translate(HEAD + kernel_text + DECLARED)
    named = "table" if "table" in text else " ".join(text.replace(";", "").split())
    place = 13 if "table" in text else 8
    assert str(caught.value).startswith(f"PTX line {place}: '{named}")
    assert REFUSED[text] in str(caught.value)


def test_what_no_kernel_reaches_is_not_translated() -> None:
    translate(HEAD + DECLARED + ".visible .func f() { wgmma.fence.sync.aligned; ret; }" + entry(""))
