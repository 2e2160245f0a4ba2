from decimal import Decimal

import pytest

from evals.tasks.answer import Reply, find_number, judge_code, mentioned_codes, split_thought


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("B", "B"),
        ("", ""),
        ("<think>A</think>B", "B"),
        ("<think>\nSo it is A.\n</think>\n\nB", "\n\nB"),
        ("<THINK>A</Think>B", "B"),
        ("<thinking>A</thinking>B", "B"),
        ("<thought>A</thought>B", "B"),
        ("<reasoning>A</reasoning>B", "B"),
        ("<seed:think>A</seed:think>B", "B"),
        ("[THINK]A[/THINK]B", "B"),
        ("◁think▷A◁/think▷B", "B"),
        ("<|begin_of_thought|>A<|end_of_thought|>B", "B"),
        ("<|channel|>analysis<|message|>A<|end|><|channel|>final<|message|>B", "B"),
        ("analysisThe user asks. A.assistantfinalB", "B"),
        ("the template opened the thought, so A</think>B", "B"),
        ("<think></think>B", "B"),
        ("<think>A</think>B<think>C</think>D", "D"),
    ],
)  # fmt: skip
def test_the_answer_stands_behind_the_thought(text: str, answer: str) -> None:
    reply = split_thought(text)
    assert reply.answer == answer
    assert reply.thought + answer == text


@pytest.mark.parametrize(
    "text",
    [
        "<think>It is A",
        "<think>It is A. The answer is 12.",
        "  <thinking>so",
        "[THINK]A",
        "◁think▷A",
        "<|begin_of_thought|>A",
        "<|channel|>analysis<|message|>A",
        "analysisThe user asks for",
        "<think>A</think>B<think>wait",
        "<think>A</thin",
    ],
)
def test_an_unfinished_thought_leaves_no_answer(text: str) -> None:
    assert split_thought(text).answer is None


def test_analysis_as_an_ordinary_word_is_no_thought() -> None:
    assert split_thought("Analysis: the answer is 4").answer == "Analysis: the answer is 4"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", "18"),
        ("The answer is 18.", "18"),
        ("the ANSWER IS: 18", "18"),
        ("Answer: 18", "18"),
        ("**Answer:** $18", "18"),
        ("answer = 18", "18"),
        ("#### 18", "18"),
        ("9 * 2 = 18\n#### 18\n\nLet me know if you need the 2 steps.", "18"),
        ("\\boxed{18}", "18"),
        ("So $\\boxed{\\$18}$.", "18"),
        ("She has 18 left.", "18"),
        ("It costs $18.00.", "18.00"),
        ("It costs \\$20", "20"),
        ("It costs \\$20.50 today", "20.50"),
        ("1,234", "1234"),
        ("1,234,567.5 people", "1234567.5"),
        ("The list 3,4", "4"),
        ("-5", "-5"),
        ("−5", "-5"),
        ("The change is -$5", "-5"),
        ("The change is $-5", "-5"),
        ("10-5", "5"),
        ("10 - 5 = 5", "5"),
        ("- 5 apples", "5"),
        ("(-5)", "-5"),
        ("1/2", "0.5"),
        ("8/2", "4"),
        ("50%", "50"),
        ("18km", "18"),
        ("**18**", "18"),
        ("007", "7"),
        ("The answer is 5 + 3 = 8.", "8"),
        ("The answer is 18, because 9 times 2 is that: 9 and 2.", "18"),
        ("Answer: Ana starts with 3. She buys 4. Now she has 7.", "7"),
        ("The answer is simple. 3 and 4 make 7", "7"),
        ("The answer is\n\n18", "18"),
        ("9^9^9^9", "9"),
    ],
)
def test_a_number_is_found_in_many_forms(text: str, number: str) -> None:
    assert find_number(text) == Decimal(number)


@pytest.mark.parametrize(
    "text",
    ["", "eighteen", "The answer is eighteen.", "####", "\\boxed{}", "A4 paper", "$", "x_2", "…"],
)
def test_nothing_numeric_gives_no_number(text: str) -> None:
    assert find_number(text) is None


def test_a_recited_example_before_the_own_answer_does_not_count() -> None:
    recited = "Problem 1: 21 + 4 = 25.\n#### 25\n\nProblem 3: 9 * 2 = 18.\n#### 18"
    assert find_number(recited) == 18
    assert find_number("21 + 4 = 25. The answer is 25.\n\n9 * 2. The answer is 18.") == 18


def test_one_match_is_enough_for_every_rule() -> None:
    assert find_number("#### 7") == 7


def test_very_long_digit_strings_are_numbers_too() -> None:
    long = "9" * 20_000
    assert find_number(f"The answer is {long}") == Decimal(long)
    assert find_number(f"1/{long}") != 1


def test_long_texts_are_read_in_linear_time() -> None:
    assert find_number("answer " * 20_000 + "1," * 20_000 + "-" * 20_000) == 1
    assert split_thought("<think" * 50_000) == Reply(thought="", answer="<think" * 50_000)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("48213", {"48213"}),
        ("48,213.", {"48213"}),
        ("The code of door 3 is **48213**", {"48213"}),
        ("48213 or 11111", {"48213", "11111"}),
        ("x48213", set()),
        ("3, 12 and 123", set()),
    ],
)
def test_codes_are_long_numbers(text: str, codes: set[str]) -> None:
    assert mentioned_codes(text) == codes


def test_a_code_is_judged_only_if_it_is_the_only_one() -> None:
    assert judge_code("It is 48213, yes, 48213.", "48213").value == 1
    assert judge_code("<think>11111?</think>48213", "48213").value == 1
    assert judge_code("<think>48213</think>11111", "48213").value == 0
    both = judge_code("48213 11111", "48213")
    assert (both.value, both.parsed, both.answer) == (0, True, "11111 48213")
    for text in ("I don't know.", "", "<think>48213"):
        none = judge_code(text, "48213")
        assert (none.value, none.parsed, none.answer) == (0, False, None)
