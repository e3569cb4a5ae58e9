"""PTX text becomes plain records, with the lines of the source and of the PTX."""

from __future__ import annotations

import pytest

from softcuda.translation.ptx import (
    Block,
    Function,
    Instruction,
    Label,
    Prototype,
    Registers,
    Statement,
    Targets,
    TranslationError,
    Variable,
    parse,
    split_operands,
)


def body_of(text: str) -> tuple[Statement, ...]:
    """Return the statements of a function with this body, which begins on line 2."""
    (function,) = parse(f".func f()\n{{ {text} }}").functions
    assert function.body
    return function.body.statements


def instruction(text: str) -> Instruction:
    (one,) = body_of(text)
    assert isinstance(one, Instruction)
    return one


@pytest.mark.parametrize(
    ("text", "opcode", "modifiers", "operands"),
    [
        ("ret;", "ret", (), ()),
        ("add.s64 %rd1, %rd2, -1;", "add", ("s64",), ("%rd1", "%rd2", "-1")),
        ("ld.global.nc.v2.f32 {%f1, _}, [%rd1+-8];", "ld", ("global", "nc", "v2", "f32"),
         ("{%f1, _}", "[%rd1+-8]")),
        ("ld.global.L1::evict_last.b32 %r1,[x+4];", "ld", ("global", "L1::evict_last", "b32"),
         ("%r1", "[x+4]")),
        ("st.global.v2.f32 [%rd1],{%f1,%f2};", "st", ("global", "v2", "f32"),
         ("[%rd1]", "{%f1,%f2}")),
        ("setp.lt.s32 %p1|%p2, %r1, %r2;", "setp", ("lt", "s32"), ("%p1|%p2", "%r1", "%r2")),
        ("call.uni (retval0),\n vprintf,\n (\n param0,\n param1\n );", "call", ("uni",),
         ("(retval0)", "vprintf", "(\n param0,\n param1\n )")),
        ("bar.sync\t0;", "bar", ("sync",), ("0",)),
    ],
)  # fmt: skip
def test_an_instruction_has_modifiers_and_operands(
    text: str, opcode: str, modifiers: tuple[str, ...], operands: tuple[str, ...]
) -> None:
    one = instruction(text)
    assert (one.opcode, one.modifiers, one.operands) == (opcode, modifiers, operands)


@pytest.mark.parametrize(
    ("text", "guard", "negated"),
    [("@%p1 ret;", "%p1", False), ("@!%p12 bra.uni L;", "%p12", True), ("ret;", "", False)],
)
def test_an_instruction_may_have_a_guard(text: str, guard: str, negated: bool) -> None:
    one = instruction(text)
    assert (one.guard, one.negated) == (guard, negated)


def test_an_instruction_reads_as_it_was_written() -> None:
    assert str(instruction("@!%p1  add.rn.f32\t%f1,%f2, %f3 ;")) == "@!%p1 add.rn.f32 %f1, %f2, %f3"


def test_instructions_know_the_line_of_the_source_and_of_the_ptx() -> None:
    text = """
        ret;
        .loc 1 17 5
        ret; /* two
        lines */ ret; // ret;
        .loc\t3 4 0, function_name $L__info_string0, inlined_at 1 15 3
        ret;"""
    found = [one for one in body_of(text) if isinstance(one, Instruction)]
    assert [(one.file, one.line, one.ptx_line) for one in found] == [
        (0, 0, 3),
        (1, 17, 5),
        (1, 17, 6),
        (3, 4, 8),
    ]


def test_files_keep_what_looks_like_a_comment() -> None:
    module = parse('.file 1 "/tmp//a.py"\n.file\t12 "b /* c */.py", 17, 20\n')
    assert module.files == {1: "/tmp//a.py", 12: "b /* c */.py"}


def test_labels_scopes_and_registers() -> None:
    found = body_of("$L__1: { .reg .b32 %r<24>; .reg .pred p, q; } L2 : ret;")
    assert found[:3] == (
        Label("$L__1"),
        Block(
            (
                Registers("%r", "b32", 24),
                Registers("p", "pred", None),
                Registers("q", "pred", None),
            )
        ),
        Label("L2"),
    )  # fmt: skip


def parameter(name: str, kind: str, align: int, line: int, shape: tuple[int, ...] = ()) -> Variable:
    return Variable(name, "param", kind, shape, align, "", False, line)


