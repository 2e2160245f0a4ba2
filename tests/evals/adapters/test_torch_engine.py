"""The torch engine against transformers' own greedy generation, one prompt at a time."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from little_model import END, edited, write_little

from evals.adapters.tokenizer import load_tokenizer
from evals.adapters.torch_engine import TorchEngine, batches, fingerprint_engine
from evals.checkpoint import inspect_checkpoint
from evals.engine import EngineSettings
from evals.errors import EngineError
from evals.plan import Branch, Request, Sampling, build_request
from evals.response import FinishReason, Response
from evals.task import RequestKind

DRAWN = Sampling(temperature=1.0)
TEXT = "The ship left the harbour at dawn and nobody on the quay waved."
BUDGET = 12


def start(path: Path, *, parallel: int = 64, context: int = 256) -> TorchEngine:
    folder = inspect_checkpoint(path)
    settings = EngineSettings(
        name="torch", dtype="float32", parallel_sequences=parallel, context_tokens=context
    )
    chosen = fingerprint_engine(folder, settings, chat_template="none", tokenizer="any")
    return TorchEngine(folder, settings, chosen)


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_little(tmp_path_factory.mktemp("little") / "model")


@pytest.fixture(scope="module")
def engine(little: Path) -> TorchEngine:
    return start(little)


@pytest.fixture(scope="module")
def reference(little: Path) -> Any:
    """The model as transformers loads it."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(little, dtype=torch.float32)


@pytest.fixture(scope="module")
def prompts(little: Path) -> list[tuple[int, ...]]:
    """Prompts of 3 to 57 tokens, no two of one length."""
    tokenizer = load_tokenizer(little)
    return [tuple(tokenizer(TEXT[: 3 + 6 * n]).input_ids) for n in range(10)]


@pytest.fixture(scope="module")
def expected(reference: Any, prompts: list[tuple[int, ...]]) -> list[list[int]]:
    return [generated(reference, ids) for ids in prompts]


def generated(model: Any, ids: Sequence[int]) -> list[int]:
    """What ``generate`` of transformers answers to one prompt alone."""
    import torch

    told = model.generate(torch.tensor([ids]), max_new_tokens=BUDGET, do_sample=False)
    tokens: list[int] = told[0, len(ids) :].tolist()
    return tokens


def other_model(little: Path, target: Path, kind: str, **fields: Any) -> Any:
    """Write a model of another architecture with the little one's tokenizer, and return it."""
    import torch
    import transformers

    shutil.copytree(little, target)
    config = getattr(transformers, kind)(
        **{"vocab_size": END + 1, "hidden_size": 64, "num_hidden_layers": 2, "eos_token_id": END},
        **{"initializer_range": 0.3, "pad_token_id": None, "bos_token_id": None},
        **fields,
    )
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.save_pretrained(target)
    return model


def ask(
    ids: Sequence[int],
    *,
    stops: tuple[str, ...] = (),
    budget: int = BUDGET,
    sampling: Sampling | None = None,
    repeats: int = 1,
) -> Request:
    return build_request(
        task="words",
        item_id="any",
        kind=RequestKind.GENERATE,
        token_ids=tuple(ids),
        stops=stops,
        max_tokens=budget,
        sampling=sampling or Sampling(),
        repeats=repeats,
    )


def answers(engine: TorchEngine, requests: Sequence[Request]) -> dict[tuple[str, int], Response]:
    told = list(engine.generate(requests))
    by_key = {(r.request_id, r.repeat): r for r in told}
    assert len(by_key) == len(told), "a repeat was answered twice"
    assert set(by_key) == {(r.request_id, repeat) for r in requests for repeat in r.repeats}
    return by_key


def one(engine: TorchEngine, request: Request) -> Response:
    (response,) = engine.generate([request])
    return response


def test_answers_are_those_of_transformers_whatever_shares_their_batch(
    little: Path, prompts: list[tuple[int, ...]], expected: list[list[int]]
) -> None:
    requests = [ask(ids) for ids in prompts]
    for parallel in (1, 4, 64):
        told = answers(start(little, parallel=parallel), requests)
        assert [list(told[r.request_id, 0].token_ids) for r in requests] == expected
        ends = [FinishReason.STOP if END in ids else FinishReason.LENGTH for ids in expected]
        assert [told[r.request_id, 0].finish_reason for r in requests] == ends


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("MistralConfig", {"num_key_value_heads": 1, "sliding_window": 16}),
        ("GPT2Config", {}),
    ],
    ids=["sliding window", "absolute positions"],
)
def test_other_models_read_in_a_batch_as_alone(
    kind: str,
    fields: dict[str, Any],
    little: Path,
    prompts: list[tuple[int, ...]],
    tmp_path: Path,
) -> None:
    model = other_model(little, tmp_path / "other", kind, num_attention_heads=2, **fields)
    requests = [ask(ids) for ids in prompts]
    told = answers(start(tmp_path / "other"), requests)
    wanted = [generated(model, ids) for ids in prompts]
    assert [list(told[r.request_id, 0].token_ids) for r in requests] == wanted


