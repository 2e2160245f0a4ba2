import pytest

from evals.errors import InputError
from evals.task import Item, Message
from evals.tasks.arithmetic import NAMES, PLAIN, Arithmetic

TASK = Arithmetic()
ITEM = Item(item_id="i", doc={"question": "9 times 2?", "level": "easy"}, target="18")


def test_levels_have_the_same_number_of_items() -> None:
    levels = [item.stratum for item in TASK.items()]
    assert levels == ["easy"] * 30 + ["hard"] * 30


def test_targets_are_positive_whole_numbers_and_questions_state_whole_numbers() -> None:
    for item in Arithmetic(items_per_level=300, seed=5).items():
        assert int(item.target) > 0, item
        assert "-" not in item.doc["question"], item


@pytest.mark.parametrize(
    "text",
    ["18", "The answer is 18.", "#### 18", "9 * 2 = 18", "$18.00", "\\$18", "**18**", "18.0",
     "<think>maybe 17</think>The answer is 18.", "maybe 17</think>18",
     "Problem 1: ... The answer is 25.\n\nProblem 3: 9 * 2 = 18. The answer is 18."],
)  # fmt: skip
def test_right_answers_are_worth_1(text: str) -> None:
    judgement = TASK.judge(ITEM, text)
    assert (judgement.value, judgement.parsed) == (1, True)


@pytest.mark.parametrize(
    "text", ["17", "The answer is 17.", "-18", "1.8", "118", "<think>18</think>17", "18/7", "9 * 2"]
)
def test_wrong_answers_are_worth_0(text: str) -> None:
    judgement = TASK.judge(ITEM, text)
    assert (judgement.value, judgement.parsed) == (0, True)


@pytest.mark.parametrize("text", ["", "I don't know.", "eighteen", "<think>9 * 2 = 18. So 18"])
def test_no_number_is_unparsed(text: str) -> None:
    judgement = TASK.judge(ITEM, text)
    assert (judgement.value, judgement.parsed, judgement.answer) == (0, False, None)


def test_every_target_is_judged_right_and_every_other_number_wrong() -> None:
    for item in TASK.items():
        assert TASK.judge(item, f"The answer is {item.target}.").value == 1
        assert TASK.judge(item, f"The answer is {int(item.target) + 1}.").value == 0


def test_the_chat_prompt_is_one_user_turn_with_the_question() -> None:
    (message,) = TASK.prompt(ITEM, chat=True)
    assert isinstance(message, Message)
    assert message.role == "user"
    assert message.content.startswith("9 times 2?\n")
    assert "The answer is" in message.content


def test_the_plain_prompt_ends_where_the_solution_begins() -> None:
    prompt = TASK.prompt(ITEM, chat=False)
    assert isinstance(prompt, str)
    assert prompt.endswith("Problem 3: 9 times 2?\nSolution:")
    assert TASK.spec.stops == ("\nProblem 4:",)
    assert not any(stop in prompt for stop in TASK.spec.stops)


def test_examples_are_no_items() -> None:
    assert "Zoe" not in NAMES
    questions = {item.doc["question"] for item in TASK.items()}
    assert questions.isdisjoint(question for question, _ in PLAIN.shots)


def test_no_stop_string_occurs_in_an_answer_that_restates_the_question() -> None:
    answer = "Question: what is 9 times 2?\n\nProblem: restated.\n\nThe answer is 18."
    assert not any(stop in answer for stop in TASK.spec.stops)


@pytest.mark.parametrize("count", [0, -1, 1.5, "30", True])
def test_a_senseless_number_of_items_is_refused(count: int) -> None:
    with pytest.raises(InputError, match="whole number"):
        Arithmetic(items_per_level=count)
