"""``pawl eval`` and ``pawl show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import typer

from evals.errors import InputError
from evals.evaluation import Evaluation
from evals.scoring import Outcome, Score
from evals.suite import Suite, load_suite, suite_of_tasks
from evals.summary import TaskSummary, summarize
from evals.task import Item
from pipelines.console import (
    AsJson,
    ProjectFolder,
    note,
    print_json,
    print_table,
    print_text,
    progress_bars,
    share,
)
from pipelines.evaluating import (
    Prepared,
    find_checkpoint,
    next_attempt,
    prepare,
    run,
    set_library_environment,
)
from storage.naming import parse_name
from storage.project import find_project
from storage.store import LakeStore

T = TypeVar("T")


def evaluate_checkpoint(
    checkpoint: Annotated[str, typer.Argument(help="Folder of the checkpoint, or RUN@STEP.")],
    suite: Annotated[str | None, typer.Option(help="Shipped suite, or a .yaml file.")] = None,
    tasks: Annotated[str | None, typer.Option(help="Tasks by name, separated by commas.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many items a task.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Answers to each item.")] = None,
    name: Annotated[str | None, typer.Option("--as", help="RUN@STEP to call it by.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be asked.")] = False,
    again: Annotated[bool, typer.Option(help="Ask all of it once more: an A/A repeat.")] = False,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Run or resume an evaluation; prints a table by task with intervals and outcomes."""
    where = find_project(project)
    set_library_environment(where)
    wanted = choose_suite(suite, tasks).limited(limit, repeats)
    found = find_checkpoint(checkpoint, where)
    called = parse_name(name) if name else found.name
    with progress_bars() as progress:
        prepared = prepare(
            found.folder, called, wanted, where, own_folder=found.own_folder, progress=progress
        )
        if not dry_run:
            with where.open_store(create=True) as store:
                if again:
                    prepared = next_attempt(prepared, store)
                run(prepared, store, where, progress=progress, on_wait=note)
    if dry_run:
        tell_plan(prepared, json)
    else:
        with where.open_store() as store:
            tell_evaluation(prepared.evaluation, store, json)
    return 0


def choose_suite(suite: str | None, tasks: str | None) -> Suite:
    """Return the suite that the options name; ``smoke`` where they name none.

    Raises:
        InputError: Both are given, or what is given does not exist.
    """
    if suite and tasks:
        raise InputError("both --suite and --tasks are given", "pawl eval", "give one of them")
    return suite_of_tasks(tasks.split(",")) if tasks is not None else load_suite(suite or "smoke")


def tell_plan(prepared: Prepared, json: bool) -> None:
    """Print what an evaluation would ask."""
    plan = prepared.plan
    rows: list[dict[str, Any]] = []
    for spec in prepared.evaluation.tasks:
        asked = [r for r in plan.requests if r.task == spec.name]
        rows.append(
            {
                "task": spec.name,
                "items": len(asked),
                "requests": sum(len(r.repeats) for r in asked),
                "prompt_tokens": sum(r.prompt_tokens * len(r.repeats) for r in asked),
                "output_tokens_at_most": sum(
                    r.output_tokens_at_most * len(r.repeats) for r in asked
                ),
                "do_not_fit": sum(1 for r in asked if r.max_tokens == 0),
            }
        )
    if json:
        print_json(
            {
                "evaluation": prepared.evaluation.evaluation_id,
                "checkpoint": prepared.evaluation.checkpoint.name,
                "requests": plan.responses,
                "prompt_tokens": plan.prompt_tokens,
                "output_tokens_at_most": plan.output_tokens_at_most,
                "tasks": rows,
            }
        )
        return
    columns = ["task", "items", "requests", "prompt_tokens", "output_tokens_at_most", "do_not_fit"]
    print_table(
        [column.replace("_", " ") for column in columns],
        [[str(row[column]) for column in columns] for row in rows],
        f"{prepared.evaluation.checkpoint.name} on {prepared.evaluation.suite}: nothing was asked",
    )


def tell_evaluation(evaluation: Evaluation, store: LakeStore, json: bool) -> None:
    """Print an evaluation's table."""
    scores = store.scores(evaluation.evaluation_id)
    items, repeats = planned(evaluation, store)
    summaries = summarize(evaluation, scores, items, repeats)
    state = store.load_evaluation(evaluation.evaluation_id).evaluation.state
    if json:
        print_json(
            {
                "evaluation": evaluation.evaluation_id,
                "checkpoint": evaluation.checkpoint.name,
                "digest": evaluation.checkpoint.digest,
                "suite": evaluation.suite,
                "state": state.value,
                "tasks": [summary_json(summary) for summary in summaries],
            }
        )
        return
    print_table(
        ["task", "capability", "metric", "n", "score", "95% interval", *(o.value for o in Outcome)],
        [summary_row(summary) for summary in summaries],
        f"{evaluation.checkpoint.name} on {evaluation.suite} ({state.value})",
    )
    print_text(f"evaluation {evaluation.evaluation_id}")


