"""One checkpoint's way from its folder to a promotion, step by step, without Dagster.

Each method may be called again after a kill, alone and in another process: it finds in the lake
what is done and does the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evals.checkpoint import digest_checkpoint, inspect_checkpoint
from evals.compare import compare_capabilities
from evals.errors import CheckpointError, CheckpointVanished, InputError, PromotionRefused
from evals.evaluation import CheckpointRef
from evals.gate import Decision
from evals.scoring import Outcome
from evals.suite import load_suite
from pipelines.checkpoints.pin import kept_folder, pin, pinned_folder, unpin
from pipelines.checkpoints.run_folder import find_run
from pipelines.console import share
from pipelines.deciding import (
    choose_channel_sides,
    decide_for_channel,
    holder_is_owed,
    read_rules,
    sync_channel,
)
from pipelines.evaluating import (
    Prepared,
    generate,
    prepare,
    register,
    score,
    set_library_environment,
)
from pipelines.promoting import first_by_config, promote
from pipelines.services.parts import PROJECT_VARIABLE
from pipelines.telemetry.run import import_run
from storage.aggregates import load_outcome_counts
from storage.channels import Holder
from storage.naming import load_checkpoint, parse_name
from storage.pairing import join
from storage.project import Project, RunSection, find_project
from storage.sightings import Sighting, SightingState
from storage.store import LakeStore

SCHEDULE = "pawl up"
"""Who decides and promotes, in the ledger."""

Log = Callable[[str], None]


def project_here() -> Project:
    """Return the project that this process of Dagster's works for."""
    return find_project(Path(os.environ[PROJECT_VARIABLE]))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCounts:
    """A checkpoint's responses over all of the channels' suites."""

    total: int
    unscored: int
    """Without a score row."""
    errored: int
    """Lost to the system, not to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryRead:
    """What was read of a run's telemetry."""

    points: int
    """New ones."""
    problems: tuple[str, ...]


