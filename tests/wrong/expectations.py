"""What has to become of each kernel in ``suites/`` and of each suite in ``refused/``.

A kernel that stands in no table is right: it has to be measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent

SUITES = ("results", "later", "checks", "endings", "manners")

ENDED = "started and ended without an outcome"
"""All that is known of a process of asv's that is gone."""


@dataclass(frozen=True)
class Outcome:
    """Of one case: its status, and words of its reason, or of its warnings where it has a time."""

    status: str
    words: str = ""
    status_of_asv: str = ""
    """Where asv tells less of its processes; else the same."""
    words_of_asv: str = ""

    def under_asv(self) -> Outcome:
        return Outcome(self.status_of_asv, self.words_of_asv) if self.status_of_asv else self


def ok(words: str = "") -> Outcome:
    return Outcome("ok", words)


def wrong(words: str) -> Outcome:
    return Outcome("wrong", words)


def failed(words: str) -> Outcome:
    return Outcome("failed", words)


def ended(how: str) -> Outcome:
    """``gpubench time`` is told how a process ended, asv does not say."""
    return Outcome("killed", how, "killed", ENDED)


def timed_out() -> Outcome:
    return Outcome("timed_out", "its timeout of 3 s")


POISON_LEFT = "are NaN or infinite on one side only"
READ_ONLY = (
    "the run changed a, which the suite declares to be read only; if that is meant, declare "
    "`intent: inout`"
)
VACUOUS = "vacuous check: "
AS_IT_WAS = "leaves every output as it found it"
FRESH = "fresh inputs"
"""In the warning of a case whose runs each get fresh inputs, as its time depends on them."""

