"""Worked statistics cases through the product's own functions: what ``pawl stat FILE.json`` runs.

A case is ``{"id", "kind", "input", "config"}``; the result of a kind has the keys by which its
expected values are written, and sometimes more for comparison. Kinds that are not built are
named, never guessed at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evals.compare import check_scores, check_unique
from evals.errors import ComparisonRefused, InputError
from evals.identity import canonical_json
from evals.stats.arrays import FloatArray
from evals.stats.bounded_mean import BoundedMean
from evals.stats.clustered_mean import MIN_CLUSTERS, ClusteredMean
from evals.stats.mcnemar import mcnemar_exact
from evals.stats.multiplicity import Correction, adjust
from evals.stats.paired_binary import PairedBinary, newcombe_interval
from evals.stats.paired_binary_exact import PairedBinaryExact
from evals.stats.planning import power_at_no_change, sample_size, standard_error
from evals.stats.rate import Rate, min_attempts
from evals.stats.sample import Sample
from evals.stats.stratified_mean import StratifiedMean
from evals.stats.unpaired_binary import UnpairedBinary
from evals.stats.verdict import Claim, Role, Tier, Verdict, judge, verdict_of

Result = dict[str, Any]

CORRECTIONS = {
    **{one.value: one for one in Correction},
    "fdr_bh": Correction.BH,
    "simes-hochberg": Correction.HOCHBERG,
}
"""Names that cases use, statsmodels' own among them."""


OUT_OF_RANGE = (ValueError, ArithmeticError, TypeError, MemoryError)
"""What counts and rates that no experiment has lead to; a result that is not finite is one too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatResults:
    """Results by case id, and the kinds that no function is built for."""

    results: dict[str, Result]
    unsupported: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return ``{"results": …, "unsupported": …}`` as JSON types."""
        return {"results": self.results, "unsupported": list(self.unsupported)}


def run_cases(document: Mapping[str, Any]) -> StatResults:
    """Return the result of every case in ``document``.

    Raises:
        InputError: The document has no list of cases, or a case lacks a field or has one of the
            wrong type; names the case and the field.
    """
    cases = document.get("cases") if isinstance(document, Mapping) else None
    if not isinstance(cases, list):
        raise InputError(
            "there is no list of cases", "cases", 'give {"cases": [{"id", "kind", …}]}'
        )
    results: dict[str, Result] = {}
    unsupported: list[str] = []
    for position, raw in enumerate(cases):
        case = _case(raw, position)
        if case.id in results:
            raise InputError("two cases have this id", f"case {case.id}: id", "ids are unique")
        if case.kind not in KINDS:
            unsupported.append(case.kind)
            continue
        try:
            result = KINDS[case.kind](case)
            canonical_json(result)
        except OUT_OF_RANGE as error:
            raise InputError(
                f"values out of range ({error})", f"case {case.id}: input", "give values in range"
            ) from None
        results[case.id] = result
    return StatResults(results=results, unsupported=tuple(dict.fromkeys(unsupported)))