class Chain:
    """One checkpoint's way.

    Args:
        project: Its channels say on which suites it is evaluated and what decides.
        name: ``RUN@STEP``, as its sighting names it.
        log: Told what is done.
    """

    def __init__(self, project: Project, name: str, log: Log) -> None:
        self._project = project
        self._name = name
        self._log = log
        set_library_environment(project)

    def pick_up(self) -> CheckpointRef | None:
        """Pin the checkpoint, name it by digest and make it known to the lake.

        Returns:
            None where it vanished or turned out not to be whole; its sighting says so then.
        """
        with self._project.open_store(create=True) as store:
            sighting = self._sighting(store)
            try:
                folder = inspect_checkpoint(pin(sighting, self._project))
            except CheckpointError as bad:
                is_gone = isinstance(bad, CheckpointVanished)
                state = SightingState.VANISHED if is_gone else SightingState.CORRUPT
                store.put_sightings([sighting.turned(state, str(bad))], unpinned=True)
                self._log(f"{self._name} is {state.value}: {bad}")
                return None
            found = CheckpointRef(
                run=sighting.run,
                step=sighting.step,
                digest=digest_checkpoint(folder),
                path=sighting.path,
            )
            register(found, folder, store)
            store.put_sightings([sighting.turned(SightingState.PINNED, None)])
            return found

    def generate(self) -> tuple[str, ...]:
        """Store every answer that is owed; return the evaluations.

        Where a channel's holder was not evaluated under the engine as it is now, it is owed that
        first: without it there would be nothing to compare with.
        """
        with self._project.open_store(create=True) as store:
            asked = self._ask_holders(store)
            for prepared in self._prepared(store):
                generate(prepared, store, self._project, progress=self._report)
                asked.append(prepared.evaluation.evaluation_id)
        return tuple(asked)

    def owed(self) -> int:
        """Return how many responses are still to come."""
        with self._project.open_store() as store:
            return sum(
                one.plan.responses - len(store.stored_keys(one.evaluation.evaluation_id))
                for one in self._prepared(store)
            )

    def score(self) -> int:
        """Score every answer; return how many scores there are."""
        with self._project.open_store() as store:
            return sum(len(score(one, store)) for one in self._prepared(store))

    def outcomes(self) -> OutcomeCounts:
        """Return how the checkpoint's responses came out."""
        with self._project.open_store() as store:
            prepared = self._prepared(store)
            table = load_outcome_counts(store.lake, [one.evaluation for one in prepared])
        asked = sum(one.plan.responses for one in prepared)
        counts = table.to_pylist()
        return OutcomeCounts(
            total=asked,
            unscored=asked - sum(row["responses"] for row in counts),
            errored=sum(row["responses"] for row in counts if row["outcome"] == Outcome.ERRORED),
        )

    def read_telemetry(self) -> TelemetryRead:
        """Store what the checkpoint's run has logged so far."""
        run, _ = parse_name(self._name)
        section = self._project.named_runs().get(run)
        if section is None:
            return TelemetryRead(points=0, problems=(f"pawl.yaml watches no run {run}",))
        with self._project.open_store(create=True) as store:
            return read_telemetry(section, self._project, store)

    def compare(self) -> dict[str, str]:
        """Return, by channel that has a holder, what changed: a Markdown table."""
        with self._project.open_store() as store:
            return {
                channel: table
                for channel in self._project.file.channels
                if (table := compare_with_holder(channel, self._name, self._project, store))
            }

    def decide(self) -> dict[str, Decision]:
        """Return each channel's decision on the checkpoint, stored."""
        with self._project.open_store() as store:
            return {
                channel: decide_for_channel(channel, self._name, self._project, store, who=SCHEDULE)
                for channel in self._project.file.channels
            }

    def promote(self) -> tuple[str, ...]:
        """Move the channels that the checkpoint may hold; return those that point to it now.

        It is the last step: the checkpoint counts as evaluated then, and pins that no channel
        needs are removed.
        """
        with self._project.open_store() as store:
            for channel in self._project.file.channels:
                self._promote(channel, store)
            held = [one for one in store.channels() if one.holder is not None]
            self._settle({one.holder.name for one in held if one.holder}, store)
            return tuple(one.name for one in held if one.holder and one.holder.name == self._name)

    def _promote(self, channel: str, store: LakeStore) -> None:
        try:
            moved = first_by_config(channel, self._name, self._project, store)
            if moved is None:
                moved = promote(channel, self._name, self._project, store, who=SCHEDULE)
        except PromotionRefused as refused:
            self._log(str(refused))
            return
        if moved.entry is not None:
            self._log(f"{channel} points to {self._name} now")

    def _settle(self, held: Collection[str], store: LakeStore) -> None:
        """Mark the checkpoint as evaluated and remove the pins that nothing needs any more."""
        evaluated = [self._sighting(store).turned(SightingState.EVALUATED, None)]
        store.put_sightings(evaluated, unpinned=True)
        for one in store.sightings():
            if one.state is SightingState.EVALUATED and one.name not in held:
                unpin(one, self._project)

    def _prepared(self, store: LakeStore) -> tuple[Prepared, ...]:
        """Return the checkpoint's evaluations, one for each suite that a channel decides on."""
        run, step = parse_name(self._name)
        pinned = pinned_folder(run, step, self._project)
        own_folder = self._sighting(store).path
        suites = dict.fromkeys(map(self._suite_of, self._project.file.channels))
        return tuple(
            prepare_once(self._project.folder, pinned, own_folder, (run, step), suite)
            for suite in suites
        )

    def _suite_of(self, channel: str) -> str:
        return self._project.named_file(self._project.file.channels[channel].suite)

    def _ask_holders(self, store: LakeStore) -> list[str]:
        """Return the evaluations that channels' holders were owed before a comparison, done now.

        A holder that is on disk no more can't be evaluated again; the verdict is open then.
        """
        asked = []
        ours = {one.evaluation.suite: one.evaluation for one in self._prepared(store)}
        for name in self._project.file.channels:
            channel = sync_channel(name, self._project, store, SCHEDULE)
            evaluation, holder = ours[channel.suite], channel.holder
            if holder is None or not holder_is_owed(channel, evaluation, store):
                continue
            try:
                one = self._prepare_holder(holder, self._suite_of(name), store)
                generate(one, store, self._project, progress=self._report)
                score(one, store)
            except CheckpointError as gone:
                self._log(f"{holder.name}, which {name} points to, is not asked: {gone}")
            else:
                asked.append(one.evaluation.evaluation_id)
        return asked

    def _prepare_holder(self, holder: Holder, suite: str, store: LakeStore) -> Prepared:
        """Return a holder's evaluation ready to run, from its pin or else from its own folder.

        Raises:
            CheckpointError: Neither is there, or they are other weights by now.
        """
        known = load_checkpoint(holder.name, store).ref
        folder, name = kept_folder(known, self._project), (holder.run, holder.step)
        found = prepare_once(self._project.folder, folder, known.path, name, suite)
        if found.evaluation.checkpoint.digest != holder.digest:
            raise CheckpointError("other weights by now", str(folder), "bring the old ones back")
        return found

    def _sighting(self, store: LakeStore) -> Sighting:
        found = store.find_sighting(*parse_name(self._name))
        if found is None:
            raise InputError(
                f"{self._name} was not seen in any watched run",
                "checkpoint",
                "`pawl status` lists those that were; add its run to pawl.yaml: runs",
            )
        return found

    def _report(self, stage: str, done: int, total: int) -> None:
        if total and (done == total or done % max(total // 10, 1) == 0):
            self._log(f"{stage}: {done} of {total}")


@lru_cache(maxsize=8)
def prepare_once(
    project: Path, pinned: Path, own_folder: str, name: tuple[str, int], suite: str
) -> Prepared:
    """Return an evaluation ready to run; the steps of one process prepare it once."""
    return prepare(
        pinned, name, load_suite(suite), find_project(project), own_folder=Path(own_folder)
    )


def compare_with_holder(channel: str, name: str, project: Project, store: LakeStore) -> str | None:
    """Return what changed against a channel's holder as a Markdown table; None without a holder."""
    rules = read_rules(channel, project, store, SCHEDULE)
    checkpoint = load_checkpoint(name, store).ref
    sides = choose_channel_sides(rules, checkpoint, store)
    if sides.baseline is None:
        return None
    paired = join(sides.candidate, sides.baseline, store, store.snapshot(), rules.policy.readings)
    rows = [
        (one.name, one.n, share(one.value, signed=True), len(one.lost), len(one.gained))
        for one in compare_capabilities(paired.tasks)
    ]
    head = ("capability", "n", "difference", "lost", "gained")
    table = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in table)


def read_telemetry(section: RunSection, project: Project, store: LakeStore) -> TelemetryRead:
    """Store what a run has logged so far; a folder that is gone is told and is no error."""
    try:
        run = find_run(section, project)
    except InputError as gone:
        return TelemetryRead(points=0, problems=(str(gone),))
    store.register_run(run.name, str(run.folder), run.layout.name, run.config)
    points, problems = import_run(store, run.name, run.folder, run.layout.name)
    return TelemetryRead(points=points, problems=tuple(str(one) for one in problems))


def read_all_telemetry(project: Project) -> TelemetryRead:
    """Store what all watched runs have logged."""
    with project.open_store(create=True) as store:
        read = [read_telemetry(section, project, store) for section in project.file.runs]
    return TelemetryRead(
        points=sum(one.points for one in read),
        problems=tuple(problem for one in read for problem in one.problems),
    )
