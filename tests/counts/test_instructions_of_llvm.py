"""What single instructions of LLVM count, and what is put into a module to count them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gpubench.counts.counters import instrument
from gpubench.counts.instructions import (
    CPU_COUNTS,
    called_function,
    count_instruction,
    measured_counts,
)
from gpubench.counts.ir import Lines, Place, parse, parse_type


def counts_of(text: str) -> Mapping[str, int]:
    return {name: count for name, count in count_instruction(f"  {text}").items() if count}


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("%x = fadd double %a, %b", {"ir_float": 1, "flops_float64": 1, "flops_lanes_1": 1}),
        ("%x = fmul fast <8 x float> %a, %b",
         {"ir_float": 1, "flops_float32": 8, "flops_lanes_8": 8}),
        ("%x = tail call double @llvm.fma.f64(double %a, double %b, double %c)",
         {"ir_float": 1, "flops_float64": 2, "flops_lanes_1": 2}),
        ("%x = call <4 x double> @llvm.fmuladd.v4f64(<4 x double> %a, <4 x double> %b, "
         "<4 x double> %c)", {"ir_float": 1, "flops_float64": 8, "flops_lanes_4": 8}),
        ("%x = call reassoc double @llvm.vector.reduce.fadd.v4f64(double 0.000000e+00, "
         "<4 x double> %v)", {"ir_float": 1, "flops_float64": 3, "flops_lanes_4": 3}),
        ("%x = call double @llvm.vector.reduce.fadd.v4f64(double %s, <4 x double> %v)",
         {"ir_float": 1, "flops_float64": 4, "flops_lanes_4": 4}),
        ("%x = fneg double %a", {"ir_float": 1}),
        ("%x = fcmp ogt <4 x double> %a, %b", {"ir_float": 1}),
        ("%x = call double @llvm.fabs.f64(double %a)", {"ir_float": 1}),
        ("%x = fdiv <4 x double> %a, %b",
         {"ir_float": 1, "divisions": 4, "special_functions": 4}),
        ("%x = srem i64 %a, %b", {"ir_integer": 1, "integer_divisions": 1}),
        ("%x = icmp eq <4 x i64> %a, %b", {"ir_integer": 1}),
        ("%x = sitofp i64 %a to double", {"ir_convert": 1}),
        ("%x = getelementptr inbounds i8, ptr %a, i64 8", {"ir_address": 1}),
        ("%x = shufflevector <4 x i32> %a, <4 x i32> %b, <4 x i32> zeroinitializer",
         {"ir_move": 1}),
        ("%x = load <4 x double>, ptr %p, align 8, !tbaa !3",
         {"ir_memory": 1, "loads": 1, "load_bytes": 32}),
        ("%x = load volatile i8*, i8** %p, align 8",
         {"ir_memory": 1, "loads": 1, "load_bytes": 8}),
        ("store { i64, double } %v, ptr %p, align 8",
         {"ir_memory": 1, "stores": 1, "store_bytes": 16}),
        ("%x = atomicrmw add ptr %p, i64 1 monotonic", {"ir_memory": 1, "atomics": 1}),
        ("br label %next", {"ir_control": 1, "branches": 1}),
        ("br i1 %c, label %a, label %b",
         {"ir_control": 1, "branches": 1, "conditional_branches": 1}),
        ("ret i32 0", {"ir_control": 1}),
        ("%x = call double @pow(double %a, double %b)",
         {"ir_control": 1, "calls": 1, "libm_functions": 1, "special_functions": 1}),
        ("%x = call <4 x double> @__svml_sin4(<4 x double> %a)",
         {"ir_control": 1, "calls": 1, "libm_functions": 4, "special_functions": 4}),
        ("%x = call <2 x double> @llvm.sqrt.v2f64(<2 x double> %a)",
         {"ir_float": 1, "libm_functions": 2, "special_functions": 2}),
        ("%x = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)",
         {"ir_control": 1, "calls": 1, "allocations": 1}),
        ('%x = tail call fastcc i32 @"_ZN8kernels3addE"(ptr %r)', {"ir_control": 1, "calls": 1}),
        ("%x = call i32 %function(ptr %r)", {"ir_control": 1, "calls": 1}),
        ("call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)",
         {"ir_memory": 1, "loads": 1, "stores": 1}),
    ],
)  # fmt: skip
def test_an_instruction_counts_what_it_does(text: str, counts: dict[str, int]) -> None:
    assert counts_of(text) == {"ir_instructions": 1, **counts}
    assert counts.keys() <= CPU_COUNTS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "%x = phi double [ %a, %one ], [ %b, %other ]",
        "call void @llvm.assume(i1 %c)",
        "call void @llvm.lifetime.start.p0(i64 8, ptr %p)",
    ],
)
def test_what_no_processor_executes_counts_nothing(text: str) -> None:
    assert counts_of(text) == {}


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("call void @llvm.memcpy.p0.p0.i64(ptr align 8 %a, ptr %b, i64 %n, i1 false)",
         [("load_bytes", 1, "%n", 0), ("store_bytes", 1, "%n", 0)]),
        ("tail call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 800, i1 false)",
         [("store_bytes", 1, "800", 0)]),
        ("%x = call <4 x double> @llvm.masked.load.v4f64.p0(ptr %p, i32 8, <4 x i1> %m, "
         "<4 x double> poison)", [("load_bytes", 8, "%m", 4)]),
        ("call void @llvm.masked.store.v8f32.p0(<8 x float> %v, ptr %p, i32 4, <8 x i1> %m)",
         [("store_bytes", 4, "%m", 8)]),
        ("%x = load double, ptr %p, align 8", []),
    ],
)  # fmt: skip
def test_lengths_and_masks_are_counted_by_the_run(
    text: str, measured: list[tuple[str, int, str, int]]
) -> None:
    found = measured_counts(f"  {text}")
    assert [(one.name, one.unit, one.value, one.mask_bits) for one in found] == measured


def test_a_called_function_has_its_name() -> None:
    assert called_function('  %x = call i32 @"_ZN1a"(ptr %r)') == "_ZN1a"
    assert called_function("  %x = call i32 %f(ptr %r)") == "indirect"
    assert called_function("  %x = call double @llvm.fabs.f64(double %a)") is None


@pytest.mark.parametrize(
    ("text", "element", "lanes", "size"),
    [
        ("<16 x i1>", "i1", 16, 2),
        ("[3 x [2 x float]]", "[3 x [2 x float]]", 1, 24),
        ("{ i8*, <2 x double>, i32 }", "{ i8*, <2 x double>, i32 }", 1, 28),
        ("half", "half", 1, 2),
        ("token", "token", 1, 0),
    ],
)
def test_types_have_lanes_and_bytes(text: str, element: str, lanes: int, size: int) -> None:
    found = parse_type(text)
    assert (found.element, found.lanes, found.bytes) == (element, lanes, size)


MODULE = """\
define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %loop, !dbg !4

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
    #dbg_value(i64 %i, !7, !DIExpression(), !5)
  %v = load i64, ptr %p, align 8, !dbg !5
  %next = add i64 %i, %v
  switch i64 %next, label %loop [
    i64 5, label %end
    i64 6, label %end
  ], !dbg !6

