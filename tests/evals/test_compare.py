from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.compare import (
    CONDITIONS,
    PlannedItem,
    Reading,
    Readings,
    candidate_levels,
    compare_capabilities,
    compare_task,
    differences,
    engine_differences,
    pair_evaluations,
    pair_scores,
    paired_arrays,
    task_differences,
)
from evals.engine import EngineFingerprint
from evals.errors import ComparisonRefused
from evals.evaluation import CheckpointRef, Evaluation
from evals.scoring import WITH_SCORE, Outcome, Score
from evals.task import Capability, TaskSpec


def spec(name: str = "gsm", **fields: Any) -> TaskSpec:
    return TaskSpec(
        **{"name": name, "version": "1", "capability": Capability.REASONING, "metric": "acc"}
        | fields
    )


def score(
    item: str,
    value: float | None,
    *,
    outcome: Outcome | None = None,
    repeat: int = 0,
    task: str = "gsm",
    metric: str = "acc,none",
) -> Score:
    known = Outcome.SCORED if value is not None else Outcome.ERRORED
    return Score(
        task=task,
        item_id=item,
        repeat=repeat,
        metric=metric,
        outcome=outcome or known,
        value=value,
    )


ENGINE = EngineFingerprint(
    engine="vllm",
    version="1",
    device="cpu",
    dtype="float32",
    context_tokens=10,
    chat_template="none",
    tokenizer="t",
)


def evaluation(name: str = "a", tasks: Sequence[TaskSpec] = (), **engine: Any) -> Evaluation:
    return Evaluation(
        evaluation_id=name,
        checkpoint=CheckpointRef(run=name, step=1, digest="0" * 64, path="/"),
        suite="s",
        suite_version="1",
        suite_fingerprint="f",
        tasks=tuple(tasks) or (spec(),),
        engine=replace(ENGINE, **engine),
        sampling="{}",
    )


def items(*names: str) -> list[PlannedItem]:
    return [PlannedItem(item_id=name) for name in names]


def test_items_are_joined_by_id_and_sorted() -> None:
    pair = pair_scores(
        spec(),
        planned=items("b", "a", "c"),
        baseline=[score("c", 1.0), score("a", 0.0), score("b", 1.0)],
        candidate=[score("b", 0.0), score("a", 1.0), score("c", 1.0)],
    )
    assert pair.item_ids == ("a", "b", "c")
    assert differences([pair]).observed.tolist() == [1.0, -1.0, 0.0]


def test_what_a_side_lacks_is_missing_there_and_at_its_worst() -> None:
    pair = pair_scores(
        spec(),
        planned=items("a", "b", "c", "d"),
        baseline=[score("a", 1.0), score("b", 0.0), score("c", None)],
        candidate=[score("a", None), score("c", 1.0)],
    )
    found = differences([pair])
    assert np.isnan(found.observed).all()
    assert found.low.tolist() == [-1.0, 0.0, 0.0, -1.0]
    assert found.high.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert (found.n, found.missing, found.value) == (0, 4, None)
    assert pair.baseline_outcomes[Outcome.ERRORED] == 1
    assert pair.baseline_outcomes[Outcome.MISSING] == 1
    assert pair.candidate_outcomes[Outcome.MISSING] == 2


def test_an_item_with_a_score_that_was_not_planned_is_kept() -> None:
    pair = pair_scores(spec(), planned=(), baseline=[score("x", 1.0)], candidate=[score("y", 1.0)])
    assert pair.item_ids == ("x", "y")
    assert differences([pair]).missing == 2


def test_the_score_of_an_item_is_the_mean_of_its_repeats() -> None:
    pair = pair_scores(
        spec(),
        planned=items("a"),
        baseline=[score("a", 1.0)],
        candidate=[score("a", 1.0, repeat=1), score("a", 0.0, repeat=0)],
    )
    assert pair.candidate.tolist() == [0.5]
    assert pair.repeats == 2
    assert not pair.binary


def test_a_missing_repeat_leaves_the_item_a_range() -> None:
    pair = pair_scores(
        spec(),
        planned=items("a"),
        repeats=4,
        baseline=[score("a", 1.0, repeat=r) for r in range(4)],
        candidate=[score("a", 1.0, repeat=r) for r in range(3)] + [score("a", None, repeat=3)],
    )
    found = differences([pair])
    assert found.observed.tolist() == [0.0]
    assert (found.low.tolist(), found.high.tolist()) == ([-0.25], [0.0])
    assert found.missing == 1


def test_where_lower_is_better_a_rise_is_a_loss() -> None:
    pair = pair_scores(
        spec(higher_is_better=False),
        planned=items("a", "b"),
        baseline=[score("a", 0.2)],
        candidate=[score("a", 0.7)],
    )
    found = differences([pair])
    assert found.observed[0] == pytest.approx(-0.5)
    assert (found.low[1], found.high[1]) == (-1.0, 1.0)
    assert compare_task(pair).lost == ("a",)
    levels = candidate_levels([pair])
    assert (levels.low.tolist(), levels.high.tolist()) == ([0.7, 0.0], [0.7, 1.0])


