"""A project: the folder of ``pawl.yaml``, and what that file says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from evals.checkpoint import run_name
from evals.engine import EngineSettings
from evals.errors import InputError
from evals.yaml_file import load_yaml
from storage.connection import LakeConfig, open_lake
from storage.store import LakeStore

PROJECT_FILE = "pawl.yaml"
STATE_FOLDER = ".pawl"


class Section(BaseModel):
    """A part of ``pawl.yaml``: nothing unknown is accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LakeSection(Section):
    """Where results are kept."""

    catalog: str = f"{STATE_FOLDER}/lake.sqlite"
    """SQLite file on a local disk, or ``postgres:`` and a connection string for a team."""
    data: str = f"{STATE_FOLDER}/lake"
    """Folder of the Parquet files."""


class EngineSection(Section):
    """Which engine answers, and how it is started."""

    name: Literal["vllm", "torch"] = "vllm"
    """``torch``: for models of a few million parameters."""
    dtype: str = Field("auto", pattern=r"^(auto|float32|bfloat16|float16)$")
    context_tokens: int | None = Field(None, ge=16, strict=True)
    tensor_parallel: int = Field(1, ge=1, strict=True)
    pipeline_parallel: int = Field(1, ge=1, strict=True)
    memory_fraction: float = Field(0.9, gt=0.0, le=1.0)
    kv_cache_gib: float = Field(2.0, gt=0.0, allow_inf_nan=False)
    parallel_sequences: int = Field(64, ge=1, strict=True)
    compiled: bool | None = None

    @field_validator(
        "tensor_parallel", "pipeline_parallel", "memory_fraction", "kv_cache_gib", "compiled"
    )
    @classmethod
    def only_of_vllm(cls, value: Any, info: ValidationInfo) -> Any:
        """Return the value unless it asks torch for what only vLLM does."""
        default = cls.model_fields[str(info.field_name)].default
        if info.data.get("name") == "torch" and value and value != default:
            raise ValueError(
                f"torch has no {info.field_name} — remove this line, or write engine.name: vllm"
            )
        return value

    def settings(self) -> EngineSettings:
        """Return the section as the engine's record."""
        return EngineSettings(**self.model_dump())


class RaySection(Section):
    """Where workers run."""

    address: str | None = None
    """Of a running cluster; null: a head of one's own on this machine."""


class RunSection(Section):
    """One RL run that is watched."""

    folder: str = Field(min_length=1)
    """What the trainer writes into."""
    name: str | None = Field(None, pattern=r"^\w[\w.+-]*$")
    """What its checkpoints are called by; null: the folder's name."""
    layout: str | None = None
    """How checkpoints lie in it; null: recognised."""


class FirstSection(Section):
    """A named person's word that a run's starting point may be a channel's first holder."""

    checkpoint: str = Field(pattern=r"^\w[\w.+-]*@[0-9]{1,15}$")
    who: str = Field(min_length=1)
    why: str = Field(min_length=1)


class ChannelSection(Section):
    """A name that points to a promoted checkpoint, and what moves it."""

    policy: str = Field(min_length=1)
    """A shipped policy, or a ``.yaml`` file."""
    suite: str = Field(min_length=1)
    """A shipped suite, or a ``.yaml`` file."""
    first: FirstSection | None = None
    """Null: the first promotion waits for `pawl promote --first`."""


class ServicesSection(Section):
    """What `pawl up` starts; all of it listens on loopback."""

    dagster_port: int = Field(3000, ge=1, le=65535, strict=True)
    app_port: int = Field(8501, ge=1, le=65535, strict=True)
    poll_s: int = Field(10, ge=1, strict=True)
    """Seconds between two looks at the runs' folders."""


