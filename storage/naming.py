"""How a checkpoint is named where it is stored: ``RUN@STEP``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evals.errors import InputError
from storage.checkpoints import StoredCheckpoint
from storage.store import LakeStore

NAME = re.compile(r"([\w][\w.+-]*)@([0-9]{1,15})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A checkpoint by its digest, and the name it was asked for by."""

    name: str
    digest: str


def parse_name(text: str) -> tuple[str, int]:
    """Return run and step of ``RUN@STEP``.

    Raises:
        InputError: It is not of that form.
    """
    found = NAME.fullmatch(text)
    if not found:
        raise InputError(
            f"{text[:80]!r} is not RUN@STEP",
            "checkpoint",
            "write it as in grpo-7b@400: letters, digits and . _ + - before the @",
        )
    return found[1], int(found[2])


def load_checkpoint(name: str, store: LakeStore) -> StoredCheckpoint:
    """Return the checkpoint last registered under a name.

    Raises:
        InputError: The name is none, or the lake does not know it.
    """
    run, step = parse_name(name)
    stored = store.find_checkpoint(run, step)
    if stored is None:
        raise InputError(
            f"no checkpoint {name} in the lake", "checkpoint", "run `pawl eval` on its folder first"
        )
    return stored


def load_named(name: str, store: LakeStore) -> Named:
    """Return the checkpoint last registered under a name, by its digest.

    Raises:
        InputError: The name is none, or the lake does not know it.
    """
    return Named(name=name, digest=load_checkpoint(name, store).ref.digest)
