"""Which processes a project needs, and how each is started; all of them on loopback."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from evals.adapters.ray_workers import own_head_environment, ray_folder
from pipelines.services.leftovers import read_parts
from pipelines.services.part import Part
from storage.project import Project

LOOPBACK = "127.0.0.1"
DEFINITIONS = "pipelines.orchestration.definitions"
PROJECT_VARIABLE = "PAWL_PROJECT"

DAGSTER_SETTINGS = """\
# Written by `pawl up`.
telemetry: {enabled: false}
nux: {enabled: false}
concurrency: {runs: {max_concurrent_runs: 1}}
run_monitoring: {enabled: true, start_timeout_seconds: 180, poll_interval_seconds: 30}
retention:
  sensor: {purge_after_days: {skipped: 1, success: 30, failure: 30}}
"""


def project_parts(project: Project) -> tuple[Part, ...]:
    """Return what `pawl up` starts, in order: each needs those before it."""
    head = (ray_part(project),) if owns_head(project) else ()
    return (*head, *dagster_parts(project), app_part(project))


def running_head(project: Project) -> str | None:
    """Return where the Ray head of the project's `pawl up` listens; None where none runs."""
    return {part.name: part.address for part in read_parts(project.state)}.get("ray")


def ray_token(project: Project) -> Path:
    """Return the file of the token of the project's own Ray head."""
    return project.state / "ray.token"


def owns_head(project: Project) -> bool:
    """Return whether the project has a Ray head of its own to start."""
    return project.file.ray.address is None


def ray_part(project: Project) -> Part:
    """Return a Ray head with its own folder and without a dashboard."""
    port = free_port()
    program = str(Path(sys.executable).with_name("ray"))
    return Part(
        name="ray",
        command=(
            *(program, "start", "--head", "--block", "--disable-usage-stats"),
            f"--node-ip-address={LOOPBACK}",
            f"--port={port}",
            "--include-dashboard=false",
            f"--temp-dir={ray_folder(project.folder)}",
            f"--object-store-memory={128 * 1024 * 1024}",
        ),
        environment=own_head_environment(ray_token(project)),
        listens=(LOOPBACK, port),
    )


def dagster_parts(project: Project) -> tuple[Part, ...]:
    """Return Dagster's code server, webserver and daemon, after writing their settings."""
    home = dagster_home(project)
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(DAGSTER_SETTINGS, "utf-8")
    code = code_socket(project)
    workspace = home / "workspace.yaml"
    workspace.write_text(
        f"load_from: [{{grpc_server: {{socket: {str(code)!r}, location_name: pawl}}}}]\n", "utf-8"
    )
    environment = dagster_environment(project)
    python, port = sys.executable, project.file.services.dagster_port
    grpc = ("-m", "dagster", "api", "grpc", "--socket", str(code), "-m", DEFINITIONS)
    web = ("-m", "dagster_webserver", "-h", LOOPBACK, "-p", str(port), "-w", str(workspace))
    return (
        Part(name="code", command=(python, *grpc), environment=environment, listens=code),
        Part(
            name="dagster",
            command=(python, *web),
            environment=environment,
            listens=(LOOPBACK, port),
        ),
        Part(
            name="daemon",
            command=(python, "-m", "dagster._daemon", "run", "-w", str(workspace)),
            environment=environment,
            listens=None,
        ),
    )


def app_part(project: Project) -> Part:
    """Return the app."""
    port = project.file.services.app_port
    return Part(
        name="app",
        command=app_command(project, port),
        environment={},
        listens=(LOOPBACK, port),
    )


def app_command(project: Project, port: int) -> tuple[str, ...]:
    """Return the command that serves the app on loopback."""
    main = Path(__file__).parents[2] / "app" / "main.py"
    return (
        *(sys.executable, "-m", "streamlit", "run", str(main)),
        *("--server.address", LOOPBACK, "--server.port", str(port)),
        *("--server.headless", "true", "--browser.gatherUsageStats", "false"),
        *("--server.fileWatcherType", "none", "--", "--project", str(project.folder)),
    )


def dagster_home(project: Project) -> Path:
    """Return the folder of Dagster's own records."""
    return project.state / "dagster"


def dagster_environment(project: Project) -> dict[str, str]:
    """Return the variables that Dagster's processes start with."""
    return {
        "DAGSTER_HOME": str(dagster_home(project)),
        PROJECT_VARIABLE: str(project.folder),
        "DO_NOT_TRACK": "1",
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }


def code_socket(project: Project) -> Path:
    """Return the code server's socket; in a short folder, since a socket's path is limited."""
    return ray_folder(project.folder).with_suffix(".sock")


def free_port() -> int:
    """Return a port on loopback that nothing listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def run_locks(project: Project) -> Path:
    """Return the folder of the locks that the processes of Dagster's runs hold."""
    return dagster_home(project) / "locks"
