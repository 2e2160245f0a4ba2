"""Which calls tell which log-likelihoods; what vLLM makes of them is in test_choice_evaluation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from evals.adapters.vllm_answers import MOST_LABELS, ChoicesAnswer, Group, group_branches
from evals.plan import Branch, Request, Sampling, build_request
from evals.task import RequestKind

PROMPT = (1, 2, 3, 4)


def ask(*branches: Branch) -> Request:
    return build_request(
        task="choices",
        item_id="1",
        kind=RequestKind.LOG_LIKELIHOOD,
        token_ids=PROMPT,
        stops=(),
        max_tokens=1,
        sampling=Sampling(),
        branches=branches,
    )


def ways(request: Request, *, forces: bool = True) -> list[tuple[Any, ...]]:
    groups = group_branches(request, forces=forces)
    return [(one.stem, one.places, one.labels, one.forced) for one in groups]


def test_labels_after_one_prompt_are_one_call() -> None:
    assert ways(ask(Branch(asked=(7,)), Branch(asked=(8,)))) == [((), (0, 1), (7, 8), True)]


def test_what_choices_have_alike_is_asked_once() -> None:
    request = ask(Branch(asked=(5, 7)), Branch(asked=(5, 8)), Branch(asked=(6, 8)))
    assert ways(request) == [((5,), (0, 1), (7, 8), True), ((6, 8), (2,), (), True)]


def test_a_stem_that_has_a_label_in_it_is_not_shared() -> None:
    request = ask(Branch(asked=(7, 7)), Branch(asked=(7, 8)))
    assert ways(request) == [((7, 7), (0,), (), True), ((7, 8), (1,), (), True)]


def test_a_text_as_long_as_its_prompt_is_read() -> None:
    request = ask(Branch(asked=(9,) * 5))
    assert ways(request) == [((9,) * 4, (0,), (9,), False)]


def test_an_engine_that_forces_nothing_reads_the_stem() -> None:
    request = ask(Branch(asked=(5, 7)), Branch(asked=(5, 8)))
    (group,) = group_branches(request, forces=False)
    call = group.call()
    assert call.prompt == (*PROMPT, 5)
    assert (call.parameters.max_tokens, call.parameters.prompt_logprobs) == (1, 0)
    assert not call.parameters.extra_args


def test_other_contexts_are_other_calls() -> None:
    request = ask(Branch(given=(5,), asked=(7,)), Branch(given=(6,), asked=(7,)))
    assert [one.prompt for one in group_branches(request, forces=True)] == [
        (*PROMPT, 5),
        (*PROMPT, 6),
    ]


def test_more_labels_than_a_call_gives_are_several_calls() -> None:
    request = ask(*(Branch(asked=(n,)) for n in range(MOST_LABELS + 2)))
    assert [len(one.places) for one in group_branches(request, forces=True)] == [MOST_LABELS, 2]


def row(log_prob: float, rank: int = 1) -> SimpleNamespace:
    return SimpleNamespace(logprob=log_prob, rank=rank)


def output(token_ids: list[int], tables: list[dict[int, Any]], reason: str = "length") -> Any:
    done = SimpleNamespace(token_ids=token_ids, logprobs=tables, finish_reason=reason)
    return SimpleNamespace(outputs=[done], prompt_logprobs=None)


def test_log_likelihoods_stand_with_their_choices() -> None:
    request = ask(Branch(asked=(5, 8)), Branch(asked=(6,)), Branch(asked=(5, 7)))
    answer = ChoicesAnswer(request, 0, forces=True)
    first = output([5, 7], [{5: row(-1.0)}, {7: row(-0.5), 8: row(-2.0, 2)}])
    assert answer.take(0, first) is None
    response = answer.take(1, output([6], [{6: row(-4.0, 3)}]))
    assert response is not None
    found = [(one.log_prob, one.greedy) for one in response.log_likelihoods or ()]
    assert found == [(-3.0, False), (-4.0, False), (-1.5, True)]


@pytest.mark.parametrize(
    "told",
    [
        output([6], [{6: row(-1.0)}], reason="stop"),
        output([5], [{5: row(-1.0)}]),
        output([7], [{6: row(-1.0)}]),
        output([7], [{7: row(float("-inf"))}]),
    ],
)
def test_an_output_that_does_not_tell_is_an_error(told: Any) -> None:
    response = ChoicesAnswer(ask(Branch(asked=(7,))), 0, forces=True).take(0, told)
    assert response is not None
    assert "log-prob" in (response.error or "")


def test_a_group_of_one_asks_for_no_labels() -> None:
    group = Group(prompt=PROMPT, stem=(7, 8), places=(0,), labels=(), forced=True)
    parameters = group.call().parameters
    assert (parameters.max_tokens, parameters.logprobs) == (2, 0)
    assert parameters.logprob_token_ids is None
