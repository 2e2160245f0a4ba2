"""Pairs two evaluations item by item, and says what changed and how sure that is.

Items are joined by id. What one side lacks is missing there and bounded at its worst. What must
not be paired at all (another metric, another prompt) is refused; what may have moved answers
besides the weights (engine, sampling, template) is named, and the policy decides.

A difference is candidate - baseline in *goodness*: where a lower score is better it is the fall
of the score, so that a drop is a loss for every task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Protocol

import numpy as np

from evals.engine import EngineFingerprint
from evals.errors import ComparisonRefused
from evals.evaluation import Evaluation
from evals.scoring import WITH_SCORE, Outcome, Score
from evals.stats.arrays import FloatArray, IntArray
from evals.stats.sample import difference_sample
from evals.task import Capability, TaskSpec

TASK_CONDITIONS = ("max_tokens", "stops", "prompt_fingerprint")
"""Fields of a task that may differ if the policy allows it; a prompt fingerprint only where one
side has none."""

CONDITIONS: tuple[str, ...] = (
    *(f.name for f in fields(EngineFingerprint)),
    "sampling",
    *TASK_CONDITIONS,
)
"""All that can move an answer besides the weights, as a policy names it."""

SAME_SCORE = 1e-9
"""Scores that differ by less are the same: sums of repeats may round differently."""


class Planned(Protocol):
    """An item that both sides were to answer."""

    @property
    def item_id(self) -> str:
        """Return the item's id."""
        ...

    @property
    def cluster(self) -> str | None:
        """Return the name of what it shares with other items, of this task or of others."""
        ...

    @property
    def stratum(self) -> str | None:
        """Return the fixed category of the item."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedItem:
    """What pairing needs to know of an item."""

    item_id: str
    cluster: str | None = None
    stratum: str | None = None


class Reading(StrEnum):
    """How a response that was cut off or could not be parsed counts."""

    TASK_SCORE = "task_score"
    """By the task's own rule for its text."""
    WORST = "worst"
    """At the worst score, on both sides alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """How responses count that ended otherwise than a whole, parsed answer."""

    truncated: Reading = Reading.TASK_SCORE
    unparsed: Reading = Reading.TASK_SCORE

    def of(self, outcome: Outcome) -> Reading:
        """Return how a response with this outcome counts."""
        match outcome:
            case Outcome.TRUNCATED:
                return self.truncated
            case Outcome.UNPARSED:
                return self.unparsed
            case Outcome.SCORED | Outcome.ERRORED | Outcome.MISSING:
                return Reading.TASK_SCORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A condition besides the weights that is not the same on both sides."""

    name: str
    """One of :data:`CONDITIONS`."""
    baseline: str
    candidate: str
    task: str | None = None
    """The task it concerns; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedScores:
    """Both sides' item scores of one task, as the task reports them, in the order of item ids.

    Raises:
        ComparisonRefused: ``duplicate_item`` or ``score_out_of_range``.
    """

    spec: TaskSpec
    item_ids: tuple[str, ...]
    """``[n]``, sorted."""
    baseline: FloatArray
    """``[n]``, mean over the repeats that have a score; NaN: none has."""
    candidate: FloatArray
    baseline_missing: FloatArray
    """``[n]``, share of the planned repeats that have no score."""
    candidate_missing: FloatArray
    clusters: tuple[str | None, ...] | None = None
    """``[n]``; None where no item shares content."""
    strata: tuple[str | None, ...] | None = None
    repeats: int = 1
    """The most that one item has on either side."""
    baseline_outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    """Responses by outcome."""
    candidate_outcomes: Mapping[Outcome, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Hold that all has the same length, ids are unique and scores in range."""
        arrays = (self.baseline, self.candidate, self.baseline_missing, self.candidate_missing)
        lengths = {len(array) for array in arrays}
        lengths |= {len(names) for names in (self.clusters, self.strata) if names is not None}
        if lengths != {len(self.item_ids)}:
            raise ValueError(f"{self.spec.name}: columns of different length")
        check_unique(self.item_ids, self.spec.name)
        check_scores(self.baseline, f"{self.spec.name}, baseline")
        check_scores(self.candidate, f"{self.spec.name}, candidate")

    @property
    def binary(self) -> bool:
        """Return whether each item was answered once and is right or wrong."""
        return self.spec.binary and self.repeats == 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ItemValues:
    """One number for each item, or the range it must lie in where scores are missing."""

    item_ids: tuple[str, ...]
    observed: FloatArray
    """``[n]``; NaN where a side has no score."""
    low: FloatArray
    """``[n]``, missing scores at what makes the value least."""
    high: FloatArray
    """``[n]``, missing scores at what makes the value largest."""
    binary: bool
    clusters: IntArray | None
    """``[n]``; None where no two items share one."""

    @property
    def n(self) -> int:
        """Return the items that have a value."""
        return int(np.count_nonzero(~np.isnan(self.observed)))

    @property
    def missing(self) -> int:
        """Return the items whose value is not known, or not from all repeats."""
        return int(np.count_nonzero(np.isnan(self.observed) | (self.high - self.low > SAME_SCORE)))

    @property
    def value(self) -> float | None:
        """Return the mean over items that have a value; None where none has."""
        return float(np.nanmean(self.observed)) if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """What changed on a task, or on all tasks of a capability."""

    name: str
    capability: Capability
    tasks: tuple[str, ...]
    n: int
    """Items that have a score on both sides."""
    value: float | None
    """Mean difference in goodness, in [-1, 1]; None where n is 0."""
    low: float
    """Missing scores are at their worst here, and at their best in ``high``."""
    high: float
    level: float
    baseline_mean: float | None
    """Mean score as the task reports it, over the items with a score on that side."""
    candidate_mean: float | None
    lost: tuple[str, ...]
    """Items that got worse, the largest loss first."""
    gained: tuple[str, ...]
    """Items that got better, the largest gain first."""
    baseline_missing: int
    """Items without a full score on that side."""
    candidate_missing: int
    baseline_outcomes: Mapping[str, int]
    candidate_outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairedEvaluations:
    """Two evaluations joined item by item; or one alone, for its ceilings and floors."""

    candidate: Evaluation
    baseline: Evaluation | None
    tasks: tuple[PairedScores, ...]
    """One for each task of the candidate, by name."""
    only_candidate: frozenset[str] = frozenset()
    """Names of the tasks in ``tasks`` that the baseline lacks."""
    only_baseline: tuple[TaskSpec, ...] = ()
    """Tasks that the candidate lacks."""
    differences: tuple[Difference, ...] = ()