OUTCOMES: dict[str, Outcome] = {
    # wrong from the first call on
    "results double off_by_one": wrong("999 of 1000 elements are off by more than"),
    "results double last_block_left_out": wrong(
        f"40 of 1000 elements {POISON_LEFT}; first at [960]: nan"
    ),
    "results double last_element_left_out": wrong(f"1 of 1000 elements {POISON_LEFT}"),
    "results double writes_nothing": wrong(f"1000 of 1000 elements {POISON_LEFT}"),
    "results double writes_half": wrong(f"500 of 1000 elements {POISON_LEFT}"),
    "results double writes_zeros": wrong("1000 of 1000 elements are off by more than"),
    "results double writes_nan": wrong(POISON_LEFT),
    "results double writes_infinity": wrong(POISON_LEFT),
    "results double rounds_to_half": wrong("are off by more than"),
    "results double adds_to_what_is_there": wrong(POISON_LEFT),
    "results double writes_elsewhere": wrong(POISON_LEFT),
    "results double doubles_its_input": wrong(READ_ONLY),
    "results double clears_its_input": wrong(READ_ONLY),
    "results double deletes_its_input": wrong(READ_ONLY),
    "results double changes_dtype_of_output": wrong("out: dtype int64"),
    "results double changes_shape_of_output": wrong("out: shape (2, 500)"),
    "results double reads_outside": wrong("1 of 1000 elements are off by more than"),
    "results double uses_random_state": wrong("are off by more than"),
    "results double arrives_at_the_next_call": wrong(POISON_LEFT),
    "results double arrives_on_a_thread": wrong(POISON_LEFT),
    "results double_by_scratch shares_scratch": wrong(POISON_LEFT),
    "results doubled returns_nothing": failed("returned NoneType"),
    "results doubled returns_its_input": wrong("result: 1000 of 1000 elements are off"),
    "results doubled returns_a_view": wrong("result: 1000 of 1000 elements are off"),
    "results doubled returns_a_list": failed("list"),
    "results doubled returns_a_tuple": failed("tuple"),
    "results doubled returns_text": failed("str"),
    "results doubled returns_a_generator": failed("generator"),
    "results doubled returns_two": failed("tuple"),
    "results doubled returns_float32": wrong("dtype float32"),
    "results doubled returns_objects": wrong("dtype object"),
    "results doubled returns_a_column": wrong("shape (1000, 1)"),
    "results doubled returns_too_few": wrong("shape (999,)"),
    "results doubled returns_a_number": wrong("shape ()"),
    "results doubled returns_masked": failed("MaskedArray"),
    "results doubled returns_a_future": failed("Future"),
    "results parts swapped": wrong("low: 1000 of 1000 elements are off"),
    "results parts only_low": wrong(f"high: 1000 of 1000 elements {POISON_LEFT}"),
    "results order sort_nothing": wrong("numbers: "),
    "results order sort_copy": wrong("numbers: "),
    "results order reverse": wrong("numbers: "),
    "results compiled last_block": wrong(f"40 of 1000 elements {POISON_LEFT}"),
    "results compiled outside": wrong("1 of 1000 elements are off by more than"),
    "results compiled raises": failed("ValueError: the last element"),
    "results compiled does_not_compile": failed("no_such_method"),
    # right at first
    "later double second_call": wrong("a second run on the same inputs is wrong"),
    "later double third_call": wrong("right at first"),
    "later double tenth_call": wrong("right at first"),
    "later double hundredth_call": wrong("right at first"),
    "later double stale": wrong("right at first"),
    "later double loses_updates": wrong("right at first"),
    "later double keeps_its_first_arguments": wrong("right at first"),
    "later double adds_to_numbers": wrong("right at first"),
    "later double glitches": wrong("right at first, wrong in run 50"),
    "later double raises_at_the_third_call": failed("three is too much"),
    "later double raises_late": failed("fifty is too much"),
    "later double_in_turns tenth_call": wrong("right at first"),
    "later double_in_turns hundredth_call": wrong("right at first"),
    "later double_in_turns loses_updates": wrong("right at first"),
    "later sines remembers": wrong("gives the outputs of those before"),
    # right on fresh inputs, and quicker on those that it has been run on
    "later sines skips_what_is_done": ok(FRESH),
    "later order sorts_what_may_be_sorted": ok(FRESH),
    "later order sorts_unless_sorted": ok(FRESH),
    # checks that prove nothing
    "checks softmax_of_zeros zeros": wrong("are off by more than"),
    "checks softmax_within_one *": failed("cannot tell the right result from zeros"),
    "checks double_within_0_6 *": failed("cannot tell the right result from half of it"),
    "checks seidel_2d *": failed("cannot tell the right result from what was there before"),
    "checks sort_of_equals *": failed(VACUOUS + "the baseline " + AS_IT_WAS),
    "checks sort_of_ones *": failed("a copy would pass for the result"),
    "checks transpose_of_ones *": failed("a copy would pass for the result"),
    "checks sort_of_sorted *": failed(VACUOUS + "the baseline " + AS_IT_WAS),
    "checks double_of_zeros *": failed("what a kernel that does nothing may give too"),
    "checks relative_one *": failed("cannot tell the right result from zeros"),
    "checks norm_one *": failed("cannot tell the right result from zeros"),
    "checks accepts_all *": failed("takes zeros for the right result"),
    "checks check_raises *": failed(
        "failed: KeyError: there is no 'result' in raise_in_check (wrong_kernels.py:"
    ),
    "checks baseline_all_nan *": failed(VACUOUS),
    "checks baseline_all_infinite *": failed("only NaN and infinities"),
    "checks baseline_writes_nothing *": failed(VACUOUS + "the baseline " + AS_IT_WAS),
    "checks baseline_returns_its_input *": failed(VACUOUS + "the baseline " + AS_IT_WAS),
    "checks baseline_returns_a_list *": failed("list"),
    "checks baseline_writes_half *": wrong(
        "500 of the 1,000 elements of 'out' unwritten, the first at [1]"
    ),
    "checks baseline_changes_its_input *": wrong(READ_ONLY),
    "checks baseline_unlike_itself *": wrong("a second run on the same inputs is wrong"),
    "checks baseline_wrong_later *": wrong("right at first"),
    "checks baseline_crashes *": ended("SIGSEGV"),
    # ends of a process
    "endings double exits_with_0": ended("exit code 0"),
    "endings double exits_with_7": ended("exit code 7"),
    "endings double exits_while_sampled": ended("exit code 7"),
    "endings double leaves": failed("SystemExit: 3"),
    "endings double leaves_while_sampled": failed("SystemExit: 3"),
    # Under asv, Ctrl-C is everybody's: a record cannot say whose it was.
    "endings double interrupts": Outcome("failed", "KeyboardInterrupt", "killed", ENDED),
    "endings double stops_the_generator": ended("exit code 1"),
    "endings double crashes": ended("SIGSEGV"),
    "endings double aborts": ended("SIGABRT"),
    "endings double is_killed": ended("SIGKILL"),
    "endings double is_terminated": ended("SIGTERM"),
    "endings double takes_all_memory": failed("MemoryError: Unable to allocate 256. PiB"),
    "endings double recurses": failed("RecursionError"),
    "endings endless hangs": timed_out(),
    "endings endless in_compiled_code": timed_out(),
    "endings endless while_sampled": timed_out(),
}