def test_batches_hold_to_their_limits_and_leave_nothing_out(engine: TorchEngine) -> None:
    lengths = [3, 9, 9, 9, 9, 9, 15, 40, 41, 200]
    growing = [answer for n in lengths for answer in engine.begin(ask([65] * n, budget=10))]
    parted = list(batches(reversed(growing), parallel=4, tokens=102))
    told = [[answer.prompt_tokens for answer in batch] for batch in parted]
    assert told == [[3, 9, 9, 9], [9, 9], [15, 40], [41], [200]]


def test_a_batch_that_is_half_full_is_not_padded(engine: TorchEngine) -> None:
    lengths = [5] * 3 + [6] * 4 + [7]
    growing = [answer for n in lengths for answer in engine.begin(ask([65] * n))]
    told = [[a.prompt_tokens for a in batch] for batch in batches(growing, parallel=6)]
    assert told == [[5] * 3, [6] * 4, [7]]


def test_each_answer_has_its_own_budget(
    engine: TorchEngine, prompts: list[tuple[int, ...]], expected: list[list[int]]
) -> None:
    requests = [ask(ids, budget=1 + n) for n, ids in enumerate(prompts)]
    told = answers(engine, requests)
    for request, tokens in zip(requests, expected, strict=True):
        response = told[request.request_id, 0]
        assert list(response.token_ids) == tokens[: request.max_tokens]
        assert response.output_tokens == len(response.token_ids)
        assert response.prompt_tokens == len(request.token_ids)


def test_the_context_ends_an_answer_that_its_budget_would_not(
    little: Path, prompts: list[tuple[int, ...]], expected: list[list[int]]
) -> None:
    ids = prompts[5]
    response = one(start(little, context=len(ids) + 3), ask(ids))
    assert list(response.token_ids) == expected[5][:3]
    assert response.finish_reason is FinishReason.LENGTH


def test_an_end_token_ends_the_answer_and_is_no_part_of_its_text(
    little: Path, prompts: list[tuple[int, ...]], expected: list[list[int]], tmp_path: Path
) -> None:
    tokenizer = load_tokenizer(little)
    end = expected[3][4]
    until = expected[3].index(end)
    ended = start(edited(little, tmp_path / "ended", eos_token_id=[end, END]))
    response = one(ended, ask(prompts[3]))
    assert response.finish_reason is FinishReason.STOP
    assert list(response.token_ids) == expected[3][: until + 1]
    assert response.text == tokenizer.decode(expected[3][:until], skip_special_tokens=True)


def test_a_stop_string_ends_the_answer_and_cuts_its_text(
    engine: TorchEngine, prompts: list[tuple[int, ...]]
) -> None:
    whole = one(engine, ask(prompts[2]))
    upto = [one(engine, ask(prompts[2], budget=n)).text or "" for n in range(1, BUDGET + 1)]
    assert whole.text
    for begin in range(len(whole.text) - 3):
        stop = whole.text[begin : begin + 3]
        response = one(engine, ask(prompts[2], stops=("never said", stop)))
        assert response.text == whole.text[: whole.text.index(stop)]
        assert response.finish_reason is FinishReason.STOP
        first = next(n for n, text in enumerate(upto, 1) if stop in text)
        assert response.token_ids == whole.token_ids[:first]


def test_repeats_of_a_greedy_request_are_equal_and_all_there(
    engine: TorchEngine, prompts: list[tuple[int, ...]]
) -> None:
    request = ask(prompts[4], repeats=3)
    told = answers(engine, [request])
    assert len({response.token_ids for response in told.values()}) == 1


def test_a_sampled_answer_depends_on_request_repeat_and_seed_alone(
    engine: TorchEngine, little: Path, prompts: list[tuple[int, ...]]
) -> None:
    def drawn(seed: int) -> list[Request]:
        sampling = Sampling(temperature=1.0, top_p=0.9, seed=seed)
        return [ask(ids, sampling=sampling, repeats=2) for ids in prompts]

    together = answers(engine, drawn(7))
    alone = answers(start(little, parallel=1), drawn(7))
    assert together == alone
    texts = {response.token_ids for response in together.values()}
    assert len(texts) == 2 * len(prompts), "repeats draw alike"
    (twin,) = answers(engine, [replace(drawn(7)[0], request_id="another", repeats=(0,))]).values()
    assert twin.token_ids != together[drawn(7)[0].request_id, 0].token_ids
    other = answers(engine, drawn(8))
    assert not texts & {response.token_ids for response in other.values()}


def test_top_k_of_one_is_greedy(
    engine: TorchEngine, prompts: list[tuple[int, ...]], expected: list[list[int]]
) -> None:
    for sampling in (
        Sampling(temperature=1.0, top_k=1),
        Sampling(temperature=1.0, top_p=1e-9),
        Sampling(temperature=1e-6),
    ):
        told = one(engine, ask(prompts[6], sampling=sampling))
        assert list(told.token_ids) == expected[6]


