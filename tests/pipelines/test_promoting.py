"""Channels, decisions for them and what moves them, on stored evaluations."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ROOT
from promotion_lake import (
    FAILS,
    ITEMS,
    OPEN,
    PASSES,
    POLICY,
    SUITE,
    evaluation_of,
    kinds,
    last,
    open_project,
    put,
    score,
    write_project,
)

from evals.errors import InputError, PromotionRefused
from evals.evaluation import Evaluation, EvaluationState
from evals.policy import load_policy
from evals.stats.verdict import Verdict
from pipelines.comparing import choose_sides, decide_and_store
from pipelines.deciding import (
    ChannelSummary,
    choose_channel_sides,
    decide_for_channel,
    find_section,
    holder_is_owed,
    most_alike,
    read_rules,
    summarize_channels,
    sync_channel,
)
from pipelines.promoting import (
    Promoted,
    first_by_config,
    promote,
    promote_first,
    roll_back,
)
from storage.project import Project
from storage.store import LakeStore

CHANNEL = "production"


class Desk:
    """A project's promotions as one person makes them."""

    def __init__(self, project: Project, store: LakeStore) -> None:
        self.project = project
        self.store = store

    def put(self, step: int, wrong: int = PASSES, **fields: object) -> None:
        put(self.store, evaluation_of(self.project, step, **fields), wrong)

    def decide(self, step: int) -> Verdict:
        name = f"r@{step}"
        return decide_for_channel(CHANNEL, name, self.project, self.store, who="Bo").verdict

    def promote(self, step: int, why: str = "") -> Promoted:
        return promote(CHANNEL, f"r@{step}", self.project, self.store, who="Bo", why=why)

    def first(self, step: int, who: str = "Ada", why: str = "start") -> Promoted:
        return promote_first(CHANNEL, f"r@{step}", self.project, self.store, who=who, why=why)

    def roll_back(self, step: int, who: str = "Ada", why: str = "worse in use") -> Promoted:
        return roll_back(CHANNEL, f"r@{step}", self.store, who=who, why=why)

    def write(self, policy: str = POLICY, suite: str = SUITE) -> None:
        write_project(self.project.folder, policy, suite)

    @property
    def holder(self) -> str | None:
        found = self.store.load_channel(CHANNEL).holder
        return found.name if found else None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Projects ``empty`` and ``held``, to be copied: to make one takes seconds."""
    folder = tmp_path_factory.mktemp("made")
    write_project(folder / "empty")
    with open_project(folder / "empty"):
        pass
    shutil.copytree(folder / "empty", folder / "held")
    with open_project(folder / "held") as (project, store):
        desk = Desk(project, store)
        desk.put(1)
        desk.first(1)
    return folder


def open_copy(made: Path, name: str, folder: Path) -> Iterator[Desk]:
    shutil.copytree(made / name, folder, dirs_exist_ok=True)
    with open_project(folder) as (project, store):
        yield Desk(project, store)
        assert store.verify_ledger().sound


@pytest.fixture
def desk(made: Path, tmp_path: Path) -> Iterator[Desk]:
    """A channel with no holder yet."""
    yield from open_copy(made, "empty", tmp_path)


@pytest.fixture
def held(made: Path, tmp_path: Path) -> Iterator[Desk]:
    """A channel that r@1 holds, who answers everything right."""
    yield from open_copy(made, "held", tmp_path)


def test_a_channel_is_made_as_the_project_says_and_only_once(desk: Desk) -> None:
    channel = sync_channel(CHANNEL, desk.project, desk.store, "Bo")
    assert (channel.policy_label, channel.suite, channel.holder) == ("small@1", "small", None)
    assert sync_channel(CHANNEL, desk.project, desk.store, "Cy") == channel
    assert kinds(desk.store) == ["policy"]
    with pytest.raises(InputError, match=r"no channel 'staging'.*production"):
        sync_channel("staging", desk.project, desk.store, "Bo")


def test_the_first_holder_is_decided_on_alone_and_signed_by_a_person(desk: Desk) -> None:
    desk.put(1)
    assert desk.decide(1) is Verdict.INCONCLUSIVE
    done = desk.first(1)
    assert done.entry is not None
    assert (done.channel, done.holder.name, done.before) == (CHANNEL, "r@1", None)
    assert (done.entry.who, done.entry.payload["why"], done.entry.payload["how"]) == (
        "Ada",
        "start",
        "first",
    )
    assert kinds(desk.store) == ["policy", "decision", "promotion"]
    assert desk.store.ledger()[1].payload["channel"] == CHANNEL
    decision = desk.store.load_decision(done.entry.payload["decision"]).decision
    assert (decision.candidate, decision.baseline, decision.verdict) == ("r@1", "", "INCONCLUSIVE")
    assert desk.holder == "r@1"


@pytest.mark.parametrize(("who", "why", "lacks"), [("", "start", "--who"), ("Ada", " ", "--why")])
def test_a_persons_word_needs_a_name_and_a_reason(
    held: Desk, who: str, why: str, lacks: str
) -> None:
    before = kinds(held.store)
    for word in (held.first, held.roll_back):
        with pytest.raises(InputError, match=lacks):
            word(1, who, why)
    assert kinds(held.store) == before


def test_a_first_holder_below_the_floor_is_refused(desk: Desk) -> None:
    desk.put(1, wrong=38)
    with pytest.raises(PromotionRefused, match="ceiling or floor is not proven: digits-floor"):
        desk.first(1)
    assert desk.holder is None


@pytest.mark.parametrize("policy", [POLICY, POLICY[: POLICY.index("  - {name: digits-floor")]])
@pytest.mark.parametrize(
    ("complete", "answered", "says"),
    [(True, False, "no scored answer"), (False, True, "running, not complete")],
)
def test_a_first_holder_that_was_not_evaluated_is_refused(
    desk: Desk, policy: str, complete: bool, answered: bool, says: str
) -> None:
    desk.write(policy)
    evaluation = evaluation_of(desk.project, 1)
    put(desk.store, evaluation, complete=complete, answered=answered)
    with pytest.raises(PromotionRefused, match=says):
        desk.first(1)
    assert desk.holder is None


def test_only_a_channel_without_a_holder_has_a_first_promotion(held: Desk) -> None:
    held.put(2)
    with pytest.raises(PromotionRefused, match="it has a holder, r@1: only a PASS"):
        held.first(2)
    assert held.first(1).entry is None


@pytest.mark.parametrize("holder", [False, True])
def test_a_screening_policy_never_promotes(desk: Desk, holder: bool) -> None:
    desk.put(1)
    desk.put(2)
    if holder:
        desk.first(1)
    desk.write(POLICY.replace('version: "1"', 'version: "1"\nkind: screening'))
    assert desk.decide(2) is Verdict.INCONCLUSIVE
    with pytest.raises(PromotionRefused, match="screening policy, which never promotes"):
        desk.promote(2)
    with pytest.raises(PromotionRefused, match="screening policy, which never promotes"):
        desk.first(2)
    assert desk.holder == ("r@1" if holder else None)


def test_a_pass_against_the_holder_moves_the_channel(held: Desk) -> None:
    held.put(2)
    assert held.decide(2) is Verdict.PASS
    done = held.promote(2)
    assert done.entry is not None
    assert done.before is not None
    assert (done.before.name, held.holder, done.entry.payload["how"]) == ("r@1", "r@2", "pass")
    again = held.promote(2)
    assert (again.entry, again.holder.name) == (None, "r@2")
    assert kinds(held.store)[3:] == ["decision", "promotion"]


def test_without_a_holder_there_is_nothing_to_pass_against(desk: Desk) -> None:
    desk.write("name: floors\nversion: '1'\nrules:\n  - " + POLICY.split("  - ")[2])
    desk.put(1)
    assert desk.decide(1) is Verdict.PASS
    with pytest.raises(PromotionRefused, match=r"no holder yet.*--first"):
        desk.promote(1)


@pytest.mark.parametrize(
    ("wrong", "verdict"), [(FAILS, Verdict.FAIL), (OPEN, Verdict.INCONCLUSIVE)]
)
def test_what_is_no_pass_moves_nothing(held: Desk, wrong: int, verdict: Verdict) -> None:
    held.put(2, wrong)
    assert held.decide(2) is verdict
    with pytest.raises(PromotionRefused, match=rf"no PASS: {verdict}.*pawl why r@2"):
        held.promote(2)
    assert held.holder == "r@1"


def test_what_was_not_decided_or_evaluated_moves_nothing(held: Desk) -> None:
    held.put(2)
    with pytest.raises(PromotionRefused, match=r"no decision on r@2.*pawl gate r@2 --channel"):
        held.promote(2)
    with pytest.raises(InputError, match="no checkpoint r@3"):
        held.promote(3)
    held.store.register_checkpoint(evaluation_of(held.project, 3).checkpoint, {})
    with pytest.raises(InputError, match="was not evaluated on suite small"):
        held.promote(3)
    assert held.holder == "r@1"


def test_a_pass_under_another_policy_moves_nothing(held: Desk) -> None:
    held.put(2)
    file = held.project.folder / "other.yaml"
    file.write_text(POLICY.replace("margin: 0.05", "margin: 0.06"))
    other = load_policy(file)
    sides = choose_sides("r@2", "r@1", None, held.store)
    decision, _ = decide_and_store(other, sides, held.store)
    assert decision.verdict is Verdict.PASS
    with pytest.raises(PromotionRefused, match=r"no decision.*only under small@1 \("):
        held.promote(2)


def test_a_changed_policy_is_an_entry_and_makes_earlier_passes_void(held: Desk) -> None:
    held.put(2)
    assert held.decide(2) is Verdict.PASS
    held.write(POLICY.replace("margin: 0.05", "margin: 0.04"))
    with pytest.raises(PromotionRefused, match="no decision on r@2 under its policy"):
        held.promote(2)
    assert last(held.store).kind == "policy"
    assert held.decide(2) is Verdict.PASS
    assert held.promote(2).entry is not None


def test_a_decision_against_an_earlier_holder_is_stale(held: Desk) -> None:
    held.put(2)
    held.put(3)
    assert held.decide(2) is held.decide(3) is Verdict.PASS
    held.promote(2)
    with pytest.raises(
        PromotionRefused, match=r"against r@1, while it points to r@2.*decide again: pawl gate r@3"
    ):
        held.promote(3)
    assert held.decide(3) is Verdict.PASS
    assert held.promote(3).entry is not None


def test_a_decision_on_other_weights_moves_nothing(held: Desk) -> None:
    held.put(2)
    assert held.decide(2) is Verdict.PASS
    again = evaluation_of(held.project, 2)
    other = replace(again.checkpoint, digest="e" * 64)
    put(held.store, replace(again, evaluation_id="e" * 32, checkpoint=other))
    with pytest.raises(PromotionRefused, match=r"decided on with other weights \(22222"):
        held.promote(2)
    assert held.holder == "r@1"


def test_only_the_suite_as_it_is_decides(held: Desk) -> None:
    """A part of the suite is easier to pass, whatever it is called."""
    held.put(1, items=70)
    held.put(2, items=70)
    policy = read_rules(CHANNEL, held.project, held.store, "Bo").policy
    sides = choose_sides("r@2", "r@1", "small", held.store)
    assert decide_and_store(policy, sides, held.store)[0].verdict is Verdict.PASS
    with pytest.raises(InputError, match=r"not evaluated on suite small as it is.*--suite"):
        held.promote(2)
    held.put(2, wrong=FAILS)
    with pytest.raises(PromotionRefused, match="rests on other evaluations"):
        held.promote(2)
    assert held.decide(2) is Verdict.FAIL


def test_a_repeat_is_no_second_chance(held: Desk) -> None:
    held.put(2, wrong=FAILS)
    held.put(2, wrong=PASSES, attempt=1)
    assert held.decide(2) is Verdict.FAIL
    with pytest.raises(PromotionRefused, match="no PASS"):
        held.promote(2)


def test_the_newest_decision_counts(held: Desk) -> None:
    held.put(2)
    assert held.decide(2) is Verdict.PASS
    score(held.store, evaluation_of(held.project, 2), FAILS, version="2")
    assert held.decide(2) is Verdict.FAIL
    with pytest.raises(PromotionRefused, match="no PASS"):
        held.promote(2)


def test_the_same_evidence_is_decided_on_once(held: Desk) -> None:
    held.put(2, wrong=OPEN)
    assert held.decide(2) is held.decide(2) is Verdict.INCONCLUSIVE
    held.put(3)
    assert held.decide(2) is Verdict.INCONCLUSIVE
    assert kinds(held.store).count("decision") == 2


def test_of_the_holder_the_decision_is_the_one_that_made_it_so(held: Desk) -> None:
    held.put(2)
    passed = decide_for_channel(CHANNEL, "r@2", held.project, held.store, who="Bo")
    held.promote(2)
    before = kinds(held.store)
    for name in ("r@2", "channel:production"):
        assert decide_for_channel(CHANNEL, name, held.project, held.store, who="Bo") == passed
    assert kinds(held.store) == before
    held.roll_back(1)
    again = decide_for_channel(CHANNEL, "r@1", held.project, held.store, who="Bo")
    assert (again.candidate, again.baseline) == ("r@1", None)


def test_a_kill_between_decision_and_promotion_costs_nothing(held: Desk) -> None:
    held.put(2)
    script = Path(__file__).with_name("promotion_lake.py")
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "evals")])
    with subprocess.Popen(
        [sys.executable, script, held.project.folder, "r@2"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        process.kill()
    decided = decide_for_channel(CHANNEL, "r@2", held.project, held.store, who="Bo")
    assert (decided.decision, decided.verdict) == (said, Verdict.PASS)
    assert held.promote(2).entry is not None
    assert kinds(held.store) == ["policy", "decision", "promotion", "decision", "promotion"]


def test_a_rollback_goes_to_an_earlier_holder_only(held: Desk) -> None:
    held.put(2)
    held.put(3)
    held.decide(2)
    held.promote(2)
    with pytest.raises(PromotionRefused, match=r"r@3 never was its holder.*r@1, r@2"):
        held.roll_back(3)
    decisions = kinds(held.store).count("decision")
    done = held.roll_back(1)
    assert done.entry is not None
    payload = done.entry.payload
    assert (payload["how"], payload["why"], done.entry.who) == ("rollback", "worse in use", "Ada")
    assert payload["decision"] == held.store.promotions(CHANNEL)[0].decision
    assert (held.holder, kinds(held.store).count("decision")) == ("r@1", decisions)
    assert held.roll_back(1).entry is None


def test_who_was_rolled_back_comes_again_only_for_a_reason(held: Desk) -> None:
    """A schedule that sees the old PASS again must not undo a person's word."""
    held.put(2)
    held.decide(2)
    held.promote(2)
    held.roll_back(1)
    assert held.decide(2) is Verdict.PASS
    with pytest.raises(PromotionRefused, match=r"held it before .ledger entry 5.*--why"):
        held.promote(2)
    done = held.promote(2, why="it was the server")
    assert done.entry is not None
    assert done.entry.payload["why"] == "it was the server"


