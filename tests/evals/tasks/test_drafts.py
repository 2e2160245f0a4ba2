from itertools import count, cycle

import pytest

from evals.errors import InputError
from evals.tasks.drafts import PATIENCE, Draft, build_items, draw_distinct, require_positive


def draft(number: int) -> Draft:
    return Draft(doc={"number": number}, target="x")


def test_a_question_drawn_again_is_left_out() -> None:
    numbers = cycle([1, 1, 2, 1, 3])
    drafts = draw_distinct(lambda: draft(next(numbers)), 3, "task")
    assert [found.doc["number"] for found in drafts] == [1, 2, 3]


def test_more_questions_than_there_are_is_refused() -> None:
    numbers = cycle([1, 2])
    with pytest.raises(InputError, match="3 different questions wanted, 2 found"):
        draw_distinct(lambda: draft(next(numbers)), 3, "task")


def test_rare_new_questions_are_waited_for() -> None:
    numbers = count()
    drafts = draw_distinct(lambda: draft(next(numbers) // (PATIENCE - 1)), 4, "task")
    assert len(drafts) == 4


def test_identical_documents_get_different_ids() -> None:
    first, second, other = build_items("task", [draft(1), draft(1), draft(2)])
    assert len({first.item_id, second.item_id, other.item_id}) == 3
    assert build_items("task", [draft(2), draft(1)])[1] == first


def test_ids_depend_on_task_document_and_target_alone() -> None:
    plain = Draft(doc={"a": 1, "b": 2}, target="x")
    dressed = Draft(doc={"b": 2, "a": 1}, target="x", cluster="c", stratum="s")
    other_target = Draft(doc={"a": 1, "b": 2}, target="y")
    (first,), (second,), (third,), (fourth,) = (
        build_items("task", [plain]),
        build_items("task", [dressed]),
        build_items("task", [other_target]),
        build_items("other", [plain]),
    )
    assert first.item_id == second.item_id
    assert len({first.item_id, third.item_id, fourth.item_id}) == 3
    assert (second.cluster, second.stratum) == ("c", "s")


def test_the_offending_option_is_named() -> None:
    require_positive("task", items_per_level=1)
    with pytest.raises(InputError) as raised:
        require_positive("task", items_per_level=0)
    assert raised.value.where == "task.items_per_level"
