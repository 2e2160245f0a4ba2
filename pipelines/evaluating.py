"""From a checkpoint folder and a suite to a stored evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from evals.adapters.engines import ENGINES
from evals.adapters.lm_eval_tasks import Mirror, load_tasks
from evals.adapters.ray_workers import RayWorker, WorkerShape, ray_head
from evals.adapters.tokenizer import PromptEncoder, tokenizer_digest
from evals.checkpoint import CheckpointFolder, digest_checkpoint, inspect_checkpoint, name_of
from evals.errors import CheckpointVanished, InputError
from evals.evaluation import (
    CheckpointRef,
    Evaluation,
    EvaluationState,
    evaluation_id,
    suite_fingerprint,
)
from evals.identity import canonical_json
from evals.job import AnswerRequests, Progress, answer_owed, score_answers, silent
from evals.plan import Plan, Request, TaskPlan, build_plan
from evals.scoring import Score
from evals.suite import Suite, TaskEntry
from evals.task import AnyTask
from evals.tasks.registry import GENERATED, build_task
from pipelines.checkpoints.pin import kept_folder
from pipelines.services.parts import ray_token, running_head
from pipelines.work import AnswerIntoSpool, BuildEngine
from storage.checkpoints import CheckpointState
from storage.naming import CHANNEL, load_checkpoint
from storage.project import Project
from storage.store import LakeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An evaluation ready to run: everything is named and nothing has been asked yet."""

    evaluation: Evaluation
    plan: Plan
    tasks: Mapping[str, AnyTask]
    folder: CheckpointFolder


def scorer_version() -> str:
    """Return the name of the rules that score responses; another name scores them anew."""
    return f"pawl-{version('pawl')}+lm-eval-{version('lm-eval')}"


def set_library_environment(project: Project) -> None:
    """Switch the libraries' own telemetry off and keep data set caches in the project."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("DO_NOT_TRACK", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    if project.mirror is not None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("HF_DATASETS_CACHE", str(project.state / "datasets"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCheckpoint:
    """Where a checkpoint is."""

    folder: Path
    """To read it from."""
    own_folder: Path
    """Where it was found."""
    name: tuple[str, int]
    """Run and step."""


def find_checkpoint(target: str, project: Project) -> FoundCheckpoint:
    """Return where a checkpoint is that is given by path, ``RUN@STEP`` or ``channel:NAME``.

    Raises:
        InputError: A name that the lake does not know.
    """
    is_name = target.startswith(CHANNEL) or ("@" in target and "/" not in target)
    if Path(target).exists() or not is_name:
        folder = Path(target)
        return FoundCheckpoint(folder=folder, own_folder=folder, name=name_of(folder))
    with project.open_store() as store:
        found = load_checkpoint(target, store).ref
    return FoundCheckpoint(
        folder=kept_folder(found, project),
        own_folder=Path(found.path),
        name=(found.run, found.step),
    )


def load_suite_tasks(suite: Suite, project: Project) -> dict[str, AnyTask]:
    """Return the suite's tasks by name, in its order: Pawl's own and lm-eval's."""
    foreign = [entry for entry in suite.tasks if entry.task not in GENERATED]
    loaded: dict[str, AnyTask] = {
        entry.task: task
        for entry, task in zip(
            foreign, load_tasks(foreign, Mirror(project.mirror), project.tasks_folder), strict=True
        )
    }
    for entry in suite.tasks:
        if entry.task in GENERATED:
            refuse_foreign_fields(entry)
            loaded[entry.task] = build_task(entry.task, seed=suite.seed, **entry.options)
    return {entry.task: loaded[entry.task] for entry in suite.tasks}


def refuse_foreign_fields(entry: TaskEntry) -> None:
    """Raise ``InputError`` where a generated task is given what only lm-eval's tasks have."""
    if "seed" in entry.options:
        raise InputError(
            "seed is the suite's", f"task {entry.task}", "write seed beside the suite's name"
        )
    for field in ("capability", "num_fewshot", "metric"):
        if getattr(entry, field) is not None:
            raise InputError(
                f"{field} can't be chosen for a generated task",
                f"task {entry.task}",
                f"remove {field}, or say what you need under options",
            )


