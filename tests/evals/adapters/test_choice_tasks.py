"""What choice tasks ask and what their answers are worth, against lm-eval's own evaluator."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import MIRROR

from evals.adapters.lm_eval_tasks import LmEvalChoices, Mirror, load_one, load_tasks, task_manager
from evals.adapters.tokenizer import PromptEncoder, load_tokenizer
from evals.checkpoint import inspect_checkpoint
from evals.errors import InputError
from evals.response import LogLikelihood
from evals.suite import TaskEntry
from evals.task import Choice, Item, RequestKind

needs_data = pytest.mark.skipif(
    not MIRROR.exists(), reason="no ../shared/data: the real benchmark items are not here"
)

NAMES = ("arc_easy", "xcopa_it", "commonsense_qa", "truthfulqa_mc2", "openbookqa", "mmlu_anatomy")
LIMIT = 5


def lm_eval_pairs(
    name: str, smollm2: Path, *, chat: bool
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """What lm-eval asks a model of the first items, and its results for made-up answers."""
    from lm_eval.api.model import TemplateLM
    from lm_eval.evaluator import evaluate
    from lm_eval.tasks import TaskManager

    tokenizer = load_tokenizer(smollm2)
    asked: list[tuple[str, str]] = []

    class Recording(TemplateLM):
        tokenizer_name = "smollm2"
        eot_token_id = tokenizer.eos_token_id

        def tok_encode(self, string: str, **_: Any) -> list[int]:
            return list(tokenizer(string).input_ids)

        def apply_chat_template(
            self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
        ) -> str:
            return str(
                tokenizer.apply_chat_template(
                    chat_history,
                    tokenize=False,
                    add_generation_prompt=add_generation_prompt,
                    continue_final_message=not add_generation_prompt,
                )
            )

        def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
            asked.extend(request.args for request in requests)
            return [made_up(*request.args) for request in requests]

        def _loglikelihood_tokens(self, *_: Any, **__: Any) -> Any:
            pytest.fail("lm-eval asked for something else than log-likelihoods of texts")

        def loglikelihood_rolling(self, *_: Any, **__: Any) -> Any:
            pytest.fail("lm-eval asked for something else than log-likelihoods of texts")

        def generate_until(self, *_: Any, **__: Any) -> Any:
            pytest.fail("lm-eval asked for something else than log-likelihoods of texts")

    manager: TaskManager = task_manager(None)
    task = load_one(TaskEntry(task=name), manager, Mirror(MIRROR))
    task.set_fewshot_seed(1234)
    told = evaluate(
        lm=Recording(),
        task_dict={name: task},
        limit=LIMIT,
        apply_chat_template=chat,
        fewshot_as_multiturn=chat,
        bootstrap_iters=0,
    )
    return asked, told


def made_up(context: str, continuation: str) -> tuple[float, bool]:
    """An answer that depends on what is asked, so that some are right and some are not."""
    return -float(sum(map(ord, context[-3:] + continuation)) % 97) - 0.5, False


def first_items(task: LmEvalChoices) -> list[Item]:
    return list(task.items())[:LIMIT]


def text_of(choice: Choice, smollm2: Path) -> str:
    if isinstance(choice.context, str):
        return choice.context
    turns = [{"role": one.role, "content": one.content} for one in choice.context]
    continued = turns[-1]["role"] == "assistant"
    return str(
        load_tokenizer(smollm2).apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=not continued,
            continue_final_message=continued,
        )
    )


@needs_data
@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_choices_and_scores_are_lm_evals_own(
    name: str, chat: bool, smollm2: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    asked, told = lm_eval_pairs(name, smollm2, chat=chat)
    (task,) = load_tasks([TaskEntry(task=name)], Mirror(MIRROR))
    assert isinstance(task, LmEvalChoices)
    assert task.spec.kind is RequestKind.LOG_LIKELIHOOD
    ours: list[tuple[str, str]] = []
    values = []
    for item in first_items(task):
        choices = task.choices(item, chat=chat)
        pairs = [(text_of(choice, smollm2), choice.continuation) for choice in choices]
        ours += pairs
        found = [LogLikelihood(log_prob=made_up(*pair)[0], greedy=False) for pair in pairs]
        values.append(task.judge_choices(item, found).value)
    assert sorted(ours) == sorted(asked)
    key = f"{task.spec.metric},none"
    assert sum(v or 0.0 for v in values) / LIMIT == pytest.approx(told["results"][name][key])


@pytest.mark.parametrize(
    ("context", "continuation"),
    [
        ("The sky is", " blue"),
        ("The sky is ", "blue"),
        ("Antwort:\n", "Ja"),
        ("unbeliev", "able"),
        ("2 + 2 =  ", " 4\n"),
        ("日本", "語です"),
    ],
)
def test_tokens_of_a_pair_are_those_of_lm_eval(
    context: str, continuation: str, smollm2: Path
) -> None:
    from lm_eval.api.model import TemplateLM

    tokenizer = load_tokenizer(smollm2)

    class Tokens:
        backend = "causal"

        def tok_encode(self, string: str) -> list[int]:
            return list(tokenizer(string).input_ids)

    reference = TemplateLM._encode_pair(Tokens(), context, continuation)  # type: ignore[arg-type]
    encoder = PromptEncoder(inspect_checkpoint(smollm2), chat=False)
    choice = Choice(context=context, continuation=continuation)
    assert encoder.encode_choice(choice) == tuple(map(tuple, reference))


def test_an_empty_context_is_the_token_that_begins_a_text(smollm2: Path) -> None:
    encoder = PromptEncoder(inspect_checkpoint(smollm2), chat=False)
    context, asked = encoder.encode_choice(Choice(context="", continuation="Hello there"))
    tokenizer = load_tokenizer(smollm2)
    assert context == (tokenizer.bos_token_id,)
    assert tokenizer.decode(asked) == "Hello there"


def own_task(folder: Path, output_type: str, *lines: str) -> None:
    (folder / "items.jsonl").write_text('{"q": "1 + 1 =", "a": "2", "c": ["2", "3"]}\n')
    text = [
        "task: mine",
        "dataset_path: json",
        f"dataset_kwargs: {{data_files: {{test: {folder / 'items.jsonl'}}}}}",
        f"output_type: {output_type}",
        "test_split: test",
        "doc_to_text: '{{q}}'",
        *lines,
    ]
    (folder / "mine.yaml").write_text("\n".join(text) + "\n")


def test_one_given_text_is_right_where_each_of_its_tokens_is_the_most_probable(
    tmp_path: Path,
) -> None:
    own_task(
        tmp_path,
        "loglikelihood",
        "doc_to_target: ' {{a}}'",
        "metric_list: [{metric: perplexity}, {metric: acc}]",
    )
    (task,) = load_tasks([TaskEntry(task="mine")], Mirror(None), tmp_path)
    assert isinstance(task, LmEvalChoices)
    assert (task.spec.metric, task.spec.binary) == ("acc", True)
    (item,) = task.items()
    assert task.choices(item, chat=False) == (Choice(context="1 + 1 =", continuation=" 2"),)
    judged = [
        task.judge_choices(item, [LogLikelihood(log_prob=-1.0, greedy=greedy)]).value
        for greedy in (True, False)
    ]
    assert judged == [1.0, 0.0]


def test_a_choice_with_the_highest_log_likelihood_is_the_answer(tmp_path: Path) -> None:
    own_task(
        tmp_path,
        "multiple_choice",
        "doc_to_choice: '{{c}}'",
        "doc_to_target: 0",
        "metric_list: [{metric: acc}]",
    )
    (task,) = load_tasks([TaskEntry(task="mine")], Mirror(None), tmp_path)
    assert isinstance(task, LmEvalChoices)
    (item,) = task.items()

    def judged(values: Sequence[float]) -> tuple[float | None, str | None]:
        found = [LogLikelihood(log_prob=value, greedy=False) for value in values]
        told = task.judge_choices(item, found)
        return told.value, told.answer

    assert judged([-1.0, -2.0]) == (1.0, "0")
    assert judged([-3.0, -2.0]) == (0.0, "1")


def test_a_kind_of_request_that_is_not_answered_is_refused(tmp_path: Path) -> None:
    own_task(
        tmp_path,
        "loglikelihood_rolling",
        "doc_to_target: '{{a}}'",
        "metric_list: [{metric: word_perplexity}]",
    )
    with pytest.raises(InputError, match="loglikelihood_rolling"):
        load_tasks([TaskEntry(task="mine")], Mirror(None), tmp_path)


@pytest.mark.parametrize(
    ("metrics", "chosen"),
    [("[{metric: f1}, {metric: acc}]", "acc"), ("null", "acc")],
)
def test_the_primary_metric_is_one_that_an_item_has_by_itself(
    tmp_path: Path, metrics: str, chosen: str
) -> None:
    own_task(
        tmp_path,
        "multiple_choice",
        "doc_to_choice: '{{c}}'",
        "doc_to_target: 0",
        f"metric_list: {metrics}",
    )
    (task,) = load_tasks([TaskEntry(task="mine")], Mirror(None), tmp_path)
    assert (task.spec.metric, task.spec.binary) == (chosen, True)


@pytest.mark.parametrize("metric", [None, "f1,none"])
def test_a_metric_of_all_items_together_is_refused_before_anything_is_asked(
    tmp_path: Path, metric: str | None
) -> None:
    own_task(
        tmp_path,
        "multiple_choice",
        "doc_to_choice: '{{c}}'",
        "doc_to_target: 0",
        "metric_list: [{metric: f1}]",
    )
    (task,) = load_tasks([TaskEntry(task="mine", metric=metric)], Mirror(None), tmp_path)
    with pytest.raises(InputError, match="mine"):
        _ = task.spec


@pytest.mark.parametrize("target", ["7", "-1", "-100", "'zzz'", "[0, 5]"])
def test_an_item_whose_target_is_no_choice_has_no_score(tmp_path: Path, target: str) -> None:
    own_task(
        tmp_path,
        "multiple_choice",
        "doc_to_choice: '{{c}}'",
        "doc_to_target: target",
        "metric_list: [{metric: acc}]",
    )
    good = {"q": "1 + 1 =", "c": ["2", "3"], "target": 0}
    bad = {"q": "2 + 2 =", "c": ["4", "5"], "target": yaml.safe_load(target)}
    if isinstance(bad["target"], list):
        good["target"] = [0]
    if isinstance(bad["target"], str):
        good["target"] = "2"
    lines = "".join(json.dumps(one) + "\n" for one in (good, bad))
    (tmp_path / "items.jsonl").write_text(lines)
    (task,) = load_tasks([TaskEntry(task="mine")], Mirror(None), tmp_path)
    assert isinstance(task, LmEvalChoices)
    found = [LogLikelihood(log_prob=value, greedy=False) for value in (-1.0, -2.0)]
    right, wrong = (task.judge_choices(item, found) for item in task.items())
    assert (right.value, right.error) == (1.0, None)
    assert wrong.value is None
    assert "not among" in (wrong.error or "")
