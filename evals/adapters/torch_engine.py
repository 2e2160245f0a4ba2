"""torch as Pawl's engine, for tiny models: it starts in a second and answers in large batches.

A batch of requests of similar length, padded on the left, goes through the model's own forward in
transformers with a key-value cache; answers that have ended leave the batch.

What holds: the same requests on the same machine give the same answers. Which requests share a
batch is no part of a request, and another batch may add the same numbers in another order: logits
then differ in their last bits. In float32 a greedy answer differs only where the two best logits
are as close as that, in bfloat16 and float16 ties are ordinary. A sampled answer draws from a
generator of its own, named by request, repeat and seed; the same holds for it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evals.adapters.growing_answer import GrowingAnswer
from evals.adapters.tokenizer import load_tokenizer
from evals.adapters.torch_choices import choice_responses
from evals.checkpoint import CheckpointFolder
from evals.engine import (
    EngineFingerprint,
    EngineSettings,
    error_response,
    fast_bfloat16,
    first_line,
    resolve_context,
    resolve_dtype,
    stop_ids,
)
from evals.errors import EngineError
from evals.plan import Request
from evals.response import Response

TOKENS_AT_ONCE = 32768
"""Tokens of a batch's prompts and answers, padding included; bounds its memory."""

NEEDED = frozenset({"attention_mask", "position_ids", "past_key_values"})
"""What a model's forward has to take, so that a padded prompt is read as an unpadded one."""


def installed_torch() -> str:
    """Return the versions of torch and transformers.

    Raises:
        EngineError: One of them is not installed.
    """
    try:
        return f"{version('torch')}, transformers {version('transformers')}"
    except PackageNotFoundError as absent:
        raise EngineError(f"{absent.name} is not installed", "engine", "run `make setup`") from None


def device_name() -> str:
    """Return ``cpu``, or the name of the first visible GPU."""
    if version("torch").endswith("+cpu"):
        return "cpu"
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "cpu"


def describe() -> str:
    """Return which torch would run where."""
    number = installed_torch()
    device = device_name()
    slow = device == "cpu" and not fast_bfloat16()
    return f"torch {number} on {device}" + (" (no bfloat16 units: float32)" if slow else "")


def fingerprint_engine(
    folder: CheckpointFolder, settings: EngineSettings, *, chat_template: str, tokenizer: str
) -> EngineFingerprint:
    """Return what can move an answer, before the engine is started."""
    number = installed_torch()
    device = device_name()
    return EngineFingerprint(
        engine="torch",
        version=number,
        device=device,
        dtype=resolve_dtype(folder, settings, device),
        context_tokens=resolve_context(folder, settings),
        chat_template=chat_template,
        tokenizer=tokenizer,
    )