def prepare(
    path: Path,
    name: tuple[str, int],
    suite: Suite,
    project: Project,
    *,
    own_folder: Path | None = None,
    attempt: int = 0,
    progress: Progress = silent,
) -> Prepared:
    """Return the evaluation of the checkpoint in ``path`` on ``suite``, named by content.

    Args:
        path: Folder to read it from: the run's own, or a pin of it.
        name: Run and step.
        suite: What to ask.
        project: Engine settings, data and tasks.
        own_folder: The run's own folder, which is what is stored; None: ``path``.
        attempt: 0, or the number of the A/A repeat.
        progress: Told how far hashing is.

    Raises:
        CheckpointError: The folder is no whole checkpoint.
        InputError: A task or setting is wrong.
    """
    folder = inspect_checkpoint(path)
    tasks = load_suite_tasks(suite, project)
    digest = digest_checkpoint(folder, partial(progress, "digest"))
    chat = folder.chat_template is not None if suite.chat_template is None else suite.chat_template
    encoder = PromptEncoder(folder, chat=chat)
    settings = project.file.engine.settings()
    engine = ENGINES[settings.name].fingerprint(
        folder,
        settings,
        chat_template=encoder.template_digest,
        tokenizer=tokenizer_digest(folder),
    )
    planned = [
        TaskPlan(
            task=tasks[entry.task],
            limit=entry.limit,
            repeats=entry.repeats,
            sampling=suite.sampling_of(entry),
            max_tokens=entry.max_tokens,
        )
        for entry in suite.tasks
    ]
    plan = build_plan(planned, encoder, engine.context_tokens)
    specs = tuple(task.spec for task in tasks.values())
    asked = suite_fingerprint(suite.fingerprint, specs)
    evaluation = Evaluation(
        evaluation_id=evaluation_id(digest, asked, plan.fingerprint, engine.digest, attempt),
        checkpoint=CheckpointRef(
            run=name[0], step=name[1], digest=digest, path=str((own_folder or path).resolve())
        ),
        suite=suite.name,
        suite_version=suite.version,
        suite_fingerprint=asked,
        tasks=specs,
        engine=engine,
        sampling=canonical_json({e.task: asdict(suite.sampling_of(e)) for e in suite.tasks}),
        attempt=attempt,
        planned_items=sum(len(items) for items in plan.items.values()),
    )
    return Prepared(evaluation=evaluation, plan=plan, tasks=tasks, folder=folder)


def run(
    prepared: Prepared,
    store: LakeStore,
    project: Project,
    *,
    progress: Progress = silent,
    on_wait: Callable[[str], None] | None = None,
) -> tuple[Score, ...]:
    """Run or resume a prepared evaluation on a worker and return its scores.

    Raises:
        CheckpointVanished: The checkpoint was deleted before all was answered.
        EngineError: The engine did not start, or died again and again.
    """
    generate(prepared, store, project, progress=progress, on_wait=on_wait)
    return score(prepared, store, progress=progress, on_wait=on_wait)


def generate(
    prepared: Prepared,
    store: LakeStore,
    project: Project,
    *,
    progress: Progress = silent,
    on_wait: Callable[[str], None] | None = None,
) -> None:
    """Store every answer that a prepared evaluation still owes; registers its checkpoint.

    Raises:
        InputError: The lake has other weights under the checkpoint's name.
        CheckpointVanished: The checkpoint was deleted before all was answered.
        EngineError: The engine did not start, or died again and again.
    """
    register(prepared.evaluation.checkpoint, prepared.folder, store)
    try:
        answer_owed(
            prepared.evaluation,
            prepared.plan,
            store,
            answer_by_engine(prepared, store, project, progress),
            progress=progress,
            on_wait=on_wait,
        )
    except CheckpointVanished:
        store.set_checkpoint_state(prepared.evaluation.checkpoint, CheckpointState.VANISHED)
        raise


