"""Word problems whose steps are additions, subtractions, products and even divisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal

from evals.identity import fingerprint
from evals.scoring import Judgement
from evals.task import Capability, Item, Message, TaskSpec
from evals.tasks.answer import find_number, split_thought, unparsed
from evals.tasks.drafts import (
    VERSION,
    Draft,
    Level,
    build_items,
    draw_distinct,
    require_positive,
)
from evals.tasks.draws import Draws
from evals.tasks.plain_prompt import PlainPrompt

NAME = "pawl_arithmetic"

NAMES = (
    "Ana", "Ben", "Carla", "David", "Elena", "Farid", "Grace", "Hugo", "Ines", "Jonas",
    "Kavya", "Liam", "Mona", "Nils", "Olga", "Pavel", "Rosa", "Samir", "Tara", "Viktor",
)  # fmt: skip

THINGS = (
    "apples", "books", "buttons", "candles", "cards", "coins", "eggs", "marbles", "pears",
    "pencils", "shells", "stamps", "stickers", "tickets",
)  # fmt: skip

Problem = tuple[str, int]
"""Question and answer."""


def gain(draws: Draws) -> Problem:
    """Return a problem of one addition."""
    name, things = draws.choice(NAMES), draws.choice(THINGS)
    a, b = draws.between(2, 12), draws.between(2, 9)
    question = f"{name} has {a} {things} and buys {b} more. How many {things} does {name} have now?"
    return question, a + b


def loss(draws: Draws) -> Problem:
    """Return a problem of one subtraction."""
    name, things = draws.choice(NAMES), draws.choice(THINGS)
    left, b = draws.between(2, 12), draws.between(2, 9)
    question = (
        f"{name} has {left + b} {things} and gives away {b} of them. "
        f"How many {things} does {name} have left?"
    )
    return question, left


def boxes(draws: Draws) -> Problem:
    """Return a problem of one product."""
    things = draws.choice(THINGS)
    a, b = draws.between(2, 6), draws.between(2, 10)
    question = (
        f"There are {a} boxes with {b} {things} in each box. How many {things} are there in total?"
    )
    return question, a * b


def gain_and_loss(draws: Draws) -> Problem:
    """Return a problem of an addition and a subtraction."""
    name, things = draws.choice(NAMES), draws.choice(THINGS)
    a, b = draws.between(3, 12), draws.between(3, 9)
    c = draws.between(2, a + b - 2)
    question = (
        f"{name} has {a} {things}, buys {b} more and then gives away {c}. "
        f"How many {things} does {name} have left?"
    )
    return question, a + b - c


def bags(draws: Draws) -> Problem:
    """Return a problem of a product and an addition."""
    name, things = draws.choice(NAMES), draws.choice(THINGS)
    a, b, c = draws.between(2, 6), draws.between(2, 9), draws.between(2, 9)
    question = (
        f"{name} fills {a} bags with {b} {things} each and keeps {c} more in a drawer. "
        f"How many {things} does {name} have in total?"
    )
    return question, a * b + c


def shop(draws: Draws) -> Problem:
    """Return a problem of four steps: product, doubling, two subtractions, addition."""
    things = draws.choice(THINGS)
    a, b = draws.between(5, 12), draws.between(12, 30)
    c, d = draws.between(5, a * b // 4), draws.between(11, 60)
    question = (
        f"A shop has {a} shelves with {b} {things} on each shelf. It sells {c} {things} in the "
        f"morning and twice as many in the afternoon. Then {d} new {things} arrive. "
        f"How many {things} does the shop have now?"
    )
    return question, a * b - 3 * c + d


def wages(draws: Draws) -> Problem:
    """Return a problem of four steps that ends in an even division."""
    name = draws.choice(NAMES)
    a, b, c = draws.between(11, 25), draws.between(4, 9), draws.between(3, 8)
    parts = draws.between(2, 5)
    earned = a * (b + c)
    spent = earned % parts + parts * draws.between(3, 9)
    question = (
        f"{name} earns ${a} an hour and works {b} hours on Saturday and {c} hours on Sunday. "
        f"{name} spends ${spent} of the money and puts the rest into {parts} envelopes, the same "
        f"amount into each. How many dollars are in each envelope?"
    )
    return question, (earned - spent) // parts


def collectors(draws: Draws) -> Problem:
    """Return a problem of four steps with two people."""
    (name, friend), things = draws.pick(NAMES, 2), draws.choice(THINGS)
    a, b = draws.between(9, 25), draws.between(4, 9)
    c, d = draws.between(2, 7), draws.between(5, 30)
    question = (
        f"{name} collects {a} {things} every day for {b} days. On each of these days {friend} "
        f"collects {c} fewer than {name}. Together they then lose {d} {things}. "
        f"How many {things} do they have left together?"
    )
    return question, b * (2 * a - c) - d


def train(draws: Draws) -> Problem:
    """Return a problem of three steps that ends in a half."""
    a, b = draws.between(4, 12), draws.between(14, 40)
    c = (a * b) % 2 + 2 * draws.between(2, 12)
    question = (
        f"A train has {a} wagons with {b} seats in each wagon. {c} of the seats are broken. "
        f"Half of the other seats are taken. How many seats are taken?"
    )
    return question, (a * b - c) // 2


PROBLEMS: dict[Level, tuple[Callable[[Draws], Problem], ...]] = {
    Level.EASY: (gain, loss, boxes, gain_and_loss, bags),
    Level.HARD: (shop, wages, collectors, train),
}

CHAT = "{question}\n\nSolve the problem step by step. End with the line: The answer is N."

PLAIN = PlainPrompt(
    asks="Problem",
    answers="Solution",
    shots=(
        (
            "Zoe has 21 ribbons and buys 4 more. How many ribbons does Zoe have now?",
            "21 + 4 = 25. The answer is 25.",
        ),
        (
            "A hall has 3 rows with 14 chairs in each row. 5 of the chairs are broken. "
            "How many chairs are not broken?",
            "3 * 14 = 42. 42 - 5 = 37. The answer is 37.",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """Word problems: easy ones of one or two steps, hard ones of three or four.

    Args:
        seed: Of the problems.
        items_per_level: Problems of each level.
    """

    seed: int = 0
    items_per_level: int = 30

    def __post_init__(self) -> None:
        """Hold that there is at least one item."""
        require_positive(NAME, items_per_level=self.items_per_level)

    @property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        return TaskSpec(
            name=NAME,
            version=VERSION,
            capability=Capability.REASONING,
            metric="exact_match",
            filter="number",
            max_tokens=160,
            stops=(PLAIN.stop,),
            prompt_fingerprint=fingerprint([VERSION, CHAT, asdict(PLAIN)]),
        )

    def items(self) -> tuple[Item, ...]:
        """Return the problems, easy ones first."""
        drafts = [draft for level in Level for draft in self._drafts(level)]
        return build_items(NAME, drafts)

    def _drafts(self, level: Level) -> list[Draft]:
        draws = Draws(NAME, VERSION, level, self.seed)

        def draw() -> Draft:
            question, answer = draws.choice(PROBLEMS[level])(draws)
            doc = {"question": question, "level": str(level)}
            return Draft(doc=doc, target=str(answer), stratum=str(level))

        return draw_distinct(draw, self.items_per_level, f"{NAME} {level}")

    def prompt(self, item: Item, *, chat: bool) -> tuple[Message, ...] | str:
        """Return the problem with the instruction, or behind solved ones as plain text."""
        question: str = item.doc["question"]
        if chat:
            return (Message(role="user", content=CHAT.format(question=question)),)
        return PLAIN.fill(question)

    def judge(self, item: Item, text: str) -> Judgement:
        """Return 1 where the number that ``find_number`` reads equals the target."""
        answer = split_thought(text).answer
        number = None if answer is None else find_number(answer)
        if number is None:
            return unparsed()
        right = number == Decimal(item.target)
        return Judgement(value=float(right), answer=format(number, "f"))
