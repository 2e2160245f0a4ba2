"""Many runs through the gate: how often is a sound one blocked, and does a faulty one get through?

Each seed has a sound and a faulty run, trained apart from each other. Every checkpoint is evaluated
on suite ``lab`` and decided on under policy ``lab`` against the run's last promoted one, by the
functions that the commands use. Killed at any moment and called again, it goes on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evals.checkpoint import digest_checkpoint, inspect_checkpoint
from evals.gate import Decision, deciding_rules, rule_in_words
from evals.identity import fingerprint
from evals.job import Progress, silent
from evals.policy import find_policy
from evals.stats.verdict import Verdict
from evals.suite import load_suite
from pipelines.comparing import judge_stored, store_decision, who
from pipelines.evaluating import Prepared, prepare, run
from pipelines.lab.controller import run_lab
from pipelines.lab.model import WARM
from pipelines.lab.run_folder import CHECKPOINTS
from pipelines.lab.settings import Fault, Settings
from storage.project import Project
from storage.store import LakeStore

SUITE = POLICY = "lab"
SOUND = "sound"
FIRST = "first holder"
ROWS_FILE = "rows.jsonl"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One checkpoint of one run."""

    seed: int
    run: str
    """``sound``, or the fault's name."""
    step: int
    verdict: str
    """Of the gate; or that it is the first holder, which there is nothing to compare with."""
    against: str
    """Step of the baseline; empty where there was none."""
    because: str
    """The deciding rule with its numbers."""
    digest: str
    """Of the checkpoint's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """What the table is made of."""

    seeds: int
    steps: int = 120
    every: int = 30
    from_step: int = 60

    def settings(self, seed: int, run_name: str) -> Settings:
        """Return the settings of one run."""
        faulty = run_name != SOUND
        return Settings(
            seed=seed,
            steps=self.steps,
            every=self.every,
            fault=Fault(run_name) if faulty else None,
            from_step=self.from_step if faulty else None,
        )

    def folder(self, project: Project) -> Path:
        """Return where runs and rows are kept; another one where anything of them changes."""
        settings = [asdict(self.settings(0, name)) for name in (SOUND, Fault.FORGET.value)]
        start = digest_checkpoint(inspect_checkpoint(WARM))
        key = fingerprint(
            [settings, start, load_suite(SUITE).fingerprint, find_policy(POLICY).digest]
        )
        return project.state / "lab-table" / key[:8]


def fill_table(
    plan: TablePlan, project: Project, say: Say, progress: Progress = silent
) -> list[TableRow]:
    """Return all rows, seed by seed; what an earlier call has stored is not done again.

    Args:
        plan: How many seeds, and their runs.
        project: Engine and lake.
        say: Told each row.
        progress: Told how far the present run or evaluation is.

    Raises:
        PawlError: A run or an evaluation could not be done.
    """
    folder = plan.folder(project)
    folder.mkdir(parents=True, exist_ok=True)
    rows = read_rows(folder / ROWS_FILE)
    with project.open_store(create=True) as store:
        for seed in range(plan.seeds):
            for run_name in (SOUND, Fault.FORGET.value):
                done = [row for row in rows if (row.seed, row.run) == (seed, run_name)]
                settings = plan.settings(seed, run_name)
                for row in judge_run(settings, folder, project, store, done, progress):
                    rows.append(row)
                    append_row(folder / ROWS_FILE, row)
                    say(f"seed {seed}, {run_name}, step {row.step}: {row.verdict}: {row.because}")
    return [row for row in rows if row.seed < plan.seeds]


def judge_run(
    settings: Settings,
    folder: Path,
    project: Project,
    store: LakeStore,
    done: Sequence[TableRow],
    progress: Progress,
) -> Iterator[TableRow]:
    """Yield the rows of one run that are not done."""
    name = settings.fault.value if settings.fault else SOUND
    steps = checkpoint_steps(settings)
    owed = [step for step in steps if step not in {row.step for row in done}]
    if not owed:
        return
    run_name = f"lab-{folder.name}-{name}-{settings.seed}"
    run_folder = train_once(settings, folder / run_name, progress)
    promoted = [row.step for row in done if row.verdict in (FIRST, Verdict.PASS)]
    holder = promoted[-1] if promoted else None

    def evaluated(step: int) -> Prepared:
        path = run_folder / CHECKPOINTS / f"step_{step}"
        suite = load_suite(SUITE)
        prepared = prepare(path, (run_folder.name, step), suite, project, progress=progress)
        run(prepared, store, project, progress=progress)
        return prepared

    for step in owed:
        candidate = evaluated(step)
        baseline = None if holder is None else evaluated(holder).evaluation
        decision = judge_stored(find_policy(POLICY), candidate.evaluation, baseline, store)
        store_decision(decision, store, who())
        row = describe(decision, settings.seed, name, step, holder)
        if row.verdict in (FIRST, Verdict.PASS):
            holder = step
        yield row


def checkpoint_steps(settings: Settings) -> list[int]:
    """Return the steps at which a run writes a checkpoint."""
    return [*range(0, settings.steps, settings.every), settings.steps]


def train_once(settings: Settings, folder: Path, progress: Progress) -> Path:
    """Return the folder of a whole run; what an interrupted one has left is done anew."""
    if not (folder / CHECKPOINTS / f"step_{settings.steps}").exists():
        if folder.exists():
            shutil.rmtree(folder)
        run_lab(folder, settings, owner=who(), progress=progress)
    return folder


def describe(
    decision: Decision, seed: int, run_name: str, step: int, holder: int | None
) -> TableRow:
    """Return the row of a decision."""
    first = holder is None and decision.limits_hold
    if first:
        rules = [rule for rule in decision.rules if rule.margin is None]
    else:
        rules = list(deciding_rules(decision))
    return TableRow(
        seed=seed,
        run=run_name,
        step=step,
        verdict=FIRST if first else decision.verdict.value,
        against="" if holder is None else str(holder),
        because="; ".join(rule_in_words(rule) for rule in rules[:2]) or "–",
        digest=decision.candidate_digest,
    )


def read_rows(file: Path) -> list[TableRow]:
    """Return the rows in a file; a last line that was cut off is left out."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").split("\n")
    return [TableRow(**json.loads(line)) for line in lines[:-1]]


