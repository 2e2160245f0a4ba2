"""``pawl promote``, ``pawl why``, ``pawl gate --channel`` and ``channel:NAME``."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from promotion_lake import FAILS, OPEN, evaluation_of, open_project, put, write_project

from evals.evaluation import EvaluationState
from evals.gate import REASONS
from pipelines import cli
from pipelines.checkpoints.pin import pinned_folder
from pipelines.evaluating import find_checkpoint
from pipelines.lab.model import WARM
from pipelines.standing import REMEDIES
from storage.project import find_project
from storage.sightings import Sighting, SightingState, put_sightings

Pawl = Callable[..., tuple[int, str, str]]
FIRST = ("promote", "r@1", "--to", "production", "--first", "--who", "Ada", "--why", "start")


@pytest.fixture
def pawl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Pawl:
    """Run a command line on the project; return exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run([*arguments, "--project", str(tmp_path)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Projects ``project`` and ``held``, to be copied: to make one takes seconds."""
    folder = tmp_path_factory.mktemp("made")
    write_project(folder / "project")
    with open_project(folder / "project") as (project, store):
        for step, wrong in ((1, 0), (2, 0), (3, FAILS), (4, OPEN)):
            put(store, evaluation_of(project, step), wrong)
        put(store, evaluation_of(project, 5), complete=False)
        store.register_checkpoint(evaluation_of(project, 6).checkpoint, {})
    shutil.copytree(folder / "project", folder / "held")
    assert cli.run([*FIRST, "--project", str(folder / "held")]) == 0
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    """r@1 and r@2 answer all right, r@3 fails, r@4 is open, r@5 is under way, r@6 is registered."""
    return Path(shutil.copytree(made / "project", tmp_path, dirs_exist_ok=True))


@pytest.fixture
def held(made: Path, tmp_path: Path) -> Path:
    """The same, and r@1 is the holder."""
    return Path(shutil.copytree(made / "held", tmp_path, dirs_exist_ok=True))


def document(said: tuple[int, str, str]) -> Any:
    return json.loads(said[1])


def test_the_way_from_the_first_holder_to_a_promotion_and_back(held: Path, pawl: Pawl) -> None:
    code, out, _ = pawl("gate", "r@2", "--channel", "production")
    assert code == 0
    assert "PASS: r@2 against r@1 under small@1" in out
    code, out, _ = pawl("promote", "r@2", "--to", "production")
    assert code == 0
    assert out.startswith("production points to r@2, before to r@1 (pass); decision ")
    code, out, _ = pawl("promote", "r@2", "--to", "production")
    assert (code, out) == (0, "production points to r@2 already; nothing was changed\n")
    code, out, _ = pawl(
        *("promote", "r@1", "--to", "production", "--rollback", "--who", "Ada", "--why", "worse")
    )
    assert code == 0
    assert "(rollback)" in out
    assert pawl("ledger", "verify")[0] == 0


def test_what_promote_did_is_json(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@2", "--channel", "production")
    told = document(pawl("promote", "r@2", "--to", "production", "--why", "better", "--json"))
    assert told == {
        "channel": "production",
        "candidate": "r@2",
        "digest": "2" * 64,
        "holder_before": "r@1",
        "moved": True,
        "how": "pass",
        "decision": told["decision"],
        "why": "better",
        "who": told["who"],
        "at": told["at"],
        "entry": 5,
    }
    again = document(pawl("promote", "r@2", "--to", "production", "--json"))
    assert (again["moved"], again["entry"], again["candidate"]) == (False, None, "r@2")


def test_every_ledger_entry_has_the_same_keys(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@2", "--channel", "production")
    pawl("promote", "r@2", "--to", "production")
    pawl("gate", "r@3", "--against", "r@1", "--policy", str(held / "policy.yaml"))
    entries = document(pawl("ledger", "show", "--json"))["entries"]
    keys = {"seq", "kind", "verdict", "candidate", "baseline", "channel", "who", "at", "hash"}
    assert {frozenset(entry) for entry in entries} == {frozenset(keys | {"previous"})}
    told = [
        tuple(entry[key] for key in ("kind", "verdict", "candidate", "baseline", "channel"))
        for entry in entries
    ]
    assert told == [
        ("policy", None, None, None, "production"),
        ("decision", "INCONCLUSIVE", "r@1", None, "production"),
        ("promotion", None, "r@1", None, "production"),
        ("decision", "PASS", "r@2", "r@1", "production"),
        ("promotion", None, "r@2", None, "production"),
        ("decision", "FAIL", "r@3", "r@1", None),
    ]
    assert "production" in pawl("ledger", "show")[1]


def test_a_refused_promotion_says_why_and_exits_3(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@3", "--channel", "production")
    code, out, err = pawl("promote", "r@3", "--to", "production")
    assert (code, out) == (3, "")
    assert "channel production is not moved: no PASS: FAIL: r@3" in err
    assert "pawl why r@3" in err
    told = document(pawl("promote", "r@3", "--to", "production", "--json"))
    assert set(told["error"]) == {"what", "where", "fix"}


def test_a_wrong_command_line_is_no_verdict(project: Path, pawl: Pawl) -> None:
    for line, code in (
        ("promote r@1 --to production --first --rollback", 64),
        ("promote r@1 --to production --first", 3),
        ("promote r@1 --to staging", 3),
        ("promote r@1", 64),
        ("gate r@1", 64),
        ("gate r@1 --against r@2", 64),
        ("gate r@1 --channel production --policy smoke", 64),
        ("gate r@1 --channel staging", 3),
        ("why ghost", 3),
        ("why channel:production", 3),
    ):
        got, out, err = pawl(*line.split())
        assert (got, out) == (code, ""), line
        assert err
        assert "Traceback" not in err, line


def test_a_channels_holder_is_a_checkpoint_everywhere(held: Path, pawl: Pawl) -> None:
    told = document(pawl("compare", "r@3", "channel:production", "--json"))
    assert (told["candidate"], told["baseline"]) == ("r@3", "r@1")
    policy = ("--policy", str(held / "policy.yaml"), "--json")
    told = document(pawl("gate", "r@3", "--against", "channel:production", *policy))
    assert told["baseline"] == "r@1"
    assert document(pawl("why", "channel:production", "--json"))["checkpoint"] == "r@1"
    found = find_checkpoint("channel:production", find_project(held))
    assert (str(found.folder), found.name) == ("/nowhere", ("r", 1))


def test_a_pinned_checkpoint_is_read_from_its_pin(held: Path) -> None:
    project = find_project(held)
    pinned = pinned_folder("r", 1, project)
    shutil.copytree(WARM, pinned)
    found = find_checkpoint("r@1", project)
    (pinned / "config.json").unlink()
    assert str(find_checkpoint("r@1", project).folder) == "/nowhere"
    shutil.rmtree(pinned)
    assert (found.folder, str(found.own_folder)) == (pinned, "/nowhere")


def test_a_channel_without_a_holder_is_no_checkpoint(project: Path, pawl: Pawl) -> None:
    pawl("gate", "r@1", "--channel", "production")
    code, _, err = pawl("compare", "r@2", "channel:production")
    assert code == 3
    assert "channel production has no holder yet" in err
    code, _, err = pawl("compare", "r@2", "channel:staging")
    assert "there are production" in err


def five_lines(said: tuple[int, str, str]) -> list[str]:
    code, out, _ = said
    assert code == 0
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == ["rule", "because", "next", "recorded"]
    return lines


def test_why_tells_a_pass(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@2", "--channel", "production")
    first, rule, _, following, recorded = five_lines(pawl("why", "r@2"))
    assert first == "r@2: PASS against r@1 under small@1"
    assert "digits did not move (90% interval" in rule
    assert following == "next: pawl promote r@2 --to production"
    assert "ledger entry 4" in recorded
    pawl("promote", "r@2", "--to", "production")
    assert five_lines(pawl("why", "r@2"))[3] == "next: nothing: production points to it"


def test_why_tells_a_pass_that_is_stale_or_under_no_channels_policy(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@2", "--channel", "production")
    with open_project(held) as (project, store):
        put(store, evaluation_of(project, 7))
    pawl("gate", "r@7", "--channel", "production")
    pawl("promote", "r@7", "--to", "production")
    following = five_lines(pawl("why", "r@2"))[3]
    assert "does not point to r@1" in following
    assert "pawl gate r@2 --channel production" in following
    write_project(held, (held / "policy.yaml").read_text().replace("margin: 0.05", "margin: 0.06"))
    policy = str(held / "policy.yaml")
    assert pawl("gate", "r@2", "--against", "r@1", "--policy", policy)[0] == 0
    assert "no channel is under this policy" in five_lines(pawl("why", "r@2"))[3]


def test_why_tells_a_fail(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@3", "--channel", "production")
    first, rule, because, following, _ = five_lines(pawl("why", "r@3"))
    assert first == "r@3: FAIL against r@1 under small@1"
    assert "digits-hold: digits fell by 25.0 points" in rule
    assert because == "because: on digits 20 items got worse and 0 better"
    assert following == "next: see which items it lost: pawl compare r@3 r@1"


def test_why_tells_what_keeps_a_verdict_open(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@4", "--channel", "production")
    first, rule, because, following, _ = five_lines(pawl("why", "r@4"))
    assert first == "r@4: INCONCLUSIVE against r@1 under small@1"
    assert "margin 5, 80 items" in rule
    assert because == "because: the data neither prove nor rule out too large a drop"
    assert "ask more items in suite small" in following
    with open_project(held) as (project, store):
        put(store, evaluation_of(project, 8, engine="2"))
    pawl("gate", "r@8", "--channel", "production")
    lines = five_lines(pawl("why", "r@8"))
    assert "engine, sampling or template differ" in lines[2]
    assert "pawl eval r@1 --suite small under the same engine" in lines[3]


def test_why_tells_who_waits_for_a_first_promotion(project: Path, pawl: Pawl) -> None:
    assert pawl("gate", "r@1", "--channel", "production")[0] == 2
    lines = five_lines(pawl("why", "r@1"))
    assert lines[0] == "r@1: INCONCLUSIVE under small@1"
    assert lines[2] == "because: there is no baseline to compare with"
    assert "pawl promote r@1 --to production --first" in lines[3]


def test_why_tells_of_the_evaluated_and_the_undecided(held: Path, pawl: Pawl) -> None:
    lines = five_lines(pawl("why", "r@2"))
    assert lines[0] == "r@2: evaluated, not decided"
    assert lines[3] == "next: pawl gate r@2 --channel production"
    lines = five_lines(pawl("why", "r@5"))
    assert (lines[0], lines[2]) == (
        "r@5: not decided",
        "because: its evaluation is running, not complete",
    )
    assert lines[3] == "next: pawl eval r@5 --suite small"
    lines = five_lines(pawl("why", "r@6"))
    assert (lines[2], lines[3]) == ("because: it was not evaluated", "next: pawl eval r@6")


def test_why_tells_of_what_was_only_seen_and_refuses_what_was_not(held: Path, pawl: Pawl) -> None:
    code, _, err = pawl("why", "r@9")
    assert code == 3
    assert "no checkpoint r@9 in the lake" in err
    sighting = Sighting(
        run="r",
        step=9,
        path="/runs/r/checkpoint-9",
        state=SightingState.CORRUPT,
        detail="model.safetensors is cut off",
        changed_at="2025-01-01T00:00:00",
    )
    with open_project(held) as (_, store):
        put_sightings(store.lake, [sighting])
    lines = five_lines(pawl("why", "r@9"))
    assert lines[0] == "r@9: not decided; its files are corrupt"
    assert "model.safetensors is cut off" in lines[2]


def test_why_as_json_has_the_same_keys_for_all(held: Path, pawl: Pawl) -> None:
    pawl("gate", "r@3", "--channel", "production")
    told = {name: document(pawl("why", name, "--json")) for name in ("r@1", "r@2", "r@3", "r@6")}
    assert len({frozenset(one) for one in told.values()}) == 1
    failed = told["r@3"]
    assert (failed["stage"], failed["verdict"], failed["baseline"]) == ("decided", "FAIL", "r@1")
    (rule,) = failed["rules"]
    assert (rule["name"], rule["n"], rule["value"]) == ("digits-hold", 80, -0.25)
    assert told["r@1"]["channels"] == ["production"]
    assert [told[name]["stage"] for name in ("r@2", "r@6")] == ["evaluated", "registered"]
    assert (told["r@6"]["verdict"], told["r@6"]["entry"]) == (None, None)


def test_every_reason_has_a_remedy() -> None:
    assert REMEDIES.keys() == REASONS.keys()


def test_why_names_a_vanished_evaluation(held: Path, pawl: Pawl) -> None:
    with open_project(held) as (project, store):
        key = evaluation_of(project, 5).evaluation_id
        store.finish_evaluation(key, EvaluationState.VANISHED)
    assert "is vanished, not complete" in five_lines(pawl("why", "r@5"))[2]
