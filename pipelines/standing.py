"""Where a checkpoint stands: its verdict, what that hangs on, and what can be done next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from evals.errors import InputError
from evals.evaluation import Evaluation
from evals.gate import REASONS, Decision, RuleDecision, deciding_rules, rule_in_words
from evals.stats.verdict import Verdict
from pipelines.comparing import is_folder, registered
from pipelines.deciding import is_complete
from storage.channels import Channel
from storage.checkpoints import StoredCheckpoint
from storage.evaluations import StoredEvaluation
from storage.ledger import LedgerEntry
from storage.naming import CHANNEL, parse_name
from storage.sightings import Sighting
from storage.store import LakeStore

SHOWN_RULES = 2
"""Rules that are told in words; the rest are counted."""


class Stage(StrEnum):
    """How far a checkpoint has come."""

    SEEN = "seen"
    """In a watched run's folder, and not known to the lake otherwise."""
    REGISTERED = "registered"
    EVALUATING = "evaluating"
    """An evaluation was begun and none is complete."""
    EVALUATED = "evaluated"
    DECIDED = "decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A checkpoint's standing."""

    checkpoint: str
    """``RUN@STEP``."""
    digest: str | None
    """None where it was only seen."""
    stage: Stage
    decision: Decision | None
    """The newest."""
    entry: LedgerEntry | None
    """The decision's."""
    rules: tuple[RuleDecision, ...]
    """Those that the verdict hangs on."""
    headline: str
    because: str
    following: str
    """What to do next."""
    recorded: str
    channels: tuple[str, ...]
    """Channels that point to it."""

    @property
    def lines(self) -> tuple[str, str, str, str, str]:
        """Return it in five lines."""
        told = "; ".join(rule_in_words(rule) for rule in self.rules[:SHOWN_RULES])
        rest = len(self.rules) - SHOWN_RULES
        more = f"; and {rest} more" if rest > 0 else ""
        return (
            f"{self.checkpoint}: {self.headline}",
            f"rule: {told or 'none decided'}{more}",
            f"because: {self.because}",
            f"next: {self.following}",
            f"recorded: {self.recorded}",
        )


def read_standing(target: str, store: LakeStore) -> Standing:
    """Return where a checkpoint stands.

    Args:
        target: ``RUN@STEP``, ``channel:NAME`` or a folder.
        store: The lake.

    Raises:
        InputError: Nothing is known of it.
        CheckpointError: The folder is no whole checkpoint.
    """
    try:
        stored = registered(target, store)
    except InputError:
        sighting = find_sighting(target, store)
        if sighting is None:
            raise
        return seen(sighting)
    decided = newest_decision(stored, store)
    if decided is None:
        return undecided(stored, store)
    channels = store.channels()
    holding = tuple(one.name for one in channels if _points_to(one, stored.ref.digest))
    entry = store.load_decision_entry(decided.decision)
    under = f"under {decided.policy}"
    against = f"against {decided.baseline} {under}" if decided.baseline else under
    return Standing(
        checkpoint=stored.ref.name,
        digest=stored.ref.digest,
        stage=Stage.DECIDED,
        decision=decided,
        entry=entry,
        rules=deciding_rules(decided),
        headline=f"{decided.verdict.value} {against}",
        because=reasons_in_words(decided),
        following=next_step(decided, stored.ref.digest, channels, store),
        recorded=f"decision {decided.decision}, ledger entry {entry.seq} of {entry.at}",
        channels=holding,
    )


def find_sighting(target: str, store: LakeStore) -> Sighting | None:
    """Return what was seen of a checkpoint given by name in a watched run's folder, or None."""
    if target.startswith(CHANNEL) or is_folder(target):
        return None
    return store.find_sighting(*parse_name(target))


