"""From records and the lake's counts to tidy tables; nothing here knows Streamlit.

Scores are shares of 1 in these tables; whoever shows them turns them into percent. A capability's
score is the mean over all its items in *goodness*: where a lower score is better, 1 − score.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from app.looks import NO_VERDICT
from app.plain import shortened
from evals.compare import SAME_SCORE, PairedScores, TaskComparison, differences
from evals.evaluation import EvaluationState
from evals.gate import REASONS
from evals.scoring import Outcome
from evals.stats.arrays import FloatArray, IntArray
from evals.stats.interval import Interval
from evals.stats.single_run import mean_interval
from evals.stats.verdict import Verdict
from evals.task import Capability, TaskSpec
from storage.aggregates import DecisionHead
from storage.checkpoints import StoredCheckpoint
from storage.evaluations import StoredEvaluation
from storage.text import decode_text

TaskKey = tuple[str, str]
"""Evaluation id and task name."""

ItemKey = tuple[str, str]
"""Task name and item id."""

UNWHOLE = (Outcome.TRUNCATED, Outcome.UNPARSED, Outcome.ERRORED, Outcome.MISSING)
"""Outcomes that a table of scores has to show beside them."""

CHANGES = ("lost", "gained", "missing")
"""What became of an item: worse, better, or not known on one side."""

CAPABILITY_NAMES = {one: one.value.replace("_", " ") for one in Capability}

WARNINGS = {
    "few_degrees_of_freedom": "its items fall into few clusters, so that the interval is rough",
    "drop_within_margin": "a drop is proven, and it is smaller than the margin",
}
"""What a rule's warning codes mean; those of its reasons are the gate's own."""

NOT_EVALUATED = "not evaluated"

_QUESTION_FIELDS = ("question", "prompt", "query", "problem", "instruction", "goal", "text")
_PREVIEW = 140
_SHORT = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskCounts:
    """How many items of one task of one evaluation have which score and outcome."""

    values: FloatArray
    """``[k]`` distinct scores (within a cluster), as the task reports them."""
    items: IntArray
    """``[k]`` items that have them."""
    clusters: tuple[str | None, ...]
    """``[k]``; None: its items stand alone."""
    outcomes: Mapping[Outcome, int]
    """Responses; planned ones that are not there are missing."""
    planned: int
    """Responses."""
    repeats: int


def index_counts(
    scores: pa.Table, outcomes: pa.Table, planned: pa.Table
) -> dict[TaskKey, TaskCounts]:
    """Return the counts of ``storage.aggregates`` by evaluation and task."""
    scored = {
        (str(key[0]), decode_text(str(key[1]))): part
        for key, part in scores.to_pandas().groupby(["evaluation_id", "task"], sort=False)
    }
    responses: dict[TaskKey, dict[Outcome, int]] = {}
    for key, task, outcome, count in _rows(outcomes):
        responses.setdefault((key, decode_text(task)), {})[Outcome(outcome)] = count
    return {
        (key, decode_text(task)): _task_counts(
            scored.get((key, decode_text(task))),
            responses.get((key, decode_text(task)), {}),
            asked,
            repeats,
        )
        for key, task, asked, repeats in _rows(planned)
    }


def task_scores(
    stored: StoredEvaluation, counts: Mapping[TaskKey, TaskCounts], level: float = 0.95
) -> pd.DataFrame:
    """Return one row for each task of an evaluation, its score as the task reports it.

    Columns: ``task``, ``capability``, ``metric``, ``better`` (higher or lower), ``n``, ``value``,
    ``low``, ``high`` and one for each outcome.
    """
    rows = []
    for spec in stored.evaluation.tasks:
        found = counts.get((stored.evaluation.evaluation_id, spec.name))
        parts = [(spec, found)] if found else []
        outcomes = found.outcomes if found else {}
        rows.append(
            {
                "task": spec.name,
                "capability": CAPABILITY_NAMES[spec.capability],
                "metric": spec.metric_key,
                "better": "higher" if spec.higher_is_better else "lower",
                **_estimate(parts, level, goodness=False),
                **{outcome.value: outcomes.get(outcome, 0) for outcome in Outcome},
            }
        )
    return pd.DataFrame(rows)


def capability_scores(
    evaluations: Sequence[StoredEvaluation],
    counts: Mapping[TaskKey, TaskCounts],
    level: float = 0.95,
) -> pd.DataFrame:
    """Return one row for each evaluation and capability, in goodness.

    Columns: ``evaluation``, ``run``, ``step``, ``capability``, ``n``, ``value``, ``low``, ``high``.
    """
    rows = []
    for stored in evaluations:
        one = stored.evaluation
        for capability in Capability:
            specs = [spec for spec in one.tasks if spec.capability is capability]
            parts = [
                (spec, counts[one.evaluation_id, spec.name])
                for spec in specs
                if (one.evaluation_id, spec.name) in counts
            ]
            if specs:
                rows.append(
                    {
                        "evaluation": one.evaluation_id,
                        "run": one.checkpoint.run,
                        "step": one.checkpoint.step,
                        "capability": CAPABILITY_NAMES[capability],
                        **_estimate(parts, level, goodness=True),
                    }
                )
    columns = ["evaluation", "run", "step", "capability", "n", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def overview_table(
    checkpoints: Sequence[StoredCheckpoint],
    evaluations: Sequence[StoredEvaluation],
    heads: Sequence[DecisionHead],
    counts: Mapping[TaskKey, TaskCounts],
    stored_responses: Mapping[str, int],
) -> pd.DataFrame:
    """Return one row for each evaluation, and one for each checkpoint that has none.

    Args:
        checkpoints: Those to show.
        evaluations: Of one suite.
        heads: All decisions, oldest first.
        counts: Of these evaluations.
        stored_responses: By evaluation id, responses in lake or spool of those that are running.

    Returns:
        By run, step and time: ``evaluation`` (empty: none), ``run``, ``step``, ``checkpoint``
        (``RUN@STEP``), ``state``, ``verdict``, ``decision`` (empty: none), ``engine`` and one
        column for each outcome of ``UNWHOLE``.
    """
    latest = latest_decisions(heads)
    rows = []
    for checkpoint in sorted(checkpoints, key=lambda one: (one.ref.run, one.ref.step)):
        ref = checkpoint.ref
        found = [one for one in evaluations if one.evaluation.checkpoint.digest == ref.digest]
        found = [one for one in found if one.evaluation.checkpoint.name == ref.name]
        head = latest.get((ref.name, ref.digest))
        about = {
            "run": ref.run,
            "step": ref.step,
            "checkpoint": ref.name,
            "verdict": head.verdict if head else NO_VERDICT,
            "decision": head.decision if head else "",
        }
        if not found:
            rows.append({**about, "evaluation": "", "state": NOT_EVALUATED, "engine": ""})
        for stored in found:
            rows.append(
                {
                    **about,
                    "evaluation": stored.evaluation.evaluation_id,
                    "state": state_text(stored, counts, stored_responses),
                    "engine": engine_text(stored),
                    **_unwhole(stored, counts),
                }
            )
    columns = ["evaluation", "run", "step", "checkpoint", "verdict", "decision", "state", "engine"]
    table = pd.DataFrame(rows, columns=[*columns, *(outcome.value for outcome in UNWHOLE)])
    return table.astype({outcome.value: "Int64" for outcome in UNWHOLE})


def latest_decisions(heads: Sequence[DecisionHead]) -> dict[tuple[str, str], DecisionHead]:
    """Return the last of some decisions, oldest first, by the candidate's name and digest."""
    return {(head.candidate, head.candidate_digest): head for head in heads}


