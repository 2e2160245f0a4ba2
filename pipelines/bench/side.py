"""One side of the bench ``loglikelihood``, in a process of its own: ``python -m … SIDE FOLDER``.

It starts its engine once, then answers each line of stdin, how many questions, with a line of
JSON: the seconds that the answers took and the log-likelihoods. All else goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from evals.adapters.lm_eval_vllm import LmEvalVllm
from evals.adapters.tokenizer import PromptEncoder, tokenizer_digest
from evals.adapters.vllm_engine import VllmEngine, fingerprint_engine
from evals.checkpoint import CheckpointFolder, inspect_checkpoint
from evals.engine import EngineFingerprint, EngineSettings
from evals.errors import EngineError
from evals.plan import choice_request
from evals.task import Capability, Choice, Item, RequestKind, TaskSpec
from pipelines.bench.shots import draw_questions

OURS, THEIRS = "pawl", "lm_eval"
SHOTS = 8
SETTINGS = EngineSettings(dtype="float32", context_tokens=2048, kv_cache_gib=1.0)

SPEC = TaskSpec(
    name="bench",
    version="1",
    capability=Capability.REASONING,
    metric="acc",
    kind=RequestKind.LOG_LIKELIHOOD,
)


class Side(Protocol):
    """Tells log-likelihoods."""

    def log_likelihoods(self, questions: Sequence[Sequence[Choice]]) -> list[list[float]]:
        """Return each choice's log-likelihood."""
        ...

    def reset_prefix_cache(self) -> None:
        """Forget what was read before."""
        ...


class OurSide:
    """Pawl's requests on Pawl's engine.

    Args:
        folder: The checkpoint.
        settings: How the engine is started.
        chosen: Its fingerprint.
    """

    def __init__(
        self, folder: CheckpointFolder, settings: EngineSettings, chosen: EngineFingerprint
    ) -> None:
        self._encoder = PromptEncoder(folder, chat=False)
        self._engine = VllmEngine(folder, settings, chosen)
        self._context_tokens = chosen.context_tokens

    def log_likelihoods(self, questions: Sequence[Sequence[Choice]]) -> list[list[float]]:
        """Return each choice's log-likelihood, asked for as an evaluation does."""
        requests = [
            choice_request(
                SPEC,
                Item(item_id=str(number), doc={}, target=""),
                [self._encoder.encode_choice(choice) for choice in choices],
                self._context_tokens,
            )
            for number, choices in enumerate(questions)
        ]
        found = {one.request_id: one.log_likelihoods for one in self._engine.generate(requests)}
        return [[one.log_prob for one in found[r.request_id] or ()] for r in requests]

    def reset_prefix_cache(self) -> None:
        """Forget what was read before."""
        self._engine.reset_prefix_cache()


def start(side: str, path: Path) -> Side:
    """Return a side with its engine started."""
    folder = inspect_checkpoint(path)
    chosen = fingerprint_engine(
        folder, SETTINGS, chat_template="none", tokenizer=tokenizer_digest(folder)
    )
    kind: type[OurSide] | type[LmEvalVllm] = OurSide if side == OURS else LmEvalVllm
    return kind(folder, SETTINGS, chosen)


def serve(side: str, path: Path) -> None:
    """Answer lines until stdin ends."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    started = start(side, path)
    for line in sys.stdin:
        questions = draw_questions(int(line), SHOTS)
        started.reset_prefix_cache()
        began = time.perf_counter()
        values = started.log_likelihoods(questions)
        seconds = time.perf_counter() - began
        if [len(one) for one in values] != [len(one) for one in questions]:
            raise EngineError("an answer is missing", side, "see the lines above")
        out.write(json.dumps({"seconds": seconds, "values": values}) + "\n")
        out.flush()


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
