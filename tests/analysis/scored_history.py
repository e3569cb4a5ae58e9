"""Holds what the analysis claims of a generated history against what was planted into it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from generated_history import QUIET, GeneratedHistory, Planted, generate

from gpubench.analysis.causes import Explained, explained_changes
from gpubench.analysis.history import Setup, by_setup

NEAR = 1
"""Commits by which a found step may miss its place: noise can move a commit across a step."""


@dataclass
class Score:
    """What was found, missed and invented in one history."""

    counts: Counter[str] = field(default_factory=Counter)
    missed: list[Planted] = field(default_factory=list)
    misjudged: list[tuple[Planted, Explained]] = field(default_factory=list)
    invented: list[Explained] = field(default_factory=list)


def score(seed: int, **size: int) -> Score:
    """Generate a history and judge every claim about it."""
    history, result = generate(seed, **size), Score()
    place = {commit.hash: index for index, commit in enumerate(history.results.commits)}
    result.counts["series"] = len(history.stories)
    result.counts["series with nothing planted"] = sum(s in QUIET for s in history.stories.values())
    for setup_history in by_setup(history.results):
        _judge(result, history, setup_history.setup, explained_changes(setup_history), place)
    return result


def _judge(
    result: Score,
    history: GeneratedHistory,
    setup: Setup,
    claims: tuple[Explained, ...],
    place: dict[str, int],
) -> None:
    open_claims = [claim for claim in claims if claim.change.kind == "step"]
    result.counts["differences at the newest commit"] += len(claims) - len(open_claims)
    for planted in (planted for planted in history.planted if planted.setup == setup):
        kind = "planted above noise" if planted.above_noise else "planted near noise"
        result.counts[kind] += 1
        claim = next((c for c in open_claims if _fits(c, planted, place)), None)
        if claim is None:
            result.missed.append(planted)
            result.counts[f"{kind} and missed"] += 1
            continue
        open_claims.remove(claim)
        if claim.cause != planted.cause:
            result.misjudged.append((planted, claim))
            result.counts[f"{kind} as {planted.cause}, explained by {claim.cause}"] += 1
    for claim in open_claims:
        story = history.stories[setup, claim.name]
        result.counts[f"steps not planted, story {story}"] += 1
        if story in QUIET:
            result.invented.append(claim)


def _fits(claim: Explained, planted: Planted, place: dict[str, int]) -> bool:
    near = (
        place[claim.before.hash] - NEAR <= planted.after - 1 <= place[claim.after.hash] - 1 + NEAR
    )
    return claim.name == planted.name and claim.change.slower == (planted.factor > 1) and near
