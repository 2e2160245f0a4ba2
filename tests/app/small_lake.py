"""A project with a small lake of made-up evaluations, as the app finds one.

python tests/app/small_lake.py FOLDER      writes one to look at with `pawl app --project FOLDER`
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from evals.engine import EngineFingerprint
from evals.evaluation import CheckpointRef, Evaluation, EvaluationState
from evals.identity import canonical_json, fingerprint
from evals.plan import Request, Sampling, build_request
from evals.policy import load_policy
from evals.response import FinishReason, Response
from evals.scoring import Outcome, Score
from evals.task import Capability, Item, RequestKind, TaskSpec
from evals.telemetry import Point
from pipelines.comparing import decide_and_store
from storage.naming import load_named
from storage.pairing import find_sides
from storage.project import Project, find_project
from storage.store import LakeStore

HOSTILE = (
    "**bold** # title\n<script>document.title='owned'</script><img src=x onerror=alert(1)>\n"
    "[link](http://example.invalid) $x^2$ :red[red] \0 \ud800 \u202eright to left"
)
"""What a model may answer; a page must show all of it as characters."""

ITEMS = 60
POLICY = """\
name: small
version: "1"
truncated: {max_share: 0.2}
unparsed: {max_share: 0.2}
max_missing: 0.1
rules:
  - {name: arithmetic-holds, task: toy_arithmetic, role: must, margin: 0.10, tolerate: 0.02}
  - {name: languages-hold, capability: multilingual, role: guard, margin: 0.20}
  - {name: attacks-fail, task: toy_attacks, role: must, ceiling: 0.30}
  - {name: safety-holds, capability: safety, role: report, margin: 0.10}
"""

STRICT = POLICY.replace("name: small", "name: strict").replace(
    "margin: 0.20}", "margin: 0.20, min_items: 500}"
)
"""Asks for more items than there are: whatever they say, it stays INCONCLUSIVE."""

ARITHMETIC = TaskSpec(
    name="toy_arithmetic",
    version="1",
    capability=Capability.REASONING,
    metric="exact_match",
    prompt_fingerprint=fingerprint("arithmetic"),
)
TRANSLATION = TaskSpec(
    name="toy_translation",
    version="2",
    capability=Capability.MULTILINGUAL,
    metric="overlap",
    binary=False,
    prompt_fingerprint=fingerprint("translation"),
)
ATTACKS = TaskSpec(
    name="toy_attacks",
    version="1",
    capability=Capability.SAFETY,
    metric="complied",
    higher_is_better=False,
    prompt_fingerprint=fingerprint("attacks"),
)
TASKS = (ARITHMETIC, TRANSLATION, ATTACKS)

ENGINE = EngineFingerprint(
    engine="scripted",
    version="1",
    device="cpu",
    dtype="float32",
    context_tokens=2048,
    chat_template="none",
    tokenizer=fingerprint("tokenizer"),
)
SAMPLING = canonical_json({spec.name: {"temperature": 0.0} for spec in TASKS})

LATE_STEP = 1000
"""From this step on some answers are cut off, unreadable, errored or missing."""

MOVED_STEP = 620
"""From this step on training goes wrong."""

BROKEN_STEP = 760
"""From this step on ``kl/reference`` is NaN."""

LEVELS = {
    "reward/mean": (0.55, 0.02, 0.0),
    "reward/reasoning": (0.60, 0.03, -0.25),
    "reward/multilingual": (0.50, 0.03, 0.02),
    "entropy": (1.9, 0.05, -0.6),
    "importance_ratio/mean": (1.0, 0.01, 0.0),
    "logprob_difference/mean": (0.012, 0.001, 0.0),
    "staleness/mean": (1.0, 0.1, 0.0),
    "response_length/mean": (48.0, 2.0, 20.0),
    "truncated_share": (0.02, 0.008, 0.1),
    "grad_norm": (0.8, 0.06, 0.4),
    "kl/reference": (0.02, 0.002, 0.0),
    "my/**own**": (5.0, 0.5, 0.0),
    "constant": (1.0, 0.0, 0.0),
}
"""Level, noise, and what is added once training goes wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One checkpoint to make, with how good it is."""

    run: str = "grpo-tiny"
    step: int
    skill: float
    """Share of items that it gets right, roughly."""
    answered: int = ITEMS
    """Items of each task that have a score."""
    state: EvaluationState = EvaluationState.COMPLETE
    engine: EngineFingerprint = ENGINE
    policy: str | None = POLICY
    """Decides on it against the one made before it; None: nothing does."""

    @property
    def name(self) -> str:
        return f"{self.run}@{self.step}"

    @property
    def evaluation_id(self) -> str:
        return fingerprint([self.run, self.step, self.engine.digest])[:32]


FIRST = Made(step=100, skill=0.8)
PASSED = Made(step=200, skill=0.78)
OPEN = Made(step=500, skill=0.77, policy=STRICT)
FAILED = Made(step=LATE_STEP, skill=0.45)
ALL = (FIRST, PASSED, OPEN, FAILED)
"""Each verdict once; the steps' order as text is not their order as numbers."""


@contextmanager
def open_project(folder: Path) -> Iterator[tuple[Project, LakeStore]]:
    folder.mkdir(parents=True, exist_ok=True)
    project = find_project(folder)
    with project.open_store(create=True) as store:
        yield project, store


def build(folder: Path, made: Sequence[Made] = ALL) -> None:
    """Write checkpoints, and a decision on each that has one before it and names a policy."""
    with open_project(folder) as (_, store):
        for one in made:
            put(store, one)
        for before, after in pairwise(made):
            if after.policy is not None:
                (folder / "policy.yaml").write_text(after.policy, "utf-8")
                ours, theirs = (load_named(one.name, store) for one in (after, before))
                sides = find_sides(ours, theirs, None, store)
                decide_and_store(load_policy(folder / "policy.yaml"), sides, store)


