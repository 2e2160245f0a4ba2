from collections import Counter

import pytest

from evals.tasks.draws import Draws


def test_a_stream_is_pinned() -> None:
    draws = Draws("task", "1", 0)
    assert [draws.below(1000) for _ in range(6)] == [998, 418, 788, 835, 758, 380]
    assert draws.pick("abcdef", 3) == ["d", "e", "b"]
    assert draws.shuffled([1, 2, 3, 4]) == [1, 4, 3, 2]


def test_other_keys_give_other_streams() -> None:
    streams = {
        tuple(Draws(*key).below(10**9) for _ in range(3))
        for key in [("a", 0), ("a", 1), ("b", 0), ("a", "0", ""), ("a0",)]
    }
    assert len(streams) == 5


def test_below_is_even_and_in_range() -> None:
    draws = Draws("even")
    counts = Counter(draws.below(7) for _ in range(7000))
    assert set(counts) == set(range(7))
    assert all(850 < count < 1150 for count in counts.values())


def test_between_includes_both_ends() -> None:
    draws = Draws("ends")
    assert {draws.between(-1, 1) for _ in range(100)} == {-1, 0, 1}


def test_pick_never_takes_a_position_twice() -> None:
    draws = Draws("pick")
    for _ in range(50):
        assert len(set(draws.pick(range(10), 6))) == 6
    assert sorted(draws.shuffled(range(10))) == list(range(10))


@pytest.mark.parametrize("limit", [0, -1, 2**64 + 1])
def test_a_limit_out_of_range_raises(limit: int) -> None:
    with pytest.raises(ValueError, match="is not in 1 to"):
        Draws("x").below(limit)


def test_more_than_there_are_can_not_be_picked() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        Draws("x").pick("ab", 3)
