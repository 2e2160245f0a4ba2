"""A suite: a named, versioned list of tasks by capability, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evals.errors import InputError
from evals.identity import fingerprint
from evals.plan import Sampling
from evals.task import Capability
from evals.yaml_file import load_yaml

SHIPPED = Path(__file__).parent / "suites"


class StrictModel(BaseModel):
    """Text enters here: nothing unknown is accepted, nothing is changed afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SamplingEntry(StrictModel):
    """How tokens are drawn for a task."""

    temperature: float = Field(0.0, ge=0.0, le=10.0)
    top_p: float = Field(1.0, gt=0.0, le=1.0)
    top_k: int = Field(0, ge=0)
    seed: int = Field(0, ge=0)

    def sampling(self) -> Sampling:
        """Return the entry as the core's record."""
        return Sampling(
            temperature=self.temperature, top_p=self.top_p, top_k=self.top_k, seed=self.seed
        )


class TaskEntry(StrictModel):
    """One task of a suite."""

    task: str = Field(min_length=1)
    """Name of a task of lm-eval's or of Pawl's own."""
    capability: Capability | None = None
    """What an lm-eval task measures, where its name does not tell."""
    limit: int | None = Field(None, ge=1)
    """At most this many items, chosen by their ids; null: all."""
    repeats: int = Field(1, ge=1, le=1024)
    num_fewshot: int | None = Field(None, ge=0)
    """For lm-eval tasks; null: as the task has it."""
    max_tokens: int | None = Field(None, ge=1)
    """Budget of an answer; null: as the task has it."""
    metric: str | None = None
    """Primary metric of an lm-eval task as ``metric,filter``; null: the first it lists."""
    sampling: SamplingEntry | None = None
    """Null: the suite's."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Arguments of a generated task."""

    @field_validator("metric")
    @classmethod
    def has_both_parts(cls, value: str | None) -> str | None:
        """Hold that a metric names its filter."""
        if value is not None and value.count(",") != 1:
            raise ValueError("write metric and filter as exact_match,strict-match")
        return value


class Suite(StrictModel):
    """What is measured, as data."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:+-]*$")
    version: str = Field(min_length=1)
    description: str = ""
    seed: int = Field(0, ge=0)
    """Of generated tasks and of few-shot choices."""
    chat_template: bool | None = None
    """Whether prompts go through the checkpoint's chat template; null: where it has one."""
    sampling: SamplingEntry = SamplingEntry()
    tasks: tuple[TaskEntry, ...] = Field(min_length=1)

    @field_validator("tasks")
    @classmethod
    def unique(cls, tasks: tuple[TaskEntry, ...]) -> tuple[TaskEntry, ...]:
        """Hold that no task is there twice."""
        names = [entry.task for entry in tasks]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{', '.join(twice)} listed more than once")
        return tasks

    @property
    def fingerprint(self) -> str:
        """Return the hash of everything but the description."""
        return fingerprint(self.model_dump(mode="json", exclude={"description"}))

    def sampling_of(self, entry: TaskEntry) -> Sampling:
        """Return how tokens are drawn for ``entry``."""
        return (entry.sampling or self.sampling).sampling()

    def limited(self, limit: int | None, repeats: int | None) -> Suite:
        """Return the suite with every task cut to ``limit`` items and asked ``repeats`` times."""
        changes: dict[str, int] = {}
        if limit is not None:
            changes["limit"] = limit
        if repeats is not None:
            changes["repeats"] = repeats
        if not changes:
            return self
        tasks = tuple(
            entry.model_copy(
                update={
                    **changes,
                    **({"limit": min(limit, entry.limit)} if limit and entry.limit else {}),
                }
            )
            for entry in self.tasks
        )
        return self.model_copy(update={"tasks": tasks})


def load_suite(name_or_path: str) -> Suite:
    """Return a shipped suite by name, or the suite in a YAML file.

    Raises:
        InputError: No such suite; or file, line and field of what is wrong in it.
    """
    path = Path(name_or_path)
    if path.suffix in {".yaml", ".yml"}:
        return load_yaml(path, Suite)
    shipped = SHIPPED / f"{name_or_path}.yaml"
    known = sorted(p.stem for p in SHIPPED.glob("*.yaml"))
    if name_or_path not in known:
        raise InputError(
            f"no suite named {name_or_path!r}",
            "--suite",
            f"shipped are {', '.join(known)}; or give the path of a .yaml file",
        )
    return load_yaml(shipped, Suite)


def suite_of_tasks(names: list[str]) -> Suite:
    """Return an unnamed suite of the tasks on a command line, in their order.

    Raises:
        InputError: No name, or a name twice.
    """
    wanted = [name.strip() for name in names if name.strip()]
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    if not wanted or twice:
        raise InputError(
            f"{', '.join(twice)} given twice" if twice else "no task given",
            "--tasks",
            "give names separated by commas, as in gsm8k,humaneval",
        )
    return Suite(name="tasks", version="1", tasks=tuple(TaskEntry(task=n) for n in wanted))