class _Case:
    """One case; reads its fields by name and type."""

    def __init__(self, identity: str, kind: str, fields: Mapping[str, Any]) -> None:
        self.id = identity
        self.kind = kind
        self._fields = fields

    def has(self, *names: str) -> bool:
        """Return whether all fields are there."""
        return all(name in self._fields for name in names)

    def raw(self, name: str) -> Any:
        """Return a field as it is.

        Raises:
            InputError: It is not there.
        """
        if name not in self._fields:
            raise self.error(name, f"`{name}` is missing", "give it under input or config")
        return self._fields[name]

    def number(self, name: str, default: float | None = None) -> float:
        """Return a finite number."""
        if default is not None and name not in self._fields:
            return default
        value = self.raw(name)
        if not _is_number(value) or not math.isfinite(value):
            raise self.error(name, f"`{value}` is not a number")
        return float(value)

    def share(self, name: str, default: float | None = None) -> float:
        """Return a number from 0 to 1."""
        value = self.number(name, default)
        if not 0 <= value <= 1:
            raise self.error(name, f"{value:g} is not between 0 and 1")
        return value

    def count(self, name: str, default: int | None = None) -> int:
        """Return a whole number from 0."""
        value = self.number(name, default)
        if value < 0 or value != int(value):
            raise self.error(name, f"{value:g} is not a count")
        return int(value)

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.raw(name)
        if not isinstance(value, str):
            raise self.error(name, f"`{value}` is not a text")
        return value

    def items(self, name: str) -> list[Any]:
        """Return a list."""
        value = self.raw(name)
        if not isinstance(value, list):
            raise self.error(name, "is not a list")
        return value

    def numbers(self, name: str, values: Sequence[Any] | None = None) -> FloatArray:
        """Return a list of numbers; null and NaN are missing ones."""
        found = self.items(name) if values is None else values
        if not all(value is None or _is_number(value) for value in found):
            raise self.error(name, "holds something that is not a number")
        return np.array([math.nan if value is None else value for value in found], dtype=np.float64)

    def complete(self, name: str, values: Sequence[Any] | None = None) -> FloatArray:
        """Return a list of numbers, none missing."""
        found = self.numbers(name, values)
        if not np.isfinite(found).all():
            raise self.error(name, "a number is missing or not finite")
        return found

    def error(self, name: str, what: str, fix: str = "") -> InputError:
        """Return an error about one field."""
        return InputError(what, f"case {self.id}: {name}", fix)


def _case(raw: object, position: int) -> _Case:
    where = f"cases[{position}]"
    if not isinstance(raw, Mapping):
        raise InputError("a case is an object", where)
    identity, kind = raw.get("id"), raw.get("kind")
    if not isinstance(identity, str) or not isinstance(kind, str):
        raise InputError("`id` and `kind` have to be texts", where)
    given, config = raw.get("input", {}), raw.get("config", {})
    if not isinstance(given, Mapping) or not isinstance(config, Mapping):
        raise InputError("`input` and `config` have to be objects", f"case {identity}")
    return _Case(identity, kind, {**config, **given})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """What a margin rule needs besides data."""

    margin: float
    tolerate: float
    alpha_pass: float
    alpha_fail: float

    def p_values(self, worst: Sample, best: Sample) -> tuple[float, float]:
        """Return p_pass on the first sample and p_fail on the second."""
        return worst.p_above(-self.margin), best.p_below(-self.tolerate)

    def verdict(self, p_pass: float, p_fail: float) -> str:
        """Return the verdict of one rule alone."""
        return verdict_of(p_pass, p_fail, self.alpha_pass, self.alpha_fail).value


def _levels(case: _Case) -> _Levels:
    return _Levels(
        margin=case.share("margin"),
        tolerate=case.share("tolerate", 0.0),
        alpha_pass=case.share("alpha_pass", 0.05),
        alpha_fail=case.share("alpha_fail", 0.05),
    )


def _decided(case: _Case, worst: Sample, best: Sample) -> Result:
    levels = _levels(case)
    p_pass, p_fail = levels.p_values(worst, best)
    return {"p_pass": p_pass, "p_fail": p_fail, "verdict": levels.verdict(p_pass, p_fail)}


def _paired_binary_score(case: _Case) -> Result:
    counts = PairedBinary(
        baseline_only=case.count("baseline_only"),
        candidate_only=case.count("candidate_only"),
        n=case.count("n"),
    )
    levels = _levels(case)
    return {
        **_decided(case, counts, counts),
        "diff": counts.value,
        "z_pass": counts.z(-levels.margin),
        "z_fail": counts.z(-levels.tolerate),
        "ci90": list(counts.score_limits(0.9)),
    }


def _paired_binary_exact(case: _Case) -> Result:
    counts = PairedBinaryExact(
        baseline_only=case.count("baseline_only"),
        candidate_only=case.count("candidate_only"),
        n=case.count("n"),
    )
    conditional = mcnemar_exact(counts.baseline_only, counts.candidate_only)
    return {
        **_decided(case, counts, counts),
        "diff": counts.value,
        "p_fail_conditional_mcnemar": conditional.p_regression_one_sided,
    }


