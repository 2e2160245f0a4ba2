"""The command line: exit codes, messages and JSON, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import RunPawl, read_json

GOOD = {
    "lake": {"catalog": ".pawl/lake.sqlite", "data": ".pawl/lake"},
    "engine": {
        "name": "vllm",
        "dtype": "auto",
        "context_tokens": 512,
        "tensor_parallel": 1,
        "pipeline_parallel": 1,
        "memory_fraction": 0.5,
        "kv_cache_gib": 1.0,
        "parallel_sequences": 8,
        "compiled": False,
    },
    "ray": {"address": None},
    "data_mirror": None,
    "tasks_folder": None,
}


def fields() -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, value in GOOD.items():
        found.append((name,))
        if isinstance(value, dict):
            found += [(name, inner) for inner in value]
    return found


def with_typo(path: tuple[str, ...]) -> dict[str, object]:
    document = json.loads(json.dumps(GOOD))
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1] + "x"] = place.pop(path[-1])
    return document


@pytest.mark.parametrize("path", fields(), ids=".".join)
def test_a_typo_in_any_field_of_the_project_file_is_named(
    path: tuple[str, ...], tmp_path: Path
) -> None:
    from evals.errors import InputError
    from storage.project import find_project

    (tmp_path / "pawl.yaml").write_text(json.dumps(GOOD))
    find_project(tmp_path)
    (tmp_path / "pawl.yaml").write_text(json.dumps(with_typo(path), indent=1))
    with pytest.raises(InputError) as refused:
        find_project(tmp_path)
    text = str(refused.value)
    assert "pawl.yaml:" in text
    assert path[-1] + "x" in text
    assert path[-1] in text.replace(path[-1] + "x", "")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "vlm"),
        ("dtype", "float23"),
        ("context_tokens", 3),
        ("tensor_parallel", 0),
        ("pipeline_parallel", "two"),
        ("memory_fraction", 1.5),
        ("kv_cache_gib", -1),
        ("parallel_sequences", 0),
        ("compiled", "perhaps"),
    ],
)
def test_a_value_out_of_range_is_named(field: str, value: object, tmp_path: Path) -> None:
    from evals.errors import InputError
    from storage.project import find_project

    document = json.loads(json.dumps(GOOD))
    document["engine"][field] = value
    (tmp_path / "pawl.yaml").write_text(json.dumps(document, indent=1))
    with pytest.raises(InputError, match=f"engine.{field}"):
        find_project(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tensor_parallel", 2),
        ("pipeline_parallel", 2),
        ("memory_fraction", 0.5),
        ("kv_cache_gib", 1.0),
        ("compiled", True),
    ],
)
def test_torch_refuses_what_only_vllm_has(field: str, value: object, tmp_path: Path) -> None:
    from evals.errors import InputError
    from storage.project import EngineSection, find_project

    defaults = EngineSection().model_dump()
    (tmp_path / "pawl.yaml").write_text(json.dumps({"engine": defaults | {"name": "torch"}}))
    assert find_project(tmp_path).file.engine.settings().name == "torch"
    engine = {field: value, "name": "torch"}
    (tmp_path / "pawl.yaml").write_text(json.dumps({"engine": engine}, indent=1))
    with pytest.raises(InputError, match=rf"pawl.yaml:\d+: engine\.{field}: torch has no {field}"):
        find_project(tmp_path)
    (tmp_path / "pawl.yaml").write_text(json.dumps({"engine": engine | {"name": "vllm"}}))
    find_project(tmp_path)


def test_exit_codes_of_what_could_not_be_done(run_pawl: RunPawl, tmp_path: Path) -> None:
    half = tmp_path / "run" / "checkpoint-1"
    half.mkdir(parents=True)
    (half / "config.json").write_text("{}")
    pickled = tmp_path / "run" / "checkpoint-2"
    pickled.mkdir()
    (pickled / "config.json").write_text("{}")
    (pickled / "pytorch_model.bin").write_bytes(b"x")
    for arguments, says in (
        (("eval", "nowhere"), "no such folder"),
        (("eval", str(half)), "no weights"),
        (("eval", str(pickled)), "only as pickle"),
        (("eval", str(half), "--suite", "smok"), "smoke"),
        (("eval", str(half), "--suite", "smoke", "--tasks", "gsm8k"), "one of them"),
        (("eval", "ghost@1"), "no lake yet"),
        (("gate", "a@1", "--against", "a@2", "--policy", "nothing.yaml"), "nothing.yaml"),
        (("compare", "a@1", "a@2"), "no lake yet"),
        (("show", "abc"), "no lake yet"),
        (("stat", "nothing.json"), "nothing.json"),
    ):
        done = run_pawl(*arguments, cwd=tmp_path)
        assert done.returncode == 3, (arguments, done.stderr)
        assert says in done.stderr, (arguments, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
    assert not (tmp_path / ".pawl").exists(), "a refused command wrote something"


@pytest.mark.parametrize("name", ["a@²", "a@", "@3", "a b@3", "a@b@3", "../x@3", "a@" + "9" * 5000])
def test_a_name_is_run_and_step(name: str) -> None:
    from evals.errors import InputError
    from storage.naming import parse_name

    assert parse_name("grpo-7b.v2@400") == ("grpo-7b.v2", 400)
    with pytest.raises(InputError, match="is not RUN@STEP"):
        parse_name(name)


def test_an_emptied_catalogue_beside_its_data_is_no_new_lake(
    run_pawl: RunPawl, tmp_path: Path
) -> None:
    from storage.project import find_project

    with find_project(tmp_path).open_store(create=True):
        pass
    (tmp_path / ".pawl" / "lake" / "left.parquet").write_bytes(b"PAR1")
    (tmp_path / ".pawl" / "lake.sqlite").write_bytes(b"")
    done = run_pawl("ledger", "verify", cwd=tmp_path)
    assert done.returncode == 3
    assert "gone or empty" in done.stderr


def test_usage_errors_are_no_verdict(run_pawl: RunPawl, tmp_path: Path) -> None:
    for arguments in (("eval",), ("evil",), ("gate", "x"), ("eval", "x", "--limit", "0"), ()):
        done = run_pawl(*arguments, cwd=tmp_path)
        assert done.returncode == 64, (arguments, done.returncode, done.stderr)


def test_an_error_under_json_is_one_json_document(run_pawl: RunPawl, tmp_path: Path) -> None:
    done = run_pawl("eval", "nowhere", "--json", cwd=tmp_path)
    assert done.returncode == 3
    assert set(read_json(done)["error"]) == {"what", "where", "fix"}


def test_a_crash_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from pipelines import cli
    from pipelines.commands import statistics

    def crash(_file: Path) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(statistics, "read_document", crash)
    assert cli.run(["stat", str(tmp_path)]) == 70

    def interrupt(_file: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(statistics, "read_document", interrupt)
    assert cli.run(["stat", str(tmp_path)]) == 130


def test_init_writes_every_default_and_never_over_a_file(run_pawl: RunPawl, tmp_path: Path) -> None:
    from storage.project import ProjectFile, find_project

    assert run_pawl("init", cwd=tmp_path).returncode == 0
    assert find_project(tmp_path).file == ProjectFile()
    assert run_pawl("init", cwd=tmp_path).returncode == 3


def test_stat_answers_cases_and_names_unbuilt_kinds(run_pawl: RunPawl, tmp_path: Path) -> None:
    case = {"id": "a", "kind": "mcnemar_exact", "config": {}}
    case["input"] = {"baseline_only": 12, "candidate_only": 2}
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": [case]}))
    done = run_pawl("stat", str(file), cwd=tmp_path)
    assert done.returncode == 0
    assert read_json(done)["results"]["a"]["p_two_sided"] == pytest.approx(0.012939453125)
    file.write_text(json.dumps({"cases": [case, {**case, "id": "b", "kind": "tarot"}]}))
    done = run_pawl("stat", str(file), cwd=tmp_path)
    assert done.returncode == 3
    assert read_json(done)["unsupported"] == ["tarot"]
    assert "a" in read_json(done)["results"]


def test_a_lake_of_a_newer_version_is_left_alone(run_pawl: RunPawl, tmp_path: Path) -> None:
    from storage.project import find_project

    with find_project(tmp_path).open_store(create=True) as store:
        store.lake.write(
            lambda tx: tx.run_script("INSERT INTO lake.migrations (version) VALUES (999)")
        )
    done = run_pawl("ledger", "show", cwd=tmp_path)
    assert done.returncode == 3
    assert "newer" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_sandbox_command_tells_how_a_program_ended(run_pawl: RunPawl, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("print('hello')\n")
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\nassert False\n")
    good = run_pawl("sandbox", "run", "good.py", "--json", cwd=tmp_path)
    assert (good.returncode, read_json(good)["outcome"]) == (0, "passed")
    left = run_pawl("sandbox", "run", "leaves.py", "--json", cwd=tmp_path)
    assert (left.returncode, read_json(left)["outcome"]) == (1, "failed")


def test_the_doctor_finds_this_machine_fit(run_pawl: RunPawl, tmp_path: Path) -> None:
    done = run_pawl("doctor", "--json", cwd=tmp_path)
    checks = {check["name"]: check["works"] for check in read_json(done)["checks"]}
    assert set(checks) == {"engine", "ray", "sandbox", "lake", "data", "disk"}
    assert checks["lake"]
    assert checks["engine"]
