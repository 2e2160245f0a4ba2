"""Short Python functions to write, judged by running them on arguments with known results."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from evals.errors import InputError
from evals.identity import fingerprint
from evals.scoring import Judgement
from evals.task import Capability, Item, Message, TaskSpec
from evals.tasks.answer import split_thought, unparsed
from evals.tasks.code_block import find_code
from evals.tasks.drafts import (
    VERSION,
    Draft,
    Level,
    build_items,
    require_positive,
)
from evals.tasks.draws import Draws
from evals.tasks.function_library import LIBRARY, Function

NAME = "pawl_functions"


class Execution(Protocol):
    """How a program ended, as much of it as the judgement needs."""

    @property
    def outcome(self) -> str:
        """Return ``passed`` where the program ran to its true end."""
        ...


Runner = Callable[[str], Execution]
"""Runs a program in isolation. An exception means that it could not be run at all."""


def run_in_sandbox(program: str) -> Execution:
    """Run ``program`` in Pawl's sandbox with its usual limits.

    Raises:
        SandboxUnavailable: There is no isolation to be had here.
    """
    from evals.sandbox import run_program

    return run_program(program)


INSTRUCTION = (
    "Write a Python function `def {name}({takes}):` that {does}. "
    "Reply with the function alone, in one Python code block."
)

COMPLETION = '''# Function 1
def half_of(number):
    """Returns half of an even number as a whole number."""
    return number // 2

# Function 2
def count_zeros(numbers):
    """Returns how many numbers of the list are 0."""
    count = 0
    for number in numbers:
        if number == 0:
            count += 1
    return count

# Function 3
{header}
'''
"""What a model without a chat template continues with the body."""

STOP = "\n# Function 4"

HARNESS = """

def _pawl_plain(value):
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) in (list, tuple):
        return [_pawl_plain(item) for item in value]
    return value


for _pawl_given, _pawl_wanted in {tests}:
    _pawl_got = repr(_pawl_plain({name}(*_pawl_given)))
    if _pawl_got != repr(_pawl_wanted):
        raise AssertionError(f"{{_pawl_given}} gives {{_pawl_got}}, not {{_pawl_wanted!r}}")
"""
"""Compares by repr: an object that claims to equal everything does not print as the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Functions:
    """Functions to write: easy ones take one expression, hard ones a loop or some thought.

    Args:
        seed: Of the choice among the library's functions.
        items_per_level: Functions of each level.
        runner: Runs the answers together with their tests.
    """

    seed: int = 0
    items_per_level: int = 20
    runner: Runner = run_in_sandbox

    def __post_init__(self) -> None:
        """Hold that there is at least one item."""
        require_positive(NAME, items_per_level=self.items_per_level)

    @property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        return TaskSpec(
            name=NAME,
            version=VERSION,
            capability=Capability.CODE,
            metric="pass@1",
            filter="code_block",
            max_tokens=160,
            stops=(STOP,),
            prompt_fingerprint=fingerprint([VERSION, INSTRUCTION, COMPLETION]),
        )

    def items(self) -> tuple[Item, ...]:
        """Return the functions, easy ones first; members of one family share a cluster.

        Raises:
            InputError: The library has not that many functions.
        """
        drafts = [draft for level in Level for draft in self._drafts(level)]
        return build_items(NAME, drafts)

    def _drafts(self, level: Level) -> list[Draft]:
        draws = Draws(NAME, VERSION, level, self.seed)
        order = draws.shuffled(LIBRARY[level])
        cases = {function.name: draws.shuffled(function.cases) for function in order}
        rounds = max(len(members) for members in cases.values())
        pool = [
            (function, cases[function.name][number])
            for number in range(rounds)
            for function in order
            if number < len(cases[function.name])
        ]
        if len(pool) < self.items_per_level:
            raise InputError(
                f"{self.items_per_level} {level} functions wanted, the library has {len(pool)}",
                f"{NAME}.items_per_level",
                "ask for fewer",
            )
        return [build_draft(*member, level) for member in pool[: self.items_per_level]]

    def prompt(self, item: Item, *, chat: bool) -> tuple[Message, ...] | str:
        """Return the request for the function, or its head to go on from as plain text."""
        doc = item.doc
        if chat:
            content = INSTRUCTION.format(name=doc["name"], takes=doc["takes"], does=doc["does"])
            return (Message(role="user", content=content),)
        return COMPLETION.format(header=build_header(doc))

    def judge(self, item: Item, text: str) -> Judgement:
        """Return 1 where the answer's code gives the known results.

        Raises:
            SandboxUnavailable: The answer could not be run; that is no 0.
        """
        answer = split_thought(text).answer
        name: str = item.doc["name"]
        code = None if answer is None else find_code(answer, name, build_header(item.doc))
        if code is None:
            return unparsed()
        program = build_program(code, name, item.doc["tests"])
        passed = self.runner(program).outcome == "passed"
        return Judgement(value=float(passed), answer=code)


def build_draft(function: Function, k: int | None, level: Level) -> Draft:
    """Return the question for the member ``k`` of ``function``."""
    name, takes = function.text(function.name, k), function.takes
    doc = {
        "name": name,
        "takes": takes,
        "does": function.text(function.does, k),
        "tests": function.tests(k),
        "level": str(level),
    }
    body = textwrap.indent(function.text(function.code, k), "    ")
    return Draft(
        doc=doc,
        target=f"def {name}({takes}):\n{body}\n",
        cluster=function.name,
        stratum=str(level),
    )


def build_header(doc: dict[str, Any]) -> str:
    """Return the head of the function, up to where its body begins."""
    does: str = doc["does"]
    return f'def {doc["name"]}({doc["takes"]}):\n    """{does[0].upper()}{does[1:]}."""'


def build_program(code: str, name: str, tests: list[list[Any]]) -> str:
    """Return ``code`` followed by its tests as one program that ends only if they hold."""
    return code + HARNESS.format(tests=repr(tests), name=name)