def seen(sighting: Sighting) -> Standing:
    """Return where a checkpoint stands that was only seen."""
    detail = f" ({sighting.detail})" if sighting.detail else ""
    return Standing(
        checkpoint=sighting.name,
        digest=None,
        stage=Stage.SEEN,
        decision=None,
        entry=None,
        rules=(),
        headline=f"not decided; its files are {sighting.state.value}",
        because=f"it was not evaluated{detail}",
        following=f"`pawl up` picks it up once it is whole, or pawl eval {sighting.path}",
        recorded=f"seen in {sighting.path}, so since {sighting.changed_at}",
        channels=(),
    )


def undecided(stored: StoredCheckpoint, store: LakeStore) -> Standing:
    """Return where a registered checkpoint stands on which there is no decision."""
    found = store.find_evaluations(checkpoint_digest=stored.ref.digest)
    newest = max(found, key=lambda one: (is_complete(one.evaluation), one.created_at), default=None)
    stage, headline, because, recorded = _without_decision(stored, newest)
    evaluate = f"pawl eval {stored.ref.name}"
    if newest is not None:
        evaluate += f" --suite {newest.evaluation.suite}"
    names = [channel.name for channel in store.channels()]
    options = f"--channel {names[0]}" if names else "--against BASELINE --policy FILE"
    gate = f"pawl gate {stored.ref.name} {options}"
    return Standing(
        checkpoint=stored.ref.name,
        digest=stored.ref.digest,
        stage=stage,
        decision=None,
        entry=None,
        rules=(),
        headline=headline,
        because=because,
        following=gate if stage is Stage.EVALUATED else evaluate,
        recorded=recorded,
        channels=(),
    )


def _without_decision(
    stored: StoredCheckpoint, newest: StoredEvaluation | None
) -> tuple[Stage, str, str, str]:
    """Return stage, headline, reason and place of a checkpoint without a decision."""
    if newest is None:
        return (
            Stage.REGISTERED,
            "not decided",
            "it was not evaluated",
            f"registered {stored.registered_at}, {stored.state.value}",
        )
    evaluation = newest.evaluation
    place = f"evaluation {evaluation.evaluation_id} on suite {evaluation.suite}"
    if is_complete(evaluation):
        return (
            Stage.EVALUATED,
            "evaluated, not decided",
            "no policy was asked yet",
            f"{place}, complete {newest.completed_at}",
        )
    return (
        Stage.EVALUATING,
        "not decided",
        f"its evaluation is {evaluation.state.value}, not complete",
        f"{place}, begun {newest.created_at}",
    )


def newest_decision(stored: StoredCheckpoint, store: LakeStore) -> Decision | None:
    """Return the newest decision on a checkpoint's weights under any name, or None."""
    digest = stored.ref.digest
    names = {one.ref.name for one in store.checkpoints() if one.ref.digest == digest}
    found = [
        one
        for name in names
        for one in store.find_decisions(candidate=name)
        if one.decision.document["candidate_digest"] == digest
    ]
    if not found:
        return None
    return Decision.from_json(max(found, key=lambda one: one.at).decision.document)


def reasons_in_words(decision: Decision) -> str:
    """Return what the verdict rests on, as the middle of a sentence."""
    if decision.verdict is Verdict.PASS:
        return "all that has to be proven is, and nothing failed"
    if decision.verdict is Verdict.FAIL:
        failed = deciding_rules(decision)[0]
        flips = failed.flips
        return f"on {failed.subject} {flips.lost} items got worse and {flips.gained} better"
    if decision.reasons:
        return "; ".join(REASONS[reason] for reason in decision.reasons)
    return "the data neither prove nor rule out too large a drop"


