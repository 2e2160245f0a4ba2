"""Decisions: the ledger's verdicts, and one of them with all its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.charts import rule_chart
from app.frames import decision_table, limit_table, reason_lines, rule_table
from app.links import Pages, show_link
from app.loading import LedgerState
from app.looks import percent, points, range_text, time_text, verdict_style
from app.plain import literal, plain
from app.query import AppQuery, choose_row
from storage.aggregates import DecisionHead
from storage.decisions import StoredDecision

_BADGES = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "orange"}


def show_ledger(ledger: LedgerState) -> None:
    """Show on one line whether the ledger is what was written."""
    report = ledger.report
    entries = f"{report.entries} ledger {'entry' if report.entries == 1 else 'entries'}"
    if report.sound:
        st.caption(f":green[:material/verified:] {entries}; the chain is whole.")
        return
    first = report.problems[0].text
    rest = f" and {len(report.problems) - 1} more" if len(report.problems) > 1 else ""
    st.error(
        f"The ledger is damaged: {literal(first)}{rest} — run `pawl ledger verify`",
        icon=":material/error:",
    )


def show_list(heads: Sequence[DecisionHead], query: AppQuery) -> None:
    """Show all decisions, the latest first."""
    table = decision_table(heads)
    shown = pd.DataFrame(
        {
            "verdict": table["verdict"],
            "candidate": table["candidate"].map(plain),
            "baseline": [plain(name) or "–" for name in table["baseline"]],
            "policy": table["policy"].map(plain),
            "at": table["at"].map(time_text),
        }
    )
    text = st.column_config.TextColumn
    choose_row(
        shown.style.map(verdict_style, subset=["verdict"]),
        [{"decision": key} for key in table["decision"]],
        {"decision": query.decision},
        name="decisions",
        column_config={
            "verdict": text("Verdict", width=130),
            "candidate": text("Candidate", width=230),
            "baseline": text("Baseline", width=230),
            "policy": text("Policy", width=160),
            "at": text("Decided", width=170),
        },
    )


def show_verdict(stored: StoredDecision) -> None:
    """Show what a decision says, and its rules."""
    document = stored.decision.document
    verdict = str(document["verdict"])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(literal(str(document["candidate"])), width="content", anchor=False)
        st.badge(verdict, color=_BADGES[verdict])
    st.text(plain(str(document["sentence"]).removeprefix(f"{verdict}: ")))
    rules = rule_table(document)
    _show_rules(rules)
    _show_intervals(rules)
    _show_reasons(document)


def show_evidence(stored: StoredDecision, ledger: LedgerState, pages: Pages) -> None:
    """Show what a decision rests on: items, conditions, and its record."""
    document = stored.decision.document
    _show_flips(document, pages)
    _show_differences(document)
    _show_record(stored, ledger)


def _show_rules(rules: pd.DataFrame) -> None:
    st.subheader("Rules", anchor=False)
    signed = rules["margin"].notna()
    shown = rules[["rule", "verdict", "role", "tier", "n"]].copy()
    shown["rule"] = shown["rule"].map(plain)
    shown["limit"] = [limit_text(rule) for rule in rules.to_dict("records")]
    shown["value"] = [
        points(value) if sign else percent(value)
        for value, sign in zip(rules["value"], signed, strict=True)
    ]
    shown["interval"] = [
        f"{range_text(low, high, signed=sign)} ({100 * level:.4g} %)"
        for low, high, level, sign in zip(
            rules["low"], rules["high"], rules["level"], signed, strict=True
        )
    ]
    for name in ("p_pass", "p_fail", "p_fail_adjusted", "missing"):
        shown[name] = rules[name]
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    st.dataframe(
        shown.style.map(verdict_style, subset=["verdict"]),
        hide_index=True,
        column_config={
            "rule": text("Rule", pinned=True, width=145),
            "verdict": text("Verdict", width=120),
            "role": text("Role", width=65),
            "tier": text("Tier", width=80),
            "n": number("Items", width=60),
            "limit": text("Limit", width=180),
            "value": text("Estimate", width=75, alignment="right"),
            "interval": text("Interval (level)", width=165, alignment="right"),
            "p_pass": number("p pass", format="%.4f", width=65),
            "p_fail": number("p fail", format="%.4f", width=65),
            "p_fail_adjusted": number(
                "p fail, Holm", format="%.4f", width=90, help="Adjusted within the tier"
            ),
            "missing": number("Missing", width=70),
        },
    )


def limit_text(rule: Mapping[Any, Any]) -> str:
    """Return a rule's limit in words."""
    if not pd.isna(rule["margin"]):
        tolerate = f", tolerate {100 * rule['tolerate']:.3g}" if rule["tolerate"] else ""
        return f"margin {100 * rule['margin']:.3g}{tolerate} points"
    if not pd.isna(rule["ceiling"]):
        return f"ceiling {100 * rule['ceiling']:.3g} %"
    return f"floor {100 * rule['floor']:.3g} %"


