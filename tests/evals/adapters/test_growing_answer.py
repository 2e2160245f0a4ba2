"""When an answer ends and what its text is; vLLM's own answers are held against it elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from evals.adapters.growing_answer import GrowingAnswer, find_stop
from evals.plan import Sampling, build_request
from evals.response import FinishReason
from evals.task import RequestKind

ROLE, LETTER, SPACED = 256, 257, 258


@pytest.fixture(scope="module")
def byte_level() -> Any:
    """Ids below 256 are bytes; ROLE is a special token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer = Tokenizer(models.BPE(vocab={c: byte_of(c) for c in alphabet}, merges=[]))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|role|>"])
    return tokenizer


def byte_of(character: str) -> int:
    """The byte that a character of GPT-2's alphabet stands for."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    code = ord(character)
    return hidden[code - 256] if code >= 256 else code


@pytest.fixture(scope="module")
def byte_fallback() -> Any:
    """As Llama 2 has it: ids below 256 are bytes, LETTER is x, SPACED is x behind a space."""
    from tokenizers import Tokenizer, decoders, models

    pieces = {f"<0x{byte:02X}>": byte for byte in range(256)}
    words = {"<unk>": ROLE, "x": LETTER, "▁x": SPACED}
    tokenizer = Tokenizer(models.BPE(vocab=pieces | words, merges=[], byte_fallback=True))
    spaces = decoders.Replace("▁", " ")
    whole = [decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence([spaces, *whole])
    return tokenizer


def grown(
    tokenizer: Any,
    tokens: list[int],
    *,
    stops: tuple[str, ...] = (),
    budget: int = 9,
    prompt: tuple[int, ...] = (65,),
) -> GrowingAnswer:
    request = build_request(
        task="any",
        item_id="any",
        kind=RequestKind.GENERATE,
        token_ids=prompt,
        stops=stops,
        max_tokens=budget,
        sampling=Sampling(),
    )
    answer = GrowingAnswer(request, [0], budget=budget, end_ids={10}, tokenizer=tokenizer)
    for token in tokens:
        assert answer.finish_reason is None
        answer.take(token)
    return answer


def told(answer: GrowingAnswer) -> tuple[str | None, tuple[int, ...], FinishReason]:
    (response,) = answer.responses()
    assert response.output_tokens == len(response.token_ids)
    return response.text, response.token_ids, response.finish_reason


def test_the_text_leaves_out_special_tokens_and_the_ids_do_not(byte_level: Any) -> None:
    tokens = [*b"to", ROLE, *b"day", 10]
    assert told(grown(byte_level, tokens)) == ("today", tuple(tokens), FinishReason.STOP)


def test_a_character_that_the_budget_cuts_is_left_out(byte_level: Any) -> None:
    tokens = list("né".encode())
    assert told(grown(byte_level, tokens, budget=3))[0] == "né"
    assert told(grown(byte_level, tokens[:2], budget=2)) == (
        "n",
        tuple(tokens[:2]),
        FinishReason.LENGTH,
    )


def test_a_stop_string_counts_where_it_spans_tokens_and_not_where_it_spans_the_prompt(
    byte_level: Any,
) -> None:
    tokens = list(b"no. Q")
    answer = grown(byte_level, tokens, stops=(". Q",), budget=5, prompt=tuple(b"A. "))
    assert told(answer) == ("no", tuple(tokens), FinishReason.STOP)
    answer = grown(byte_level, [*b"Q"], stops=(". Q",), budget=1, prompt=tuple(b"A. "))
    assert told(answer) == ("Q", (81,), FinishReason.LENGTH)


def test_an_end_token_at_the_end_of_the_budget_is_an_end(byte_level: Any) -> None:
    assert told(grown(byte_level, [*b"ab", 10], budget=3)) == (
        "ab",
        (97, 98, 10),
        FinishReason.STOP,
    )


def test_bytes_that_change_how_those_before_them_read_are_no_failure(byte_fallback: Any) -> None:
    answer = grown(byte_fallback, [0x41, 0xE2, LETTER, LETTER], budget=4, prompt=(LETTER,))
    text, ids, _ = told(answer)
    assert text == "Axx"
    assert ids == (0x41, 0xE2, LETTER, LETTER)


def test_a_space_in_front_of_the_answer_is_part_of_it(byte_fallback: Any) -> None:
    answer = grown(byte_fallback, [SPACED, SPACED], budget=2, prompt=(LETTER,))
    assert told(answer)[0] == " x x"


def test_an_answer_that_has_not_ended_is_no_response(byte_level: Any) -> None:
    with pytest.raises(ValueError, match="has not ended"):
        next(grown(byte_level, [*b"a"]).responses())


def test_the_stop_string_that_is_complete_first_counts() -> None:
    assert find_stop("4 apples\n\nQ", 3, ("Q", "\n\n")) == 8
    assert find_stop("abcd", 4, ("bcd", "cd")) == 1
    assert find_stop("abcd", 4, ("cd", "bcd")) == 2
    assert find_stop("stop and more", 5, ("stop",)) is None
    assert find_stop("anything", 0, ("thing",)) is None