def append_row(file: Path, row: TableRow) -> None:
    """Append a row, whole, to a file."""
    kept = read_rows(file)
    partial = file.with_suffix(".tmp")
    lines = [json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in [*kept, row]]
    partial.write_text("".join(lines), encoding="utf-8")
    partial.replace(file)


def summarize_table(rows: Sequence[TableRow], plan: TablePlan) -> list[str]:
    """Return what the rows come to, a sentence each; the same weights count once."""
    faulty = [row for row in rows if row.run != SOUND and row.step > plan.from_step]
    others = [row for row in rows if row not in faulty and row.verdict != FIRST]
    sound = list({row.digest: row for row in others}.values())
    twice = [digests for digests in trained_twice(rows, plan).values() if len(digests) > 1]
    return [
        f"{count(faulty, Verdict.PASS)} of {len(faulty)} checkpoints after the fault PASSed, "
        f"{count(faulty, Verdict.FAIL)} FAILed, {count(faulty, Verdict.INCONCLUSIVE)} stayed open.",
        f"{count(sound, Verdict.FAIL)} of {len(sound)} sound checkpoints FAILed, "
        f"{count(sound, Verdict.PASS)} PASSed, {count(sound, Verdict.INCONCLUSIVE)} stayed open.",
        f"{sum(len(set(digests)) == 1 for digests in twice)} of {len(twice)} checkpoints that both "
        "runs of a seed wrote before the fault have the same digest in both.",
    ]


def count(rows: Sequence[TableRow], verdict: Verdict) -> int:
    """Return how many rows have a verdict."""
    return sum(row.verdict == verdict for row in rows)


def trained_twice(rows: Sequence[TableRow], plan: TablePlan) -> dict[tuple[int, int], list[str]]:
    """Return the digests of each seed and step that both runs reached under the same reward."""
    found: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        if 0 < row.step <= plan.from_step:
            found.setdefault((row.seed, row.step), []).append(row.digest)
    return found


def as_markdown(rows: Sequence[TableRow], plan: TablePlan) -> str:
    """Return the table as a page."""
    twice = trained_twice(rows, plan)
    lines = [
        "# Runs of the lab through the gate",
        "",
        f"Written by `pawl lab table --seeds {plan.seeds}`. Suite `{SUITE}`, policy `{POLICY}`. "
        f"Each seed was trained twice: sound, and with a reward that forgets after step "
        f"{plan.from_step}. A checkpoint is decided on against the run's last promoted one.",
        "",
        *[f"- {sentence}" for sentence in summarize_table(rows, plan)],
        "",
        "| seed | run | step | verdict | against | deciding rule | digest | in both runs |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        digests = twice.get((row.seed, row.step), [])
        same = "" if len(digests) < 2 else "same" if len(set(digests)) == 1 else "DIFFERENT"  # noqa: PLR2004 - both runs
        cells = [row.seed, row.run, row.step, row.verdict, row.against, row.because]
        lines.append(
            "| " + " | ".join(str(cell) for cell in [*cells, row.digest[:12], same]) + " |"
        )
    return "\n".join(lines) + "\n"
