"""``pawl promote`` and ``pawl why``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pipelines.comparing import who as this_user
from pipelines.console import AsJson, ProjectFolder, print_json, print_text
from pipelines.promoting import Promoted, promote_first, roll_back
from pipelines.promoting import promote as promote_on_pass
from pipelines.standing import Standing, read_standing
from storage.project import find_project


def promote(
    candidate: Annotated[str, typer.Argument(help="RUN@STEP, channel:NAME or folder.")],
    to: Annotated[str, typer.Option("--to", help="The channel.")],
    first: Annotated[
        bool, typer.Option("--first", help="First holder, on a named person's word.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Back to an earlier holder, on a person's word.")
    ] = False,
    who: Annotated[str | None, typer.Option(help="Whose word it is.")] = None,
    why: Annotated[str | None, typer.Option(help="The reason.")] = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Point a channel to a checkpoint that PASSed under its policy against its holder."""
    if first and rollback:
        raise typer.BadParameter("give one of --first and --rollback")
    where = find_project(project)
    with where.open_store() as store:
        if first:
            done = promote_first(to, candidate, where, store, who=who or "", why=why or "")
        elif rollback:
            done = roll_back(to, candidate, store, who=who or "", why=why or "")
        else:
            done = promote_on_pass(
                to, candidate, where, store, who=who or this_user(), why=why or ""
            )
    if json:
        print_json(promoted_json(done))
    else:
        print_text(promoted_text(done))
    return 0


def promoted_json(done: Promoted) -> dict[str, Any]:
    """Return what became of it as JSON types; the entry is null where nothing was changed."""
    entry = done.entry
    return {
        "channel": done.channel,
        "candidate": done.holder.name,
        "digest": done.holder.digest,
        "holder_before": done.before.name if done.before else None,
        "moved": entry is not None,
        "how": entry.payload["how"] if entry else None,
        "decision": entry.payload["decision"] if entry else None,
        "why": entry.payload["why"] if entry else None,
        "who": entry.who if entry else None,
        "at": entry.at if entry else None,
        "entry": entry.seq if entry else None,
    }


def promoted_text(done: Promoted) -> str:
    """Return what became of it as a sentence."""
    if done.entry is None:
        return f"{done.channel} points to {done.holder.name} already; nothing was changed"
    before = f", before to {done.before.name}" if done.before else ""
    return (
        f"{done.channel} points to {done.holder.name}{before} ({done.entry.payload['how']}); "
        f"decision {done.entry.payload['decision']}, ledger entry {done.entry.seq}"
    )


def why(
    checkpoint: Annotated[str, typer.Argument(help="RUN@STEP, channel:NAME or folder.")],
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Tell a checkpoint's verdict, what it hangs on and what to do next, in five lines."""
    where = find_project(project)
    with where.open_store() as store:
        standing = read_standing(checkpoint, store)
    if json:
        print_json(standing_json(standing))
        return 0
    for line in standing.lines:
        print_text(line)
    return 0


def standing_json(standing: Standing) -> dict[str, Any]:
    """Return a standing as JSON types; what a checkpoint without a decision lacks is null."""
    decision, entry = standing.decision, standing.entry
    document = decision.to_json() if decision else {}
    told = {rule.name for rule in standing.rules}
    return {
        "checkpoint": standing.checkpoint,
        "digest": standing.digest,
        "stage": standing.stage.value,
        "verdict": document.get("verdict"),
        "sentence": document.get("sentence"),
        "baseline": document.get("baseline"),
        "policy": document.get("policy"),
        "decision": document.get("decision"),
        "rules": [rule for rule in document.get("rules", []) if rule["name"] in told],
        "because": standing.because,
        "next": standing.following,
        "channels": list(standing.channels),
        "entry": entry.seq if entry else None,
        "who": entry.who if entry else None,
        "at": entry.at if entry else None,
    }