REFUSED = {
    "kernel_missing": "module 'wrong_kernels' has no 'double_it'",
    "module_missing": "there is no module 'wrong_kernel'",
    "too_few_arguments": "array 'out' is used by nothing",
    "too_many_arguments": "argument",
    "check_missing": "has no 'accept'",
    "check_with_other_arguments": "argument",
    "fill_missing": "has no 'slopes'",
    "fill_with_other_arguments": "argument",
    "init_missing": "has no 'inputs'",
    "nothing_is_written": "writes nothing that could be checked",
    "nothing_is_compared": "no output is compared",
    "negative_tolerance": "rtol: found -1",
    "infinite_tolerance": "'.inf' is not a finite number",
    "one_without_a_baseline": "no implementation 'numpy' to measure against",
    "no_baseline": "no implementation 'numpy' to measure against",
    "like_another_size": "has 1,000 elements, and this array 2,000",
    "fill_beyond_dtype": "int8 takes whole numbers from -128 to 127",
    "scalar_beyond_dtype": "int8 takes whole numbers from -128 to 127",
    "unknown_dtype": "unknown dtype 'float99'",
    "pair_of_one": "is compared with itself",
    "device_nobody_serves": "no backend runs on 'gpu:0'; the processor is cpu, a GPU is cuda:0",
    "everything_excluded": "these rules exclude every case; change their formulas",
    "baseline_excluded": "every case of the baseline 'numpy', so that nothing has a speedup",
    "zeros_within_tolerance": "rtol: found 1e+30; allowed: a number from 0 to 1",
    "fewest_above_most": "repeat: at least 12 and at most 5 samples",
    "timeout_below_a_start": "timeout: found 1e-300; allowed: a number of seconds from 0.1",
    "sample_of_a_day": "sample_time: found 86400; allowed: a number of seconds above 0",
    "like_an_output": "array 'out' has intent out and holds nothing at first",
    "more_than_any_memory": "no machine has room for more than 2**47",
    "hundred_dimensions": "shape: found a list of 100; allowed: at most 64",
    "launch_of_nothing": "the backend numpy launches nothing: remove `launch`",
    "threads_of_a_gpu": "`threads` cannot be set: a GPU has the threads of a launch's",
    "source_missing": "there is no source 'double.cl'",
}
"""Words of the fault that ``gpubench check`` has to find in each suite of ``refused/``."""


def outcome(name: str) -> Outcome:
    """What has to become of a case, by suite, kernel and implementation; one that is right is
    measured."""
    all_of_kernel = name.rpartition(" ")[0] + " *"
    return OUTCOMES.get(name) or OUTCOMES.get(all_of_kernel) or ok()


def otherwise(cases: Mapping[str, Mapping[str, Any]], expected: Mapping[str, Outcome]) -> str:
    """Cases that ended otherwise than they had to, a line for each; empty where none did."""
    lines = []
    for name, case in cases.items():
        words = "; ".join(filter(None, [case["reason"], *case["warnings"]]))
        if case["status"] != expected[name].status or expected[name].words not in words:
            lines.append(f"{name}: {case['status']}: {words}, and not {expected[name]}")
    return "\n".join(lines)
