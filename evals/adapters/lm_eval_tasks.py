"""lm-eval's tasks as Pawl's: its documents, prompts, filters and scorers, unforked.

Tried with lm-eval 0.4.13 through its public pieces: ``TaskManager.load``, ``eval_docs``,
``fewshot_context``, ``FilterEnsemble.apply`` and ``process_results``. Requests, scheduling,
aggregation and statistics are Pawl's own. Two outside calls that tasks make are redirected while
they are loaded and scored: data sets that the mirror has come from its folders, and the metric
``code_eval`` runs programs in the sandbox instead of in this process.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from evals.errors import InputError, PawlError
from evals.identity import fingerprint, item_id, ordinals
from evals.response import LogLikelihood
from evals.scoring import Judgement
from evals.suite import TaskEntry
from evals.task import Capability, Choice, Item, Message, Prompt, RequestKind, TaskSpec

FEWSHOT_SEED = 1234
"""lm-eval's own; set anew for each item, so that no prompt depends on which were built before."""

DEFAULT_MAX_TOKENS = 512
"""Where a task names no budget; lm-eval's 256 cuts reasoning answers off."""

PREFERRED_FILTER = "flexible-extract"
"""Judges the answer rather than its format, where a task has it."""

NO_MATCH = "[invalid]"
"""What lm-eval's extraction filters return where nothing matched."""

CAPABILITIES = (
    (re.compile(r"^(humaneval|mbpp|cruxeval|bigcodebench)"), Capability.CODE),
    (
        re.compile(
            r"^(mgsm|xcopa|belebele|xquad|global_mmlu|mmmlu|xnli|truthfulqa-multi|m_ifeval)"
        ),
        Capability.MULTILINGUAL,
    ),
    (
        re.compile(r"^(ruler|niah|longbench|longproc|babilong|infinitebench)"),
        Capability.LONG_CONTEXT,
    ),
    (
        re.compile(
            r"^(truthfulqa|bbq|toxigen|realtoxicity|wmdp|ethics|crows|advanced_ai_risk|persona)"
        ),
        Capability.SAFETY,
    ),
    (re.compile(r"^(ifeval|leaderboard_ifeval|ifbench)"), Capability.INSTRUCTION_FOLLOWING),
)
"""By name, since lm-eval's tasks do not say; a suite may say otherwise. All else: reasoning."""


class Mirror:
    """Data sets on disk instead of on the hub.

    Args:
        file: ``mirror.json``: hub id to folder (relative to the file) and more. None: no mirror.

    Raises:
        InputError: The file is absent or not such a map.
    """

    def __init__(self, file: Path | None) -> None:
        self._folder = file.parent if file else Path()
        self._entries: dict[str, dict[str, Any]] = {}
        if file is None:
            return
        try:
            self._entries = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(
                "no such file", f"pawl.yaml: data_mirror: {file}", "correct the path or remove it"
            ) from None
        except (OSError, ValueError) as bad:
            raise InputError(f"not a mirror map ({bad})", str(file), "write it again") from bad

    def folder_of(self, hub_id: str) -> Path | None:
        """Return where a hub id's data set lies, or None."""
        entry = self._entries.get(hub_id)
        return self._folder / str(entry["path"]) if entry else None

    def overrides_of(self, task: str) -> dict[str, Any]:
        """Return the fields that a task needs changed to read the mirror."""
        for entry in self._entries.values():
            found = entry.get("task_overrides", {}).get(task)
            if found:
                return dict(found)
        return {}


@contextmanager
def redirected(mirror: Mirror) -> Iterator[None]:
    """Let data sets come from the mirror and ``code_eval`` from the sandbox."""
    import datasets
    import evaluate

    from evals.sandbox.code_eval import SandboxedCodeEval

    load_dataset, load_metric = datasets.load_dataset, evaluate.load

    def from_mirror(path: str, *args: Any, **kwargs: Any) -> Any:
        folder = mirror.folder_of(str(path))
        return load_dataset(str(folder) if folder else path, *args, **kwargs)

    def sandboxed(path: str, *args: Any, **kwargs: Any) -> Any:
        return SandboxedCodeEval() if path == "code_eval" else load_metric(path, *args, **kwargs)

    datasets.load_dataset, evaluate.load = from_mirror, sandboxed
    try:
        yield
    finally:
        datasets.load_dataset, evaluate.load = load_dataset, load_metric


