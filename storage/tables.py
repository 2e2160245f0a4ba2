"""The lake's tables: columns with their meaning, Arrow schemas, and what identifies a row.

Text columns hold ``storage.text``'s encoding, columns called JSON canonical JSON in it; times
are UTC, ISO 8601. Rows of responses and scores carry no time: those of an evaluation that was
killed and resumed equal those of one that was not.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_TEXT = pa.string()
_INT = pa.int32()
_LONG = pa.int64()
_INTS = pa.list_(pa.int32())
_TEXTS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of the lake."""

    name: str
    key: tuple[str, ...]
    """Columns that identify a row."""
    scope: tuple[str, ...] = ()
    """Columns on which all rows of one write agree."""
    schema: pa.Schema
    """Columns in order; each field's metadata has its meaning under ``doc``."""


def column_docs(table: Table) -> dict[str, str]:
    """Return the meaning of each column."""
    return {field.name: field.metadata[b"doc"].decode() for field in table.schema}


def _column(name: str, kind: pa.DataType, doc: str) -> pa.Field:
    return pa.field(name, kind, metadata={"doc": doc})


_EVALUATION = _column("evaluation_id", _TEXT, "the evaluation")

CHECKPOINTS = Table(
    name="checkpoints",
    key=("run", "step", "digest"),
    schema=pa.schema(
        [
            _column("run", _TEXT, "the RL run that wrote it"),
            _column("step", _LONG, "the run's step"),
            _column("digest", _TEXT, "tree hash of the files, 64 hex digits"),
            _column("path", _TEXT, "folder it was found in"),
            _column("files", _TEXT, "JSON: relative path to what is known of the file"),
            _column("state", _TEXT, "ready or vanished"),
            _column("registered_at", _TEXT, "when it was registered"),
        ]
    ),
)

EVALUATIONS = Table(
    name="evaluations",
    key=("evaluation_id",),
    schema=pa.schema(
        [
            _EVALUATION,
            _column("run", _TEXT, "the checkpoint's run"),
            _column("step", _LONG, "the checkpoint's step"),
            _column("checkpoint_digest", _TEXT, "the checkpoint's digest"),
            _column("checkpoint_path", _TEXT, "folder the checkpoint was in"),
            _column("suite", _TEXT, "suite name"),
            _column("suite_version", _TEXT, "suite version"),
            _column("suite_fingerprint", _TEXT, "hash of tasks, limits, repeats and sampling"),
            _column("tasks", _TEXT, "JSON: list of task specifications"),
            _column("engine", _TEXT, "JSON: engine fingerprint"),
            _column("engine_digest", _TEXT, "hash of the engine fingerprint"),
            _column("sampling", _TEXT, "JSON: sampling parameters"),
            _column("attempt", _INT, "0, or the number of the A/A repeat"),
            _column("state", _TEXT, "running, complete or vanished"),
            _column("planned_items", _LONG, "items over all tasks"),
            _column("created_at", _TEXT, "when it was first stored"),
            _column("completed_at", _TEXT, "when it was first complete; null before"),
        ]
    ),
)

ITEMS = Table(
    name="items",
    key=("task", "task_version", "item_id"),
    scope=("task", "task_version"),
    schema=pa.schema(
        [
            _column("task", _TEXT, "task name"),
            _column("task_version", _TEXT, "version of the task's prompt and items"),
            _column("item_id", _TEXT, "hash of task, document, target and ordinal"),
            _column("doc", _TEXT, "JSON: the question as data"),
            _column("target", _TEXT, "the reference answer"),
            _column("cluster", _TEXT, "shared by items with common content; null: alone"),
            _column("stratum", _TEXT, "a fixed category; null: none"),
        ]
    ),
)

REQUESTS = Table(
    name="requests",
    key=("evaluation_id", "request_id"),
    scope=("evaluation_id",),
    schema=pa.schema(
        [
            _EVALUATION,
            _column("request_id", _TEXT, "hash of the request's content"),
            _column("position", _LONG, "place in the plan, from 0"),
            _column("task", _TEXT, "task name"),
            _column("item_id", _TEXT, "the item asked"),
            _column("kind", _TEXT, "what is asked of the engine"),
            _column("token_ids", _INTS, "the prompt's tokens as sent"),
            _column("stops", _TEXTS, "stop strings"),
            _column("max_tokens", _INT, "budget of the answer"),
            _column("sampling", _TEXT, "JSON: how tokens are drawn"),
            _column("repeats", _INTS, "repeats asked for"),
            _column("branches", _TEXT, "JSON: texts whose probability is asked; null: none"),
        ]
    ),
)

RESPONSES = Table(
    name="responses",
    key=("evaluation_id", "request_id", "repeat"),
    scope=("evaluation_id",),
    schema=pa.schema(
        [
            _EVALUATION,
            _column("request_id", _TEXT, "the request answered"),
            _column("repeat", _INT, "0 to k - 1 for a request with k repeats"),
            _column("text", _TEXT, "the answer; null where there is none"),
            _column("token_ids", _INTS, "the answer's tokens as sampled"),
            _column("finish_reason", _TEXT, "stop, length or error"),
            _column("prompt_tokens", _INT, "tokens of the prompt"),
            _column("output_tokens", _INT, "tokens of the answer"),
            _column("error", _TEXT, "code and detail of what failed; null: nothing"),
            _column("log_likelihoods", _TEXT, "JSON: of each branch; null: a text was asked for"),
        ]
    ),
)