def pair_evaluations(
    candidate: Evaluation,
    baseline: Evaluation | None,
    *,
    candidate_scores: Iterable[Score],
    baseline_scores: Iterable[Score] = (),
    planned: Mapping[str, Sequence[Planned]],
    readings: Readings | None = None,
    repeats: Mapping[str, int] | None = None,
) -> PairedEvaluations:
    """Join two evaluations task by task.

    Args:
        candidate: The evaluation in question.
        baseline: What it is compared with; None for a first promotion.
        candidate_scores: Its scores, any order, of any tasks.
        baseline_scores: The same of the baseline.
        planned: By task name, the items that either side was to answer.
        readings: How truncated and unparsed responses count; by default as the task says.
        repeats: By task name, planned repeats where they are more than one.

    Raises:
        ComparisonRefused: The metric or the prompt of a task differs, or scores are unfit.
    """
    of_candidate = _by_task(candidate_scores)
    of_baseline = _by_task(baseline_scores)
    specs = {spec.name: spec for spec in candidate.tasks}
    others = {spec.name: spec for spec in baseline.tasks} if baseline else {}
    differences = list(engine_differences(baseline, candidate)) if baseline else []
    pairs = []
    for name in sorted(specs):
        if name in others:
            differences += task_differences(others[name], specs[name])
        pairs.append(
            pair_scores(
                specs[name],
                planned=planned.get(name, ()),
                baseline=of_baseline.get(name, ()),
                candidate=of_candidate.get(name, ()),
                readings=readings or Readings(),
                repeats=(repeats or {}).get(name, 1),
            )
        )
    return PairedEvaluations(
        candidate=candidate,
        baseline=baseline,
        tasks=tuple(pairs),
        only_candidate=frozenset(specs) - frozenset(others),
        only_baseline=tuple(others[name] for name in sorted(others) if name not in specs),
        differences=tuple(differences),
    )


