"""What a job needs of storage, as one object over the lake and the spool.

Answers are durable in the spool first and move into the lake in large batches; ``stored_keys``
and ``responses`` look at both, so that a caller need not know where a response is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from evals.evaluation import CheckpointRef, Evaluation, EvaluationState
from evals.plan import Request, ResponseKey
from evals.response import Response
from evals.scoring import Score
from evals.task import Item
from evals.telemetry import Point
from storage import (
    channels,
    checkpoints,
    decisions,
    evaluations,
    ledger,
    responses,
    runs,
    scores,
    sightings,
    telemetry,
)
from storage.channels import Channel, Move, Promotion
from storage.checkpoints import CheckpointState, StoredCheckpoint
from storage.connection import Lake, Transaction, transaction
from storage.decisions import Decision, StoredDecision
from storage.evaluations import StoredEvaluation
from storage.items import insert_items, load_items
from storage.ledger import LedgerEntry, LedgerReport
from storage.requests import insert_requests, load_requests
from storage.runs import StoredRun
from storage.sightings import Sighting
from storage.spool import MoveReport, Spool, SpoolWriter, evaluation_lock


class LakeStore:
    """Keeps what a job produces; every write may be repeated without harm.

    Reads take a ``snapshot`` (None: now) and then see the lake as it was at that snapshot.

    Args:
        lake: An open lake.
        folder: Folder for the spool and the ledger's head, on a disk that all workers see.
    """

    def __init__(self, lake: Lake, folder: Path) -> None:
        self.lake = lake
        self.spool = Spool(folder / "spool")
        self.head_file = folder / "ledger.head"

    def snapshot(self) -> int:
        """Return the lake's snapshot id now."""
        return self.lake.snapshot()

    def register_checkpoint(
        self, checkpoint: CheckpointRef, files: Mapping[str, Any]
    ) -> StoredCheckpoint:
        """Return the checkpoint as stored; a second registration changes nothing.

        Args:
            checkpoint: Run, step, digest and path; the first three identify it.
            files: Relative path to what is known of the file (size, hash): JSON types only.
        """
        return checkpoints.register_checkpoint(self.lake, checkpoint, files)

    def set_checkpoint_state(self, checkpoint: CheckpointRef, state: CheckpointState) -> None:
        """Record that a checkpoint is ready or vanished."""
        checkpoints.set_checkpoint_state(self.lake, checkpoint, state)

    def find_checkpoint(
        self, run: str, step: int, *, snapshot: int | None = None
    ) -> StoredCheckpoint | None:
        """Return the checkpoint last registered as ``run@step``, or None."""
        return checkpoints.find_checkpoint(self.lake, run, step, snapshot=snapshot)

    def checkpoints(
        self, run: str | None = None, *, snapshot: int | None = None
    ) -> tuple[StoredCheckpoint, ...]:
        """Return all checkpoints, or those of one run, by run and step."""
        return checkpoints.load_checkpoints(self.lake, run, snapshot=snapshot)

    def register_run(
        self, run: str, folder: str, layout: str, config: Mapping[str, Any]
    ) -> StoredRun:
        """Return the run as stored, its folder, layout and configuration as given.

        Args:
            run: Its name, which identifies it.
            folder: What it writes into.
            layout: How checkpoints and telemetry lie in it.
            config: Model line, owner, tags and training configuration: JSON types only.
        """
        return runs.register_run(self.lake, run, folder, layout, config)

    def runs(self, *, snapshot: int | None = None) -> tuple[StoredRun, ...]:
        """Return all registered runs by name."""
        return runs.load_runs(self.lake, snapshot=snapshot)

    def put_points(self, points: Iterable[Point]) -> int:
        """Return how many points were not stored; see ``storage.telemetry.put_points``."""
        return telemetry.put_points(self.lake, points)

    def points(
        self,
        run: str,
        *,
        series: Sequence[str] | None = None,
        first_step: int | None = None,
        last_step: int | None = None,
        every_attempt: bool = False,
        snapshot: int | None = None,
    ) -> tuple[Point, ...]:
        """Return a run's points by series and step; see ``storage.telemetry.load_points``."""
        return telemetry.load_points(
            self.lake,
            run,
            series=series,
            first_step=first_step,
            last_step=last_step,
            every_attempt=every_attempt,
            snapshot=snapshot,
        )

    def sightings(
        self, run: str | None = None, *, snapshot: int | None = None
    ) -> tuple[Sighting, ...]:
        """Return how far each checkpoint on disk was when last seen, by run and step."""
        return sightings.load_sightings(self.lake, run, snapshot=snapshot)

    def find_sighting(self, run: str, step: int) -> Sighting | None:
        """Return what was seen of a checkpoint in a watched run's folder, or None."""
        return next((one for one in self.sightings(run) if one.step == step), None)

    def put_sightings(self, seen: Iterable[Sighting], *, unpinned: bool = False) -> int:
        """Return how many rows were written; see ``storage.sightings.put_sightings``."""
        return sightings.put_sightings(self.lake, seen, unpinned=unpinned)

    def put_evaluation(self, evaluation: Evaluation) -> StoredEvaluation:
        """Return the evaluation as stored; the row that was there first stays."""
        return evaluations.put_evaluation(self.lake, evaluation)

    def finish_evaluation(self, evaluation_id: str, state: EvaluationState) -> None:
        """Set the evaluation's state; the first COMPLETE also sets ``completed_at``."""
        evaluations.finish_evaluation(self.lake, evaluation_id, state)

    def load_evaluation(
        self, evaluation_id: str, *, snapshot: int | None = None
    ) -> StoredEvaluation:
        """Return one evaluation.

        Raises:
            LakeError: There is none of that id.
        """
        return evaluations.load_evaluation(self.lake, evaluation_id, snapshot=snapshot)

    def find_evaluations(
        self,
        *,
        checkpoint_digest: str | None = None,
        suite: str | None = None,
        state: EvaluationState | None = None,
        snapshot: int | None = None,
    ) -> tuple[StoredEvaluation, ...]:
        """Return the evaluations that fit all that is given, oldest first."""
        return evaluations.find_evaluations(
            self.lake,
            checkpoint_digest=checkpoint_digest,
            suite=suite,
            state=state,
            snapshot=snapshot,
        )

    def put_plan(
        self,
        evaluation: Evaluation,
        items: Mapping[str, Sequence[Item]],
        requests: Sequence[Request],
    ) -> None:
        """Store what is asked: items by task name, and requests in plan order."""
        versions = {task.name: task.version for task in evaluation.tasks}

        def write(tx: Transaction) -> None:
            for task, asked in items.items():
                insert_items(tx, task, versions[task], asked)
            insert_requests(tx, evaluation.evaluation_id, requests)

        transaction(self.lake, write)

    def requests(self, evaluation_id: str, *, snapshot: int | None = None) -> tuple[Request, ...]:
        """Return the plan, in plan order."""
        return load_requests(self.lake, evaluation_id, snapshot=snapshot)

    def items(
        self, evaluation: Evaluation, task: str, *, snapshot: int | None = None
    ) -> tuple[Item, ...]:
        """Return the items of a task that the evaluation asks, in plan order."""
        version = next(spec.version for spec in evaluation.tasks if spec.name == task)
        return load_items(self.lake, evaluation.evaluation_id, task, version, snapshot=snapshot)

    def evaluation_lock(
        self, evaluation_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractContextManager[None]:
        """Hold the right to run the evaluation; see ``storage.spool.evaluation_lock``."""
        return evaluation_lock(self.spool.folder, evaluation_id, on_wait)

    def spool_writer(self, evaluation_id: str) -> SpoolWriter:
        """Return a new spool file's writer; one per worker, usable as a context manager."""
        return self.spool.writer(evaluation_id)

    def stored_keys(self, evaluation_id: str) -> frozenset[ResponseKey]:
        """Return the keys of all responses in spool or lake."""
        spooled = self.spool.stored_keys(evaluation_id)
        return spooled | responses.load_response_keys(self.lake, evaluation_id)

    def settle(self, evaluation_id: str) -> MoveReport:
        """Move what the evaluation's closed spool files hold into the lake."""
        return self.spool.move_to_lake(self.lake, evaluation_id)

    def responses(self, evaluation_id: str, *, snapshot: int | None = None) -> tuple[Response, ...]:
        """Return all responses by request id and repeat; with ``snapshot`` the lake's only."""
        spooled = tuple(self.spool.read(evaluation_id)) if snapshot is None else ()
        stored = responses.load_responses(self.lake, evaluation_id, snapshot=snapshot)
        if not spooled:
            return stored
        by_key = {(each.request_id, each.repeat): each for each in (*spooled, *stored)}
        return tuple(by_key[key] for key in sorted(by_key))

    def put_scores(
        self, evaluation_id: str, scorer_version: str, new_scores: Iterable[Score]
    ) -> int:
        """Return how many scores were not stored; see ``storage.scores.put_scores``."""
        return scores.put_scores(self.lake, evaluation_id, scorer_version, new_scores)

    def scores(
        self,
        evaluation_id: str,
        *,
        task: str | None = None,
        scorer_version: str | None = None,
        snapshot: int | None = None,
    ) -> tuple[Score, ...]:
        """Return scores by task, item and repeat.

        Args:
            evaluation_id: The evaluation.
            task: One task only.
            scorer_version: One scoring only; None: each task's latest.
            snapshot: The lake as it was then.
        """
        return scores.load_scores(
            self.lake, evaluation_id, task=task, scorer_version=scorer_version, snapshot=snapshot
        )

    def score_table(
        self,
        evaluation_id: str,
        *,
        task: str | None = None,
        scorer_version: str | None = None,
        snapshot: int | None = None,
    ) -> pa.Table:
        """Return the same scores as a table of ``storage.tables.SCORES``, without objects."""
        return scores.load_score_table(
            self.lake, evaluation_id, task=task, scorer_version=scorer_version, snapshot=snapshot
        )

    def put_decision(
        self, decision: Decision, who: str, *, channel: str | None = None
    ) -> LedgerEntry:
        """Return the decision's ledger entry, stored with it in one transaction."""
        return decisions.put_decision(self.lake, self.head_file, decision, who, channel=channel)

    def load_decision(self, decision: str, *, snapshot: int | None = None) -> StoredDecision:
        """Return one decision.

        Raises:
            LakeError: There is none of that id.
        """
        return decisions.load_decision(self.lake, decision, snapshot=snapshot)

    def load_decision_entry(self, decision: str) -> LedgerEntry:
        """Return the ledger entry of a stored decision.

        Raises:
            LakeError: There is none.
        """
        return decisions.load_decision_entry(self.lake, decision)

    def find_decisions(
        self,
        *,
        candidate: str | None = None,
        policy: str | None = None,
        snapshot: int | None = None,
    ) -> tuple[StoredDecision, ...]:
        """Return the decisions that fit all that is given, oldest first."""
        return decisions.find_decisions(
            self.lake, candidate=candidate, policy=policy, snapshot=snapshot
        )

    def set_policy(
        self, channel: str, *, policy: str, document: Mapping[str, Any], suite: str, who: str
    ) -> LedgerEntry | None:
        """Make a channel or change its policy; None where all of it is so already."""
        return channels.set_policy(
            self.lake,
            self.head_file,
            channel=channel,
            policy=policy,
            document=document,
            suite=suite,
            who=who,
        )

    def move_channel(self, move: Move, who: str) -> LedgerEntry:
        """Return the promotion's ledger entry.

        Raises:
            PromotionRefused: The channel changed since it was read.
        """
        return channels.move_channel(self.lake, self.head_file, move, who)

    def load_channel(self, name: str, *, snapshot: int | None = None) -> Channel:
        """Return one channel.

        Raises:
            InputError: There is none of that name.
        """
        return channels.load_channel(self.lake, name, snapshot=snapshot)

    def channels(self, *, snapshot: int | None = None) -> tuple[Channel, ...]:
        """Return all channels by name."""
        return channels.load_channels(self.lake, snapshot=snapshot)

    def promotions(
        self, channel: str | None = None, *, snapshot: int | None = None
    ) -> tuple[Promotion, ...]:
        """Return the promotions to a channel, or to all, in order."""
        return channels.load_promotions(self.lake, channel, snapshot=snapshot)

    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return all ledger entries in order."""
        return ledger.read_ledger(self.lake)

    def verify_ledger(self) -> LedgerReport:
        """Return whether ledger, decisions and channels are what was written."""
        report = ledger.verify(self.lake, self.head_file)
        if not report.sound:
            return report
        found = decisions.verify_decisions(self.lake) + channels.verify_channels(self.lake)
        return replace(report, problems=report.problems + found)