SCORES = Table(
    name="scores",
    key=("evaluation_id", "task", "item_id", "repeat", "metric", "scorer_version"),
    scope=("evaluation_id",),
    schema=pa.schema(
        [
            _EVALUATION,
            _column("task", _TEXT, "task name"),
            _column("item_id", _TEXT, "the item"),
            _column("repeat", _INT, "which of the item's answers"),
            _column("metric", _TEXT, "metric and filter, comma between"),
            _column("outcome", _TEXT, "scored, truncated, unparsed, errored or missing"),
            _column("value", pa.float64(), "in [0, 1]; null where the outcome has no score"),
            _column("answer", _TEXT, "what was extracted; null: nothing"),
            _column("detail", _TEXT, "why a score is absent, or the scorer's note"),
            _column("scorer_version", _TEXT, "version of the scorers that gave it"),
            _column("scoring", _INT, "0 for an evaluation's first scorer version, then 1, …"),
        ]
    ),
)

DECISIONS = Table(
    name="decisions",
    key=("decision",),
    schema=pa.schema(
        [
            _column("decision", _TEXT, "the decision's id"),
            _column("verdict", _TEXT, "PASS, FAIL or INCONCLUSIVE"),
            _column("candidate", _TEXT, "RUN@STEP"),
            _column("baseline", _TEXT, "RUN@STEP"),
            _column("policy", _TEXT, "the policy's digest"),
            _column("snapshot", _LONG, "the lake's snapshot that was judged"),
            _column("recorded_at", _TEXT, "when"),
            _column("document", _TEXT, "JSON: the decision with all its evidence"),
        ]
    ),
)

LEDGER = Table(
    name="ledger",
    key=("seq",),
    schema=pa.schema(
        [
            _column("seq", _LONG, "from 1, without gaps"),
            _column("kind", _TEXT, "decision, waiver, promotion or policy"),
            _column("payload", _TEXT, "JSON: what happened"),
            _column("who", _TEXT, "who did it"),
            _column("recorded_at", _TEXT, "when"),
            _column("previous", _TEXT, "hash of the entry before"),
            _column("hash", _TEXT, "SHA-256 of the canonical JSON of the other columns"),
        ]
    ),
)

LEDGER_HEAD = Table(
    name="ledger_head",
    key=(),
    schema=pa.schema(
        [
            _column("seq", _LONG, "number of the last entry, 0 where there is none"),
            _column("hash", _TEXT, "its hash"),
        ]
    ),
)

RUNS = Table(
    name="runs",
    key=("run",),
    schema=pa.schema(
        [
            _column("run", _TEXT, "the run's name"),
            _column("folder", _TEXT, "folder that it writes into"),
            _column("layout", _TEXT, "how checkpoints and telemetry lie in it"),
            _column("config", _TEXT, "JSON: model line, owner, tags and training configuration"),
            _column("registered_at", _TEXT, "when it was first seen"),
        ]
    ),
)

SIGHTINGS = Table(
    name="sightings",
    key=("run", "step"),
    schema=pa.schema(
        [
            _column("run", _TEXT, "the run that writes it"),
            _column("step", _LONG, "the run's step"),
            _column("path", _TEXT, "folder it was seen in"),
            _column("state", _TEXT, "how far it is: writing, complete, pinned, corrupt, …"),
            _column("detail", _TEXT, "what was seen, for a person; null: nothing to add"),
            _column("changed_at", _TEXT, "when it came into this state"),
        ]
    ),
)

CHANNELS = Table(
    name="channels",
    key=("channel",),
    schema=pa.schema(
        [
            _column("channel", _TEXT, "the channel's name"),
            _column("policy", _TEXT, "its policy's digest"),
            _column("policy_document", _TEXT, "JSON: the policy"),
            _column("suite", _TEXT, "suite that its policy decides on"),
            _column("holder_run", _TEXT, "run of the checkpoint it points to; null: none yet"),
            _column("holder_step", _LONG, "step of that checkpoint"),
            _column("holder_digest", _TEXT, "digest of that checkpoint"),
            _column("moves", _LONG, "changes so far; the next one names this number"),
            _column("changed_at", _TEXT, "when it last changed"),
        ]
    ),
)

TELEMETRY = Table(
    name="telemetry",
    key=("run", "attempt", "series", "raw_name", "step"),
    scope=("run",),
    schema=pa.schema(
        [
            _column("run", _TEXT, "the run that logged it"),
            _column("attempt", _INT, "0, or the number of the restart that logged it"),
            _column("series", _TEXT, "canonical name; the raw name where it has none"),
            _column("raw_name", _TEXT, "name as logged"),
            _column("step", _LONG, "the run's step"),
            _column(
                "value", pa.float64(), "as logged, NaN and infinities too; null: logged as none"
            ),
            _column("logged_at", _TEXT, "when it was logged; null: not told"),
        ]
    ),
)

MIGRATIONS = Table(
    name="migrations",
    key=("version",),
    schema=pa.schema(
        [
            _column("version", _INT, "number of the migration"),
            _column("name", _TEXT, "its name"),
            _column("applied_at", _TEXT, "when"),
        ]
    ),
)

GUARDS = Table(
    name="guards",
    key=("name",),
    schema=pa.schema(
        [
            _column("name", _TEXT, "the table guarded"),
            _column("writes", _LONG, "how many writes there were"),
        ]
    ),
)

TABLES = (
    CHECKPOINTS,
    EVALUATIONS,
    ITEMS,
    REQUESTS,
    RESPONSES,
    SCORES,
    DECISIONS,
    LEDGER,
    LEDGER_HEAD,
    RUNS,
    SIGHTINGS,
    CHANNELS,
    TELEMETRY,
    MIGRATIONS,
    GUARDS,
)