def pair_scores(
    spec: TaskSpec,
    *,
    planned: Sequence[Planned],
    baseline: Iterable[Score],
    candidate: Iterable[Score],
    readings: Readings | None = None,
    repeats: int = 1,
) -> PairedScores:
    """Join both sides' scores of one task by item id; no order matters.

    Args:
        spec: The task.
        planned: Items that either side was to answer, in any order and however often; items that
            only have scores are added.
        baseline: Scores of that side, one for each item and repeat.
        candidate: The same of the other side.
        readings: How truncated and unparsed responses count.
        repeats: Planned repeats of each item; a side that has more is taken as it is.

    Raises:
        ComparisonRefused: ``duplicate_item``; ``metric_differs`` where a score is of another
            metric than the task's.
    """
    known = {item.item_id: item for item in planned}
    sides = [
        _Side(spec, scores, readings or Readings(), repeats) for scores in (baseline, candidate)
    ]
    ids = tuple(sorted(known.keys() | sides[0].by_item.keys() | sides[1].by_item.keys()))
    (base, base_missing), (cand, cand_missing) = (side.columns(ids) for side in sides)
    lone = PlannedItem(item_id="")
    items = [known.get(item_id, lone) for item_id in ids]
    clusters = tuple(item.cluster for item in items)
    strata = tuple(item.stratum for item in items)
    return PairedScores(
        spec=spec,
        item_ids=ids,
        baseline=base,
        candidate=cand,
        baseline_missing=base_missing,
        candidate_missing=cand_missing,
        clusters=clusters if any(cluster is not None for cluster in clusters) else None,
        strata=strata if any(stratum is not None for stratum in strata) else None,
        repeats=max(side.repeats for side in sides),
        baseline_outcomes=sides[0].outcomes(ids),
        candidate_outcomes=sides[1].outcomes(ids),
    )


def paired_arrays(
    spec: TaskSpec,
    item_ids: Sequence[str],
    baseline: FloatArray,
    candidate: FloatArray,
    *,
    clusters: Sequence[str | None] | None = None,
) -> PairedScores:
    """Return item scores that are arrays already as a pair; NaN is a missing score.

    Args:
        spec: The task.
        item_ids: ``[n]``, any order.
        baseline: ``[n]`` item scores.
        candidate: ``[n]`` item scores.
        clusters: ``[n]``, where items share content.

    Raises:
        ComparisonRefused: ``duplicate_item`` or ``score_out_of_range``.
    """
    order = sorted(range(len(item_ids)), key=item_ids.__getitem__)
    base, cand = baseline[order], candidate[order]
    return PairedScores(
        spec=spec,
        item_ids=tuple(item_ids[i] for i in order),
        baseline=base,
        candidate=cand,
        baseline_missing=np.isnan(base).astype(np.float64),
        candidate_missing=np.isnan(cand).astype(np.float64),
        clusters=None if clusters is None else tuple(clusters[i] for i in order),
    )


def differences(pairs: Sequence[PairedScores]) -> ItemValues:
    """Return candidate - baseline in goodness over all items of some tasks, each item once."""
    base = [_goodness(pair, pair.baseline, pair.baseline_missing) for pair in pairs]
    cand = [_goodness(pair, pair.candidate, pair.candidate_missing) for pair in pairs]
    return ItemValues(
        item_ids=tuple(item_id for pair in pairs for item_id in pair.item_ids),
        observed=_joined([c.observed - b.observed for b, c in zip(base, cand, strict=True)]),
        low=_joined([c.low - b.high for b, c in zip(base, cand, strict=True)]),
        high=_joined([c.high - b.low for b, c in zip(base, cand, strict=True)]),
        binary=all(pair.binary for pair in pairs),
        clusters=_cluster_codes(pairs),
    )


def candidate_levels(pairs: Sequence[PairedScores]) -> ItemValues:
    """Return the candidate's item scores, as the tasks report them, over some tasks."""
    ranges = [_range(pair.candidate, pair.candidate_missing) for pair in pairs]
    return ItemValues(
        item_ids=tuple(item_id for pair in pairs for item_id in pair.item_ids),
        observed=_joined([one.observed for one in ranges]),
        low=_joined([one.low for one in ranges]),
        high=_joined([one.high for one in ranges]),
        binary=all(pair.binary for pair in pairs),
        clusters=_cluster_codes(pairs),
    )


def compare_task(pair: PairedScores, level: float = 0.95) -> TaskComparison:
    """Return what changed on one task, with an interval of two-sided ``level``."""
    return _compare(pair.spec.name, (pair,), level)