class LmEvalTask:
    """What lm-eval's tasks of all kinds have alike.

    Args:
        task: What ``TaskManager.load`` gave.
        entry: What the suite says of it.
        mirror: Where its data comes from.
    """

    kind: RequestKind

    def __init__(self, task: Any, entry: TaskEntry, mirror: Mirror) -> None:
        self._task = task
        self._entry = entry
        self._mirror = mirror
        if entry.options:
            raise InputError(
                "takes no options", f"task {entry.task}", "options are for generated tasks"
            )
        if entry.num_fewshot is not None:
            task.set_config("num_fewshot", entry.num_fewshot)

    @cached_property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        config = self._task.config
        metric, chosen = self._primary()
        generation = dict(config.generation_kwargs or {})
        until = generation.get("until") or []
        return TaskSpec(
            name=self._entry.task,
            version=str((config.metadata or {}).get("version", self._task.VERSION)),
            capability=self._entry.capability or capability_of(self._entry.task),
            metric=metric,
            filter=chosen,
            higher_is_better=bool(self._direction(metric)),
            num_fewshot=int(config.num_fewshot or 0),
            max_tokens=budget_of(generation),
            stops=tuple([until] if isinstance(until, str) else until),
            kind=self.kind,
            binary=self._is_binary(metric),
            completion=bool(config.unsafe_code) and not config.gen_prefix,
            prompt_fingerprint=fingerprint_prompt(self._task),
        )

    def _is_binary(self, metric: str) -> bool:
        return metric in {"exact_match", "acc"} or metric.startswith("pass@1")

    def _primary(self) -> tuple[str, str]:
        """Return the primary metric and filter: the suite's, or the task's first."""
        filters = [ensemble.name for ensemble in self._task._filters]
        metrics = self._metrics()
        if not metrics:
            raise InputError(
                "lists no metric that an item has by itself",
                f"task {self._entry.task}",
                "use another task: an evaluation's scores are items' scores",
            )
        if self._entry.metric is None:
            chosen = PREFERRED_FILTER if PREFERRED_FILTER in filters else filters[0]
            return metrics[0], chosen
        metric, chosen = (part.strip() for part in self._entry.metric.split(","))
        if metric not in metrics or chosen not in filters:
            raise InputError(
                f"no metric {self._entry.metric!r}",
                f"task {self._entry.task}",
                f"metrics are {', '.join(metrics)}; filters are {', '.join(filters)}",
            )
        return metric, chosen

    def _metrics(self) -> list[str]:
        """Return the metrics that an item has by itself, in lm-eval's order."""
        return [metric_name(entry) for entry in self._task.config.metric_list or []]

    def _direction(self, metric: str) -> bool:
        directions = self._task.higher_is_better()
        return bool(directions.get(metric, next(iter(directions.values()), True)))

    @cached_property
    def _documents(self) -> dict[str, Any]:
        """Return lm-eval's documents by item id."""
        from lm_eval.utils import handle_non_serializable, hash_string

        with self._guarded("reading the documents"):
            docs = list(self._task.eval_docs)
            texts = [
                json.dumps(doc, indent=2, default=handle_non_serializable, ensure_ascii=False)
                for doc in docs
            ]
            targets = [str(self._task.doc_to_target(doc)) for doc in docs]
        keys = [
            (hash_string(text), hash_string(target))
            for text, target in zip(texts, targets, strict=True)
        ]
        ids = [
            item_id(self._entry.task, doc_hash, target_hash, ordinal)
            for (doc_hash, target_hash), ordinal in zip(keys, ordinals(keys), strict=True)
        ]
        self._targets = dict(zip(ids, targets, strict=True))
        return dict(zip(ids, docs, strict=True))

    def items(self) -> Sequence[Item]:
        """Return all items of the task's test split, or of its validation split."""
        return tuple(
            Item(item_id=key, doc=plain(doc), target=self._targets[key])
            for key, doc in self._documents.items()
        )

    def _context(self, doc: Any, *, chat: bool) -> tuple[Any, list[tuple[Message, ...]]]:
        """Return lm-eval's own context of a document, few-shot examples included.

        It is a text, or several where the choices are in the contexts; with ``chat`` each text is
        the number of a conversation, and these come with it.
        """
        conversations: list[tuple[Message, ...]] = []

        def keep(history: list[dict[str, str]], **_: Any) -> str:
            turns = (Message(role=turn["role"], content=turn["content"]) for turn in history)
            conversations.append(tuple(turns))
            return str(len(conversations) - 1)

        with self._guarded("building a prompt"):
            self._task.set_fewshot_seed(FEWSHOT_SEED)
            context = self._task.fewshot_context(
                doc,
                num_fewshot=int(self._task.config.num_fewshot or 0),
                apply_chat_template=chat,
                fewshot_as_multiturn=chat,
                chat_template=keep if chat else None,
                gen_prefix=self._task.doc_to_prefix(doc),
            )
        return context, conversations

    @contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        """Name the task where its own code raises."""
        try:
            with redirected(self._mirror):
                yield
        except PawlError:
            raise
        except Exception as bad:
            raise InputError(
                f"{doing} failed: {type(bad).__name__}: {bad}",
                f"task {self._entry.task}",
                "check that its data set is on the mirror or can be reached",
            ) from bad


