"""A small generative task for tests of the job: the answer to item i is the digit i % 10."""

from __future__ import annotations

from collections.abc import Sequence

from evals.engine import EngineFingerprint
from evals.evaluation import CheckpointRef, Evaluation
from evals.identity import item_id, sha256_text
from evals.plan import Plan, Sampling, TaskPlan, build_plan
from evals.scoring import Judgement
from evals.task import Capability, Item, Message, TaskSpec


class DigitTask:
    """``n`` items; right where the text is the digit, unparsed where it is none."""

    def __init__(self, n: int = 40, name: str = "digits") -> None:
        self._items = tuple(
            Item(
                item_id=item_id(name, sha256_text(str(i)), sha256_text(str(i % 10))),
                doc={"number": i},
                target=str(i % 10),
            )
            for i in range(n)
        )
        self._name = name

    @property
    def spec(self) -> TaskSpec:
        return TaskSpec(
            name=self._name,
            version="1",
            capability=Capability.REASONING,
            metric="exact_match",
            max_tokens=4,
        )

    def items(self) -> Sequence[Item]:
        return self._items

    def prompt(self, item: Item, *, chat: bool) -> tuple[Message, ...] | str:
        text = f"last digit of {item.doc['number']}:"
        return (Message(role="user", content=text),) if chat else text

    def judge(self, item: Item, text: str) -> Judgement:
        if text == "boom":
            return Judgement(value=None, error="scorer: boom")
        return Judgement(value=float(text == item.target), parsed=text.isdigit(), answer=text)


class ByteEncoder:
    """One token a byte."""

    chat = False

    def encode(self, prompt: Sequence[Message] | str) -> tuple[int, ...]:
        text = prompt if isinstance(prompt, str) else "".join(m.content for m in prompt)
        return tuple(text.encode())


def small_plan(task: DigitTask, repeats: int = 1, context_tokens: int = 64) -> Plan:
    planned = TaskPlan(task=task, limit=None, repeats=repeats, sampling=Sampling())
    return build_plan([planned], ByteEncoder(), context_tokens)


def small_evaluation(task: DigitTask, plan: Plan, step: int = 1) -> Evaluation:
    return Evaluation(
        evaluation_id=f"{step:x}" * 32,
        checkpoint=CheckpointRef(run="r", step=step, digest=f"{step:x}" * 64, path="/nowhere"),
        suite="small",
        suite_version="1",
        suite_fingerprint="f" * 64,
        tasks=(task.spec,),
        engine=EngineFingerprint(
            engine="scripted",
            version="1",
            device="cpu",
            dtype="none",
            context_tokens=64,
            chat_template="none",
            tokenizer="bytes",
        ),
        sampling="{}",
        planned_items=len(task.items()),
    )
