"""How a checkpoint is named where it is stored: ``RUN@STEP``, or ``channel:NAME``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evals.errors import InputError, LakeError
from storage.checkpoints import StoredCheckpoint
from storage.store import LakeStore

NAME = re.compile(r"([\w][\w.+-]*)@([0-9]{1,15})")
CHANNEL = "channel:"
"""What stands before a channel's name where its holder is meant."""


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
    """Return the checkpoint last registered under a name, or a channel's holder.

    Args:
        name: ``RUN@STEP`` or ``channel:NAME``.
        store: The lake.

    Raises:
        InputError: The name is none, the lake does not know it, or the channel has no holder.
    """
    if name.startswith(CHANNEL):
        return _load_holder(name.removeprefix(CHANNEL), store)
    run, step = parse_name(name)
    stored = store.find_checkpoint(run, step)
    if stored is None:
        raise InputError(
            f"no checkpoint {name} in the lake", "checkpoint", "run `pawl eval` on its folder first"
        )
    return stored


def load_named(name: str, store: LakeStore) -> Named:
    """Return a checkpoint by its digest: the last registered under a name, or a channel's holder.

    Raises:
        InputError: The name is none, the lake does not know it, or the channel has no holder.
    """
    ref = load_checkpoint(name, store).ref
    return Named(name=ref.name, digest=ref.digest)


def _load_holder(channel: str, store: LakeStore) -> StoredCheckpoint:
    holder = store.load_channel(channel).holder
    if holder is None:
        raise InputError(
            f"channel {channel} has no holder yet",
            "checkpoint",
            f"pawl promote RUN@STEP --to {channel} --first --who NAME --why TEXT",
        )
    for stored in store.checkpoints(holder.run):
        if (stored.ref.step, stored.ref.digest) == (holder.step, holder.digest):
            return stored
    raise LakeError(
        f"its holder {holder.name} ({holder.digest[:12]}) is no registered checkpoint",
        f"channel {channel}",
        "run pawl ledger verify",
    )
