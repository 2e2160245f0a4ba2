"""The controller: one loop that keeps generator, reward and trainer at work at the same time.

Batch k is answered by the weights after max(0, k - lag) updates, however fast either side is, and
each executor computes on one thread. So the weights after any step are a function of the settings
alone, to the last bit, while answering batch k + lag, paying batch k + 1 and training on batch k
overlap.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evals.job import Progress, silent
from pipelines.lab.generator import Generator
from pipelines.lab.model import WARM, one_thread
from pipelines.lab.reward import Reward
from pipelines.lab.rollout import Batch, PaidBatch, Weights
from pipelines.lab.run_folder import RunFolder
from pipelines.lab.settings import Settings
from pipelines.lab.trainer import Trainer


def run_lab(
    folder: Path,
    settings: Settings,
    *,
    owner: str,
    start: Path = WARM,
    progress: Progress = silent,
) -> None:
    """Train, and write the run into ``folder``.

    Args:
        folder: Empty, or not there.
        settings: Of the run.
        owner: Whose run it is.
        start: Checkpoint that it starts from.
        progress: Told the stage ``steps`` and how far it is.

    Raises:
        InputError: There is something in the folder.
        SandboxUnavailable: Written functions can't be run here.
    """
    with closing(RunFolder(folder, settings, owner)) as written, one_thread(), threads() as pools:
        progress("steps", 0, settings.steps)
        trainer = Trainer(start, settings)
        generator, reward = Generator(start, settings), Reward(settings)
        weights = trainer.publish()
        written.checkpoint(0, weights)
        ahead: deque[Future[PaidBatch]] = deque()

        def begin(step: int) -> None:
            """Let the present weights answer the batch of ``step``, and have it paid."""
            if step < settings.steps:
                answered = pools.generator.submit(generator.generate, step, weights)
                ahead.append(pools.reward.submit(pay_when_answered, reward, answered))

        for step in range(settings.lag):
            begin(step)
        for step in range(settings.steps):
            began = time.perf_counter()
            begin(step + settings.lag)
            paid = ahead.popleft().result()
            weights, series = pools.trainer.submit(train, trainer, paid).result()
            done = step + 1
            written.log(done, {**series, "time/step_s": time.perf_counter() - began})
            if done % settings.every == 0 or done == settings.steps:
                written.checkpoint(done, weights)
            progress("steps", done, settings.steps)


def pay_when_answered(reward: Reward, answered: Future[Batch]) -> PaidBatch:
    """Return the batch with its rewards, as soon as it is answered."""
    return reward.pay(answered.result())


def train(trainer: Trainer, paid: PaidBatch) -> tuple[Weights, dict[str, float]]:
    """Return the weights after one more update, and the step's series."""
    series = trainer.train(paid)
    return trainer.publish(), series


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """A thread for each executor."""

    generator: ThreadPoolExecutor
    reward: ThreadPoolExecutor
    trainer: ThreadPoolExecutor


@contextmanager
def threads() -> Iterator[Threads]:
    """Yield the executors' threads; at the end, or an error, what has not begun is left undone."""
    pools = Threads(
        generator=ThreadPoolExecutor(1, "generator"),
        reward=ThreadPoolExecutor(1, "reward"),
        trainer=ThreadPoolExecutor(1, "trainer"),
    )
    try:
        yield pools
    finally:
        for pool in (pools.generator, pools.reward, pools.trainer):
            pool.shutdown(wait=True, cancel_futures=True)