def score(
    prepared: Prepared,
    store: LakeStore,
    *,
    progress: Progress = silent,
    on_wait: Callable[[str], None] | None = None,
) -> tuple[Score, ...]:
    """Score the stored answers of a prepared evaluation, which is complete then."""
    return score_answers(
        prepared.evaluation,
        prepared.plan,
        prepared.tasks,
        store,
        scorer_version=scorer_version(),
        progress=progress,
        on_wait=on_wait,
    )


def register(checkpoint: CheckpointRef, folder: CheckpointFolder, store: LakeStore) -> None:
    """Make a checkpoint known to the lake.

    Raises:
        InputError: The lake has other weights under its name.
    """
    known = store.find_checkpoint(checkpoint.run, checkpoint.step)
    if known is not None and known.ref.digest != checkpoint.digest:
        raise InputError(
            f"the lake has other weights as {checkpoint.name} ({known.ref.digest[:12]})",
            checkpoint.path,
            "give this checkpoint a name of its own with --as RUN@STEP",
        )
    sizes = dict(zip(folder.files, folder.marks, strict=True))
    store.register_checkpoint(
        checkpoint, {name: {"bytes": mark[0]} for name, mark in sizes.items()}
    )


def answer_by_engine(
    prepared: Prepared, store: LakeStore, project: Project, progress: Progress
) -> AnswerRequests:
    """Return a function that starts a fresh engine and lets it answer.

    It runs on a Ray worker. A light one runs in this process where ``pawl.yaml`` names no
    cluster: a head and a worker of its own would take longer than its answers.
    """
    settings = project.file.engine.settings()
    engine = prepared.evaluation.engine
    kind = ENGINES[settings.name]
    build = BuildEngine(
        folder=prepared.folder,
        digest=prepared.evaluation.checkpoint.digest,
        settings=settings,
        chosen=engine,
    )
    gpus = 0 if engine.device == "cpu" else engine.tensor_parallel * engine.pipeline_parallel
    shape = WorkerShape(gpus=gpus, environment=kind.environment(settings))
    work = AnswerIntoSpool(
        spool_folder=store.spool.folder, evaluation_id=prepared.evaluation.evaluation_id
    )

    def answer(requests: Sequence[Request]) -> Iterator[int]:
        progress("engine", 0, 1)
        named = project.file.ray.address
        head, token = (named, None) if named else (running_head(project), ray_token(project))
        with ray_head(head, project.folder, token):
            worker = RayWorker(build, shape)
            progress("engine", 1, 1)
            try:
                yield from worker.answer(work, requests)
            finally:
                worker.close()

    def answer_here(requests: Sequence[Request]) -> Iterator[int]:
        progress("engine", 0, 1)
        engine = build()
        progress("engine", 1, 1)
        try:
            yield from work(engine, requests)
        finally:
            engine.close()

    return answer_here if kind.light and project.file.ray.address is None else answer


def next_attempt(prepared: Prepared, store: LakeStore) -> Prepared:
    """Return the same evaluation as a further A/A repeat, beside those the lake has."""
    evaluation = prepared.evaluation
    attempts = [
        stored.evaluation.attempt
        for stored in store.find_evaluations(checkpoint_digest=evaluation.checkpoint.digest)
        if stored.evaluation.suite_fingerprint == evaluation.suite_fingerprint
        and stored.evaluation.engine == evaluation.engine
        and stored.evaluation.state is EvaluationState.COMPLETE
    ]
    attempt = max(attempts, default=-1) + 1
    key = evaluation_id(
        evaluation.checkpoint.digest,
        evaluation.suite_fingerprint,
        prepared.plan.fingerprint,
        evaluation.engine.digest,
        attempt,
    )
    return replace(prepared, evaluation=replace(evaluation, evaluation_id=key, attempt=attempt))
