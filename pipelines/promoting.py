"""What moves a channel: a PASS against its holder, or a named person's word.

``promote`` takes a PASS, ``promote_first`` and ``roll_back`` a person's word; ``first_by_config``
takes the word that ``pawl.yaml`` has. All of them may be called again after a kill: a channel that
points there already is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from evals.errors import InputError, PromotionRefused
from evals.evaluation import CheckpointRef
from evals.gate import Decision, RuleDecision, rule_in_words
from evals.policy import PolicyKind
from evals.scoring import WITH_SCORE
from evals.stats.verdict import Role, Verdict
from pipelines.comparing import registered
from pipelines.deciding import (
    ChannelRules,
    choose_channel_sides,
    decide_under,
    find_decisions_on,
    find_section,
    is_complete,
    read_rules,
)
from storage.channels import Channel, Ground, Holder, Move
from storage.ledger import LedgerEntry
from storage.project import PROJECT_FILE, Project
from storage.store import LakeStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """What became of a wish to move a channel."""

    channel: str
    holder: Holder
    """Whom the channel points to."""
    before: Holder | None
    entry: LedgerEntry | None
    """None: it pointed there already, and nothing was changed."""


def promote(
    name: str, candidate: str, project: Project, store: LakeStore, *, who: str, why: str = ""
) -> Promoted:
    """Move a channel to a candidate that PASSed under its policy against its holder.

    Args:
        name: The channel.
        candidate: ``RUN@STEP``, ``channel:NAME`` or a folder.
        project: Its ``pawl.yaml`` names policy and suite.
        store: The lake.
        who: For the ledger.
        why: Needed only where the candidate held the channel before.

    Raises:
        PromotionRefused: A condition does not hold; says which.
        InputError: Something is not known or was not evaluated.
    """
    rules = read_rules(name, project, store, who)
    channel, checkpoint = rules.channel, registered(candidate, store).ref
    if (unmoved := find_unmoved(channel, checkpoint)) is not None:
        return unmoved
    refuse_screening(rules)
    if channel.holder is None:
        refuse(
            channel,
            "it has no holder yet that a PASS could be against",
            f"pawl promote {checkpoint.name} --to {name} --first --who NAME --why TEXT",
        )
    decision = find_pass(rules, channel.holder, checkpoint, store)
    earlier = [one for one in store.promotions(name) if one.holder.digest == checkpoint.digest]
    if earlier and not why.strip():
        refuse(
            channel,
            f"{checkpoint.name} held it before (ledger entry {earlier[-1].seq}) and was replaced",
            "say why it shall be it again: --why TEXT",
        )
    return move(channel, checkpoint, Ground.PASS, decision.decision, store, who=who, why=why)


def find_pass(
    rules: ChannelRules, holder: Holder, checkpoint: CheckpointRef, store: LakeStore
) -> Decision:
    """Return the newest decision on a checkpoint against the holder, where it is a PASS.

    Raises:
        PromotionRefused: There is none, or it is no PASS.
        InputError: A side was not evaluated.
    """
    channel = rules.channel
    again = f"decide again: pawl gate {checkpoint.name} --channel {channel.name}"
    sides = choose_channel_sides(rules, checkpoint, store)
    found = [
        Decision.from_json(stored.decision.document)
        for stored in store.find_decisions(candidate=sides.candidate.checkpoint.name)
    ]
    if found and not any(one.candidate_digest == checkpoint.digest for one in found):
        other = found[-1].candidate_digest[:12]
        refuse(channel, f"{checkpoint.name} was decided on with other weights ({other})", again)
    under = [one for one in found if one.policy_digest == channel.policy]
    if not under:
        others = sorted({f"{one.policy} ({one.policy_digest[:12]})" for one in found})
        only = f", only under {', '.join(others)}" if others else ""
        policy = f"{rules.policy.label} ({channel.policy[:12]})"
        refuse(channel, f"no decision on {checkpoint.name} under its policy {policy}{only}", again)
    of_holder = {
        stored.evaluation.evaluation_id
        for stored in store.find_evaluations(checkpoint_digest=holder.digest)
    }
    if not any(one.baseline_evaluation in of_holder for one in under):
        before = under[-1].baseline or "no baseline"
        refuse(channel, f"decided against {before}, while it points to {holder.name} now", again)
    decisions = find_decisions_on(sides, store, channel.policy)
    if not decisions:
        refuse(
            channel,
            f"the decision on {checkpoint.name} rests on other evaluations than those that count: "
            f"the newest whole ones on suite {rules.suite.name}",
            again,
        )
    newest = decisions[-1]
    if newest.verdict is not Verdict.PASS:
        refuse(channel, f"no PASS: {newest.sentence}", f"see pawl why {checkpoint.name}")
    return newest


def promote_first(
    name: str, candidate: str, project: Project, store: LakeStore, *, who: str, why: str
) -> Promoted:
    """Move a channel to its first holder, on a named person's word.

    The candidate is decided on alone under the channel's policy, if it was not yet; its ceilings
    and floors have to PASS, and it has to have answered something that each deciding rule is about.

    Raises:
        PromotionRefused: A condition does not hold; says which.
        InputError: Something is not known or was not evaluated, or who or why is not said.
    """
    need_person(who, why, "a first promotion")
    rules = read_rules(name, project, store, who)
    channel, checkpoint = rules.channel, registered(candidate, store).ref
    if (unmoved := find_unmoved(channel, checkpoint)) is not None:
        return unmoved
    refuse_screening(rules)
    if channel.holder is not None:
        refuse(
            channel,
            f"it has a holder, {channel.holder.name}: only a PASS against it moves it",
            f"pawl gate {checkpoint.name} --channel {name}, then pawl promote without --first",
        )
    decision = decide_under(rules, checkpoint, store, who)
    refuse_unfit_first(rules, decision, store)
    return move(channel, checkpoint, Ground.FIRST, decision.decision, store, who=who, why=why)


def refuse_unfit_first(rules: ChannelRules, decision: Decision, store: LakeStore) -> None:
    """Raise ``PromotionRefused`` where a lone candidate is not fit to be the first holder."""
    evaluation = store.load_evaluation(decision.candidate_evaluation).evaluation
    if not is_complete(evaluation):
        refuse(
            rules.channel,
            f"the evaluation of {decision.candidate} is {evaluation.state.value}, not complete",
            f"pawl eval {decision.candidate} --suite {rules.suite_option}",
        )
    deciding = [rule for rule in decision.rules if rule.role is not Role.REPORT]
    empty = [rule.name for rule in deciding if not was_answered(rule)]
    if empty or not deciding:
        refuse(
            rules.channel,
            f"{decision.candidate} has no scored answer for {', '.join(empty) or 'any rule'}",
            f"pawl eval {decision.candidate} --suite {rules.suite_option}",
        )
    if not decision.limits_hold:
        unproven = [
            rule_in_words(rule)
            for rule in deciding
            if rule.margin is None and rule.verdict is not Verdict.PASS
        ]
        refuse(
            rules.channel,
            f"a ceiling or floor is not proven: {'; '.join(unproven)}",
            f"name another first holder; pawl why {decision.candidate} tells more",
        )


def was_answered(rule: RuleDecision) -> bool:
    """Return whether any of the candidate's answers that a rule is about has a score."""
    return any(rule.outcomes.get(outcome.value, 0) for outcome in WITH_SCORE)