def worker_environment(_settings: EngineSettings) -> dict[str, str]:
    """Return the variables that a process needs before it imports torch."""
    return {
        "OMP_NUM_THREADS": str(cpu_threads()),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def cpu_threads() -> int:
    """Return on how many threads torch computes: what the environment says, or half the CPUs.

    A core's second CPU adds little to small operations, and threads that wait for each other
    after each of them lose most of their time where others work on the same machine.
    """
    given = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(given) if given.isdigit() else len(os.sched_getaffinity(0)) // 2)


class TorchEngine:
    """One model on one checkpoint.

    Args:
        folder: The checkpoint; safetensors only, no remote code.
        settings: How many answers are generated at the same time.
        chosen: The fingerprint that was promised; device, dtype and context are taken from it.

    Raises:
        EngineError: The model did not load, or its forward can't be batched; says why.
    """

    def __init__(
        self, folder: CheckpointFolder, settings: EngineSettings, chosen: EngineFingerprint
    ) -> None:
        import torch

        torch.set_num_threads(cpu_threads())
        self._model = load_model(folder.path, chosen)
        tokenizer = load_tokenizer(folder.path)
        self._tokenizer = getattr(tokenizer, "backend_tokenizer", None)
        if self._tokenizer is None:
            raise EngineError(
                "the tokenizer has no fast form", str(folder.path), "write tokenizer.json"
            )
        self._end_ids = frozenset({*stop_ids(folder), tokenizer.eos_token_id} - {None})
        self._vocabulary = self._model.get_input_embeddings().num_embeddings
        self._context_tokens = chosen.context_tokens
        self._parallel = settings.parallel_sequences

    def generate(self, requests: Sequence[Request]) -> Iterator[Response]:
        """Yield each answer as soon as it is finished; a refused request is an error row.

        The repeats of a greedy request are one answer, told for each of them.
        """
        answers: list[GrowingAnswer] = []
        for request in requests:
            refusal = self._refusal(request)
            if refusal is None and request.branches:
                yield from choice_responses(self._model, request)
                continue
            if refusal is None:
                answers += self.begin(request)
                continue
            for repeat in request.repeats:
                yield error_response(request, repeat, f"refused_by_engine: {refusal}")
        for batch in batches(answers, self._parallel):
            yield from self._answer(batch)

    def _refusal(self, request: Request) -> str | None:
        """Return why a request can't be answered, or None."""
        room = self._context_tokens - len(request.token_ids)
        if not request.token_ids and not request.branches:
            return "the prompt is empty"
        if room < 1 or request.max_tokens < 1:
            return f"no room for an answer ({room} tokens left, budget {request.max_tokens})"
        ids = (request.token_ids, *((*one.given, *one.asked) for one in request.branches))
        strange = [i for part in ids for i in part if not 0 <= i < self._vocabulary]
        if strange:
            return f"token {strange[0]} where the model knows {self._vocabulary}"
        return None

    def begin(self, request: Request) -> Iterator[GrowingAnswer]:
        """Yield the answers that a request needs: one where it is greedy, else one a repeat."""
        drawn = request.sampling.temperature > 0
        for repeats in ([r] for r in request.repeats) if drawn else [request.repeats]:
            yield GrowingAnswer(
                request,
                repeats,
                budget=min(request.max_tokens, self._context_tokens - len(request.token_ids)),
                end_ids=self._end_ids,
                tokenizer=self._tokenizer,
            )

    def _answer(self, answers: list[GrowingAnswer]) -> Iterator[Response]:
        """Yield the responses of one batch, each as soon as it has ended."""
        reading = BatchReading(self._model)
        logits = reading.prompts([answer.request.token_ids for answer in answers])
        while answers:
            for answer, token in zip(answers, next_tokens(logits, answers), strict=True):
                answer.take(token)
                if answer.finish_reason is not None:
                    yield from answer.responses()
            going = [row for row, answer in enumerate(answers) if answer.finish_reason is None]
            answers = [answers[row] for row in going]
            if answers:
                logits = reading.tokens([answer.last for answer in answers], going)

    def close(self) -> None:
        """Drop the model."""
        del self._model


class BatchReading:
    """What a model has read of one batch: prompts at first, then a token of each answer.

    Args:
        model: A causal model of transformers.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._few = {"logits_to_keep": 1} if "logits_to_keep" in taken_by(model) else {}

    def prompts(self, prompts: Sequence[Sequence[int]]) -> Any:
        """Read the prompts, padded on the left; return the logits of what follows (rows, ids)."""
        import torch
        from transformers import DynamicCache

        width = max(len(prompt) for prompt in prompts)
        pads = [width - len(prompt) for prompt in prompts]
        ids = torch.tensor([[0] * pad + list(ids) for pad, ids in zip(pads, prompts, strict=True)])
        columns = torch.arange(width)
        start = torch.tensor(pads)[:, None]
        self._mask = self._place(columns >= start)
        self._positions = self._place((columns - start).clamp(min=0))
        self._cache = DynamicCache(config=self._model.config)
        return self._forward(self._place(ids))

    def tokens(self, tokens: Sequence[int], rows: Sequence[int]) -> Any:
        """Keep these rows of the batch and read a token for each; return what follows."""
        import torch

        if len(rows) < len(self._mask):
            kept = self._place(torch.tensor(rows))
            self._mask, self._positions = self._mask[kept], self._positions[kept]
            self._cache.batch_select_indices(kept)
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=True)
        self._positions = self._positions[:, -1:] + 1
        return self._forward(self._place(torch.tensor(tokens)[:, None]))

    def _place(self, tensor: Any) -> Any:
        return tensor.to(self._model.device)

    def _forward(self, ids: Any) -> Any:
        import torch

        try:
            with torch.inference_mode():
                output = self._model(
                    input_ids=ids,
                    attention_mask=self._mask,
                    position_ids=self._positions,
                    past_key_values=self._cache,
                    use_cache=True,
                    **self._few,
                )
        except RuntimeError as bad:
            raise EngineError(
                f"the model failed: {first_line(bad)}",
                "engine",
                "lower engine.parallel_sequences in pawl.yaml if memory ran out",
            ) from bad
        return output.logits[:, -1].float()


def batches(
    answers: Iterable[GrowingAnswer], parallel: int, tokens: int = TOKENS_AT_ONCE
) -> Iterator[list[GrowingAnswer]]:
    """Yield the answers in batches of similar length, shortest first.

    A batch that is half full ends where the prompts' length changes: attention without padding
    takes a faster way.

    Args:
        answers: What has to be generated.
        parallel: Most answers of a batch.
        tokens: Most tokens of a batch, padding included; one answer alone may have more.
    """
    batch: list[GrowingAnswer] = []
    longest = 0
    for answer in sorted(answers, key=lambda one: (one.prompt_tokens, one.budget)):
        longest = max(longest, answer.longest)
        full = len(batch) == parallel or (len(batch) + 1) * longest > tokens
        half = 2 * len(batch) >= parallel
        if batch and (full or (half and answer.prompt_tokens != batch[-1].prompt_tokens)):
            yield batch
            batch, longest = [], answer.longest
        batch.append(answer)
    if batch:
        yield batch


def next_tokens(logits: Any, answers: Sequence[GrowingAnswer]) -> list[int]:
    """Return each answer's next token: the likeliest, or drawn where its sampling says so."""
    tokens: list[int] = logits.argmax(-1).tolist()
    for row, answer in enumerate(answers):
        if answer.request.sampling.temperature > 0:
            tokens[row] = draw_token(logits[row], answer)
    return tokens


def draw_token(logits: Any, answer: GrowingAnswer) -> int:
    """Draw from softmax(logits / temperature), cut to top_k and then to top_p as vLLM does.

    The answer's own generator gives one number in [0, 1) a token, which picks from the cumulated
    probabilities.
    """
    import torch

    wanted = answer.request.sampling
    scaled = logits.double() / wanted.temperature
    if 0 < wanted.top_k < len(scaled):
        scaled = scaled.masked_fill(scaled < scaled.topk(wanted.top_k).values[-1], -torch.inf)
    probabilities = scaled.softmax(-1)
    if wanted.top_p < 1.0:
        likeliest, order = probabilities.sort(descending=True, stable=True)
        before = likeliest.cumsum(-1) - likeliest
        probabilities[order[before >= wanted.top_p]] = 0.0
    cumulated = probabilities.cumsum(-1)
    place = int(torch.searchsorted(cumulated, answer.random.random() * cumulated[-1], right=True))
    return min(place, len(cumulated) - 1)


def load_model(path: Path, chosen: EngineFingerprint) -> Any:
    """Return the checkpoint's model, every weight of it from the folder.

    Raises:
        EngineError: It does not load, lacks weights, or its forward can't be batched.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    try:
        model, told = AutoModelForCausalLM.from_pretrained(
            str(path),
            dtype=getattr(torch, chosen.dtype),
            trust_remote_code=False,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
        )
    except FileNotFoundError:
        raise
    except Exception as bad:
        raise EngineError(
            f"transformers did not load it: {first_line(bad)}",
            str(path),
            "`pawl doctor` checks the engine",
        ) from bad
    lacking = sorted(map(str, [*told["missing_keys"], *told["mismatched_keys"]]))
    if lacking:
        raise EngineError(
            f"{len(lacking)} weights are absent or of another shape, first {lacking[0]}",
            str(path),
            "write the checkpoint again with the config.json that it was trained with",
        )
    refuse_unbatched(model, path)
    own_weights(model)
    return model.to("cpu" if chosen.device == "cpu" else "cuda").eval()


def own_weights(model: Any) -> None:
    """Copy the weights out of the file, which they are else mapped to.

    A file that is written anew in place would change a loaded model.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()


def refuse_unbatched(model: Any, path: Path) -> None:
    """Raise ``EngineError`` where a model would not read a padded prompt as it reads it alone.

    Those are models that do not take a mask and positions, and those with a recurrent state.
    """
    from transformers import DynamicCache

    lacking = NEEDED - taken_by(model)
    layers = () if lacking else DynamicCache(config=model.config).layers
    if lacking or any(hasattr(layer, "update_recurrent_state") for layer in layers):
        why = f"does not take {', '.join(sorted(lacking))}" if lacking else "has a recurrent state"
        raise EngineError(
            f"{type(model).__name__} {why}", str(path), "write engine.name: vllm in pawl.yaml"
        )


def taken_by(model: Any) -> frozenset[str]:
    """Return the names of what a model's forward takes."""
    return frozenset(inspect.signature(model.forward).parameters)
