"""What there is to choose from, and what is chosen where the URL does not say; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.query import AppQuery
from evals.evaluation import Evaluation
from storage.pairing import Sides


def known(value: str | None, options: Iterable[str]) -> str | None:
    """Return a filter of the URL if it is one of the options; None, all of them, otherwise."""
    return value if value in set(options) else None


def suites_of(evaluations: Iterable[Evaluation]) -> list[str]:
    """Return the suites' names, each once, in order of appearance."""
    return list(dict.fromkeys(evaluation.suite for evaluation in evaluations))


def names_of(evaluations: Iterable[Evaluation]) -> list[str]:
    """Return the checkpoints' names, each once, by run and then by step as a number."""
    found = {(one.checkpoint.run, one.checkpoint.step): one.checkpoint.name for one in evaluations}
    return [found[key] for key in sorted(found)]


def name_before(evaluation: Evaluation, evaluations: Iterable[Evaluation]) -> str | None:
    """Return the name of the checkpoint before this one in its run, on its suite; None: none."""
    here = evaluation.checkpoint
    earlier = [
        one.checkpoint
        for one in evaluations
        if one.checkpoint.run == here.run
        and one.checkpoint.step < here.step
        and one.suite == evaluation.suite
    ]
    return max(earlier, key=lambda one: one.step).name if earlier else None


def with_sides(query: AppQuery, evaluations: Sequence[Evaluation]) -> AppQuery:
    """Return the query with both sides of a comparison and their suite filled in.

    Without a candidate it is the checkpoint evaluated last; without a baseline the step before
    it, else any other. What the URL names stays, also where there is no such checkpoint.

    Args:
        query: What the URL says.
        evaluations: All there are, oldest first; at least one.
    """
    candidate = query.candidate or evaluations[-1].checkpoint.name
    ours = [one for one in evaluations if one.checkpoint.name == candidate]
    baseline = query.baseline or _other_side(candidate, ours, evaluations)
    common = common_suites(candidate, baseline, evaluations)
    suite = query.suite if query.suite in common else next(iter(common), query.suite)
    return replace(query, candidate=candidate, baseline=baseline, suite=suite)


def common_suites(
    candidate: str, baseline: str | None, evaluations: Sequence[Evaluation]
) -> list[str]:
    """Return the suites on which both checkpoints were evaluated, the latest first."""
    latest_first = list(reversed(evaluations))
    theirs = suites_of(one for one in latest_first if one.checkpoint.name == baseline)
    ours = suites_of(one for one in latest_first if one.checkpoint.name == candidate)
    return [suite for suite in ours if suite in theirs]


def pinned_sides(query: AppQuery, evaluations: Sequence[Evaluation]) -> Sides | None:
    """Return the two evaluations that the URL names by id; None where it names no such two."""
    by_id = {one.evaluation_id: one for one in evaluations}
    candidate = by_id.get(query.candidate_evaluation or "")
    baseline = by_id.get(query.baseline_evaluation or "")
    if candidate is None or baseline is None:
        return None
    if (candidate.checkpoint.name, baseline.checkpoint.name) != (query.candidate, query.baseline):
        return None
    return Sides(candidate=candidate, baseline=baseline)


def _other_side(
    candidate: str, ours: Sequence[Evaluation], evaluations: Sequence[Evaluation]
) -> str | None:
    before = name_before(ours[-1], evaluations) if ours else None
    others = [name for name in names_of(evaluations) if name != candidate]
    if before is None and not others:
        return candidate if len(ours) > 1 else None
    return before or others[-1]
