"""The ``pawl`` command.

Exit codes: 0 done or PASS, 1 FAIL, 2 INCONCLUSIVE, 3 could not be done, 64 the command line is
wrong, 70 a fault in Pawl itself, 130 interrupted.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer

from evals.errors import PawlError
from pipelines.commands import (
    bench,
    checks,
    comparison,
    demo,
    evaluation,
    lab,
    ledger,
    project,
    promotion,
    sandbox,
    services,
    statistics,
    telemetry,
)
from pipelines.console import note, print_json

CommandLineError: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)
"""What Typer raises for a wrong command line; it has no public name of its own."""

COULD_NOT = 3
USAGE = 64
FAULT = 70
INTERRUPTED = 130

app = typer.Typer(
    name="pawl",
    help="Evaluates checkpoints and decides, with known error rates, whether they may be promoted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("init")(project.init)
app.command("doctor")(checks.doctor)
app.command("demo")(demo.demo)
app.command("up")(services.up)
app.command("status")(services.status)
app.command("app")(project.serve)
app.command("eval")(evaluation.evaluate_checkpoint)
app.command("show")(evaluation.show)
app.command("compare")(comparison.compare)
app.command("gate")(comparison.gate)
app.command("why")(promotion.why)
app.command("promote")(promotion.promote)
app.command("stat")(statistics.stat)
app.command("bench")(bench.bench)
app.add_typer(lab.app, name="lab")
app.add_typer(ledger.app, name="ledger")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(telemetry.app, name="telemetry")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    as_json = "--json" in arguments
    try:
        code = app(args=list(arguments), standalone_mode=False)
    except CommandLineError as wrong:
        wrong.show(file=sys.stderr)
        return USAGE
    except PawlError as failed:
        if as_json:
            print_json({"error": {"what": failed.what, "where": failed.where, "fix": failed.fix}})
        note(f"pawl: {failed}")
        return COULD_NOT
    except OSError as failed:
        what, where = failed.strerror or str(failed), str(failed.filename or "file system")
        if as_json:
            print_json({"error": {"what": what, "where": where, "fix": "check the path"}})
        note(f"pawl: {where}: {what} — check that it is there and that you may use it")
        return COULD_NOT
    except (KeyboardInterrupt, typer.Abort):
        note("pawl: interrupted; what is stored stays, the same command goes on from there")
        return INTERRUPTED
    except Exception:  # noqa: BLE001  the last line of defence: a crash is not a verdict
        traceback.print_exc()
        note("pawl: a fault in Pawl itself; please report the lines above")
        return FAULT
    return code if isinstance(code, int) else 0


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))