def test_lists_of_labels_and_prototypes_have_names() -> None:
    assert body_of("ts: .branchtargets A, B, A;") == (Targets("ts", ("A", "B", "A")),)
    text = "p_1 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[24]);"
    assert body_of(text) == (
        Prototype(
            "p_1",
            parameter("_", "b32", 4, 2),
            (parameter("_", "b64", 8, 2), parameter("_", "b8", 8, 2, (24,))),
        ),
    )


def test_variables_of_a_module() -> None:
    module = parse("""
        .visible .shared .align 4 .b8 smem[256];
        .extern .shared .align 16 .b8 dynamic[];
        .common .global .align 8 .u64 environment;
        .const .align 1 .b8 text[3] = {72, 105};
        .global .attribute(.managed) .align 4 .f32 table[2][3] = {{0f3F800000}, {2.5, 1}};
        """)
    smem, dynamic, environment, text, table = module.variables
    assert smem == Variable("smem", "shared", "b8", (256,), 4, "", False, 2)
    assert (dynamic.shape, dynamic.extern, dynamic.bytes) == ((0,), True, 0)
    assert (environment.kind, environment.shape, environment.bytes) == ("u64", (), 8)
    assert (text.space, text.initial) == ("const", "{72, 105}")
    assert (table.shape, table.bytes, table.ptx_line) == ((2, 3), 24, 6)


def test_an_entry_has_parameters_and_bounds() -> None:
    (one,) = parse("""
        .visible .entry kernel(
            .param .u64 .ptr .global .align 16 a,
            .param .align 8 .b8 b[12],
            .param .f32 c
        )
        .maxntid 128, 2, 1
        .minnctapersm 2
        { ret; }
        """).functions
    assert (one.name, one.entry, one.max_threads, one.ptx_line) == ("kernel", True, 256, 2)
    assert one.parameters == (
        parameter("a", "u64", 8, 2),
        parameter("b", "b8", 8, 2, (12,)),
        parameter("c", "f32", 4, 2),
    )
    assert [one.bytes for one in one.parameters] == [8, 12, 4]


def test_functions_may_be_declared_and_return_a_value() -> None:
    declared, defined = parse("""
        .extern .func  (.param .b32 func_retval0) vprintf
        (
            .param .b64 vprintf_param_0
        )
        ;
        .weak .func nothing() .noreturn { trap; }
        """).functions
    assert declared == Function(
        "vprintf",
        False,
        parameter("func_retval0", "b32", 4, 2),
        (parameter("vprintf_param_0", "b64", 8, 2),),
        None,
        0,
        False,
        2,
    )
    assert defined.body is not None
    assert (defined.name, defined.returned, defined.parameters) == ("nothing", None, ())
    assert defined.weak


def test_debug_information_is_left_out() -> None:
    module = parse("""
        .func f() { ret; }
        .section .debug_info
        {
            .b32 1302
            .b8 2
            .b64 .debug_loc+39
        }
        .section .debug_str { info: .b8 116,0 }
        .func g() { ret; }
        """)
    assert [one.name for one in module.functions] == ["f", "g"]
    assert module.variables == ()


def test_hints_and_the_header_say_nothing() -> None:
    module = parse('.version 9.5\n.target sm_80, debug\n.address_size 64\n.pragma "nounroll";\n')
    assert (module.functions, module.variables) == ((), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".func f()\n{ ret;", "PTX line 2: '': this is no statement, or a scope is not closed"),
        ("}", "PTX line 1: '}': no scope is open here"),
        ("\n.global .tex t;",
         "PTX line 2: '.global .tex t': declarations with .tex are not supported"),
        (".func f(.reg .b32 a) { ret; }",
         "PTX line 1: '.reg .b32 a': parameters have to be in the space .param"),
        (".func f() {\n\n5; }", "PTX line 3: '5': this is no instruction"),
        (".func {", "PTX line 1: '{': this is no function"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_line_and_what_stands_there(text: str, message: str) -> None:
    with pytest.raises(TranslationError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_operands_are_split_outside_of_brackets() -> None:
    assert split_operands("a, {b, c}, [d + 4], (e, (f, g))") == [
        "a",
        "{b, c}",
        "[d + 4]",
        "(e, (f, g))",
    ]
    assert split_operands("") == []