def compare_capabilities(
    pairs: Sequence[PairedScores], level: float = 0.95
) -> tuple[TaskComparison, ...]:
    """Return what changed by capability, all its items pooled with the same weight."""
    return tuple(
        _compare(capability.value, found, level)
        for capability in Capability
        if (found := tuple(pair for pair in pairs if pair.spec.capability is capability))
    )


def check_unique(item_ids: Sequence[str], where: str = "") -> None:
    """Hold that no item stands twice.

    Raises:
        ComparisonRefused: ``duplicate_item``.
    """
    if len(set(item_ids)) == len(item_ids):
        return
    twice = next(item for item, count in Counter(item_ids).items() if count > 1)
    raise ComparisonRefused(
        f"item {twice} has two scores",
        where,
        "give further answers to one question their repeat number",
        code="duplicate_item",
    )


def check_scores(values: FloatArray, where: str = "") -> None:
    """Hold that scores lie in [0, 1]; NaN stands for a missing one.

    Raises:
        ComparisonRefused: ``score_out_of_range``.
    """
    bad = values[(values < 0) | (values > 1)]
    if len(bad):
        raise ComparisonRefused(
            f"score {bad[0]:g} is not in [0, 1]",
            where,
            "give the metric a per-item form in [0, 1]",
            code="score_out_of_range",
        )


def engine_differences(baseline: Evaluation, candidate: Evaluation) -> tuple[Difference, ...]:
    """Return what differs between the sides' engine fingerprints and sampling."""
    old = {**asdict(baseline.engine), "sampling": baseline.sampling}
    new = {**asdict(candidate.engine), "sampling": candidate.sampling}
    return tuple(
        Difference(name=name, baseline=str(old[name]), candidate=str(new[name]))
        for name in old
        if old[name] != new[name]
    )


def task_differences(baseline: TaskSpec, candidate: TaskSpec) -> tuple[Difference, ...]:
    """Return what differs in how both sides were asked one task.

    Raises:
        ComparisonRefused: ``metric_differs`` or ``prompt_version_differs``: no policy allows it.
    """
    _refuse_other(
        ("metric_key", "higher_is_better", "binary"), baseline, candidate, "metric_differs"
    )
    prompt = ("version", "num_fewshot", "kind", "completion")
    _refuse_other(prompt, baseline, candidate, "prompt_version_differs")
    if baseline.prompt_fingerprint and candidate.prompt_fingerprint:
        _refuse_other(("prompt_fingerprint",), baseline, candidate, "prompt_version_differs")
    return tuple(
        Difference(name=name, baseline=str(old), candidate=str(new), task=candidate.name)
        for name in TASK_CONDITIONS
        if (old := getattr(baseline, name)) != (new := getattr(candidate, name))
    )


def _refuse_other(names: Sequence[str], baseline: TaskSpec, candidate: TaskSpec, code: str) -> None:
    for name in names:
        old, new = getattr(baseline, name), getattr(candidate, name)
        if old != new:
            raise ComparisonRefused(
                f"{name} differs: baseline {old}, candidate {new}",
                candidate.name,
                "evaluate both sides with the same task version and metric",
                code=code,
            )


class _Side:
    """One side's scores of one task, by item."""

    def __init__(
        self, spec: TaskSpec, scores: Iterable[Score], readings: Readings, repeats: int
    ) -> None:
        self._worst = 0.0 if spec.higher_is_better else 1.0
        self._readings = readings
        self.by_item: dict[str, dict[int, Score]] = {}
        self.repeats = repeats
        for score in scores:
            self._add(spec, score)

    def _add(self, spec: TaskSpec, score: Score) -> None:
        if (score.task, score.metric) != (spec.name, spec.metric_key):
            raise ComparisonRefused(
                f"a score of {score.task} under {score.metric} is not one under {spec.metric_key}",
                spec.name,
                "score both sides under the task's primary metric",
                code="metric_differs",
            )
        rows = self.by_item.setdefault(score.item_id, {})
        if score.repeat in rows:
            check_unique([score.item_id, score.item_id], spec.name)
        rows[score.repeat] = score
        self.repeats = max(self.repeats, score.repeat + 1)

    def columns(self, item_ids: Sequence[str]) -> tuple[FloatArray, FloatArray]:
        """Return each item's mean score, NaN without any, and its share of missing repeats."""
        means = np.full(len(item_ids), np.nan)
        missing = np.ones(len(item_ids))
        for position, item_id in enumerate(item_ids):
            values = [
                self._read(score)
                for _, score in sorted(self.by_item.get(item_id, {}).items())
                if score.outcome in WITH_SCORE
            ]
            if values:
                means[position] = sum(values) / len(values)
                missing[position] = 1 - len(values) / self.repeats
        return means, missing

    def outcomes(self, item_ids: Sequence[str]) -> dict[Outcome, int]:
        """Return responses by outcome; planned ones that are not there are missing."""
        counts = Counter(score.outcome for rows in self.by_item.values() for score in rows.values())
        counts[Outcome.MISSING] += self.repeats * len(item_ids) - counts.total()
        return {outcome: counts[outcome] for outcome in Outcome}

    def _read(self, score: Score) -> float:
        if score.value is None or self._readings.of(score.outcome) is Reading.WORST:
            return self._worst
        return score.value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Range:
    """Item scores of one side with the range that missing ones leave open."""

    observed: FloatArray
    low: FloatArray
    high: FloatArray