def test_after_an_engine_upgrade_the_holder_is_owed_and_nothing_passes(held: Desk) -> None:
    held.put(2, engine="2")
    channel = held.store.load_channel(CHANNEL)
    evaluation = evaluation_of(held.project, 2, engine="2")
    assert not holder_is_owed(channel, evaluation_of(held.project, 2), held.store)
    assert holder_is_owed(channel, evaluation, held.store)
    decision = decide_for_channel(CHANNEL, "r@2", held.project, held.store, who="Bo")
    assert decision.verdict is Verdict.INCONCLUSIVE
    assert decision.reasons == ("fingerprint_differs",)
    upgraded = evaluation_of(held.project, 1, engine="2")
    put(held.store, upgraded, complete=False)
    assert holder_is_owed(channel, evaluation, held.store)
    held.store.finish_evaluation(upgraded.evaluation_id, EvaluationState.COMPLETE)
    assert not holder_is_owed(channel, evaluation, held.store)
    again = decide_for_channel(CHANNEL, "r@2", held.project, held.store, who="Bo")
    assert (again.verdict, again.baseline_evaluation) == (Verdict.PASS, upgraded.evaluation_id)
    assert held.promote(2).entry is not None


def test_the_holders_evaluation_is_the_one_most_like_the_candidates(desk: Desk) -> None:
    def one(**fields: object) -> Evaluation:
        made = evaluation_of(desk.project, 1, **fields)
        return replace(made, state=EvaluationState.COMPLETE)

    same = one()
    running = replace(same, state=EvaluationState.RUNNING)
    upgraded, part, repeat = one(engine="2"), one(items=70), one(attempt=1)
    candidate = evaluation_of(desk.project, 2)
    for theirs, best in (
        ([same, part], same),
        ([part, running], running),
        ([same, upgraded], same),
        ([upgraded, running], upgraded),
        ([same, repeat], same),
        ([repeat, upgraded], repeat),
        ([replace(same, evaluation_id="older"), same], same),
    ):
        assert most_alike(candidate, theirs) == best