def test_cut_off_and_unreadable_answers_count_as_the_policy_reads_them() -> None:
    scores = [
        score("a", 0.5, outcome=Outcome.TRUNCATED),
        score("b", 0.5, outcome=Outcome.UNPARSED),
        score("c", 0.5),
    ]
    worst = Readings(truncated=Reading.WORST, unparsed=Reading.WORST)
    for spec_, readings, wanted in (
        (spec(), Readings(), [0.5, 0.5, 0.5]),
        (spec(), worst, [0.0, 0.0, 0.5]),
        (spec(higher_is_better=False), worst, [1.0, 1.0, 0.5]),
    ):
        pair = pair_scores(
            spec_, planned=items("a"), baseline=scores, candidate=scores, readings=readings
        )
        assert pair.candidate.tolist() == wanted
        assert pair.candidate_outcomes[Outcome.TRUNCATED] == 1


def test_two_scores_of_one_item_and_repeat_are_refused() -> None:
    with pytest.raises(ComparisonRefused) as caught:
        pair_scores(spec(), planned=(), baseline=[], candidate=[score("a", 1.0), score("a", 0.0)])
    assert caught.value.code == "duplicate_item"


def test_a_score_of_another_metric_is_refused() -> None:
    with pytest.raises(ComparisonRefused) as caught:
        pair_scores(spec(), planned=(), baseline=[], candidate=[score("a", 1.0, metric="f1,none")])
    assert caught.value.code == "metric_differs"


@pytest.mark.parametrize(
    ("baseline", "code"), [([0.1, 1.2], "score_out_of_range"), ([-0.1, 1], "score_out_of_range")]
)
def test_arrays_out_of_range_are_refused(baseline: list[float], code: str) -> None:
    with pytest.raises(ComparisonRefused) as caught:
        paired_arrays(spec(), ["a", "b"], np.array(baseline), np.array([0.0, 1.0]))
    assert caught.value.code == code


def test_arrays_with_a_repeated_item_are_refused() -> None:
    with pytest.raises(ComparisonRefused, match="two scores"):
        paired_arrays(spec(), ["a", "a"], np.zeros(2), np.zeros(2))


def test_arrays_give_what_scores_give() -> None:
    pair = paired_arrays(
        spec(), ["b", "a"], np.array([1.0, np.nan]), np.array([0.0, 1.0]), clusters=["x", "x"]
    )
    assert pair.item_ids == ("a", "b")
    found = differences([pair])
    assert found.low.tolist() == [0.0, -1.0]
    assert found.clusters is not None
    assert len(set(found.clusters.tolist())) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"metric": "f1"}, "metric_differs"),
        ({"filter": "strict"}, "metric_differs"),
        ({"higher_is_better": False}, "metric_differs"),
        ({"binary": False}, "metric_differs"),
        ({"version": "2"}, "prompt_version_differs"),
        ({"num_fewshot": 5}, "prompt_version_differs"),
        ({"completion": True}, "prompt_version_differs"),
        ({"prompt_fingerprint": "q"}, "prompt_version_differs"),
    ],
)
def test_another_metric_or_prompt_is_refused(change: dict[str, Any], code: str) -> None:
    one = evaluation("a", [spec(prompt_fingerprint="p")])
    other = evaluation("b", [spec(**{"prompt_fingerprint": "p"} | change)])
    with pytest.raises(ComparisonRefused) as caught:
        pair_evaluations(one, other, candidate_scores=[], planned={})
    assert caught.value.code == code
    assert caught.value.where == "gsm"


def test_other_conditions_are_named() -> None:
    found = engine_differences(evaluation(dtype="float16"), evaluation(batch_invariant=True))
    assert {one.name: (one.baseline, one.candidate) for one in found} == {
        "dtype": ("float16", "float32"),
        "batch_invariant": ("False", "True"),
    }
    told = task_differences(spec(max_tokens=8), spec(max_tokens=9, prompt_fingerprint="p"))
    assert [one.name for one in told] == ["max_tokens", "prompt_fingerprint"]
    assert all(one.name in CONDITIONS for one in (*found, *told))
    assert engine_differences(evaluation("a"), evaluation("b")) == ()


def test_tasks_of_one_side_only_are_told() -> None:
    paired = pair_evaluations(
        evaluation("a", [spec("x"), spec("y")]),
        evaluation("b", [spec("y"), spec("z")]),
        candidate_scores=[score("i", 1.0, task="y")],
        baseline_scores=[score("i", 0.0, task="y"), score("i", 0.0, task="z")],
        planned={"y": items("i")},
    )
    assert [pair.spec.name for pair in paired.tasks] == ["x", "y"]
    assert paired.only_candidate == {"x"}
    assert [one.name for one in paired.only_baseline] == ["z"]
    assert paired.tasks[1].candidate.tolist() == [1.0]


