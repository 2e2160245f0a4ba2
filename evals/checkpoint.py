"""A checkpoint folder: is it whole, what is in it, and what is its name by content.

Order of the parts: ``inspect_checkpoint`` (structure), ``digest_checkpoint`` (identity),
``name_of`` (run and step from the path). Nothing here loads weights: safetensors headers tell
whether every tensor's bytes are there.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.errors import CheckpointError, CheckpointVanished
from evals.identity import fingerprint

CHUNK_BYTES = 16 * 1024 * 1024
DIGEST_THREADS = 8
LENGTH_BYTES = 8
"""A safetensors file begins with its header's length."""
MAX_HEADER_BYTES = 100_000_000

WRITING_MARKS = ("checkpoint-is-incomplete.txt", ".metadata.tmp", "*.tmp", "*.incomplete", "*.lock")
"""Files whose presence says that the folder is still being written."""

WRITING_NAMES = re.compile(r"^(tmp_|old_)|\.tmp$|\.incomplete$")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError)
"""What taking apart a damaged header raises."""

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")
MODEL_FILES = re.compile(
    r"^(model.*\.safetensors(\.index\.json)?|config\.json|generation_config\.json"
    r"|tokenizer.*|special_tokens_map\.json|added_tokens\.json|vocab\.(json|txt)|merges\.txt"
    r"|chat_template\..*|.*\.tiktoken)$"
)
"""What can move an answer: weights, configuration, tokenizer, template. Optimizer state can't."""

