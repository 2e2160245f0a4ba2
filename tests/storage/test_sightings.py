"""Sightings in the lake: one row a checkpoint, written only when it says something else."""

from __future__ import annotations

import threading
from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from storage.connection import Lake, LakeConfig, open_lake
from storage.sightings import (
    OURS,
    Sighting,
    SightingState,
    load_sightings,
    put_sightings,
)
from storage.store import LakeStore

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)


def make_sighting(
    step: int = 1, state: SightingState = SightingState.COMPLETE, run: str = "run/α"
) -> Sighting:
    return Sighting(
        run=run,
        step=step,
        path=f"/runs/{step}",
        state=state,
        detail="3 files",
        changed_at="2026-12-01T00:00:00.000000+00:00",
    )


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
@given(
    st.dictionaries(
        st.tuples(ANY_TEXT, st.integers(0, 10**15)),
        st.tuples(st.sampled_from(SightingState), ANY_TEXT, st.none() | ANY_TEXT),
        min_size=1,
        max_size=20,
    )
)
def test_sightings_come_back(
    lake: Lake, drawn: dict[tuple[str, int], tuple[SightingState, str, str | None]]
) -> None:
    lake.write(lambda tx: tx.change("DELETE FROM lake.sightings"))
    wanted = [
        replace(make_sighting(step, state, run), path=path, detail=detail)
        for (run, step), (state, path, detail) in drawn.items()
    ]
    assert put_sightings(lake, wanted) == len(wanted)
    assert put_sightings(lake, wanted) == 0
    assert {(each.run, each.step): each for each in load_sightings(lake)} == {
        (each.run, each.step): each for each in wanted
    }


def test_they_come_by_run_and_the_number_of_the_step(store: LakeStore) -> None:
    store.put_sightings([make_sighting(step, run=run) for run in "ba" for step in (10, 9, 100)])
    assert [each.name for each in store.sightings()] == [
        f"{run}@{step}" for run in "ab" for step in (9, 10, 100)
    ]
    assert [each.step for each in store.sightings("a")] == [9, 10, 100]
    assert store.sightings("c") == ()


def test_only_what_says_something_else_is_written(store: LakeStore) -> None:
    seen = [make_sighting(step) for step in range(20)]
    assert store.put_sightings(seen) == 20
    before = store.snapshot()
    later = [replace(each, changed_at="2027") for each in seen]
    assert store.put_sightings(later) == 0
    assert store.snapshot() == before, "nothing was written"
    changed = later[3].turned(SightingState.VANISHED, "gone")
    assert store.put_sightings([*later[:3], changed, *later[4:], make_sighting(99)]) == 2
    expected = [*seen[:3], changed, *seen[4:], make_sighting(99)]
    assert list(store.sightings()) == expected
    assert list(store.sightings(snapshot=before)) == seen


def test_a_look_that_did_not_know_of_the_pin_does_not_undo_it(sqlite_lake: LakeConfig) -> None:
    pairs = [(kept, state) for kept in OURS for state in SightingState if state not in OURS]
    stored = [make_sighting(step).turned(kept, None) for step, (kept, _) in enumerate(pairs)]
    late = [make_sighting(step).turned(state, "late") for step, (_, state) in enumerate(pairs)]
    with open_lake(sqlite_lake) as lake:
        put_sightings(lake, stored)
        assert put_sightings(lake, late) == 0
        assert list(load_sightings(lake)) == stored
        assert put_sightings(lake, late, unpinned=True) == len(pairs)
        assert list(load_sightings(lake)) == late


def test_pawls_own_states_follow_each_other(store: LakeStore) -> None:
    seen = make_sighting()
    store.put_sightings([seen])
    for state in (SightingState.PINNED, SightingState.FAILED, SightingState.EVALUATED):
        seen = seen.turned(state, None)
        assert store.put_sightings([seen]) == 1
        assert store.sightings() == (seen,)
    store.put_sightings([seen.failed("three times")])
    assert store.sightings()[0].state is SightingState.FAILED


def test_a_sighting_that_says_the_same_stays_the_same() -> None:
    seen = make_sighting()
    assert seen.turned(seen.state, seen.detail) is seen
    turned = seen.turned(SightingState.CORRUPT, "cut off")
    assert (turned.state, turned.detail) == (SightingState.CORRUPT, "cut off")
    assert turned.changed_at > seen.changed_at
    assert turned.path == seen.path


def test_those_who_write_at_once_leave_one_row_a_checkpoint(config: LakeConfig) -> None:
    errors: list[Exception] = []
    with open_lake(config) as lake:
        put_sightings(lake, [make_sighting(1)])

    def write(number: int) -> None:
        try:
            with open_lake(config) as lake:
                for turn in range(3):
                    told = f"{number} {turn}"
                    seen = [make_sighting(step) for step in (1, 2, 3)]
                    put_sightings(lake, [e.turned(SightingState.CORRUPT, told) for e in seen])
        except Exception as error:  # noqa: BLE001  told below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with open_lake(config) as lake:
        assert [each.step for each in load_sightings(lake)] == [1, 2, 3]
        assert len({each.detail for each in load_sightings(lake)}) == 1, "one write's rows"