def planned(
    evaluation: Evaluation, store: LakeStore
) -> tuple[dict[str, Sequence[Item]], dict[str, int]]:
    """Return what an evaluation asks: items and repeats by task name."""
    items = {spec.name: store.items(evaluation, spec.name) for spec in evaluation.tasks}
    repeats = {r.task: len(r.repeats) for r in store.requests(evaluation.evaluation_id)}
    return dict(items), repeats


def summary_json(summary: TaskSummary) -> dict[str, Any]:
    """Return a summary under the names of the JSON contract."""
    return {
        "task": summary.task,
        "capability": summary.capability.value,
        "metric": summary.metric,
        "n": summary.n,
        "value": summary.value,
        "low": summary.low,
        "high": summary.high,
        "level": summary.level,
        "outcomes": {outcome.value: count for outcome, count in summary.outcomes.items()},
    }


def summary_row(summary: TaskSummary) -> list[str]:
    """Return a summary as a table's row."""
    interval = f"{share(summary.low)} – {share(summary.high)}" if summary.n else "–"
    return [
        summary.task,
        summary.capability.value,
        summary.metric,
        str(summary.n),
        share(summary.value),
        interval,
        *(str(summary.outcomes[outcome]) for outcome in Outcome),
    ]


def show(
    evaluation: Annotated[str, typer.Argument(help="Evaluation id, or its first characters.")],
    item: Annotated[str | None, typer.Option(help="Item id, or its first characters.")] = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Show an evaluation, or one item of it: exact tokens, answers and scores."""
    where = find_project(project)
    with where.open_store() as store:
        known = [stored.evaluation for stored in store.find_evaluations()]
        found = one_by_prefix(evaluation, {e.evaluation_id: e for e in known}, "evaluation")
        if item is None:
            tell_evaluation(found, store, json)
        else:
            tell_item(found, item, store, json)
    return 0


def one_by_prefix(prefix: str, known: Mapping[str, T], what: str) -> T:
    """Return the one thing whose id begins with ``prefix``.

    Raises:
        InputError: None or several do.
    """
    hits = sorted(key for key in known if prefix and key.startswith(prefix))
    if len(hits) != 1:
        raise InputError(
            f"{len(hits) or 'no'} {what}s have an id that begins with {prefix!r}",
            f"{what} id",
            "give more of the id"
            if hits
            else f"there are {', '.join(sorted(known)[:5]) or 'none'}",
        )
    return known[hits[0]]


def tell_item(evaluation: Evaluation, prefix: str, store: LakeStore, json: bool) -> None:
    """Print one item: the question, the exact tokens, each answer and its score."""
    requests = {r.item_id: r for r in store.requests(evaluation.evaluation_id)}
    request = one_by_prefix(prefix, requests, "item")
    asked = next(i for i in store.items(evaluation, request.task) if i.item_id == request.item_id)
    responses = [
        r for r in store.responses(evaluation.evaluation_id) if r.request_id == request.request_id
    ]
    scores: dict[int, Score] = {
        s.repeat: s
        for s in store.scores(evaluation.evaluation_id, task=request.task)
        if s.item_id == request.item_id
    }
    document: dict[str, Any] = {
        "evaluation": evaluation.evaluation_id,
        "task": request.task,
        "item": request.item_id,
        "doc": asked.doc,
        "target": asked.target,
        "request": request.request_id,
        "token_ids": list(request.token_ids),
        "stops": list(request.stops),
        "max_tokens": request.max_tokens,
        "branches": [{"given": list(b.given), "asked": list(b.asked)} for b in request.branches],
        "responses": [
            {
                "repeat": r.repeat,
                "text": r.text,
                "token_ids": list(r.token_ids),
                "finish_reason": r.finish_reason.value,
                "error": r.error,
                "log_likelihoods": [asdict(one) for one in r.log_likelihoods or ()],
                "outcome": scores[r.repeat].outcome.value if r.repeat in scores else "missing",
                "value": scores[r.repeat].value if r.repeat in scores else None,
                "answer": scores[r.repeat].answer if r.repeat in scores else None,
                "detail": scores[r.repeat].detail if r.repeat in scores else None,
            }
            for r in responses
        ],
    }
    if json:
        print_json(document)
        return
    for key in (
        "task",
        "item",
        "doc",
        "target",
        "request",
        "token_ids",
        "stops",
        "max_tokens",
        "branches",
    ):
        print_text(f"{key}: {document[key]}")
    for response in document["responses"]:
        print_text("")
        for key, value in response.items():
            print_text(f"{key}: {value}")