def test_comparisons_by_task_and_capability_count_each_item_once() -> None:
    rng = np.random.default_rng(1)
    pairs = [
        paired_arrays(
            spec(name, capability=capability),
            [f"{name}{i}" for i in range(n)],
            rng.integers(0, 2, n).astype(float),
            rng.integers(0, 2, n).astype(float),
        )
        for name, n, capability in (
            ("x", 300, Capability.REASONING),
            ("y", 100, Capability.REASONING),
            ("z", 50, Capability.CODE),
        )
    ]
    by_task = [compare_task(pair) for pair in pairs]
    reasoning, code = compare_capabilities(pairs)
    assert reasoning.tasks == ("x", "y")
    assert reasoning.n == 400
    x, y = by_task[0].value, by_task[1].value
    assert x is not None
    assert y is not None
    assert reasoning.value == pytest.approx((300 * x + 100 * y) / 400)
    assert (code.name, code.value) == ("code", by_task[2].value)
    for one in (*by_task, reasoning, code):
        assert one.value is not None
        assert -1 <= one.low <= one.value <= one.high <= 1
    assert set(reasoning.lost) == set(by_task[0].lost) | set(by_task[1].lost)


def test_nothing_to_compare_has_no_value_and_says_nothing() -> None:
    found = compare_task(pair_scores(spec(), planned=(), baseline=[], candidate=[]))
    assert (found.n, found.value, found.low, found.high) == (0, None, -1.0, 1.0)
    assert found.baseline_mean is None


def test_five_identical_items_leave_the_interval_wide() -> None:
    pair = paired_arrays(spec(), list("abcde"), np.ones(5), np.ones(5))
    found = compare_task(pair)
    assert found.value == 0.0
    assert found.low < -0.4
    assert found.high > 0.4


def test_a_cluster_is_the_same_in_every_task() -> None:
    pairs = [
        paired_arrays(spec(name), [f"{name}1", f"{name}2"], np.ones(2), np.ones(2), clusters=c)
        for name, c in (("en", ["q1", "q2"]), ("de", ["q1", None]))
    ]
    found = differences(pairs)
    assert found.clusters is not None
    one, two, same, alone = found.clusters.tolist()
    assert one == same
    assert len({one, two, alone}) == 3


def test_items_alone_in_their_clusters_are_not_clustered() -> None:
    pair = paired_arrays(spec(), ["a", "b"], np.ones(2), np.ones(2), clusters=["p", None])
    assert differences([pair]).clusters is None


outcomes = st.sampled_from(list(Outcome))
rows = st.dictionaries(
    st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 2)),
    st.tuples(outcomes, st.sampled_from([0.0, 0.25, 1.0])),
)


def _scores(made: dict[tuple[str, int], tuple[Outcome, float]]) -> list[Score]:
    return [
        score(item, value if outcome in WITH_SCORE else None, outcome=outcome, repeat=repeat)
        for (item, repeat), (outcome, value) in made.items()
    ]


@settings(deadline=None)
@given(rows, rows, st.randoms(use_true_random=False))
def test_pairing_does_not_depend_on_order(
    one: dict[Any, Any], other: dict[Any, Any], rng: random.Random
) -> None:
    baseline, candidate = _scores(one), _scores(other)
    first = pair_scores(spec(), planned=items(*"abc"), baseline=baseline, candidate=candidate)
    rng.shuffle(baseline)
    rng.shuffle(candidate)
    again = pair_scores(spec(), planned=items(*"cba"), baseline=baseline, candidate=candidate)
    assert first.item_ids == again.item_ids
    np.testing.assert_array_equal(first.baseline, again.baseline)
    np.testing.assert_array_equal(first.candidate, again.candidate)
    np.testing.assert_array_equal(differences([first]).low, differences([again]).low)


@settings(deadline=None)
@given(rows, rows)
def test_pairing_is_symmetric(one: dict[Any, Any], other: dict[Any, Any]) -> None:
    here = pair_scores(spec(), planned=(), baseline=_scores(one), candidate=_scores(other))
    there = pair_scores(spec(), planned=(), baseline=_scores(other), candidate=_scores(one))
    forth, back = differences([here]), differences([there])
    np.testing.assert_array_equal(forth.observed, -back.observed)
    np.testing.assert_array_equal(forth.low, -back.high)
    a, b = compare_task(here), compare_task(there)
    assert (a.lost, a.gained) == (b.gained, b.lost)
    assert (a.low, a.high) == pytest.approx((-b.high, -b.low), abs=1e-9)


@settings(deadline=None)
@given(rows, rows)
def test_observed_scores_lie_in_their_range(one: dict[Any, Any], other: dict[Any, Any]) -> None:
    found = differences(
        [pair_scores(spec(), planned=(), baseline=_scores(one), candidate=_scores(other))]
    )
    known = ~np.isnan(found.observed)
    assert (found.low <= found.high + 1e-12).all()
    assert (found.low[known] <= found.observed[known] + 1e-12).all()
    assert (found.observed[known] <= found.high[known] + 1e-12).all()


def test_arrays_of_many_pairs_are_joined_within_seconds() -> None:
    n = 200_000
    ids = [f"{i:08d}" for i in range(n)]
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    pair = paired_arrays(
        spec(), ids, rng.integers(0, 2, n).astype(float), rng.integers(0, 2, n).astype(float)
    )
    assert differences([pair]).n == n
    assert time.perf_counter() - started < 2.0
