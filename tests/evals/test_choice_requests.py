"""Requests for log-likelihoods: what their branches share, and which of them fit."""

from __future__ import annotations

import pytest

from evals.errors import InputError
from evals.job import does_not_fit
from evals.judging import score_response
from evals.plan import Branch, choice_request
from evals.response import FinishReason, LogLikelihood, Response
from evals.scoring import Judgement, Outcome
from evals.task import Capability, Choice, Item, RequestKind, TaskSpec

SPEC = TaskSpec(
    name="choices",
    version="1",
    capability=Capability.REASONING,
    metric="acc",
    kind=RequestKind.LOG_LIKELIHOOD,
)
ITEM = Item(item_id="1", doc={}, target="0")
Encoded = list[tuple[tuple[int, ...], tuple[int, ...]]]


class FirstIsRight:
    """A choice task whose first choice is right."""

    spec = SPEC

    def items(self) -> tuple[Item, ...]:
        return (ITEM,)

    def choices(self, _item: Item, *, chat: bool) -> tuple[Choice, ...]:
        return (Choice(context="a" if chat else "b", continuation="c"),)

    def judge_choices(self, _item: Item, found: tuple[LogLikelihood, ...]) -> Judgement:
        return Judgement(value=float(max(found, key=lambda one: one.log_prob) is found[0]))


def test_one_context_is_shared_whole() -> None:
    request = choice_request(SPEC, ITEM, [((1, 2, 3), (7,)), ((1, 2, 3), (8, 9))], 100)
    assert request.token_ids == (1, 2, 3)
    assert request.branches == (Branch(asked=(7,)), Branch(asked=(8, 9)))
    assert (request.max_tokens, request.prompt_tokens) == (2, 6)
    assert request.output_tokens_at_most == 0


def test_contexts_that_differ_share_what_they_begin_with() -> None:
    request = choice_request(SPEC, ITEM, [((1, 2, 3), (7,)), ((1, 4), (7,))], 100)
    assert request.token_ids == (1,)
    assert request.branches == (Branch(given=(2, 3), asked=(7,)), Branch(given=(4,), asked=(7,)))


def test_a_request_is_named_by_its_branches() -> None:
    first, other = (choice_request(SPEC, ITEM, [((1,), (n,)), ((1,), (9,))], 100) for n in (7, 8))
    assert first.request_id != other.request_id


@pytest.mark.parametrize(("context_tokens", "fits"), [(5, True), (4, False)])
def test_an_item_of_which_one_choice_does_not_fit_is_not_cut(
    context_tokens: int, fits: bool
) -> None:
    request = choice_request(SPEC, ITEM, [((1, 2), (7,)), ((1, 2), (7, 8, 9))], context_tokens)
    assert (request.max_tokens > 0) == fits
    if not fits:
        score = score_response(FirstIsRight(), ITEM, does_not_fit(request, 0))
        assert (score.outcome, score.value) == (Outcome.ERRORED, None)
        assert "does_not_fit: 5 tokens" in (score.detail or "")


@pytest.mark.parametrize("encoded", [[((1,), ())], [((), (1,))]])
def test_an_item_with_a_choice_without_tokens_is_an_error_of_its_own(encoded: Encoded) -> None:
    request = choice_request(SPEC, ITEM, encoded, 100)
    score = score_response(FirstIsRight(), ITEM, does_not_fit(request, 0))
    assert (score.outcome, score.value) == (Outcome.ERRORED, None)
    assert "choice_without_tokens" in (score.detail or "")


def test_an_item_without_choices_is_named() -> None:
    with pytest.raises(InputError, match="item 1"):
        choice_request(SPEC, ITEM, [], 100)


@pytest.mark.parametrize(("values", "right"), [((-1.0, -2.0), 1.0), ((-2.0, -1.0), 0.0)])
def test_log_likelihoods_are_judged_by_the_tasks_rule(
    values: tuple[float, ...], right: float
) -> None:
    response = Response(
        request_id="q",
        repeat=0,
        text=None,
        token_ids=(),
        finish_reason=FinishReason.STOP,
        prompt_tokens=3,
        output_tokens=0,
        log_likelihoods=tuple(LogLikelihood(log_prob=v, greedy=False) for v in values),
    )
    score = score_response(FirstIsRight(), ITEM, response)
    assert (score.outcome, score.value) == (Outcome.SCORED, right)


def test_a_response_is_a_text_or_log_likelihoods_and_never_both() -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Response(
            request_id="q",
            repeat=0,
            text="a",
            token_ids=(),
            finish_reason=FinishReason.STOP,
            prompt_tokens=1,
            output_tokens=1,
            log_likelihoods=(),
        )