def _paired_binary_ci(case: _Case) -> Result:
    losses, gains = case.count("baseline_only"), case.count("candidate_only")
    level = case.share("conf", 0.95)
    agreeing = case.has("both", "neither")
    n = losses + gains + case.count("both") + case.count("neither") if agreeing else case.count("n")
    if case.count("n", n) != n:
        raise case.error("n", f"{case.count('n')} is not the sum of the four counts, {n}")
    counts = PairedBinary(baseline_only=losses, candidate_only=gains, n=n)
    result: Result = {"diff": counts.value, "score_ci": list(counts.score_limits(level))}
    if agreeing:
        result["newcombe_ci"] = list(
            newcombe_interval(
                both=case.count("both"),
                baseline_only=losses,
                candidate_only=gains,
                neither=case.count("neither"),
                level=level,
            )
        )
    return result


def _mcnemar_exact(case: _Case) -> Result:
    return asdict(mcnemar_exact(case.count("baseline_only"), case.count("candidate_only")))


def _differences(case: _Case) -> tuple[FloatArray, float]:
    """Return differences with NaN for missing ones, and the share that is missing."""
    values = case.numbers("d")
    if (np.abs(values) > 1).any():
        raise case.error("d", "a difference of scores lies between -1 and 1")
    return values, float(np.isnan(values).mean()) if len(values) else 0.0