def first_by_config(
    name: str, candidate: str, project: Project, store: LakeStore
) -> Promoted | None:
    """Move a channel to the first holder that ``pawl.yaml`` names, if the candidate is that one.

    Returns:
        None where ``pawl.yaml`` names another or none, or the channel has a holder.

    Raises:
        PromotionRefused: The candidate is the named one and a condition does not hold.
        InputError: It was not evaluated.
    """
    first = find_section(name, project).first
    if first is None or first.checkpoint != candidate:
        return None
    if any(one.name == name and one.holder is not None for one in store.channels()):
        return None
    return promote_first(name, candidate, project, store, who=first.who, why=first.why)


def roll_back(name: str, candidate: str, store: LakeStore, *, who: str, why: str) -> Promoted:
    """Move a channel back to one of its earlier holders, on a named person's word.

    Raises:
        PromotionRefused: It never was the channel's holder.
        InputError: Something is not known, or who or why is not said.
    """
    need_person(who, why, "a rollback")
    channel, checkpoint = store.load_channel(name), registered(candidate, store).ref
    if (unmoved := find_unmoved(channel, checkpoint)) is not None:
        return unmoved
    held = {one.holder.digest: one for one in store.promotions(name)}
    if checkpoint.digest not in held:
        earlier = dict.fromkeys(one.holder.name for one in held.values())
        refuse(
            channel,
            f"{checkpoint.name} never was its holder",
            f"earlier holders: {', '.join(earlier) or 'none'}",
        )
    before = held[checkpoint.digest]
    return move(channel, checkpoint, Ground.ROLLBACK, before.decision, store, who=who, why=why)


def move(
    channel: Channel,
    checkpoint: CheckpointRef,
    ground: Ground,
    decision: str,
    store: LakeStore,
    *,
    who: str,
    why: str,
) -> Promoted:
    """Move a channel, unless somebody else changed it since it was read.

    Raises:
        PromotionRefused: Somebody did.
    """
    to = Holder(run=checkpoint.run, step=checkpoint.step, digest=checkpoint.digest)
    entry = store.move_channel(
        Move(channel=channel, to=to, ground=ground, decision=decision, why=why.strip()), who
    )
    return Promoted(channel=channel.name, holder=to, before=channel.holder, entry=entry)


def find_unmoved(channel: Channel, checkpoint: CheckpointRef) -> Promoted | None:
    """Return that nothing is to be done where a channel points to these weights already."""
    holder = channel.holder
    if holder is None or holder.digest != checkpoint.digest:
        return None
    return Promoted(channel=channel.name, holder=holder, before=holder, entry=None)


def need_person(who: str, why: str, what: str) -> None:
    """Raise ``InputError`` where a person's word lacks the name or the reason."""
    lacking = [option for option, text in (("--who", who), ("--why", why)) if not text.strip()]
    if lacking:
        raise InputError(
            f"{what} is on a named person's word", " and ".join(lacking), "say who and why"
        )


def refuse_screening(rules: ChannelRules) -> None:
    """Raise ``PromotionRefused`` where a channel's policy can't promote."""
    if rules.policy.kind is PolicyKind.SCREENING:
        refuse(
            rules.channel,
            f"its policy {rules.policy.label} is a screening policy, which never promotes",
            f"name a policy of kind promotion in {PROJECT_FILE}",
        )


def refuse(channel: Channel, what: str, fix: str) -> NoReturn:
    """Raise ``PromotionRefused``."""
    raise PromotionRefused(what, f"channel {channel.name} is not moved", fix)