def test_drawn_tokens_come_as_often_as_the_model_says(
    engine: TorchEngine, reference: Any, prompts: list[tuple[int, ...]]
) -> None:
    import torch

    with torch.inference_mode():
        likely = reference(torch.tensor([prompts[0]])).logits[0, -1].softmax(-1)
    best = int(likely.argmax())
    share = float(likely[best])
    assert 0.2 < share < 0.8
    n = 1000
    told = answers(engine, [ask(prompts[0], budget=1, sampling=DRAWN, repeats=n)])
    hits = sum(response.token_ids == (best,) for response in told.values())
    assert abs(hits / n - share) < 4 * (share * (1 - share) / n) ** 0.5


def test_nothing_asked_is_nothing_answered(engine: TorchEngine) -> None:
    assert list(engine.generate([])) == []


def test_what_can_not_be_answered_is_an_error_row_and_the_rest_is_answered(
    engine: TorchEngine, prompts: list[tuple[int, ...]], expected: list[list[int]]
) -> None:
    refused = {
        "the prompt is empty": ask(()),
        "no room": ask([5] * 256, repeats=2),
        "budget 0": ask(prompts[0], budget=0),
        "token 257": ask([7, 257]),
    }
    told = answers(engine, [*refused.values(), ask(prompts[1])])
    for says, request in refused.items():
        for repeat in request.repeats:
            error = told[request.request_id, repeat].error
            assert error is not None
            assert error.startswith("refused_by_engine: ")
            assert says in error
    assert list(told[ask(prompts[1]).request_id, 0].token_ids) == expected[1]


def test_weights_that_the_configuration_asks_for_and_the_folder_lacks_are_refused(
    little: Path, tmp_path: Path
) -> None:
    deeper = edited(little, tmp_path / "deeper", num_hidden_layers=3)
    with pytest.raises(EngineError, match=r"weights are absent.*model\.layers\.2"):
        start(deeper)


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("MambaConfig", {}, "does not take past_key_values, position_ids"),
        ("Lfm2Config", {"layer_types": ["conv", "full_attention"]}, "has a recurrent state"),
    ],
)
def test_a_model_that_padding_would_mislead_is_refused(
    kind: str, fields: dict[str, Any], says: str, little: Path, tmp_path: Path
) -> None:
    other_model(little, tmp_path / "recurrent", kind, **fields)
    with pytest.raises(EngineError, match=says):
        start(tmp_path / "recurrent")


def test_a_model_whose_code_is_not_transformers_own_is_refused(
    little: Path, tmp_path: Path
) -> None:
    strange = edited(little, tmp_path / "strange", model_type="strange", architectures=["Strange"])
    with pytest.raises(EngineError, match="did not load"):
        start(strange)


def test_the_fingerprint_says_what_can_move_an_answer(little: Path) -> None:
    folder = inspect_checkpoint(little)
    settings = EngineSettings(name="torch", dtype="float32", context_tokens=128)
    told = fingerprint_engine(folder, settings, chat_template="a", tokenizer="b")
    assert (told.engine, told.dtype, told.context_tokens) == ("torch", "float32", 128)
    assert version("torch") in told.version
    assert version("transformers") in told.version
    assert (told.compiled, told.tensor_parallel, told.pipeline_parallel) == (False, 1, 1)
    assert told.device


def test_log_likelihoods_are_those_of_transformers(
    engine: TorchEngine, reference: Any, prompts: list[tuple[int, ...]]
) -> None:
    import torch

    prompt, asked = prompts[5][:-6], (prompts[5][-6:], prompts[4][:2])
    request = build_request(
        task="words",
        item_id="any",
        kind=RequestKind.LOG_LIKELIHOOD,
        token_ids=prompt,
        stops=(),
        max_tokens=6,
        sampling=Sampling(),
        repeats=2,
        branches=tuple(Branch(asked=tokens) for tokens in asked),
    )
    first, second = engine.generate([request])
    assert (first.repeat, second.repeat) == (0, 1)
    assert first.log_likelihoods == second.log_likelihoods
    assert first.log_likelihoods is not None
    for tokens, found in zip(asked, first.log_likelihoods, strict=True):
        ids = torch.tensor([[*prompt, *tokens]])
        labels = torch.tensor([[-100] * len(prompt) + list(tokens)])
        loss = reference(input_ids=ids, labels=labels).loss.detach()
        assert found.log_prob == pytest.approx(-float(loss) * len(tokens), abs=1e-4)
    greedy = generated(reference, prompt)
    forced = replace(request, branches=(Branch(asked=tuple(greedy[:4])),), repeats=(0,))
    (told,) = one(engine, forced).log_likelihoods or ()
    assert told.greedy


def test_a_branch_with_a_token_that_the_model_has_not_is_refused(engine: TorchEngine) -> None:
    request = replace(ask((1, 2)), branches=(Branch(asked=(10**6,)),))
    assert "1000000" in (one(engine, request).error or "")
