"""The generated tasks by name, and how to build one with options from a suite file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from evals.errors import InputError
from evals.task import Task
from evals.tasks import arithmetic, functions, lab, multilingual, needle, safety, variables

GENERATED: Mapping[str, Callable[..., Task]] = {
    arithmetic.NAME: arithmetic.Arithmetic,
    functions.NAME: functions.Functions,
    multilingual.NAME: multilingual.Multilingual,
    needle.NAME: needle.Needle,
    variables.NAME: variables.Variables,
    safety.HARMFUL: safety.Harmful,
    safety.HARMLESS: safety.Harmless,
    **{grammar.name: lab.make_lab_task(grammar) for grammar in lab.GRAMMARS},
}
"""What makes each task; takes ``seed``, how many items, and the task's own options."""


def build_task(name: str, *, seed: int = 0, **options: object) -> Task:
    """Return the generated task ``name``.

    Args:
        name: A key of ``GENERATED``.
        seed: Of its items.
        options: Its other options; lists, as YAML has them, count as tuples.

    Raises:
        InputError: No such task or option, or an option's value is out of its range.
    """
    make = GENERATED.get(name)
    if make is None:
        raise InputError(f"no generated task {name!r}", "task", _suggest(name, GENERATED))
    known = inspect.signature(make).parameters
    for option in options:
        if option not in known:
            raise InputError(f"no option {option!r}", name, _suggest(option, known))
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"{seed!r} is not a whole number", f"{name}.seed", "give one")
    fields = {
        option: tuple(value) if isinstance(value, list) else value
        for option, value in options.items()
    }
    return make(seed=seed, **fields)


def _suggest(word: str, known: Iterable[str]) -> str:
    """Return what may have been meant by ``word``."""
    names = list(known)
    close = get_close_matches(word, names, n=3)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"