def state_text(
    stored: StoredEvaluation,
    counts: Mapping[TaskKey, TaskCounts],
    stored_responses: Mapping[str, int],
) -> str:
    """Return how far an evaluation has come, in words."""
    one = stored.evaluation
    if one.state is not EvaluationState.RUNNING:
        return one.state.value
    planned = sum(counts[key].planned for key in _keys(stored) if key in counts)
    done = stored_responses.get(one.evaluation_id, 0)
    return f"running, {done / planned:.0%}" if planned else "running"


def engine_text(stored: StoredEvaluation) -> str:
    """Return what tells evaluations of one checkpoint apart."""
    one = stored.evaluation
    again = f", repeat {one.attempt}" if one.attempt else ""
    return f"{one.engine.engine} {one.engine.version} {one.engine.dtype}{again}"


def comparison_table(comparisons: Sequence[TaskComparison]) -> pd.DataFrame:
    """Return one row for each task or capability, in the order given.

    Columns: ``name``, ``capability``, ``n``, ``baseline``, ``candidate`` (mean scores as the task
    reports them), ``value``, ``low``, ``high`` (the difference in goodness), ``lost``, ``gained``,
    ``baseline_missing``, ``candidate_missing``.
    """
    return pd.DataFrame(
        [
            {
                "name": one.name.replace("_", " ") if one.name == one.capability else one.name,
                "capability": CAPABILITY_NAMES[one.capability],
                "n": one.n,
                "baseline": _number(one.baseline_mean),
                "candidate": _number(one.candidate_mean),
                "value": _number(one.value),
                "low": one.low,
                "high": one.high,
                "lost": len(one.lost),
                "gained": len(one.gained),
                "baseline_missing": one.baseline_missing,
                "candidate_missing": one.candidate_missing,
            }
            for one in comparisons
        ]
    )


