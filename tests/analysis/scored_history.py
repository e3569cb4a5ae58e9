"""Holds what the analysis claims of a generated history against what was planted into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from generated_history import QUIET, GeneratedHistory, Planted, generate
from histories import history_of

from gpubench.analysis.causes import ExplainedChange, explained_changes
from gpubench.analysis.changes import changes_of
from gpubench.results import CaseName, Row, Setup, Snapshot

NEAR = 1
"""Commits by which a claimed step may miss its place: noise can move a commit across a step."""


@dataclass
class Score:
    """What was found, missed and invented in one history."""

    counts: Counter[str] = field(default_factory=Counter)
    missed: list[Planted] = field(default_factory=list)
    misjudged: list[tuple[Planted, ExplainedChange]] = field(default_factory=list)
    invented: list[ExplainedChange] = field(default_factory=list)


def score(seed: int, **size: int) -> Score:
    """Generate a history and judge every claim about it."""
    generated, result = generate(seed, **size), Score()
    place = {commit.hash: index for index, commit in enumerate(generated.commits)}
    result.counts["series"] = len(generated.stories)
    quiet = sum(story in QUIET for story in generated.stories.values())
    result.counts["series with nothing planted"] = quiet
    for setup in dict.fromkeys(snapshot.setup for snapshot, _ in generated.measured):
        measured = [item for item in generated.measured if item[0].setup == setup]
        history, rows = history_of(measured), {one.id: rows for one, rows in measured}
        changes = changes_of(history)
        claims = explained_changes(history, changes, partial(_rows, rows))
        places = [place[commit.hash] for commit in history.commits]
        _judge(result, generated, setup, claims, places)
    return result


def _rows(
    rows: Mapping[int, Mapping[CaseName, Row]], snapshot: Snapshot, _: Collection[CaseName]
) -> Mapping[CaseName, Row]:
    return rows[snapshot.id]


def _judge(
    result: Score,
    generated: GeneratedHistory,
    setup: Setup,
    claims: tuple[ExplainedChange, ...],
    places: list[int],
) -> None:
    open_claims = [claim for claim in claims if claim.change.kind == "step"]
    result.counts["differences at the newest commit"] += len(claims) - len(open_claims)
    for planted in (planted for planted in generated.planted if planted.setup == setup):
        kind = "planted above noise" if planted.above_noise else "planted near noise"
        result.counts[kind] += 1
        claim = next((c for c in open_claims if _fits(c, planted, places)), None)
        if claim is None:
            result.missed.append(planted)
            result.counts[f"{kind} and missed"] += 1
            continue
        open_claims.remove(claim)
        if claim.cause != planted.cause:
            result.misjudged.append((planted, claim))
            result.counts[f"{kind} as {planted.cause}, explained by {claim.cause}"] += 1
    for claim in open_claims:
        story = generated.stories[setup, claim.name]
        result.counts[f"steps not planted, story {story}"] += 1
        if story in QUIET:
            result.invented.append(claim)


def _fits(claim: ExplainedChange, planted: Planted, places: list[int]) -> bool:
    """``places`` are those of the setup's commits among all."""
    before, after = places[claim.change.before], places[claim.change.after]
    near = before - NEAR <= planted.after - 1 <= after - 1 + NEAR
    return claim.name == planted.name and claim.change.slower == (planted.factor > 1) and near