def _range(values: FloatArray, missing: FloatArray) -> _Range:
    low = np.where(np.isnan(values), 0.0, values) * (1 - missing)
    return _Range(observed=values, low=low, high=low + missing)


def _goodness(pair: PairedScores, values: FloatArray, missing: FloatArray) -> _Range:
    raw = _range(values, missing)
    if pair.spec.higher_is_better:
        return raw
    return _Range(observed=1 - raw.observed, low=1 - raw.high, high=1 - raw.low)


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty(0)


def _cluster_codes(pairs: Sequence[PairedScores]) -> IntArray | None:
    """Return a number for each item's cluster over all tasks; None where none is shared."""
    if all(pair.clusters is None for pair in pairs):
        return None
    codes: list[int] = []
    known: dict[str, int] = {}
    alone = 0
    for pair in pairs:
        for cluster in pair.clusters or (None,) * len(pair.item_ids):
            if cluster is None:
                alone -= 1
                codes.append(alone)
            else:
                codes.append(known.setdefault(cluster, len(known)))
    return np.array(codes, dtype=np.int64) if len(known) - alone < len(codes) else None


def _by_task(scores: Iterable[Score]) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for score in scores:
        found.setdefault(score.task, []).append(score)
    return found


def _compare(name: str, pairs: Sequence[PairedScores], level: float) -> TaskComparison:
    items = differences(pairs)
    alpha = (1 - level) / 2
    worst = difference_sample(items.low, binary=items.binary, clusters=items.clusters)
    best = difference_sample(items.high, binary=items.binary, clusters=items.clusters)
    value = items.value
    here = 0.0 if value is None else value
    lost, gained = flips(items)
    return TaskComparison(
        name=name,
        capability=pairs[0].spec.capability,
        tasks=tuple(pair.spec.name for pair in pairs),
        n=items.n,
        value=value,
        low=min(worst.lower(alpha), here),
        high=max(best.upper(alpha), here),
        level=level,
        baseline_mean=_mean([pair.baseline for pair in pairs]),
        candidate_mean=_mean([pair.candidate for pair in pairs]),
        lost=lost,
        gained=gained,
        baseline_missing=_count_missing([pair.baseline_missing for pair in pairs]),
        candidate_missing=_count_missing([pair.candidate_missing for pair in pairs]),
        baseline_outcomes=total_outcomes([pair.baseline_outcomes for pair in pairs]),
        candidate_outcomes=total_outcomes([pair.candidate_outcomes for pair in pairs]),
    )


def flips(items: ItemValues) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of items that got worse and better, the largest change first."""
    change = np.nan_to_num(items.observed)
    ranked = np.argsort(-np.abs(change), kind="stable")
    lost, gained = (
        tuple(items.item_ids[i] for i in ranked[side * change[ranked] > SAME_SCORE])
        for side in (-1, 1)
    )
    return lost, gained


def total_outcomes(parts: Sequence[Mapping[Outcome, int]]) -> dict[str, int]:
    """Return responses by outcome over some tasks."""
    return {outcome.value: sum(part.get(outcome, 0) for part in parts) for outcome in Outcome}


def _mean(parts: Sequence[FloatArray]) -> float | None:
    values = _joined(parts)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _count_missing(parts: Sequence[FloatArray]) -> int:
    return int(np.count_nonzero(_joined(parts) > SAME_SCORE))