def changed_items(
    pairs: Iterable[PairedScores], baseline: pa.Table, candidate: pa.Table
) -> pd.DataFrame:
    """Return the items that are not the same on both sides: lost first, the largest change first.

    Args:
        pairs: Both sides, task by task.
        baseline: Its scores, a table of ``storage.tables.SCORES``.
        candidate: The same of the other side.

    Returns:
        ``change`` (of ``CHANGES``), ``task``, ``item``, ``baseline`` and ``candidate`` (scores as
        the task reports them, NaN: none), ``difference`` (in goodness), ``baseline_outcome`` and
        ``candidate_outcome`` (of several repeats all there are).
    """
    parts = [_changed(pair) for pair in pairs]
    columns = ["change", "task", "item", "baseline", "candidate", "difference"]
    table = pd.concat(parts) if parts else pd.DataFrame(columns=columns)
    keys = list(zip(table["task"], table["item"], strict=True))
    for side, scores in (("baseline", baseline), ("candidate", candidate)):
        outcomes = _outcomes_by_item(scores, frozenset(keys))
        table[f"{side}_outcome"] = [outcomes.get(key, Outcome.MISSING.value) for key in keys]
    order = {change: rank for rank, change in enumerate(CHANGES)}
    ranked = table.assign(
        rank=table["change"].map(order), size=table["difference"].abs().fillna(0.0)
    )
    ranked = ranked.sort_values(
        ["rank", "size", "task", "item"], ascending=[True, False, True, True]
    )
    return ranked.drop(columns=["rank", "size"]).reset_index(drop=True)


def chosen_items(
    changed: pd.DataFrame, change: str | None, task: str | None, outcome: str | None
) -> pd.DataFrame:
    """Return the rows of ``changed_items`` that fit all that is given."""
    keep = pd.Series(data=True, index=changed.index)
    if change is not None:
        keep &= changed["change"] == change
    if task is not None:
        keep &= changed["task"] == task
    if outcome is not None:
        either = zip(*(changed[f"{side}_outcome"] for side in _SIDES), strict=True)
        has = [any(outcome in side.split(" + ") for side in both) for both in either]
        keep &= pd.Series(has, index=changed.index, dtype=bool)
    return changed[keep].reset_index(drop=True)


def question_text(doc: Mapping[str, Any] | None) -> str:
    """Return the beginning of a question, for a list."""
    if doc is None:
        return ""
    for name in _QUESTION_FIELDS:
        if isinstance(doc.get(name), str):
            return shortened(doc[name], _PREVIEW)
    return shortened(json.dumps(doc, ensure_ascii=False), _PREVIEW)