REMEDIES = {
    "no_baseline": "pawl promote {candidate} --to CHANNEL --first --who NAME --why TEXT, "
    "or gate it against a baseline",
    "task_absent": "pawl eval {candidate} and pawl eval {baseline} on the suite of the policy",
    "fingerprint_differs": "pawl eval {baseline} --suite {suite} under the same engine, "
    "then decide again",
    "nothing_evaluated": "pawl eval {candidate} --suite {suite}, then decide again",
    "no_common_items": "pawl eval {candidate} and pawl eval {baseline} on the same items "
    "of suite {suite}",
    "too_few_items": "ask more items in suite {suite}, or allow a wider margin in a new policy",
    "too_many_missing": "pawl eval {candidate} --suite {suite} asks what is owed; "
    "pawl show {evaluation} counts what failed",
    "too_few_clusters": "ask more independent items in suite {suite}",
    "too_many_truncated": "give the tasks of suite {suite} a larger max_tokens",
    "too_many_unparsed": "look at the answers: pawl show {evaluation}",
    "unresolvable": "ask more items in suite {suite}, or allow a wider margin in a new policy",
    "no_gating_rule": "give the policy a must, guard or veto",
    "screening_never_promotes": "decide under a promotion policy: pawl gate {candidate} "
    "--channel NAME",
}
"""What to do about each reason for which a verdict is open."""


def next_step(
    decision: Decision, digest: str, channels: tuple[Channel, ...], store: LakeStore
) -> str:
    """Return what can be done after a decision."""
    holding = [channel.name for channel in channels if _points_to(channel, digest)]
    if holding:
        return f"nothing: {', '.join(holding)} points to it"
    ours = [channel for channel in channels if channel.policy == decision.policy_digest]
    evaluation = store.load_evaluation(decision.candidate_evaluation).evaluation
    match decision.verdict:
        case Verdict.PASS:
            return after_pass(decision, ours, store)
        case Verdict.FAIL:
            if decision.baseline is None:
                return f"see its answers: pawl show {evaluation.evaluation_id}"
            sides = f"{decision.candidate} {decision.baseline}"
            return f"see which items it lost: pawl compare {sides}"
        case Verdict.INCONCLUSIVE:
            return after_open(decision, ours, evaluation)


def after_pass(decision: Decision, ours: list[Channel], store: LakeStore) -> str:
    """Return what can be done after a PASS.

    Args:
        decision: The PASS.
        ours: The channels under its policy.
        store: The lake.
    """
    candidate = decision.candidate
    for channel in ours:
        if channel.holder is None:
            return f"pawl promote {candidate} --to {channel.name} --first --who NAME --why TEXT"
        if decision.baseline_evaluation is None:
            return f"pawl gate {candidate} --channel {channel.name}"
        baseline = store.load_evaluation(decision.baseline_evaluation).evaluation
        if _points_to(channel, baseline.checkpoint.digest):
            return f"pawl promote {candidate} --to {channel.name}"
    if ours:
        return (
            f"{ours[0].name} does not point to {decision.baseline}: "
            f"decide again: pawl gate {candidate} --channel {ours[0].name}"
        )
    return f"no channel is under this policy: pawl gate {candidate} --channel NAME"


def after_open(decision: Decision, ours: list[Channel], evaluation: Evaluation) -> str:
    """Return what can be done after an INCONCLUSIVE decision."""
    candidate = decision.candidate
    reasons = decision.reasons
    if decision.baseline is None:
        for channel in ours:
            if channel.holder is not None:
                return f"pawl gate {candidate} --channel {channel.name}"
            if decision.limits_hold:
                option = "--first --who NAME --why TEXT"
                return f"pawl promote {candidate} --to {channel.name} {option}"
        if not decision.limits_hold:
            reasons = tuple(reason for reason in reasons if reason != "no_baseline")
    if not reasons:
        return f"ask more items in suite {evaluation.suite}, then decide again"
    return REMEDIES[reasons[0]].format(
        candidate=candidate,
        baseline=decision.baseline or "BASELINE",
        suite=evaluation.suite,
        evaluation=evaluation.evaluation_id,
    )


def _points_to(channel: Channel, digest: str) -> bool:
    return channel.holder is not None and channel.holder.digest == digest