def _mean_of(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def _paired_scores(case: _Case) -> Result:
    values, missing = _differences(case)
    most = case.share("max_loss", 1.0)
    worst, best = (
        BoundedMean(values=np.where(np.isnan(values), bound, values), lowest=-most, highest=most)
        for bound in (-most, most)
    )
    result = {
        **_decided(case, worst, best),
        "n": int(np.count_nonzero(~np.isnan(values))),
        "diff": _mean_of(values),
    }
    if missing > case.share("max_missing", 0.02):
        result |= {"verdict": Verdict.INCONCLUSIVE.value, "reason": "too_many_missing"}
    return result


def _paired_clustered(case: _Case) -> Result:
    values, missing = _differences(case)
    names = [str(name) for name in case.items("cluster")]
    if len(names) != len(values):
        raise case.error("cluster", "needs one entry for each difference")
    _, clusters = np.unique(np.array(names, dtype=object), return_inverse=True)
    most = case.share("max_loss", 1.0)
    worst, best = (
        ClusteredMean(
            values=np.where(np.isnan(values), bound, values),
            clusters=clusters,
            lowest=-most,
            highest=most,
        )
        for bound in (-most, most)
    )
    known = ~np.isnan(values)
    error = ClusteredMean(values=values[known], clusters=clusters[known]).error()
    result = {
        **_decided(case, worst, best),
        "n": int(known.sum()),
        "G": error.clusters,
        "diff": _mean_of(values),
        "se_cr1": error.se_cr1 if math.isfinite(error.se_cr1) else None,
        "se_cr2": error.se if math.isfinite(error.se) else None,
        "df_iid": error.df_iid,
        "df_cluster": error.df_cluster,
    }
    if error.clusters < case.count("min_clusters", MIN_CLUSTERS):
        result |= {"verdict": Verdict.INCONCLUSIVE.value, "reason": "too_few_clusters"}
    elif missing > case.share("max_missing", 0.02):
        result |= {"verdict": Verdict.INCONCLUSIVE.value, "reason": "too_many_missing"}
    return result


def _stratified_macro(case: _Case) -> Result:
    strata = [case.complete("strata", stratum) for stratum in _lists(case, "strata")]
    equal = [1 / len(strata)] * len(strata)
    weights = case.complete("weights") if case.has("weights") else np.array(equal)
    sample = StratifiedMean(strata=strata, weights=weights)
    se, df = sample.error()
    return {**_decided(case, sample, sample), "diff": sample.value, "se": se, "df": df}


def _lists(case: _Case, name: str) -> list[list[Any]]:
    found = case.items(name)
    if not all(isinstance(one, list) for one in found):
        raise case.error(name, "holds something that is not a list")
    return found


def _ceiling_exact(case: _Case) -> Result:
    rate = Rate(events=case.count("events"), n=case.count("n"))
    ceiling, alpha = case.share("ceiling"), case.share("alpha", 0.05)
    p_pass, p_fail = rate.p_below(ceiling), rate.p_above(ceiling)
    return {
        "upper": rate.upper(alpha),
        "lower": rate.lower(alpha),
        "p_pass": p_pass,
        "p_fail": p_fail,
        "verdict": verdict_of(p_pass, p_fail, alpha, alpha).value,
    }


def _ceiling_min_n(case: _Case) -> Result:
    ceiling, alpha = case.share("ceiling"), case.share("alpha", 0.05)
    if not (0 < ceiling < 1 and 0 < alpha < 1):
        raise case.error("ceiling", "ceiling and alpha lie strictly between 0 and 1")
    events = [int(count) for count in case.complete("events")]
    return {"min_n": [min_attempts(ceiling, alpha, count) for count in events]}


def _multiplicity(case: _Case) -> Result:
    method = case.text("method")
    if method not in CORRECTIONS:
        raise case.error("method", f"`{method}` is not known", f"one of {', '.join(CORRECTIONS)}")
    adjusted = adjust(case.complete("p"), CORRECTIONS[method])
    alpha = case.share("alpha", 0.05)
    return {"adjusted": adjusted.tolist(), "reject": [bool(p <= alpha) for p in adjusted]}


def _overall_verdict(case: _Case) -> Result:
    claims = [_claim(case, raw) for raw in case.items("rules")]
    alpha = case.share("alpha_fail", 0.05)
    alpha_pass = case.share("alpha_pass", 0.05)
    found = judge(
        claims,
        dict.fromkeys(Tier, alpha_pass),
        {tier: case.share(f"alpha_fail_{tier.value}", alpha) for tier in Tier},
    )
    return {
        "per_rule": [rule.verdict.value for rule in found.rules],
        "overall": found.overall.value,
        "p_fail_adjusted": [rule.p_fail_adjusted for rule in found.rules],
        "suspects": [index for index, rule in enumerate(found.rules) if rule.suspect],
    }


def _claim(case: _Case, raw: object) -> Claim:
    if not isinstance(raw, Mapping):
        raise case.error("rules", "holds something that is not an object")
    rule = _Case(case.id, case.kind, raw)
    tier, role = rule.text("tier"), rule.text("role")
    if tier not in set(Tier) or role not in set(Role):
        raise case.error("rules", f"tier `{tier}` or role `{role}` is not known")
    return Claim(
        tier=Tier(tier), role=Role(role), p_pass=rule.share("p_pass"), p_fail=rule.share("p_fail")
    )


def _missing_bounds(case: _Case) -> Result:
    losses, gains = case.count("baseline_only"), case.count("candidate_only")
    n = case.count("n_complete")
    gone_right = case.count("candidate_missing_baseline_right", 0)
    gone_wrong = case.count("candidate_missing_baseline_wrong", 0)
    lost_right = case.count("baseline_missing_candidate_right", 0)
    lost_wrong = case.count("baseline_missing_candidate_wrong", 0)
    nowhere = case.count("both_missing", 0)
    missing = gone_right + gone_wrong + lost_right + lost_wrong + nowhere
    complete = PairedBinary(baseline_only=losses, candidate_only=gains, n=n)
    worst = PairedBinary(
        baseline_only=losses + gone_right + lost_wrong + nowhere,
        candidate_only=gains,
        n=n + missing,
    )
    best = PairedBinary(
        baseline_only=losses,
        candidate_only=gains + gone_wrong + lost_right + nowhere,
        n=n + missing,
    )
    levels = _levels(case)
    result = _decided(case, worst, best)
    p_pass, p_fail = levels.p_values(complete, complete)
    if missing > case.share("max_missing", 0.02) * (n + missing):
        result |= {"verdict": Verdict.INCONCLUSIVE.value, "reason": "too_many_missing"}
    return {
        **result,
        "p_pass_complete": p_pass,
        "p_fail_complete": p_fail,
        "p_pass_worst": result["p_pass"],
        "p_fail_best": result["p_fail"],
    }


def _improvement(case: _Case) -> Result:
    counts = PairedBinary(
        baseline_only=case.count("baseline_only"),
        candidate_only=case.count("candidate_only"),
        n=case.count("n"),
    )
    p = counts.p_above(case.share("gain", 0.0))
    return {"p_improve": p, "claim": p <= case.share("alpha", 0.05)}


def _unpaired_binary_score(case: _Case) -> Result:
    counts = UnpairedBinary(
        candidate_right=case.count("candidate_right"),
        candidate_n=case.count("candidate_n"),
        baseline_right=case.count("baseline_right"),
        baseline_n=case.count("baseline_n"),
    )
    levels = _levels(case)
    p_pass, p_fail = counts.p_above(-levels.margin), counts.p_below(-levels.tolerate)
    return {
        "diff": counts.value,
        "z_pass": counts.z(-levels.margin),
        "z_fail": counts.z(-levels.tolerate),
        "p_pass": p_pass,
        "p_fail": p_fail,
        "verdict": levels.verdict(p_pass, p_fail),
    }


def _sample_size(case: _Case) -> Result:
    return {
        "n": sample_size(
            margin=case.share("margin"),
            discordance=case.share("discordance"),
            alpha=case.share("alpha", 0.05),
            power=case.share("power", 0.8),
            true_difference=case.number("true_diff", 0.0),
            design_effect=case.number("design_effect", 1.0),
        )
    }


def _power_at_no_change(case: _Case) -> Result:
    return asdict(
        power_at_no_change(
            case.count("n"),
            case.share("discordance"),
            case.share("margin"),
            case.share("alpha", 0.05),
        )
    )


def _finite_population(case: _Case) -> Result:
    n, population = case.count("n"), case.count("N")
    if not 1 <= n <= population:
        raise case.error("n", f"{n} of {population} items can't be asked")
    spread = case.number("sd_diff")
    return {
        "se_population": standard_error(n, spread),
        "se_benchmark": standard_error(n, spread, population),
    }


def _data_guard(case: _Case) -> Result:
    """Return the first thing that keeps data from a verdict: an error, or an open verdict."""
    try:
        _refuse(case)
    except ComparisonRefused as refused:
        return {"error": refused.code}
    for reason, holds in GUARDS.items():
        if holds(case):
            return {"verdict": Verdict.INCONCLUSIVE.value, "reason": reason}
    return {"verdict": None, "reason": None}


def _refuse(case: _Case) -> None:
    """Raise ComparisonRefused for input that must not be paired."""
    for name in ("scores", "baseline_scores", "candidate_scores"):
        if case.has(name):
            check_scores(case.numbers(name), name)
    for name in ("item_ids", "baseline_ids", "candidate_ids"):
        if case.has(name):
            check_unique([str(one) for one in case.items(name)], name)
    for field, code in (("metric", "metric_differs"), ("prompt_version", "prompt_version_differs")):
        if _sides_differ(case, field):
            raise ComparisonRefused(f"{field} differs", case.id, code=code)


def _sides_differ(case: _Case, field: str) -> bool:
    names = f"baseline_{field}", f"candidate_{field}"
    return case.has(*names) and case.raw(names[0]) != case.raw(names[1])


def _fingerprints_differ(case: _Case) -> bool:
    for field in ("fingerprint", "engine_fingerprint"):
        if _sides_differ(case, field):
            old, new = case.raw(f"baseline_{field}"), case.raw(f"candidate_{field}")
            if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
                return True
            allowed = case.items("allow_differences") if case.has("allow_differences") else []
            names = {name for name in {*old, *new} if old.get(name) != new.get(name)}
            return bool(names - set(allowed))
    return False


def _nothing_evaluated(case: _Case) -> bool:
    lists = [name for name in ("scores", "candidate_scores", "candidate_ids") if case.has(name)]
    if any(len(case.items(name)) == 0 for name in lists):
        return not case.has("baseline_ids")
    return any(case.has(name) and case.count(name) == 0 for name in ("n", "n_complete"))


def _no_common_items(case: _Case) -> bool:
    if not case.has("baseline_ids", "candidate_ids"):
        return False
    sides = (case.items("baseline_ids"), case.items("candidate_ids"))
    return not set(map(str, sides[0])) & set(map(str, sides[1]))


def _too_many_missing(case: _Case) -> bool:
    allowed = case.share("max_missing", 0.02)
    if case.has("baseline_ids", "candidate_ids"):
        sides = [set(map(str, case.items(f"{side}_ids"))) for side in ("baseline", "candidate")]
        return len(sides[0] ^ sides[1]) > allowed * len(sides[0] | sides[1])
    for name in ("n_missing", "missing"):
        if case.has(name):
            total = case.count("n") if case.has("n") else case.count("n_complete")
            return case.count(name) > allowed * max(total, 1)
    gone = np.zeros(0, dtype=bool)
    for name in ("scores", "baseline_scores", "candidate_scores"):
        if case.has(name):
            here = np.isnan(case.numbers(name))
            gone = here if len(gone) != len(here) else gone | here
    return bool(gone.sum() > allowed * len(gone))


def _too_few_clusters(case: _Case) -> bool:
    for name in ("clusters", "cluster"):
        if case.has(name):
            names = {str(one) for one in case.items(name)}
            return len(names) < case.count("min_clusters", MIN_CLUSTERS)
    return case.has("n_clusters") and case.count("n_clusters") < case.count(
        "min_clusters", MIN_CLUSTERS
    )


def _too_few_items(case: _Case) -> bool:
    return case.has("n", "min_items") and case.count("n") < case.count("min_items")


def _task_absent(case: _Case) -> bool:
    wanted = case.items("rule_tasks") if case.has("rule_tasks") else []
    if case.has("task"):
        wanted = [*wanted, case.text("task")]
    sides = [case.items(n) for n in ("tasks", "baseline_tasks", "candidate_tasks") if case.has(n)]
    return any(name not in side for name in wanted for side in sides)


def _no_gating_rule(case: _Case) -> bool:
    if not case.has("rules"):
        return False
    roles = [rule.get("role") for rule in case.items("rules") if isinstance(rule, Mapping)]
    return all(role == Role.REPORT.value for role in roles)


GUARDS: dict[str, Callable[[_Case], bool]] = {
    "no_gating_rule": _no_gating_rule,
    "task_absent": _task_absent,
    "no_common_items": _no_common_items,
    "nothing_evaluated": _nothing_evaluated,
    "fingerprint_differs": _fingerprints_differ,
    "too_few_clusters": _too_few_clusters,
    "too_few_items": _too_few_items,
    "too_many_missing": _too_many_missing,
}
"""Reason by the first guard that holds, in this order."""

KINDS: dict[str, Callable[[_Case], Result]] = {
    "paired_binary_score": _paired_binary_score,
    "paired_binary_exact": _paired_binary_exact,
    "paired_binary_ci": _paired_binary_ci,
    "mcnemar_exact": _mcnemar_exact,
    "paired_scores": _paired_scores,
    "paired_clustered": _paired_clustered,
    "stratified_macro": _stratified_macro,
    "ceiling_exact": _ceiling_exact,
    "ceiling_min_n": _ceiling_min_n,
    "multiplicity": _multiplicity,
    "overall_verdict": _overall_verdict,
    "missing_bounds": _missing_bounds,
    "data_guard": _data_guard,
    "improvement": _improvement,
    "unpaired_binary_score": _unpaired_binary_score,
    "sample_size": _sample_size,
    "power_at_no_change": _power_at_no_change,
    "finite_population": _finite_population,
}
"""What each kind of case runs."""
