"""From a channel to a decision: its rules from ``pawl.yaml``, its holder, what counts for both.

``sync_channel`` brings a channel to what ``pawl.yaml`` says; ``decide_for_channel`` judges a
candidate under the channel's policy against its holder. Both may be called again after a kill: what
is in the ledger already is found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evals.errors import InputError
from evals.evaluation import CheckpointRef, Evaluation, EvaluationState, suite_fingerprint
from evals.gate import Decision
from evals.policy import Policy, find_policy
from evals.suite import Suite, load_suite
from pipelines.comparing import judge_stored, registered, store_decision
from storage.channels import Channel
from storage.naming import Named
from storage.pairing import evaluations_of
from storage.project import PROJECT_FILE, ChannelSection, Project
from storage.store import LakeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRules:
    """A channel and what decides on it, as ``pawl.yaml`` has it."""

    channel: Channel
    policy: Policy
    suite: Suite
    suite_option: str
    """What ``pawl eval --suite`` takes to ask the suite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSides:
    """The evaluations that a channel's decision rests on."""

    candidate: Evaluation
    baseline: Evaluation | None
    """None where the channel has no holder, or the candidate is it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSummary:
    """A channel in a line."""

    name: str
    policy: str
    """``name@version``."""
    suite: str
    holder: str | None
    """``RUN@STEP``."""
    since: str | None
    """When it came to point there, UTC, ISO 8601."""


def sync_channel(name: str, project: Project, store: LakeStore, who: str) -> Channel:
    """Return a channel, made or brought to the policy and suite that ``pawl.yaml`` says.

    A change is a ledger entry; where there is none nothing is written.

    Raises:
        InputError: ``pawl.yaml`` has no such channel, or its policy or suite is wrong.
    """
    return read_rules(name, project, store, who).channel


def read_rules(name: str, project: Project, store: LakeStore, who: str) -> ChannelRules:
    """Return what ``sync_channel`` returns, with the policy and the suite themselves.

    Raises:
        InputError: ``pawl.yaml`` has no such channel, or its policy or suite is wrong.
    """
    section = find_section(name, project)
    policy = find_policy(project.named_file(section.policy))
    suite = load_suite(project.named_file(section.suite))
    store.set_policy(
        name, policy=policy.digest, document=policy.to_json(), suite=suite.name, who=who
    )
    return ChannelRules(
        channel=store.load_channel(name),
        policy=policy,
        suite=suite,
        suite_option=project.named_file(section.suite),
    )


def find_section(name: str, project: Project) -> ChannelSection:
    """Return a channel's section of ``pawl.yaml``.

    Raises:
        InputError: There is none.
    """
    section = project.file.channels.get(name)
    if section is None:
        known = ", ".join(project.file.channels) or "none"
        raise InputError(
            f"no channel {name[:80]!r} (there are: {known})",
            f"{PROJECT_FILE}: channels",
            "add it there with its policy and suite",
        )
    return section


def decide_for_channel(
    name: str, candidate: str, project: Project, store: LakeStore, *, who: str
) -> Decision:
    """Return the decision on a candidate under a channel's policy against its holder, stored.

    Where the channel has no holder, the candidate is judged alone: rules with a margin are open
    then, ceilings and floors are not. A decision that is there already on the same evidence is
    returned and no second one stored; of the holder itself the one that made it the holder.

    Args:
        name: The channel.
        candidate: ``RUN@STEP``, ``channel:NAME`` or a folder.
        project: Its ``pawl.yaml`` names policy and suite.
        store: The lake.
        who: For the ledger.

    Raises:
        InputError: Candidate or holder was not evaluated on the channel's suite, or the policy
            does not fit the suite.
        ComparisonRefused: The evaluations must not be paired.
    """
    rules = read_rules(name, project, store, who)
    checkpoint = registered(candidate, store).ref
    if holds(rules.channel, checkpoint):
        return holder_decision(rules.channel, store)
    return decide_under(rules, checkpoint, store, who)


def decide_under(
    rules: ChannelRules, checkpoint: CheckpointRef, store: LakeStore, who: str
) -> Decision:
    """Return the decision on a checkpoint that is not the channel's holder, stored."""
    sides = choose_channel_sides(rules, checkpoint, store)
    decision = judge_stored(rules.policy, sides.candidate, sides.baseline, store)
    known = find_decisions_on(sides, store, rules.channel.policy)
    if known and evidence(known[-1]) == evidence(decision):
        return known[-1]
    store_decision(decision, store, who, channel=rules.channel.name)
    return decision


