import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from evals.checkpoint import (
    digest_checkpoint,
    inspect_checkpoint,
    name_of,
    still_there,
    unchanged,
)
from evals.errors import CheckpointError, CheckpointVanished


def write_safetensors(path: Path, values: bytes = bytes(8)) -> None:
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [len(values) // 4], "data_offsets": [0, len(values)]}}
    ).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + values)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "grpo-7b" / "checkpoint-40"
    made.mkdir(parents=True)
    (made / "config.json").write_text('{"model_type": "llama", "max_position_embeddings": 64}')
    (made / "tokenizer.json").write_text("{}")
    write_safetensors(made / "model.safetensors")
    return made


def test_a_whole_checkpoint_is_described(folder: Path) -> None:
    found = inspect_checkpoint(folder)
    assert found.weights == ("model.safetensors",)
    assert found.context_tokens == 64
    assert found.chat_template is None
    assert found.tensor_bytes == 8


def test_the_digest_names_what_can_move_an_answer_and_nothing_else(folder: Path) -> None:
    before = digest_checkpoint(inspect_checkpoint(folder))
    (folder / "optimizer.pt").write_bytes(b"state")
    (folder / "trainer_state.json").write_text("{}")
    assert digest_checkpoint(inspect_checkpoint(folder)) == before
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    with_template = digest_checkpoint(inspect_checkpoint(folder))
    assert with_template != before
    write_safetensors(folder / "model.safetensors", b"\x00" * 7 + b"\x01")
    assert digest_checkpoint(inspect_checkpoint(folder)) not in {before, with_template}


def test_the_digest_is_the_same_in_another_folder_and_over_chunks(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evals.checkpoint.CHUNK_BYTES", 16)
    write_safetensors(folder / "model.safetensors", os.urandom(400))
    other = tmp_path / "elsewhere"
    subprocess.run(["cp", "-r", str(folder), str(other)], check=True)
    assert digest_checkpoint(inspect_checkpoint(folder)) == digest_checkpoint(
        inspect_checkpoint(other)
    )


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda f: (f / "config.json").unlink(), "no config.json"),
        (lambda f: (f / "config.json").write_text('{"model_type"'), "not valid JSON"),
        (lambda f: (f / "config.json").write_text("[1]"), "not a JSON object"),
        (lambda f: (f / "tokenizer.json").unlink(), "no tokenizer"),
        (lambda f: (f / "model.safetensors").unlink(), "no weights"),
        (lambda f: (f / "model.safetensors").write_bytes(b"xyz"), "truncated"),
        (lambda f: (f / "model.safetensors").write_bytes(b""), "truncated"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x04" + bytes(7) + b"nope"), "damaged"),
        (lambda f: (f / "checkpoint-is-incomplete.txt").write_text(""), "still being written"),
        (lambda f: (f / "model-00001.tmp").write_text(""), "still being written"),
        (lambda f: (f / "config.json").write_text("[" * 100_000), "not valid JSON"),
        (lambda f: replace_by_folder(f / "config.json"), "can't be read"),
        (lambda f: replace_by_folder(f / "model.safetensors"), "can't be read"),
        (lambda f: write_safetensors(f / "model.safetensors", b""), "no tensors"),
    ],
)
def test_what_is_no_whole_checkpoint_is_refused_in_one_line(
    folder: Path, break_it: object, says: str
) -> None:
    break_it(folder)  # type: ignore[operator]
    with pytest.raises(CheckpointError, match=says) as refused:
        inspect_checkpoint(folder)
    assert str(folder) in refused.value.where
    assert refused.value.fix
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["..", "", "model.bin", "sub/model.safetensors"])
def test_an_index_names_safetensors_files_of_its_folder_and_nothing_else(
    folder: Path, name: str
) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(CheckpointError, match="no safetensors file in the folder"):
        inspect_checkpoint(folder)


@pytest.mark.parametrize("indexed", [True, False])
def test_weights_of_any_name_are_part_of_the_identity(folder: Path, indexed: bool) -> None:
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    if indexed:
        index = {"weight_map": {"w": "weights.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    before = digest_checkpoint(inspect_checkpoint(folder))
    write_safetensors(folder / "weights.safetensors", b"\x01" * 8)
    assert digest_checkpoint(inspect_checkpoint(folder)) != before


def test_every_truncation_of_the_weights_is_seen(folder: Path) -> None:
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            inspect_checkpoint(folder)
    file.write_bytes(whole + b"x")
    with pytest.raises(CheckpointError, match="asks for"):
        inspect_checkpoint(folder)


def test_weights_that_are_only_pickled_are_not_loaded(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="only as pickle"):
        inspect_checkpoint(folder)


def test_a_lora_adapter_is_refused_by_name(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="LoRA"):
        inspect_checkpoint(folder)


def test_a_shard_that_the_index_names_must_be_there(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {
        "weight_map": {
            "a": "model-00001-of-00002.safetensors",
            "b": "model-00002-of-00002.safetensors",
        }
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="1 of 2 weight files missing"):
        inspect_checkpoint(folder)
    write_safetensors(folder / "model-00002-of-00002.safetensors")
    assert len(inspect_checkpoint(folder).weights) == 2
    (folder / "model.safetensors.index.json").write_text(
        json.dumps(index | {"metadata": {"total_size": 99}})
    )
    with pytest.raises(CheckpointError, match="where the index asks for"):
        inspect_checkpoint(folder)


def test_an_index_can_not_lead_out_of_the_folder(folder: Path) -> None:
    index = {"weight_map": {"a": "../../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="no safetensors file in the folder"):
        inspect_checkpoint(folder)


def test_a_checkpoint_deleted_while_it_is_read_has_vanished(folder: Path) -> None:
    found = inspect_checkpoint(folder)
    assert still_there(found)
    (folder / "model.safetensors").unlink()
    assert not still_there(found)
    with pytest.raises(CheckpointVanished):
        digest_checkpoint(found)


def test_a_file_written_anew_is_noticed(folder: Path) -> None:
    found = inspect_checkpoint(folder)
    assert unchanged(found)
    write_safetensors(folder / "model.safetensors", b"\x01" * 8)
    assert not unchanged(found)


def test_the_separate_template_file_wins(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"chat_template": "old"}')
    assert inspect_checkpoint(folder).chat_template == "old"
    (folder / "chat_template.jinja").write_text("new")
    assert inspect_checkpoint(folder).chat_template == "new"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/runs/grpo-7b/checkpoint-400", ("grpo-7b", 400)),
        ("/runs/a/step_000012", ("a", 12)),
        ("/runs/lab/checkpoints/step_30", ("lab", 30)),
        ("/runs/a/global_step_7_hf", ("a", 7)),
        ("/models/SmolLM2", ("SmolLM2", 0)),
        ("/runs/my run@home/checkpoint-3", ("my-run-home", 3)),
    ],
)
def test_run_and_step_come_from_the_path(path: str, name: tuple[str, int]) -> None:
    assert name_of(Path(path)) == name


def test_looking_at_a_checkpoint_imports_nothing_heavy() -> None:
    code = "import sys, evals.checkpoint; print([m for m in ('torch', 'ray') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
