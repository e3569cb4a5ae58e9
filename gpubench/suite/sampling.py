"""How outputs are checked and times are sampled, in the suite format."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, model_validator

from gpubench.suite.types import (
    LIST,
    MAPPING,
    SINGLE,
    AbsoluteTolerance,
    AtLeast,
    AtMost,
    Count,
    Dtype,
    Identifier,
    Model,
    Reference,
    RelativeTolerance,
    RepeatSeconds,
    SampleSeconds,
    Timeout,
    WarmupSeconds,
    Words,
    by_form,
    problem,
)

Tolerances = Annotated[
    Annotated[AbsoluteTolerance, SINGLE] | Annotated[dict[Dtype, AbsoluteTolerance], MAPPING],
    by_form("a number from 0, or one for each dtype"),
]


RelativeTolerances = Annotated[
    Annotated[RelativeTolerance, SINGLE] | Annotated[dict[Dtype, RelativeTolerance], MAPPING],
    by_form("a number from 0 to 1, or one for each dtype"),
]


class OutputCheck(Model):
    """How one output is compared, where that is not as the others are."""

    rtol: RelativeTolerances | None = None
    """Relative tolerance; absent: that of `check`."""
    atol: Tolerances | None = None
    """Absolute tolerance; absent: that of `check`."""
    norm: Literal["max", "l2"] | None = None
    """`max` or `l2`; absent: that of `check`."""
    dtype: Literal["same", "any"] | None = None
    """`same` or `any`; absent: that of `check`."""
    compare: StrictBool = True
    """`false`: it is written and not compared."""
    reason: Words | None = None
    """Why it is not compared, for people; only with `compare: false`, which needs it."""

    @model_validator(mode="after")
    def _check(self) -> OutputCheck:
        if self.compare and self.reason is not None:
            raise problem("a reason goes with compare: false; remove one or add the other")
        if not self.compare and self.reason is None:
            raise problem("compare: false needs a reason: why may this output be anything?")
        given = [rule for rule in self.rules() if getattr(self, rule) is not None]
        if not self.compare and given:
            raise problem(f"compare: false takes no {given[0]}; remove one of them", (given[0],))
        return self

    @classmethod
    def rules(cls) -> list[str]:
        """Return the fields by which an output is compared; each is a field of ``Check`` too."""
        return [name for name in cls.model_fields if name in Check.model_fields]


class Check(Model):
    """How an implementation's outputs are compared with the baseline's, or how good they have to
    be."""

    rtol: RelativeTolerances | None = None
    """Relative tolerance, one number or one for each dtype; absent: 1e-2 for float16, 1e-5 for
    float32, 1e-12 for float64."""
    atol: Tolerances | None = None
    """Absolute tolerance, one number or one for each dtype; absent: `rtol` times the root mean
    square of the baseline's output, with `norm: l2` 0."""
    norm: Literal["max", "l2"] = "max"
    """`max` compares element by element, `l2` the norm of the difference."""
    dtype: Literal["same", "any"] = "same"
    """`any`: outputs may be of another precision than the baseline's; by default, tolerances are
    those of the coarser of the two."""
    function: Reference | None = None
    """`module:name` of a checker of one's own, called with outputs and expected."""
    score: Reference | None = None
    """`module:name` of what says in one number above 0 how good outputs are, called with outputs
    and inputs; in place of a comparison."""
    at_most: AtMost | None = None
    """With `score`, where lower is better: how many times the baseline's score is allowed."""
    at_least: AtLeast | None = None
    """With `score`, where higher is better: how many times the baseline's score is needed."""
    outputs: dict[Identifier, OutputCheck] = Field(default={})
    """What is different for single outputs, by the name of an array or of what is returned."""

    @model_validator(mode="after")
    def _check(self) -> Check:
        limits = [name for name in ("at_most", "at_least") if getattr(self, name) is not None]
        if self.score is None:
            if limits:
                raise problem("it goes with score: module:name", (limits[0],))
            return self
        if len(limits) != 1:
            raise problem(
                "a score has exactly one of at_most (lower is better) and at_least (higher is"
                f" better); found {' and '.join(limits) or 'none'}"
            )
        for name in ("rtol", "atol", "norm", "function"):
            if name in self.model_fields_set and getattr(self, name) is not None:
                raise problem("a score takes its place; remove one of them", (name,))
        for name, output in self.outputs.items():
            if output.compare:
                message = "a score looks at all outputs together; allowed here: compare: false"
                raise problem(message, ("outputs", name))
        return self

    def of(self, name: str) -> Check:
        """Return how the output of this name is compared: its own tolerances before those of
        all."""
        # A column's name is its table's and its own: answer.v1.
        output = self.outputs.get(name) or self.outputs.get(name.partition(".")[0])
        if output is None:
            return self
        own = output.model_dump(include={*output.rules()}, exclude_none=True)
        return self.model_copy(update=own)

    def uncompared(self) -> dict[str, str]:
        """Return the outputs that are written and not compared: the reason, by name."""
        outputs = self.outputs.items()
        return {name: output.reason or "" for name, output in outputs if not output.compare}


Repeat = Annotated[
    Annotated[Count, SINGLE] | Annotated[tuple[Count, Count, RepeatSeconds], LIST],
    by_form("a whole number from 1, or [least, most, seconds]"),
]


class Sampling(Model):
    """How often is measured, in asv's words; what is absent is asv's default."""

    rounds: Count | None = None
    """Separate processes for the samples."""
    repeat: Repeat | None = None
    """Samples in a round, or `[least, most, seconds]`."""
    number: Count | None = None
    """Calls in a sample; absent: calibrated."""
    sample_time: SampleSeconds | None = None
    """Seconds that one sample should take."""
    warmup_time: WarmupSeconds | None = None
    """Seconds before the first sample."""
    timeout: Timeout | None = None
    """Seconds after which a case is given up."""
    paired: StrictBool | None = None
    """Whether the speedup comes from samples taken in turn with the baseline's; absent: on the CPU,
    where that takes little."""
    memory: StrictBool | None = None
    """Whether runs that are not timed tell the most memory that one holds."""

    @model_validator(mode="after")
    def _check(self) -> Sampling:
        if isinstance(self.repeat, tuple) and self.repeat[0] > self.repeat[1]:
            least, most, _ = self.repeat
            message = f"at least {least} and at most {most} samples; [least, most, seconds]"
            raise problem(f"{message} has the smaller number first", ("repeat",))
        return self