def holds(channel: Channel, checkpoint: CheckpointRef) -> bool:
    """Return whether a channel points to these weights."""
    return channel.holder is not None and channel.holder.digest == checkpoint.digest


def holder_decision(channel: Channel, store: LakeStore) -> Decision:
    """Return the decision that the holder's promotion rests on."""
    last = store.promotions(channel.name)[-1]
    return Decision.from_json(store.load_decision(last.decision).decision.document)


def evidence(decision: Decision) -> dict[str, object]:
    """Return a decision without what differs when the same is judged once more."""
    document = decision.to_json()
    return {name: document[name] for name in document.keys() - {"decision", "snapshot", "versions"}}


def choose_channel_sides(
    rules: ChannelRules, checkpoint: CheckpointRef, store: LakeStore
) -> ChannelSides:
    """Return the evaluations that decide on a checkpoint for a channel.

    The candidate's is its newest complete one on the suite as ``pawl.yaml`` has it; A/A repeats are
    not among them, since each would be one more chance to pass. The holder's is the one that is
    most like it: the same suite, complete, the same engine.

    Raises:
        InputError: One of them was not evaluated on the suite.
    """
    ours = [
        one
        for one in evaluations_of(_named(checkpoint), rules.suite.name, store)
        if one.attempt == 0
        and one.suite_fingerprint == suite_fingerprint(rules.suite.fingerprint, one.tasks)
    ]
    if not ours:
        raise InputError(
            f"{checkpoint.name} was not evaluated on suite {rules.suite.name} as it is",
            f"channel {rules.channel.name}",
            f"run `pawl eval {checkpoint.name} --suite {rules.suite_option}`",
        )
    candidate = max(ours, key=lambda one: (is_complete(one), ours.index(one)))
    holder = rules.channel.holder
    if holder is None or holder.digest == checkpoint.digest:
        return ChannelSides(candidate=candidate, baseline=None)
    theirs = evaluations_of(Named(name=holder.name, digest=holder.digest), rules.suite.name, store)
    return ChannelSides(candidate=candidate, baseline=most_alike(candidate, theirs))


def most_alike(candidate: Evaluation, theirs: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of another checkpoint that is best compared with the candidate's."""

    def likeness(index: int) -> tuple[bool, bool, bool, int, int]:
        one = theirs[index]
        return (
            one.suite_fingerprint == candidate.suite_fingerprint,
            is_complete(one),
            one.engine == candidate.engine,
            -one.attempt,
            index,
        )

    return theirs[max(range(len(theirs)), key=likeness)]


def holder_is_owed(channel: Channel, evaluation: Evaluation, store: LakeStore) -> bool:
    """Return whether the holder was not wholly evaluated as a candidate was: suite and engine.

    Until it is, decisions on that candidate are INCONCLUSIVE.
    """
    if channel.holder is None or channel.holder.digest == evaluation.checkpoint.digest:
        return False
    return not any(
        stored.evaluation.suite_fingerprint == evaluation.suite_fingerprint
        and stored.evaluation.engine == evaluation.engine
        for stored in store.find_evaluations(
            checkpoint_digest=channel.holder.digest,
            suite=evaluation.suite,
            state=EvaluationState.COMPLETE,
        )
    )


def find_decisions_on(sides: ChannelSides, store: LakeStore, policy: str) -> list[Decision]:
    """Return the decisions under a policy, by digest, on just these evaluations, oldest first."""
    found = store.find_decisions(candidate=sides.candidate.checkpoint.name, policy=policy)
    decisions = [Decision.from_json(stored.decision.document) for stored in found]
    baseline = sides.baseline.evaluation_id if sides.baseline else None
    return [
        one
        for one in decisions
        if one.candidate_evaluation == sides.candidate.evaluation_id
        and one.baseline_evaluation == baseline
    ]


def summarize_channels(store: LakeStore) -> tuple[ChannelSummary, ...]:
    """Return all channels by name, each in a line."""
    since = {one.channel: one.at for one in store.promotions()}
    return tuple(
        ChannelSummary(
            name=channel.name,
            policy=channel.policy_label,
            suite=channel.suite,
            holder=channel.holder.name if channel.holder else None,
            since=since.get(channel.name),
        )
        for channel in store.channels()
    )


def is_complete(evaluation: Evaluation) -> bool:
    """Return whether all that an evaluation asks is answered and scored."""
    return evaluation.state is EvaluationState.COMPLETE


def _named(checkpoint: CheckpointRef) -> Named:
    return Named(name=checkpoint.name, digest=checkpoint.digest)