def test_nobody_owes_anything_without_a_holder_or_to_itself(desk: Desk) -> None:
    desk.put(1)
    channel = sync_channel(CHANNEL, desk.project, desk.store, "Bo")
    evaluation = evaluation_of(desk.project, 1, engine="2")
    assert not holder_is_owed(channel, evaluation, desk.store)
    desk.first(1)
    assert not holder_is_owed(desk.store.load_channel(CHANNEL), evaluation, desk.store)


def test_a_changed_suite_owes_the_holder_an_evaluation(held: Desk) -> None:
    held.write(suite=SUITE.replace('"1"', '"2"'))
    held.put(2)
    channel = held.store.load_channel(CHANNEL)
    assert holder_is_owed(channel, evaluation_of(held.project, 2), held.store)
    held.put(1)
    assert not holder_is_owed(channel, evaluation_of(held.project, 2), held.store)
    rules = read_rules(CHANNEL, held.project, held.store, "Bo")
    sides = choose_channel_sides(rules, evaluation_of(held.project, 2).checkpoint, held.store)
    assert sides.baseline is not None
    assert sides.baseline.suite_fingerprint == sides.candidate.suite_fingerprint


def test_the_first_holder_may_be_named_in_the_project(desk: Desk) -> None:
    desk.put(1)
    desk.put(2)
    section = find_section(CHANNEL, desk.project)
    assert section.first is not None
    assert first_by_config(CHANNEL, "r@2", desk.project, desk.store) is None
    done = first_by_config(CHANNEL, "r@1", desk.project, desk.store)
    assert done is not None
    assert done.entry is not None
    assert (done.entry.who, done.entry.payload["why"]) == ("Ada", "where the run starts")
    assert first_by_config(CHANNEL, "r@1", desk.project, desk.store) is None
    assert desk.holder == "r@1"


def test_a_named_first_holder_below_the_floor_is_refused_too(desk: Desk) -> None:
    desk.put(1, wrong=ITEMS)
    with pytest.raises(PromotionRefused, match="floor is not proven"):
        first_by_config(CHANNEL, "r@1", desk.project, desk.store)


def test_channels_are_told_in_a_line_each(held: Desk) -> None:
    held.write(POLICY.replace('version: "1"', 'version: "2"'))
    sync_channel(CHANNEL, held.project, held.store, "Bo")
    since = held.store.promotions(CHANNEL)[0].at
    assert summarize_channels(held.store) == (
        ChannelSummary(name=CHANNEL, policy="small@2", suite="small", holder="r@1", since=since),
    )