def doc_fields(doc: Mapping[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return a document's fields as text: those to read, the question first, and the short rest."""
    texts = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in doc.items()
    ]
    known = {name: rank for rank, name in enumerate(_QUESTION_FIELDS)}
    texts.sort(key=lambda field: (known.get(field[0], len(known)), field[0]))
    long = [field for field in texts if field[0] in known or len(field[1]) > _SHORT]
    return long, [field for field in texts if field not in long]


def decision_table(heads: Sequence[DecisionHead]) -> pd.DataFrame:
    """Return one row for each decision, the latest first.

    Columns: ``decision``, ``at``, ``verdict``, ``candidate``, ``baseline``, ``policy``.
    """
    columns = ["decision", "at", "verdict", "candidate", "baseline", "policy"]
    rows = [[getattr(head, name) for name in columns] for head in reversed(heads)]
    return pd.DataFrame(rows, columns=columns)


def rule_table(document: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row for each rule of a decision's document, in the policy's order.

    Columns: ``rule``, ``subject``, ``verdict``, ``role``, ``tier``, ``margin``, ``tolerate``,
    ``ceiling``, ``floor``, ``n``, ``value``, ``low``, ``high``, ``level``, ``p_pass``, ``p_fail``,
    ``p_fail_adjusted``, ``missing``, ``lost``, ``gained``, ``why``.
    """
    same = (
        *("subject", "verdict", "role", "tier", "margin", "tolerate", "ceiling", "floor", "n"),
        *("value", "low", "high", "level", "p_pass", "p_fail", "p_fail_adjusted", "missing"),
    )
    rows = [
        {
            "rule": rule["name"],
            **{name: rule[name] for name in same},
            "lost": rule["flips"]["lost"],
            "gained": rule["flips"]["gained"],
            "why": "; ".join(rule_reasons(rule)),
        }
        for rule in document["rules"]
    ]
    limits = ["margin", "tolerate", "ceiling", "floor", "value"]
    return pd.DataFrame(rows).astype(dict.fromkeys(limits, "float64"))


def rule_reasons(rule: Mapping[str, Any]) -> list[str]:
    """Return in words why a rule is open, and what is worth knowing beside its verdict."""
    reasons = [REASONS.get(code, code) for code in rule["reasons"]]
    reasons += [WARNINGS.get(code, code) for code in rule["warnings"]]
    if rule["verdict"] == Verdict.INCONCLUSIVE.value and not rule["reasons"]:
        reasons.append("its items neither prove it nor prove that it fails")
    if rule["suspect"]:
        reasons.append("on its own it would have failed")
    return reasons


def reason_lines(document: Mapping[str, Any]) -> list[str]:
    """Return each reason of a decision once, with the rules that it is about."""
    about: dict[str, list[str]] = {}
    for rule in document["rules"]:
        for reason in rule_reasons(rule):
            about.setdefault(reason, []).append(f"{rule['name']} ({rule['verdict']})")
    whole = [REASONS.get(code, code) for code in document["reasons"]]
    lines = [f"The whole: {reason}." for reason in whole if reason not in about]
    return lines + [f"{', '.join(rules)}: {reason}." for reason, rules in about.items()]


def limit_table(rules: pd.DataFrame) -> pd.DataFrame:
    """Return where each rule's limits lie on the scale of its estimate.

    Columns: ``rule``, ``limit`` (margin, tolerate, ceiling or floor) and ``at``; a margin of 0.1
    is a difference of −0.1. To tolerate nothing is no limit.
    """
    signs = {"margin": -1, "tolerate": -1, "ceiling": 1, "floor": 1}
    rows = [
        {"rule": rule["rule"], "limit": limit, "at": sign * rule[limit]}
        for rule in rules.to_dict("records")
        for limit, sign in signs.items()
        if not np.isnan(rule[limit]) and (limit != "tolerate" or rule[limit] > 0)
    ]
    return pd.DataFrame(rows, columns=["rule", "limit", "at"])


_SIDES = ("baseline", "candidate")


def _rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _task_counts(
    scored: pd.DataFrame | None, outcomes: Mapping[Outcome, int], planned: int, repeats: int
) -> TaskCounts:
    missing = max(0, planned - sum(outcomes.values())) + outcomes.get(Outcome.MISSING, 0)
    clusters: tuple[str | None, ...] = ()
    if scored is not None:
        clusters = tuple(None if pd.isna(one) else str(one) for one in scored["cluster"])
    return TaskCounts(
        values=np.array([] if scored is None else scored["value"], dtype=np.float64),
        items=np.array([] if scored is None else scored["items"], dtype=np.int64),
        clusters=clusters,
        outcomes={**dict.fromkeys(Outcome, 0), **outcomes, Outcome.MISSING: missing},
        planned=planned,
        repeats=repeats,
    )


def _estimate(
    parts: Sequence[tuple[TaskSpec, TaskCounts]], level: float, *, goodness: bool
) -> dict[str, float]:
    """Return ``n``, ``value``, ``low`` and ``high`` over all items of some tasks."""
    interval = _interval(parts, level, goodness=goodness)
    if interval is None:
        return {"n": 0, "value": np.nan, "low": np.nan, "high": np.nan}
    return {
        "n": interval.n,
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
    }


def _interval(
    parts: Sequence[tuple[TaskSpec, TaskCounts]], level: float, *, goodness: bool
) -> Interval | None:
    values = [
        np.repeat(
            1 - found.values if goodness and not spec.higher_is_better else found.values,
            found.items,
        )
        for spec, found in parts
    ]
    joined = np.concatenate(values) if values else np.empty(0)
    if not len(joined):
        return None
    return mean_interval(
        joined,
        binary=all(spec.binary and found.repeats == 1 for spec, found in parts),
        clusters=_cluster_codes([found for _, found in parts]),
        level=level,
    )


def _cluster_codes(parts: Sequence[TaskCounts]) -> IntArray | None:
    """Return a number for each item's cluster over all tasks; None where none is shared."""
    known: dict[str, int] = {}
    codes = []
    alone = 0
    for part in parts:
        for cluster, items in zip(part.clusters, part.items, strict=True):
            if cluster is None:
                codes.append(np.arange(-alone - items, -alone, dtype=np.int64))
                alone += int(items)
            else:
                codes.append(np.full(items, known.setdefault(cluster, len(known)), dtype=np.int64))
    joined = np.concatenate(codes)
    return joined if len(known) + alone < len(joined) else None


def _keys(stored: StoredEvaluation) -> list[TaskKey]:
    return [(stored.evaluation.evaluation_id, spec.name) for spec in stored.evaluation.tasks]


def _unwhole(
    stored: StoredEvaluation, counts: Mapping[TaskKey, TaskCounts]
) -> dict[str, int | None]:
    """Return responses by outcome; while it runs, what is not there is owed and not missing."""
    found = [counts[key].outcomes for key in _keys(stored) if key in counts]
    totals: dict[str, int | None] = {
        outcome.value: sum(one[outcome] for one in found) for outcome in UNWHOLE
    }
    if stored.evaluation.state is EvaluationState.RUNNING:
        totals[Outcome.MISSING.value] = None
    return totals


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _changed(pair: PairedScores) -> pd.DataFrame:
    """Return one task's items that are not the same on both sides."""
    difference = differences([pair]).observed
    change = np.select(
        [np.isnan(difference), difference < -SAME_SCORE, difference > SAME_SCORE],
        ["missing", "lost", "gained"],
        default="",
    )
    table = pd.DataFrame(
        {
            "change": change,
            "task": pair.spec.name,
            "item": pair.item_ids,
            "baseline": pair.baseline,
            "candidate": pair.candidate,
            "difference": difference,
        }
    )
    return table[table["change"] != ""]


def _outcomes_by_item(scores: pa.Table, wanted: frozenset[ItemKey]) -> dict[ItemKey, str]:
    """Return the outcomes of some items' responses, in the order of ``Outcome``."""
    found: dict[ItemKey, set[str]] = {}
    rows = scores.select(["task", "item_id", "outcome"])
    for task, item, outcome in _rows(rows):
        key = (decode_text(task), item)
        if key in wanted:
            found.setdefault(key, set()).add(outcome)
    return {
        key: " + ".join(one.value for one in Outcome if one.value in outcomes)
        for key, outcomes in found.items()
    }