def _show_intervals(rules: pd.DataFrame) -> None:
    limits = limit_table(rules)
    margins = rules[rules["margin"].notna()]
    levels = rules[rules["margin"].isna()]
    for part, signed, title in (
        (margins, True, "Differences against their margins"),
        (levels, False, "Scores against ceilings and floors"),
    ):
        if not part.empty:
            st.markdown(f"**{title}**")
            st.altair_chart(rule_chart(part, limits, signed=signed), width="stretch")


def _show_reasons(document: Mapping[str, Any]) -> None:
    lines = reason_lines(document)
    if lines:
        st.subheader("Reasons", anchor=False)
        for line in lines:
            st.text(f"• {plain(line)}")


def _show_flips(document: Mapping[str, Any], pages: Pages) -> None:
    st.subheader("Items that changed", anchor=False)
    if document["baseline"] is None:
        st.caption("There is no baseline, so nothing to compare with.")
        return
    for rule in document["rules"]:
        flips = rule["flips"]
        name, link = st.columns([4, 6], vertical_alignment="center")
        name.text(f"{plain(rule['name'])}: {flips['lost']} lost, {flips['gained']} gained")
        with link:
            tasks = rule["tasks"]
            show_link(
                pages.compare,
                f"Compare on {literal(rule['subject'])}",
                candidate=document["candidate"],
                baseline=document["baseline"],
                candidate_evaluation=document["candidate_evaluation"],
                baseline_evaluation=document["baseline_evaluation"],
                task=tasks[0] if len(tasks) == 1 else None,
            )


def _show_differences(document: Mapping[str, Any]) -> None:
    st.subheader("Conditions besides the weights", anchor=False)
    if not document["differences"]:
        st.caption("None differs between the sides.")
        return
    rows = [
        {
            "condition": one["name"],
            "task": plain(one["task"] or "all"),
            "baseline": plain(one["baseline"]),
            "candidate": plain(one["candidate"]),
            "allowed": "yes" if one["allowed"] else "no",
        }
        for one in document["differences"]
    ]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        column_config={"allowed": st.column_config.TextColumn("allowed by the policy")},
    )


def _show_record(stored: StoredDecision, ledger: LedgerState) -> None:
    document = stored.decision.document
    key = stored.decision.decision
    entry = next((one for one in ledger.entries if one.payload.get("decision") == key), None)
    versions = ", ".join(f"{name} {number}" for name, number in document["versions"].items())
    facts = {
        "decision": key,
        "decided": time_text(stored.at),
        "ledger entry": f"{entry.seq}, by {entry.who}" if entry else "none",
        "policy": f"{document['policy']}, digest {document['policy_digest']}",
        "on an open verdict": document["on_inconclusive"],
        "lake snapshot": str(document["snapshot"]),
        "candidate's evaluation": document["candidate_evaluation"],
        "baseline's evaluation": document["baseline_evaluation"] or "none",
        "versions": versions,
    }
    st.subheader("Record", anchor=False)
    table = pd.DataFrame({"what": list(facts), "value": [plain(one) for one in facts.values()]})
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "what": st.column_config.TextColumn("Record", width=190),
            "value": st.column_config.TextColumn("Value", width=800),
        },
    )