def put_telemetry(store: LakeStore, run: str) -> None:
    """Register a run and log its training, a value every ten steps; one restart at step 300."""
    config = {"model_line": "tiny", "owner": "someone", "tags": ["small", "sound"]}
    store.register_run(run, f"/runs/{run}", "lab", config)
    generator = np.random.default_rng(11)
    points = []
    for attempt, steps in ((0, range(10, 301, 10)), (1, range(210, LATE_STEP + 1, 10))):
        for series, (level, noise, wrong) in LEVELS.items():
            points += [
                Point(
                    run=run,
                    attempt=attempt,
                    series=series,
                    raw_name=series,
                    step=step,
                    value=logged(series, step, level + noise * generator.normal(), wrong),
                    logged_at=None,
                )
                for step in steps
            ]
    store.put_points(points)


def logged(series: str, step: int, value: float, wrong: float) -> float | None:
    if series == "kl/reference" and step >= BROKEN_STEP:
        return math.nan
    if series == "staleness/mean" and step == 440:
        return None
    return value + (wrong if step >= MOVED_STEP else 0.0)


def evaluation_of(made: Made) -> Evaluation:
    return Evaluation(
        evaluation_id=made.evaluation_id,
        checkpoint=CheckpointRef(
            run=made.run,
            step=made.step,
            digest=fingerprint([made.run, made.step]),
            path=f"checkpoints/{made.run}/{made.step}",
        ),
        suite="small",
        suite_version="1",
        suite_fingerprint=fingerprint("small"),
        tasks=TASKS,
        engine=made.engine,
        sampling=SAMPLING,
        state=made.state,
        planned_items=ITEMS * len(TASKS),
    )


def put(store: LakeStore, made: Made) -> None:
    evaluation = replace(evaluation_of(made), state=EvaluationState.RUNNING)
    items = {spec.name: [make_item(spec, number) for number in range(ITEMS)] for spec in TASKS}
    requests = {
        item.item_id: make_request(spec, item) for spec in TASKS for item in items[spec.name]
    }
    store.register_checkpoint(evaluation.checkpoint, {"model.safetensors": {"bytes": 1000}})
    store.put_evaluation(evaluation)
    store.put_plan(evaluation, items, list(requests.values()))
    scores: list[Score] = []
    with store.spool_writer(evaluation.evaluation_id) as writer:
        for spec in TASKS:
            for number, item in enumerate(items[spec.name][: made.answered]):
                if number == 37 and made.step >= LATE_STEP:
                    continue
                response, score = answer(made, spec, number, requests[item.item_id])
                writer.append(response)
                scores.append(score)
    store.settle(evaluation.evaluation_id)
    store.put_scores(evaluation.evaluation_id, "toy-1", scores)
    if made.state is not EvaluationState.RUNNING:
        store.finish_evaluation(evaluation.evaluation_id, made.state)


def make_item(spec: TaskSpec, number: int) -> Item:
    return Item(
        item_id=fingerprint([spec.name, number]),
        doc={"question": f"{spec.name}: question {number}?", "level": number % 3},
        target=str(number),
        cluster=f"sentence {number // 3}" if spec is TRANSLATION else None,
    )


def make_request(spec: TaskSpec, item: Item) -> Request:
    return build_request(
        task=spec.name,
        item_id=item.item_id,
        kind=RequestKind.GENERATE,
        token_ids=tuple(range(len(item.doc["question"]))),
        stops=(),
        max_tokens=64,
        sampling=Sampling(),
    )


def answer(made: Made, spec: TaskSpec, number: int, request: Request) -> tuple[Response, Score]:
    """Return one response and its score."""
    luck = int(fingerprint([spec.name, number])[:6], 16) / 16**6
    right = luck < made.skill
    unwhole = {7: Outcome.TRUNCATED, 17: Outcome.UNPARSED, 27: Outcome.ERRORED}
    outcome = unwhole.get(number if made.step >= LATE_STEP else -1, Outcome.SCORED)
    error = "engine: the worker was lost" if outcome is Outcome.ERRORED else None
    text = HOSTILE if number == 0 else f"The answer is {number if right else number + 1}."
    reasons = {Outcome.TRUNCATED: FinishReason.LENGTH, Outcome.ERRORED: FinishReason.ERROR}
    response = Response(
        request_id=request.request_id,
        repeat=0,
        text=None if error else text,
        token_ids=() if error else tuple(range(len(text) // 4)),
        finish_reason=reasons.get(outcome, FinishReason.STOP),
        prompt_tokens=len(request.token_ids),
        output_tokens=0 if error else len(text) // 4,
        error=error,
    )
    score = Score(
        task=spec.name,
        item_id=request.item_id,
        repeat=0,
        metric=spec.metric_key,
        outcome=outcome,
        value=None if error else value_of(made, spec, luck),
        answer=None if error or outcome is Outcome.UNPARSED else text.split()[-1],
        detail=error,
    )
    return response, score


def value_of(made: Made, spec: TaskSpec, luck: float) -> float:
    if not spec.binary:
        return round(0.3 + 0.5 * made.skill * luck, 3)
    if spec.higher_is_better:
        return float(luck < made.skill)
    return float(luck > (0.9 if made.step < LATE_STEP else 0.8))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
    with open_project(Path(sys.argv[1])) as (_, opened):
        put_telemetry(opened, FIRST.run)