class LmEvalGeneration(LmEvalTask):
    """A task of lm-eval's that asks for text."""

    kind = RequestKind.GENERATE

    def prompt(self, item: Item, *, chat: bool) -> Prompt:
        """Return lm-eval's own context for the item, few-shot examples included."""
        context, conversations = self._context(self._documents[item.item_id], chat=chat)
        return conversations[-1] if chat else str(context)

    def judge(self, item: Item, text: str) -> Judgement:
        """Return what lm-eval's primary filter and metric say of ``text``."""
        from lm_eval.api.instance import Instance

        doc = self._documents[item.item_id]
        instance = Instance(
            request_type="generate_until",
            doc=doc,
            arguments=("", {}),
            idx=0,
            metadata=(self._entry.task, 0, 1),
            resps=[text],
        )
        try:
            with redirected(self._mirror):
                for ensemble in self._task._filters:
                    if ensemble.name == self.spec.filter:
                        ensemble.apply([instance])
                filtered = instance.filtered_resps[self.spec.filter]
                results = self._task.process_results(doc, [filtered])
        except PawlError:
            raise
        except Exception as bad:  # noqa: BLE001  a task's scorer may raise anything
            return Judgement(value=None, error=f"{type(bad).__name__}: {bad}")
        value = value_of(results, self.spec.metric)
        parsed = filtered != NO_MATCH
        answer = filtered if isinstance(filtered, str) and parsed else None
        return Judgement(value=value, parsed=parsed, answer=answer)


class LmEvalChoices(LmEvalTask):
    """A task of lm-eval's that asks how probable given texts are."""

    kind = RequestKind.LOG_LIKELIHOOD

    def _is_binary(self, metric: str) -> bool:
        """Return whether it is lm-eval's own accuracy: a task's own rule may give parts of one."""
        own_rule = callable(self._task.config.process_results)
        return metric in ITEM_METRICS and not own_rule

    def _metrics(self) -> list[str]:
        """Return the metrics that an item has by itself: f1 and perplexity are of all together.

        A task that lists none has lm-eval's own; one with a rule of its own may have any.
        """
        listed = super()._metrics() or list(self._task._metric_fn_list)
        if callable(self._task.config.process_results):
            return listed
        return [metric for metric in listed if metric in ITEM_METRICS]

    def choices(self, item: Item, *, chat: bool) -> tuple[Choice, ...]:
        """Return lm-eval's own pairs of context and continuation."""
        doc = self._documents[item.item_id]
        context, conversations = self._context(doc, chat=chat)
        with self._guarded("building the choices"):
            asked = self._task.construct_requests(
                doc=doc, ctx=context, metadata=(self._entry.task, 0, 1), apply_chat_template=chat
            )
        pairs = [one.args for one in (asked if isinstance(asked, list) else [asked])]
        return tuple(
            Choice(
                context=conversations[int(text)] if chat and text else text, continuation=str(said)
            )
            for text, said, *_ in pairs
        )

    def _hold_target(self, doc: Any) -> None:
        """Hold that an item's target is among its choices: lm-eval scores it as wrong else.

        Raises:
            ValueError: It is not.
        """
        if self._task.OUTPUT_TYPE != "multiple_choice" or callable(
            self._task.config.process_results
        ):
            return
        task = self._task
        choices = task.doc_to_choice(doc)
        target = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
        for one in target if isinstance(target, list) else [target]:
            among = 0 <= one < len(choices) if isinstance(one, int) else one in choices
            if not among:
                raise ValueError(f"target {one!r} is not among the item's {len(choices)} choices")

    def judge_choices(self, item: Item, found: Sequence[LogLikelihood]) -> Judgement:
        """Return what lm-eval's primary metric says of the choices' log-likelihoods."""
        doc = self._documents[item.item_id]
        try:
            with redirected(self._mirror):
                self._hold_target(doc)
                pairs = [(one.log_prob, one.greedy) for one in found]
                results = self._task.process_results(doc, pairs)
        except PawlError:
            raise
        except Exception as bad:  # noqa: BLE001  a task's scorer may raise anything
            return Judgement(value=None, error=f"{type(bad).__name__}: {bad}")
        values = [one.log_prob for one in found]
        told = len(found) > 1 and self.spec.metric == "acc"
        answer = str(values.index(max(values))) if told else None
        return Judgement(value=value_of(results, self.spec.metric), answer=answer)


ITEM_METRICS = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"})
"""lm-eval's metrics of choice tasks that each item has by itself, 0 or 1."""

