"""Records for the tests of storage."""

from __future__ import annotations

import hashlib

from evals.engine import EngineFingerprint
from evals.evaluation import CheckpointRef, Evaluation
from evals.plan import Branch, Request, Sampling, build_request
from evals.response import FinishReason, Response
from evals.scoring import Outcome, Score
from evals.task import Capability, Item, RequestKind, TaskSpec


def digest(text: object) -> str:
    return hashlib.sha256(str(text).encode()).hexdigest()


def make_checkpoint(run: str = "run/α", step: int = 100) -> CheckpointRef:
    return CheckpointRef(run=run, step=step, digest=digest((run, step)), path=f"ckpt/{step}")


def make_task(name: str = "arc", version: str = "1") -> TaskSpec:
    return TaskSpec(
        name=name,
        version=version,
        capability=Capability.REASONING,
        metric="acc",
        stops=("\n\n", "\0", "\ud800"),
        prompt_fingerprint=digest("prompt"),
    )


def make_evaluation(name: object = "one", suite: str = "smoke") -> Evaluation:
    return Evaluation(
        evaluation_id=digest(name)[:32],
        checkpoint=make_checkpoint(),
        suite=suite,
        suite_version="1",
        suite_fingerprint=digest("suite"),
        tasks=(make_task("arc"), make_task("gsm", "2")),
        engine=EngineFingerprint(
            engine="scripted",
            version="1",
            device="cpu",
            dtype="bfloat16",
            context_tokens=2048,
            chat_template="none",
            tokenizer=digest("tokenizer"),
        ),
        sampling='{"temperature":0.0}',
        planned_items=7,
    )


def make_item(number: int, task: str = "arc") -> Item:
    return Item(
        item_id=digest((task, number)),
        doc={"question": f"{number}? \0 \ud800", "choices": ["a", 1.5, None, True]},
        target=str(number),
        cluster=None if number % 2 else f"cluster {number % 5}",
        stratum="en",
    )


def asks_choices(number: int) -> bool:
    """One in four asks for log-likelihoods."""
    return number % 4 == 3


def make_request(number: int, task: str = "arc", repeats: int = 1) -> Request:
    choices = asks_choices(number)
    return build_request(
        task=task,
        item_id=digest((task, number)),
        kind=RequestKind.LOG_LIKELIHOOD if choices else RequestKind.GENERATE,
        token_ids=(1, 2, 3, number),
        stops=("\n", "\ud800stop"),
        max_tokens=16,
        sampling=Sampling(temperature=0.7, seed=number % 3),
        repeats=repeats,
        branches=(Branch(asked=(4, 5)), Branch(given=(9,), asked=(number,))) if choices else (),
    )


def make_response(number: int, repeat: int = 0, text: str | None = None) -> Response:
    return Response(
        request_id=digest(number),
        repeat=repeat,
        text=f"answer {number}" if text is None else text,
        token_ids=(number, 7, 7),
        finish_reason=FinishReason.STOP,
        prompt_tokens=5,
        output_tokens=3,
    )


def make_score(number: int, value: float | None = 0.5, task: str = "arc") -> Score:
    return Score(
        task=task,
        item_id=digest((task, number)),
        repeat=0,
        metric="acc,none",
        outcome=Outcome.ERRORED if value is None else Outcome.SCORED,
        value=value,
        answer=str(number),
        detail=None,
    )