class ProjectFile(Section):
    """``pawl.yaml``."""

    lake: LakeSection = LakeSection()
    engine: EngineSection = EngineSection()
    ray: RaySection = RaySection()
    services: ServicesSection = ServicesSection()
    runs: tuple[RunSection, ...] = ()
    channels: dict[Annotated[str, Field(pattern=r"^[A-Za-z][\w.-]*$")], ChannelSection] = {}
    data_mirror: str | None = None
    """``mirror.json`` of data sets on disk; null: data sets come from the hub."""
    tasks_folder: str | None = None
    """Folder with YAML tasks of one's own, in lm-eval's format."""

    @field_validator("lake", "engine", "ray", "services", "channels", mode="before")
    @classmethod
    def empty_section(cls, value: object) -> object:
        """Return a section whose lines are all commented out as one with every default."""
        return {} if value is None else value

    @field_validator("runs", mode="before")
    @classmethod
    def no_runs(cls, value: object) -> object:
        """Return a list whose lines are all commented out as an empty one."""
        return () if value is None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project's folder and configuration; paths in the file are relative to the folder."""

    folder: Path
    file: ProjectFile

    def path(self, text: str) -> Path:
        """Return a path of the file as it is meant: relative to the project's folder."""
        try:
            return (self.folder / Path(text).expanduser()).resolve()
        except (ValueError, RuntimeError, OSError) as bad:
            raise InputError(
                f"no path: {text[:80]!r} ({bad})", PROJECT_FILE, "correct the path"
            ) from bad

    def run_name(self, section: RunSection) -> str:
        """Return what stands before the @ of the names of a run's checkpoints."""
        return section.name or run_name(self.path(section.folder).name)

    def named_runs(self) -> dict[str, RunSection]:
        """Return the runs that are watched, by name.

        Raises:
            InputError: Two are called alike.
        """
        named: dict[str, RunSection] = {}
        for section in self.file.runs:
            name = self.run_name(section)
            if name in named:
                raise InputError(
                    f"two runs are called {name}",
                    f"{self.folder / PROJECT_FILE}: runs",
                    "give one of them another name: name",
                )
            named[name] = section
        return named

    @property
    def state(self) -> Path:
        """Return the folder of spool, ledger head and caches."""
        return self.folder / STATE_FOLDER

    @property
    def mirror(self) -> Path | None:
        """Return the mirror's file, or None."""
        return self.path(self.file.data_mirror) if self.file.data_mirror else None

    @property
    def tasks_folder(self) -> Path | None:
        """Return the folder of the user's own tasks, or None.

        Raises:
            InputError: It is not there.
        """
        if self.file.tasks_folder is None:
            return None
        folder = self.path(self.file.tasks_folder)
        if not folder.is_dir():
            raise InputError(
                "no such folder", f"{PROJECT_FILE}: tasks_folder: {folder}", "correct the path"
            )
        return folder

    def named_file(self, text: str) -> str:
        """Return a shipped name as it is, and a ``.yaml`` file's path as the project means it."""
        return str(self.path(text)) if text.endswith((".yaml", ".yml")) else text

    @property
    def lake(self) -> LakeConfig:
        """Return where the lake is."""
        catalog = self.file.lake.catalog
        if not catalog.startswith("postgres:"):
            catalog = str(self.path(catalog))
        return LakeConfig(catalog=catalog, data_path=self.path(self.file.lake.data))

    @property
    def has_lake(self) -> bool:
        """Return whether there is a lake to read; True for a shared one, which only opening tells.

        A missing catalogue whose data are still there is a damaged lake, not an absent one.
        """
        if self.lake.shared or Path(self.lake.catalog).exists():
            return True
        return next(self.lake.data_path.rglob("*.parquet"), None) is not None

    @contextmanager
    def open_store(self, *, create: bool = False) -> Iterator[LakeStore]:
        """Yield the project's store.

        Args:
            create: Make the lake where there is none.

        Raises:
            InputError: There is no lake, and it is not to be made.
            LakeError: It can't be opened.
        """
        if not create and not self.has_lake:
            raise InputError(
                "no lake yet: nothing was evaluated here",
                str(self.folder),
                "run `pawl eval CHECKPOINT_FOLDER`, or name another project with --project",
            )
        if create:
            self.state.mkdir(parents=True, exist_ok=True)
        with open_lake(self.lake) as lake:
            yield LakeStore(lake, self.state)


def find_project(given: Path | None) -> Project:
    """Return the project in ``given``, or the nearest one at or above the working folder.

    Where there is no ``pawl.yaml`` at all, the working folder is a project with every default.

    Raises:
        InputError: ``given`` is no folder; or file, line and field of what is wrong in it; or two
            runs are called alike.
    """
    if given is not None and not given.is_dir():
        raise InputError("no such folder", f"--project {given}", "give the folder of pawl.yaml")
    here = (given or Path.cwd()).resolve()
    for folder in [here] if given else [here, *here.parents]:
        if (folder / PROJECT_FILE).exists():
            found = Project(folder=folder, file=load_yaml(folder / PROJECT_FILE, ProjectFile))
            found.named_runs()
            return found
    return Project(folder=here, file=ProjectFile())
