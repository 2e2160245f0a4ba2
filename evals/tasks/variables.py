"""Variable tracking: follow assignments that are scattered over a long text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise

from evals.identity import fingerprint
from evals.scoring import Judgement
from evals.task import Capability, Item, Message, TaskSpec
from evals.tasks.answer import judge_code
from evals.tasks.drafts import VERSION, Draft, Level, build_items, require_positive
from evals.tasks.draws import Draws
from evals.tasks.haystack import DEFAULT_LENGTHS, hay_for, hide, long_prompt, require_lengths
from evals.tasks.plain_prompt import PlainPrompt

NAME = "pawl_variables"

VARIABLES = (
    "AGATE", "AMBER", "BASALT", "BERYL", "CORAL", "FLINT", "GARNET", "GRANITE", "JADE", "JASPER",
    "LAPIS", "MARBLE", "ONYX", "OPAL", "PEARL", "QUARTZ", "RUBY", "SLATE", "TOPAZ", "ZIRCON",
)  # fmt: skip

CHAIN = {Level.EASY: 2, Level.HARD: 4}
"""Variables in a chain; each text has two chains and asks for the last of one."""

PLAIN = PlainPrompt(
    asks="Text",
    answers="Answer",
    shots=(
        (
            "Let CHALK be 70315. Rain fell all night. Let GYPSUM be equal to CHALK.\n"
            "Question: What is the value of GYPSUM?",
            "70315",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Texts with two chains of assignments: short ones are easy, long ones hard.

    Args:
        seed: Of texts and chains.
        items_per_level: Items of each level at each length.
        lengths: Of the conversation, in approximate tokens.
    """

    seed: int = 0
    items_per_level: int = 4
    lengths: tuple[int, ...] = DEFAULT_LENGTHS

    def __post_init__(self) -> None:
        """Hold that there are items, and lengths that leave room for them."""
        require_positive(NAME, items_per_level=self.items_per_level)
        require_lengths(NAME, self.lengths)

    @property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        return TaskSpec(
            name=NAME,
            version=VERSION,
            capability=Capability.LONG_CONTEXT,
            metric="exact_match",
            filter="code",
            max_tokens=48,
            stops=(PLAIN.stop,),
            prompt_fingerprint=fingerprint([VERSION, long_prompt("", ""), asdict(PLAIN)]),
        )

    def items(self) -> tuple[Item, ...]:
        """Return the texts by length, easy ones first."""
        drafts = [
            self._draft(length, level, number)
            for length in self.lengths
            for level in Level
            for number in range(self.items_per_level)
        ]
        return build_items(NAME, drafts)

    def _draft(self, length: int, level: Level, number: int) -> Draft:
        draws = Draws(NAME, VERSION, level, self.seed, length, number)
        size = CHAIN[level]
        names = draws.pick(VARIABLES, 2 * size)
        values = [str(value) for value in draws.pick(range(10000, 100000), 2)]
        chains = [
            assignments(names[:size], values[0]),
            assignments(names[size:], values[1]),
        ]
        turns = draws.shuffled([0] * size + [1] * size)
        hidden = [chains[chain].pop(0) for chain in turns]
        hay = hay_for(draws, length, hidden)
        places = sorted(draws.below(len(hay) + 1) for _ in hidden)
        doc = {
            "text": hide(hay, hidden, places),
            "question": f"What is the value of {names[size - 1]}?",
            "length": length,
            "level": str(level),
        }
        return Draft(doc=doc, target=values[0], stratum=str(length))

    def prompt(self, item: Item, *, chat: bool) -> tuple[Message, ...] | str:
        """Return text and question, or behind a solved one as plain text."""
        text, question = item.doc["text"], item.doc["question"]
        if chat:
            return (Message(role="user", content=long_prompt(text, question)),)
        return PLAIN.fill(f"{text}\nQuestion: {question}")

    def judge(self, item: Item, text: str) -> Judgement:
        """Return 1 where the target is the one value that the answer mentions."""
        return judge_code(text, item.target)


def assignments(names: list[str], value: str) -> list[str]:
    """Return the sentences that give ``value`` to the first name and pass it on to the last."""
    first = f"Let {names[0]} be {value}."
    rest = [f"Let {name} be equal to {source}." for source, name in pairwise(names)]
    return [first, *rest]