KINDS: dict[str, type[LmEvalGeneration | LmEvalChoices]] = {
    "generate_until": LmEvalGeneration,
    "multiple_choice": LmEvalChoices,
    "loglikelihood": LmEvalChoices,
}
"""By lm-eval's ``OUTPUT_TYPE``."""


def new_task(task: Any, entry: TaskEntry, mirror: Mirror) -> LmEvalGeneration | LmEvalChoices:
    """Return one of lm-eval's tasks behind Pawl's protocol.

    Raises:
        InputError: It asks for what is not answered here.
    """
    kind = KINDS.get(task.OUTPUT_TYPE)
    if kind is None:
        raise InputError(
            f"asks for {task.OUTPUT_TYPE}, which is not answered here",
            f"task {entry.task}",
            f"choose a task that asks for {', '.join(KINDS)}",
        )
    return kind(task, entry, mirror)


def load_tasks(
    entries: Sequence[TaskEntry], mirror: Mirror, include: Path | None = None
) -> list[LmEvalGeneration | LmEvalChoices]:
    """Return lm-eval's tasks in the order of ``entries``.

    Args:
        entries: What the suite lists.
        mirror: Where data sets come from.
        include: Folder with the user's own YAML tasks.

    Raises:
        InputError: A name that lm-eval does not know, with the nearest it does; a task whose
            data is not to be had; a kind of request that is not answered.
    """
    if not entries:
        return []
    manager = task_manager(include)
    for entry in entries:
        refuse_unknown(entry.task, manager)
    return [new_task(load_one(entry, manager, mirror), entry, mirror) for entry in entries]


@cache
def task_manager(include: Path | None) -> Any:
    """Return lm-eval's index of all tasks, and of the user's own; reading it takes seconds."""
    from lm_eval.tasks import TaskManager

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return TaskManager(include_path=str(include) if include else None)


def refuse_unknown(name: str, manager: Any) -> None:
    """Raise ``InputError`` for a name that is no single task of lm-eval's."""
    known = set(manager.all_subtasks)
    if name in known:
        return
    if name in manager.all_tasks:
        raise InputError(
            "is a group of tasks",
            f"task {name}",
            "list its tasks one by one; `lm_eval --tasks list` shows them",
        )
    near = difflib.get_close_matches(name, known, n=3)
    raise InputError(
        "no such task",
        f"task {name}",
        f"did you mean {', '.join(near)}?" if near else "`lm_eval --tasks list` shows all",
    )


def load_one(entry: TaskEntry, manager: Any, mirror: Mirror) -> Any:
    """Return one loaded task of lm-eval's."""
    overrides = mirror.overrides_of(entry.task)
    spec: Any = entry.task
    if overrides:
        spec = {"group": "pawl", "task": [{"task": entry.task, **overrides}]}
    try:
        with redirected(mirror):
            return manager.load(spec)["tasks"][entry.task]
    except PawlError:
        raise
    except Exception as bad:
        raise InputError(
            f"does not load: {type(bad).__name__}: {str(bad).splitlines()[0] if str(bad) else ''}",
            f"task {entry.task}",
            "check that its data set is on the mirror or can be reached",
        ) from bad


def capability_of(name: str) -> Capability:
    """Return what an lm-eval task measures, by its name."""
    return next(
        (found for pattern, found in CAPABILITIES if pattern.match(name)), Capability.REASONING
    )


def metric_name(entry: dict[str, Any]) -> str:
    """Return the key under which ``process_results`` reports an entry of ``metric_list``."""
    metric = entry["metric"]
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", str(metric))
    if name == "pass_at_k":
        ks = entry.get("k", [1])
        return f"pass@{ks if isinstance(ks, int) else ks[0]}"
    return str(name)


def value_of(results: dict[str, Any], metric: str) -> float | None:
    """Return the primary metric of one item; None where it is no number."""
    value = results.get(metric)
    if isinstance(value, bool | int | float):
        return float(value)
    return None


def budget_of(generation: dict[str, Any]) -> int:
    """Return a task's budget in tokens under any of the names that tasks use."""
    for key in ("max_gen_toks", "max_new_tokens", "max_tokens"):
        if generation.get(key):
            return int(generation[key])
    return DEFAULT_MAX_TOKENS


def fingerprint_prompt(task: Any) -> str:
    """Return the hash of a task's configuration: templates, few-shot, filters, data set."""
    text = json.dumps(task.dump_config(), sort_keys=True, default=str, ensure_ascii=False)
    return fingerprint([re.sub(r" at 0x[0-9a-f]+", "", text), FEWSHOT_SEED])


def plain(doc: Any) -> dict[str, Any]:
    """Return a document with JSON types only."""
    value = json.loads(json.dumps(doc, default=str, ensure_ascii=False))
    return value if isinstance(value, dict) else {"doc": value}
