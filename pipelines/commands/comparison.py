"""``pawl compare`` and ``pawl gate``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from evals.compare import Difference, TaskComparison, compare_capabilities, compare_task
from evals.gate import Decision, RuleDecision
from evals.policy import find_policy
from evals.stats.verdict import Verdict
from pipelines.comparing import choose_sides, decide_and_store, who
from pipelines.console import AsJson, ProjectFolder, print_json, print_table, print_text, share
from pipelines.deciding import decide_for_channel
from storage.pairing import pair
from storage.project import find_project

SHOWN_FLIPS = 5
RULE_COLUMNS = (
    *("rule", "tier", "role", "verdict", "limit", "n", "value", "interval"),
    *("p pass", "p fail", "missing", "reasons"),
)
CHECKPOINT = "RUN@STEP, channel:NAME or folder."
EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2}

Suite = Annotated[str | None, typer.Option(help="Suite by name; default: what both have.")]


def compare(
    candidate: Annotated[str, typer.Argument(help=CHECKPOINT)],
    baseline: Annotated[str, typer.Argument(help=CHECKPOINT)],
    suite: Suite = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Compare two checkpoints item by item, by task and capability."""
    where = find_project(project)
    with where.open_store() as store:
        sides = choose_sides(candidate, baseline, suite, store)
        paired = pair(sides, store, store.snapshot())
    tasks = [compare_task(one) for one in paired.tasks]
    capabilities = compare_capabilities(paired.tasks)
    if json:
        print_json(
            {
                "candidate": sides.candidate.checkpoint.name,
                "baseline": sides.baseline.checkpoint.name,
                "candidate_evaluation": sides.candidate.evaluation_id,
                "baseline_evaluation": sides.baseline.evaluation_id,
                "suite": sides.candidate.suite,
                "tasks": [comparison_json(one) for one in tasks],
                "capabilities": [comparison_json(one) for one in capabilities],
                "differences": [asdict(one) for one in paired.differences],
            }
        )
        return 0
    title = f"{sides.candidate.checkpoint.name} against {sides.baseline.checkpoint.name}"
    columns = ["", "n", "baseline", "candidate", "difference", "95% interval", "lost", "gained"]
    columns.append("missing")
    print_table(columns, [comparison_row(one) for one in tasks], f"{title}, by task")
    print_table(columns, [comparison_row(one) for one in capabilities], "by capability")
    tell_differences(paired.differences)
    for one in tasks:
        for kind, ids in (("lost", one.lost), ("gained", one.gained)):
            if ids:
                shown = " ".join(key[:12] for key in ids[:SHOWN_FLIPS])
                print_text(f"{one.name} {kind}: {shown}{' …' if len(ids) > SHOWN_FLIPS else ''}")
    return 0


def tell_differences(differences: tuple[Difference, ...]) -> None:
    """Print what besides the weights is not the same on both sides."""
    for one in differences:
        print_text(f"not the same on both sides: {one.name}: {one.baseline} and {one.candidate}")


def comparison_json(one: TaskComparison) -> dict[str, Any]:
    """Return a comparison as JSON types."""
    document = asdict(one)
    document["capability"] = one.capability.value
    for side in ("baseline_outcomes", "candidate_outcomes"):
        document[side] = {str(name): count for name, count in document[side].items()}
    return document


def comparison_row(one: TaskComparison) -> list[str]:
    """Return a comparison as a table's row."""
    return [
        one.name,
        str(one.n),
        share(one.baseline_mean),
        share(one.candidate_mean),
        share(one.value, signed=True),
        f"{share(one.low, signed=True)} – {share(one.high, signed=True)}",
        str(len(one.lost)),
        str(len(one.gained)),
        f"{one.baseline_missing} / {one.candidate_missing}",
    ]


def gate(
    candidate: Annotated[str, typer.Argument(help=CHECKPOINT)],
    against: Annotated[
        str | None, typer.Option("--against", help=f"Baseline: {CHECKPOINT}")
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", help="Policy file, or a shipped name.")
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Policy, suite and baseline are this channel's.")
    ] = None,
    suite: Suite = None,
    json: AsJson = False,
    project: ProjectFolder = None,
) -> int:
    """Decide on what is stored: exit code 0 PASS, 1 FAIL, 2 INCONCLUSIVE."""
    if channel is not None and (against, policy, suite) != (None, None, None):
        raise typer.BadParameter("--channel has policy, suite and baseline already")
    where = find_project(project)
    if channel is not None:
        with where.open_store() as store:
            decision = decide_for_channel(channel, candidate, where, store, who=who())
            entry = store.load_decision_entry(decision.decision)
    else:
        if against is None or policy is None:
            raise typer.BadParameter("give --channel, or both --against and --policy")
        rules = find_policy(policy)
        with where.open_store() as store:
            sides = choose_sides(candidate, against, suite, store)
            decision, entry = decide_and_store(rules, sides, store)
    if json:
        print_json(decision.to_json())
    else:
        tell_decision(decision)
        print_text(f"decision {decision.decision}, ledger entry {entry.seq}")
    return EXIT_CODES[decision.verdict]


def tell_decision(decision: Decision) -> None:
    """Print a decision's verdict and its rules."""
    print_text(decision.sentence)
    against = f"against {decision.baseline}" if decision.baseline else "alone"
    print_table(
        RULE_COLUMNS,
        [rule_row(rule) for rule in decision.rules],
        f"{decision.candidate} {against} under {decision.policy}",
    )


def rule_row(rule: RuleDecision) -> list[str]:
    """Return a rule's decision as a table's row."""
    signed = rule.margin is not None
    return [
        rule.name,
        rule.tier.value,
        rule.role.value,
        rule.verdict.value,
        limit_text(rule),
        str(rule.n),
        share(rule.value, signed=signed),
        f"{share(rule.low, signed=signed)} – {share(rule.high, signed=signed)}",
        f"{rule.p_pass:.4f}",
        f"{rule.p_fail:.4f}",
        str(rule.missing),
        ", ".join((*rule.reasons, *rule.warnings)) or "–",
    ]


def limit_text(rule: RuleDecision) -> str:
    """Return a rule's limit in words."""
    if rule.margin is not None:
        tolerate = f", tolerate {share(rule.tolerate)}" if rule.tolerate else ""
        return f"margin {share(rule.margin)}{tolerate}"
    if rule.ceiling is not None:
        return f"ceiling {share(rule.ceiling)}"
    return f"floor {share(rule.floor)}"