end:
  ret i64 %i, !dbg !4
}

!1 = !DIFile(filename: "kernels.py", directory: "/project")
!2 = distinct !DISubprogram(name: "sum", linkageName: "sum", scope: !1, file: !1, line: 1)
!3 = distinct !DISubprogram(name: "add", linkageName: "add", scope: !1, file: !1, line: 9)
!4 = !DILocation(line: 2, column: 1, scope: !2)
!5 = !DILocation(line: 10, column: 1, scope: !3, inlinedAt: !4)
!6 = !DILocation(line: 0, scope: !3, inlinedAt: !4)
"""


def test_blocks_have_instructions_and_lines_also_of_what_was_inlined() -> None:
    module = parse(MODULE)
    (function,) = module.functions
    loop = function.blocks[1]

    assert [block.label and block.label.split(":")[0] for block in function.blocks] == [
        "entry", "loop", "end",
    ]  # fmt: skip
    assert [text.split("(")[0].split()[0] for text in loop.instructions] == [
        "%i", "%v", "%next", "switch",
    ]  # fmt: skip
    inlined = Place("/project/kernels.py", 10)
    # What has no line belongs to the line before; line 0 is that of the call.
    assert Lines(module).places_in(loop) == [inlined] * 3 + [Place("/project/kernels.py", 2)]
    assert module.source_functions() == {"sum", "add"}


@pytest.mark.parametrize(("typed", "pointer"), [(False, "ptr"), (True, "i64*")])
def test_each_block_counts_after_its_phis_and_is_added_up_at_the_end(
    typed: bool, pointer: str
) -> None:
    counted = instrument(parse(MODULE), 3, typed_pointers=typed)
    lines = [line.strip() for line in counted.text.split("\n")]

    assert len(counted.counters) == 3
    phi = lines.index("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
    assert lines[phi + 1].startswith(f"%gpubench_1_at = getelementptr i64, {pointer}")
    end = lines.index("ret i64 %i")
    assert lines[end - 1].startswith(f"call void @gpubench_add_3({pointer} %gpubench_slots, ")
    assert "!dbg" not in counted.text
    assert f"@{counted.symbol} = global [3 x i64] zeroinitializer" in counted.text


def test_a_function_that_calls_itself_takes_no_more_of_the_stack() -> None:
    text = "define void @f() {\n  call void @f()\n  ret void\n}\n"
    counted = instrument(parse(text), 0, typed_pointers=False)
    assert "alloca" not in counted.text
    assert "atomicrmw add ptr getelementptr ([1 x i64], ptr @gpubench_counts_0" in counted.text
