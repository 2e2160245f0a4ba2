"""The metric's interface and figures."""

from __future__ import annotations

import itertools

import pytest
from sandbox_walls import needs_sandbox

from evals.errors import InputError, SandboxUnavailable
from evals.sandbox import SandboxedCodeEval, program
from evals.sandbox.code_eval import estimate_pass_at_k

BURN = "import time\nwhile time.process_time() < 0.8: pass\n"
WAIT = "import time\ntime.sleep(0.8)\n"


@needs_sandbox
def test_scores_as_the_metric_does() -> None:
    rates, results = SandboxedCodeEval().compute(
        references=["assert add(2, 3) == 5", "assert one() == 1"],
        predictions=[
            ["def add(a, b): return a + b", "def add(a, b): return a * b"],
            [BURN + "def one(): return 1", WAIT + "def one(): return 1"],
        ],
        k=[1, 2, 10],
        num_workers=2,
        timeout=0.5,
    )
    assert rates == {"pass@1": 0.5, "pass@2": 1.0}
    told = {
        key: [(at, r["passed"], r["result"]) for at, r in each] for key, each in results.items()
    }
    assert told == {
        0: [(0, True, "passed"), (1, False, "failed: AssertionError")],
        1: [(0, False, "timed out"), (1, True, "passed")],
    }
    assert results[1][1][1] == {
        "task_id": 1,
        "passed": True,
        "result": "passed",
        "completion_id": 1,
    }


@needs_sandbox
def test_the_tests_must_be_reached() -> None:
    rates, _ = SandboxedCodeEval().compute(
        references=["assert add(2, 3) == 5"],
        predictions=[["import sys\nprint('passed')\nsys.exit(0)"]],
        k=[1],
    )
    assert rates == {"pass@1": 0.0}


@pytest.mark.parametrize(("tries", "k"), [(5, 1), (5, 2), (6, 6), (8, 3)])
def test_pass_at_k_is_the_share_of_draws_with_a_pass(tries: int, k: int) -> None:
    for passed in range(tries + 1):
        draws = list(itertools.combinations([True] * passed + [False] * (tries - passed), k))
        share = sum(any(draw) for draw in draws) / len(draws)
        assert estimate_pass_at_k(tries, passed, k) == pytest.approx(share, abs=1e-12)


def test_a_broken_sandbox_is_never_a_failed_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise SandboxUnavailable("none")

    monkeypatch.setattr(program, "_choose_wall", refuse)
    with pytest.raises(SandboxUnavailable):
        SandboxedCodeEval().compute(references=["pass"], predictions=[["pass"]], k=[1])


@pytest.mark.parametrize(("references", "predictions"), [([], []), (["pass"], []), ([], [["x"]])])
def test_tasks_and_tests_must_match(references: list[str], predictions: list[list[str]]) -> None:
    with pytest.raises(InputError, match="references"):
        SandboxedCodeEval().compute(references=references, predictions=predictions)
