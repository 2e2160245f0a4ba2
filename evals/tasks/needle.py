"""Retrieval: one sentence with an access code, hidden in a long text."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from evals.identity import fingerprint
from evals.scoring import Judgement
from evals.task import Capability, Item, Message, TaskSpec
from evals.tasks.answer import judge_code
from evals.tasks.drafts import VERSION, Draft, Level, build_items, require_positive
from evals.tasks.draws import Draws
from evals.tasks.haystack import DEFAULT_LENGTHS, hay_for, hide, long_prompt, require_lengths
from evals.tasks.plain_prompt import PlainPrompt

NAME = "pawl_needle"

DOORS = (
    "armoury", "attic", "boathouse", "brewery", "cellar", "chapel", "dairy", "dovecote", "foundry",
    "gallery", "granary", "greenhouse", "hangar", "infirmary", "kennel", "laundry", "lighthouse",
    "observatory", "orangery", "pantry", "pavilion", "sawmill", "stable", "studio", "tannery",
    "treasury", "vault", "vineyard", "warehouse", "workshop",
)  # fmt: skip

OTHER_DOORS = 3
"""Codes of other doors in a hard text; beside them it has an outdated code of the same door."""

DEPTHS = (3, 13, 7, 1, 11, 5, 15, 9)
"""Where the asked code stands, in sixteenths of the text; an item's number picks in turn."""

PLAIN = PlainPrompt(
    asks="Text",
    answers="Answer",
    shots=(
        (
            "Rain fell all night. The access code of the tower is 70315. Nobody came.\n"
            "Question: What is the access code of the tower?",
            "70315",
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """Texts with an access code to find: easy ones hold one code, hard ones several.

    Args:
        seed: Of texts and codes.
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
            max_tokens=24,
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
        door, *others = draws.pick(DOORS, OTHER_DOORS + 1)
        code, *wrong = (str(value) for value in draws.pick(range(10000, 100000), OTHER_DOORS + 2))
        hidden = [f"The access code of the {door} is {code}."]
        if level is Level.HARD:
            hidden.append(f"The old access code of the {door} was {wrong[0]}.")
            hidden += [
                f"The access code of the {other} is {value}."
                for other, value in zip(others, wrong[1:], strict=True)
            ]
        hay = hay_for(draws, length, hidden)
        depth = DEPTHS[number % len(DEPTHS)]
        places = [depth * len(hay) // 16, *(draws.below(len(hay) + 1) for _ in hidden[1:])]
        order = sorted(range(len(hidden)), key=lambda index: (places[index], index))
        text = hide(hay, [hidden[index] for index in order], [places[index] for index in order])
        doc = {
            "text": text,
            "question": f"What is the access code of the {door}?",
            "length": length,
            "level": str(level),
        }
        return Draft(doc=doc, target=code, stratum=str(length))

    def prompt(self, item: Item, *, chat: bool) -> tuple[Message, ...] | str:
        """Return text and question, or behind a solved one as plain text."""
        text, question = item.doc["text"], item.doc["question"]
        if chat:
            return (Message(role="user", content=long_prompt(text, question)),)
        return PLAIN.fill(f"{text}\nQuestion: {question}")

    def judge(self, item: Item, text: str) -> Judgement:
        """Return 1 where the target is the one code that the answer mentions."""
        return judge_code(text, item.target)