STEP_IN_NAME = re.compile(
    r"^(?:checkpoint|global_step|step|iter|iteration|ckpt)[-_]?0*(\d+)(?:_hf)?$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFolder:
    """A whole checkpoint as found on disk."""

    path: Path
    weights: tuple[str, ...]
    """Safetensors files, sorted."""
    files: tuple[str, ...]
    """All files that can move an answer, sorted."""
    config: dict[str, Any]
    tensor_bytes: int
    chat_template: str | None
    """Text of the template, or None where the checkpoint has none."""
    generation_config: dict[str, Any]
    """What the file says; recorded, never applied by itself."""
    marks: tuple[tuple[int, int, int], ...]
    """Size, time of change (ns) and inode of each of ``files`` when they were inspected."""

    @property
    def context_tokens(self) -> int | None:
        """Return the longest context that the configuration names, or None."""
        text = self.config.get("text_config")
        for source in (self.config, text if isinstance(text, dict) else {}):
            for key in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
                value = source.get(key)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
        return None


@contextmanager
def vanishing(path: Path) -> Iterator[None]:
    """Turn a file that disappears while it is read into ``CheckpointVanished``."""
    try:
        yield
    except FileNotFoundError as gone:
        raise CheckpointVanished(
            f"deleted while it was read ({Path(gone.filename or path).name} is gone)",
            str(path),
            "evaluate another checkpoint, or keep more of them in the trainer's settings",
        ) from gone
    except OSError as bad:
        raise CheckpointError(
            f"can't be read: {bad.strerror}",
            str(bad.filename or path),
            "check that it is a file and that you may read it",
        ) from bad


def inspect_checkpoint(path: Path) -> CheckpointFolder:
    """Return what is in the folder if it is a whole checkpoint that Pawl may load.

    Raises:
        CheckpointError: Missing, still being written, truncated, pickle-only, no tokenizer.
        CheckpointVanished: Deleted while it was read.
    """
    if not path.is_dir():
        raise CheckpointError(
            "no such folder" if not path.exists() else "not a folder",
            str(path),
            "give the folder with config.json and the safetensors files",
        )
    refuse_unfinished(path)
    with vanishing(path):
        config = read_json(path / "config.json", "a checkpoint folder has config.json in it")
        weights = weight_files(path)
        tensor_bytes = sum(check_safetensors(path / name) for name in weights)
        if tensor_bytes == 0:
            raise CheckpointError(
                "the weight files hold no tensors", str(path), "write the checkpoint again"
            )
        check_total(path, tensor_bytes)
        if not any((path / name).exists() for name in TOKENIZER_FILES):
            raise CheckpointError(
                "no tokenizer (tokenizer.json, tokenizer.model or vocab.json)",
                str(path),
                "copy the tokenizer's files of the base model into the folder",
            )
        generation = path / "generation_config.json"
        named = {f.name for f in path.iterdir() if MODEL_FILES.match(f.name)}
        files = tuple(sorted(named | set(weights)))
        return CheckpointFolder(
            path=path,
            weights=weights,
            files=files,
            marks=tuple(mark_of(path / name) for name in files),
            config=config,
            tensor_bytes=tensor_bytes,
            chat_template=find_chat_template(path),
            generation_config=read_json(generation, "") if generation.exists() else {},
        )


def refuse_unfinished(path: Path) -> None:
    """Raise ``CheckpointError`` where a mark says that the folder is still being written."""
    marks = [hit.name for mark in WRITING_MARKS for hit in path.glob(mark)]
    if WRITING_NAMES.search(path.name):
        marks.append(path.name)
    if marks:
        raise CheckpointError(
            f"still being written ({marks[0]} is there)",
            str(path),
            "wait until the trainer has finished the checkpoint",
        )


def read_json(path: Path, fix: str) -> dict[str, Any]:
    """Return the JSON object in ``path``.

    Raises:
        CheckpointError: The file is absent, or is not a whole JSON object.
    """
    if not path.exists():
        raise CheckpointError(f"no {path.name}", str(path.parent), fix)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as bad:
        raise CheckpointError(
            f"not valid JSON ({bad})", str(path), "the file is cut off or damaged: copy it again"
        ) from bad
    if not isinstance(value, dict):
        raise CheckpointError("not a JSON object", str(path), fix)
    return value


def weight_files(path: Path) -> tuple[str, ...]:
    """Return the names of the safetensors files that make up the model.

    Raises:
        CheckpointError: None, only pickles, or a shard that the index names is missing.
    """
    index = path / "model.safetensors.index.json"
    if index.exists():
        entries = read_json(index, "").get("weight_map")
        if not isinstance(entries, dict) or not entries:
            raise CheckpointError("no weight_map", str(index), "write the checkpoint again")
        names = sorted({str(name) for name in entries.values()})
        outside = [n for n in names if Path(n).name != n or not n.endswith(".safetensors")]
        if outside:
            raise CheckpointError(
                f"names what is no safetensors file in the folder: {outside[0]!r}",
                str(index),
                "do not load it; write the checkpoint again",
            )
        absent = [name for name in names if not (path / name).exists()]
        if absent:
            raise CheckpointError(
                f"{len(absent)} of {len(names)} weight files missing, first {absent[0]}",
                str(path),
                "wait until the trainer has finished, or copy the folder again",
            )
        return tuple(names)
    names = sorted(f.name for f in path.glob("*.safetensors") if not f.name.startswith("adapter"))
    if names:
        return tuple(names)
    if (path / "adapter_config.json").exists():
        raise CheckpointError(
            "a LoRA adapter without its base model",
            str(path),
            "merge it into the base model first (peft: merge_and_unload, save_pretrained)",
        )
    pickles = sorted(f.name for pattern in PICKLES for f in path.glob(pattern))
    if pickles:
        raise CheckpointError(
            f"weights only as pickle ({pickles[0]}), which can run code when loaded",
            str(path),
            "save it with safe_serialization=True, or convert it to safetensors",
        )
    raise CheckpointError(
        "no weights (model*.safetensors)", str(path), "give the folder that holds the weights"
    )


def check_safetensors(path: Path) -> int:
    """Return the bytes of tensors in a safetensors file whose header and size agree.

    Raises:
        CheckpointError: Truncated, longer than its header says, or no safetensors file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(LENGTH_BYTES)
        length = struct.unpack("<Q", start)[0] if len(start) == LENGTH_BYTES else 0
        if not 0 < length <= min(MAX_HEADER_BYTES, size - LENGTH_BYTES):
            raise CheckpointError(
                f"truncated or no safetensors file ({size} bytes)",
                str(path),
                "wait until the trainer has finished, or copy the file again",
            )
        try:
            header = json.loads(file.read(length))
            end = max(
                (int(t["data_offsets"][1]) for k, t in header.items() if k != "__metadata__"),
                default=0,
            )
        except (*UNREADABLE, OverflowError, RecursionError) as bad:
            raise CheckpointError(
                f"damaged safetensors header ({bad})", str(path), "copy the file again"
            ) from bad
    if LENGTH_BYTES + length + end != size:
        raise CheckpointError(
            f"{size} bytes where its header asks for {LENGTH_BYTES + length + end}",
            str(path),
            "wait until the trainer has finished, or copy the file again",
        )
    return end


def check_total(path: Path, tensor_bytes: int) -> None:
    """Raise ``CheckpointError`` where the index's total and the shards' tensors disagree."""
    index = path / "model.safetensors.index.json"
    if not index.exists():
        return
    metadata = read_json(index, "").get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, int) and total > tensor_bytes:
        raise CheckpointError(
            f"{tensor_bytes} bytes of tensors where the index asks for {total}",
            str(path),
            "a shard belongs to another save: copy the folder again",
        )


def find_chat_template(path: Path) -> str | None:
    """Return the checkpoint's chat template; the separate file wins over tokenizer_config.json."""
    separate = path / "chat_template.jinja"
    if separate.exists():
        return separate.read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", "tokenizer_config.json"):
        if (path / name).exists():
            template = read_json(path / name, "").get("chat_template")
            if isinstance(template, str):
                return template
            if isinstance(template, list):
                named = {
                    str(t.get("name")): t.get("template") for t in template if isinstance(t, dict)
                }
                default = named.get("default")
                return default if isinstance(default, str) else None
    return None


def digest_checkpoint(
    folder: CheckpointFolder, progress: Callable[[int, int], None] = lambda done, total: None
) -> str:
    """Return the tree hash of all that can move an answer, 64 hex digits.

    Each file is hashed in chunks of 16 MiB by parallel threads; a file's digest is the SHA-256 of
    its chunks' digests, the checkpoint's that of names, sizes and file digests.

    Args:
        folder: What to hash.
        progress: Called with bytes done and bytes in all.

    Raises:
        CheckpointVanished: Deleted while it was read.
    """
    with vanishing(folder.path):
        sizes = {name: (folder.path / name).stat().st_size for name in folder.files}
        parts = [
            (name, offset)
            for name, size in sizes.items()
            for offset in range(0, max(size, 1), CHUNK_BYTES)
        ]
        chunks: dict[str, list[str]] = {name: [] for name in sizes}
        with ThreadPoolExecutor(DIGEST_THREADS) as pool:
            hashed = pool.map(lambda part: hash_chunk(folder.path / part[0], part[1]), parts)
            for number, ((name, _), digest) in enumerate(zip(parts, hashed, strict=True), 1):
                chunks[name].append(digest)
                progress(number, len(parts))
    return fingerprint([[name, sizes[name], fingerprint(chunks[name])] for name in folder.files])


def hash_chunk(path: Path, offset: int) -> str:
    """Return the SHA-256 of the chunk of ``path`` that starts at ``offset``."""
    with path.open("rb") as file:
        file.seek(offset)
        return hashlib.sha256(file.read(CHUNK_BYTES)).hexdigest()


def mark_of(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file is written anew: size, time of change (ns), inode."""
    told = path.stat()
    return told.st_size, told.st_mtime_ns, told.st_ino


def unchanged(folder: CheckpointFolder) -> bool:
    """Return whether every file is the one that was inspected.

    Raises:
        FileNotFoundError: One of them is gone.
    """
    return folder.marks == tuple(mark_of(folder.path / name) for name in folder.files)


def still_there(folder: CheckpointFolder) -> bool:
    """Return whether every file of the checkpoint is still on disk."""
    return all((folder.path / name).exists() for name in folder.files)


def name_of(path: Path) -> tuple[str, int]:
    """Return run and step as the path tells them; step 0 where it names none.

    >>> name_of(Path("/runs/grpo-7b/checkpoint-400"))
    ('grpo-7b', 400)
    >>> name_of(Path("/runs/lab/checkpoints/step_30"))
    ('lab', 30)
    >>> name_of(Path("/models/SmolLM2"))
    ('SmolLM2', 0)
    """
    resolved = Path(path).resolve()
    found = STEP_IN_NAME.match(resolved.name)
    above = resolved.parent
    if above.name == "checkpoints" and above.parent.name:
        above = above.parent
    if found and above.name:
        return run_name(above.name), int(found.group(1))
    return run_name(resolved.name), 0


def run_name(text: str) -> str:
    """Return a folder's name as a run's: what ``RUN@STEP`` has no room for becomes a hyphen."""
    return re.sub(r"[^\w.+-]", "-", text).lstrip(".+-") or "run"
