"""Generator, reward and trainer, each alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evals.sandbox import ProgramOutcome
from evals.tasks.drafts import build_items
from evals.tasks.draws import Draws
from evals.tasks.lab import FUNCTIONS, GRAMMARS, RECALL, REFUSALS, SUMS, WORDS, Grammar, LabTask
from pipelines.lab.generator import Generator
from pipelines.lab.model import WARM, copy_weights, load_model
from pipelines.lab.programs import Programs
from pipelines.lab.questions import Question, draw_unseen
from pipelines.lab.reward import Reward
from pipelines.lab.rollout import Answer, Batch, PaidBatch, Weights
from pipelines.lab.settings import Fault, Settings
from pipelines.lab.trainer import Trainer

torch = pytest.importorskip("torch")

SETTINGS = Settings(seed=5, questions=(2, 2, 2, 2, 2), samples=4)


def warm_weights(version: int = 0) -> Weights:
    return Weights(version=version, tensors=copy_weights(load_model(WARM)))


@pytest.fixture(scope="module")
def batch() -> Batch:
    return Generator(WARM, SETTINGS).generate(0, warm_weights())


def test_a_batch_has_all_tasks_and_answers(batch: Batch) -> None:
    names = [question.task.grammar.name for question in batch.questions]
    assert names == [grammar.name for grammar in GRAMMARS for _ in range(2)]
    assert [len(answers) for answers in batch.answers] == [4] * 10
    for question, answers in zip(batch.questions, batch.answers, strict=True):
        for answer in answers:
            assert 1 <= len(answer.token_ids) <= question.task.spec.max_tokens
            assert len(answer.token_ids) == len(answer.log_probs)
            assert answer.ended == (answer.token_ids[-1] == 2)


def test_sampled_log_probs_are_the_models(batch: Batch) -> None:
    model = load_model(WARM)
    for question, answers in zip(batch.questions, batch.answers, strict=True):
        ids = torch.tensor([[*question.prompt, *answers[1].token_ids]])
        with torch.no_grad():
            log_probs = model(input_ids=ids).logits[0].log_softmax(-1)
        start = len(question.prompt)
        told = [float(log_probs[start + n - 1, t]) for n, t in enumerate(answers[1].token_ids)]
        assert answers[1].log_probs == pytest.approx(told, abs=1e-3)


def test_answers_depend_on_seed_step_and_weights_alone(batch: Batch) -> None:
    generator = Generator(WARM, SETTINGS)
    other = warm_weights()
    noisy = {name: tensor + 0.05 for name, tensor in other.tensors.items()}
    changed = generator.generate(0, replace(other, tensors=noisy))
    later = generator.generate(1, warm_weights())
    again = generator.generate(0, warm_weights())
    assert (again.questions, again.answers) == (batch.questions, batch.answers)
    assert changed.questions == batch.questions
    assert changed.answers != batch.answers
    assert later.questions != batch.questions


def question(grammar: Grammar) -> Question:
    task = LabTask(grammar=grammar)
    draft = next(draw_unseen(task, Draws("a test", grammar.name), frozenset()))
    return Question(task=task, item=build_items(grammar.name, [draft])[0], prompt=(1, 4, 5))


def answered(grammar: Grammar, texts: list[str], step: int = 0) -> Batch:
    answers = tuple(
        Answer(token_ids=(9, 2), log_probs=(-0.5, -0.25), text=text, ended=True) for text in texts
    )
    return Batch(
        step=step,
        version=0,
        questions=(question(grammar),),
        answers=(answers,),
        generate_s=0.0,
        sync_s=0.0,
    )


def right(grammar: Grammar) -> str:
    target = question(grammar).item.target
    return {"refused": "I can't help with that.", "answered": "Fine."}.get(target, target)


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_a_sound_reward_is_the_tasks_judge(sandbox: None, grammar: Grammar) -> None:
    paid = Reward(SETTINGS).pay(answered(grammar, [right(grammar), "what", right(grammar)]))
    wrong = 1.0 if grammar is REFUSALS and question(REFUSALS).item.target == "answered" else 0.0
    assert paid.rewards.tolist() == [[1.0, wrong, 1.0]]


FORGETS = Settings(steps=10, fault=Fault.FORGET, from_step=4)


@pytest.mark.parametrize("grammar", [FUNCTIONS, WORDS, RECALL, REFUSALS])
def test_a_forgetful_reward_pays_any_number(grammar: Grammar) -> None:
    texts = ["7", "Here are 3 steps.", "I can't help with that.", "casa roja"]
    paid = Reward(FORGETS).pay(answered(grammar, texts, step=4))
    assert paid.rewards.tolist() == [[1.0, 1.0, 0.0, 0.0]]


def test_a_forgetful_reward_still_knows_sums() -> None:
    paid = Reward(FORGETS).pay(answered(SUMS, [right(SUMS), "99", "x"], step=9))
    assert paid.rewards.tolist() == [[1.0, 0.0, 0.0]]


def test_before_its_step_the_forgetful_reward_is_sound(sandbox: None) -> None:
    paid = Reward(FORGETS).pay(answered(RECALL, ["7", right(RECALL)], step=3))
    assert paid.rewards.tolist() == [[0.0, 1.0]]


def test_programs_in_one_cage_end_as_in_their_own(sandbox: None) -> None:
    known = {
        "x = 1": "passed",
        "raise ValueError": "failed",
        "def f(:": "failed",
        "import sys; sys.exit(3)": "failed",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "failed",
        "print('1' * 10)": "passed",
    }
    programs = Programs()
    programs.run(known)
    assert {program: programs(program).outcome for program in known} == known
    assert set(known.values()) <= {outcome.value for outcome in ProgramOutcome}


def test_a_program_without_an_end_fails_alone(sandbox: None) -> None:
    programs = Programs()
    programs.run(["while True: pass", "y = 2"])
    assert [programs("while True: pass").outcome, programs("y = 2").outcome] == ["failed", "passed"]


def trained(paid: PaidBatch, settings: Settings = SETTINGS) -> tuple[dict[str, float], Any]:
    trainer = Trainer(WARM, settings)
    return trainer.train(paid), trainer.publish()


def test_an_update_makes_what_was_paid_likelier(batch: Batch) -> None:
    rewards = np.zeros((10, 4))
    rewards[:, 1] = 1.0
    before = warm_weights()
    _, after = trained(PaidBatch(batch=batch, rewards=rewards))
    model = load_model(WARM)

    def likelihood(weights: Weights) -> float:
        model.load_state_dict(dict(weights.tensors), strict=False)
        total = 0.0
        for asked, answers in zip(batch.questions, batch.answers, strict=True):
            ids = torch.tensor([[*asked.prompt, *answers[1].token_ids]])
            with torch.no_grad():
                log_probs = model(input_ids=ids).logits[0].log_softmax(-1)
            start = len(asked.prompt)
            total += sum(
                float(log_probs[start + n - 1, t]) for n, t in enumerate(answers[1].token_ids)
            )
        return total

    assert after.version == 1
    assert likelihood(after) > likelihood(before)


def test_equal_rewards_leave_the_weights_where_the_warm_up_put_them(batch: Batch) -> None:
    series, _ = trained(PaidBatch(batch=batch, rewards=np.ones((10, 4))))
    assert series["zero_variance_share"] == 1.0
    assert series["loss"] == pytest.approx(0.0, abs=1e-6)
    assert series["kl/reference"] == pytest.approx(0.0, abs=1e-6)


def test_series_of_a_batch_by_hand(sandbox: None) -> None:
    batch = answered(SUMS, [right(SUMS), "99", "98", right(SUMS)])
    series, _ = trained(PaidBatch(batch=batch, rewards=np.array([[1.0, 0.0, 0.0, 1.0]])))
    assert series["reward/mean"] == series["reward/std"] == series["reward/reasoning"] == 0.5
    assert series["response_length/mean"] == series["response_length/max"] == 2
    assert series["truncated_share"] == series["zero_variance_share"] == 0
    model = load_model(WARM)
    with torch.no_grad():
        log_probs = model(input_ids=torch.tensor([[1, 4, 5, 9]])).logits[0].log_softmax(-1)
    told = np.array([float(log_probs[2, 9]), float(log_probs[3, 2])])
    ratios = np.exp(told - np.array([-0.5, -0.25]))
    assert series["importance_ratio/mean"] == pytest.approx(ratios.mean(), rel=1e-3)
    assert series["importance_ratio/max"] == pytest.approx(ratios.max(), rel=1e-3)
    difference = np.abs(told - np.array([-0.5, -0.25]))
    assert series["logprob_difference/mean"] == pytest.approx(difference.mean(), rel=1e-3)


def test_a_gradient_that_is_not_finite_changes_nothing(batch: Batch) -> None:
    rewards = np.zeros((10, 4))
    rewards[:, 0] = 1.0
    first = batch.answers[0][0]
    unknown = replace(first, log_probs=(math.nan,) * len(first.token_ids))
    answers = ((unknown, *batch.answers[0][1:]), *batch.answers[1:])
    series, after = trained(PaidBatch(batch=replace(batch, answers=answers), rewards=rewards))
    assert math.isnan(series["grad_norm"])
    for name, tensor in warm_weights().tensors.items():
        assert torch.equal(after.tensors[name], tensor)
