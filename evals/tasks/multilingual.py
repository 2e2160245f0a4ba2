"""The same short questions in eight languages; an answer must be right and in the language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING

from evals.errors import InputError
from evals.identity import fingerprint
from evals.scoring import Judgement
from evals.task import Capability, Item, Message, TaskSpec
from evals.tasks.answer import split_thought, unparsed
from evals.tasks.drafts import (
    VERSION,
    Draft,
    Level,
    build_items,
    draw_distinct,
    require_positive,
)
from evals.tasks.draws import Draws
from evals.tasks.languages import DAY_KEYS, LANGUAGES, Language
from evals.tasks.plain_prompt import PlainPrompt

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

NAME = "pawl_multilingual"

SHORT_LETTERS = 10
"""An answer with fewer letters is too short to tell its language by anything but its word."""

CERTAIN = 0.8
"""Probability from which another language counts as found."""

LIKELY = 0.5
"""Probability of a language from which digits count as words of it."""

FEWEST_LETTERS = 3
"""An answer with fewer letters is in no language at all."""

OPPOSITES = (
    ("hot", "cold"), ("big", "small"), ("long", "short"), ("full", "empty"), ("heavy", "light"),
    ("slow", "fast"), ("wet", "dry"), ("rich", "poor"), ("hard", "soft"),
)  # fmt: skip

COLOURED = (
    ("grass", "green"), ("snow", "white"), ("blood", "red"), ("banana", "yellow"),
    ("coal", "black"), ("milk", "white"), ("tomato", "red"), ("broccoli", "green"),
)  # fmt: skip

MIXES = (
    ("blue", "yellow", "green"), ("red", "yellow", "orange"), ("red", "blue", "purple"),
    ("black", "white", "grey"), ("red", "white", "pink"),
)  # fmt: skip

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question before it is put into words."""

    kind: str
    """Template, such as ``sum``."""
    words: str
    """Which of a language's ``words`` an answer is among, such as ``days``."""
    fill: dict[str, str]
    """Fields of the template: numbers in digits, or keys of words and things."""
    given: tuple[str, ...]
    """Keys that the question names itself, so that an answer may repeat them."""
    key: str
    """The right answer's key."""


"""Drawn once and asked in every language."""


def addition(draws: Draws) -> Question:
    """Return a sum of two numbers up to 9."""
    a, b = draws.between(2, 9), draws.between(2, 9)
    given = (str(a), str(b))
    return Question(
        kind="sum",
        words="numbers",
        fill={"a": given[0], "b": given[1]},
        given=given,
        key=str(a + b),
    )


def tomorrow(draws: Draws) -> Question:
    """Return the question for the day after a day."""
    day = draws.below(7)
    return Question(
        kind="tomorrow",
        words="days",
        fill={"day": DAY_KEYS[day]},
        given=(DAY_KEYS[day],),
        key=DAY_KEYS[(day + 1) % 7],
    )


def opposite(draws: Draws) -> Question:
    """Return the question for an adjective's opposite."""
    word, other = draws.shuffled(draws.choice(OPPOSITES))
    return Question(
        kind="opposite", words="adjectives", fill={"word": word}, given=(word,), key=other
    )


def colour(draws: Draws) -> Question:
    """Return the question for a thing's colour."""
    thing, key = draws.choice(COLOURED)
    return Question(kind="colour", words="colours", fill={"thing": thing}, given=(), key=key)


def two_steps(draws: Draws) -> Question:
    """Return a sum and a difference whose result the question does not name."""
    while True:
        a, b, c = (draws.between(3, 12) for _ in range(3))
        given, key = (str(a), str(b), str(c)), a + b - c
        if 2 <= key <= 20 and str(key) not in given:  # noqa: PLR2004 - numbers with one word
            fill = {"a": given[0], "b": given[1], "c": given[2]}
            return Question(kind="two_steps", words="numbers", fill=fill, given=given, key=str(key))


def days_ago(draws: Draws) -> Question:
    """Return the question for the day some days before a day."""
    day, k = draws.below(7), draws.between(2, 4)
    return Question(
        kind="days_ago",
        words="days",
        fill={"day": DAY_KEYS[day], "k": str(k)},
        given=(DAY_KEYS[day],),
        key=DAY_KEYS[(day - k) % 7],
    )


def months_on(draws: Draws) -> Question:
    """Return the question for the month some months after a month; none is May.

    "May" is an English verb too, and would be found where it is not meant.
    """
    while True:
        month, k = draws.below(12), draws.between(2, 4)
        then = (month + k) % 12
        if "may" not in (MONTHS[month], MONTHS[then]):
            return Question(
                kind="months_on",
                words="months",
                fill={"month": MONTHS[month], "k": str(k)},
                given=(MONTHS[month],),
                key=MONTHS[then],
            )


def mix(draws: Draws) -> Question:
    """Return the question for the colour of a mixture."""
    x, y, key = draws.choice(MIXES)
    return Question(kind="mix", words="colours", fill={"x": x, "y": y}, given=(x, y), key=key)


QUESTIONS: dict[Level, tuple[Callable[[Draws], Question], ...]] = {
    Level.EASY: (addition, tomorrow, opposite, colour),
    Level.HARD: (two_steps, days_ago, months_on, mix),
}

CHAT = "{question}\n{instruction}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilingual:
    """Short questions asked in every language alike; each question is a cluster.

    Args:
        seed: Of the questions.
        items_per_level: Questions of each level; each becomes an item in every language.
        languages: Codes, each of ``LANGUAGES``.
    """

    seed: int = 0
    items_per_level: int = 6
    languages: tuple[str, ...] = tuple(LANGUAGES)

    def __post_init__(self) -> None:
        """Hold that there are items and that every language is known."""
        require_positive(NAME, items_per_level=self.items_per_level)
        unknown = [code for code in self.languages if code not in LANGUAGES]
        if unknown or not self.languages or len(set(self.languages)) < len(self.languages):
            raise InputError(
                f"{list(self.languages)} are not different languages of the task",
                f"{NAME}.languages",
                f"choose from {', '.join(LANGUAGES)}",
            )

    @property
    def spec(self) -> TaskSpec:
        """Return what identifies the task."""
        forms = [
            [asdict(plain_prompt(language)), language.instruction]
            for language in LANGUAGES.values()
        ]
        return TaskSpec(
            name=NAME,
            version=VERSION,
            capability=Capability.MULTILINGUAL,
            metric="exact_match",
            filter="word_and_language",
            max_tokens=48,
            stops=(plain_prompt(LANGUAGES["en"]).stop,),
            prompt_fingerprint=fingerprint([VERSION, CHAT, forms]),
        )

    def items(self) -> tuple[Item, ...]:
        """Return each question in every language, easy ones first."""
        drafts = [
            _translated(draft, LANGUAGES[code])
            for level in Level
            for draft in self._questions(level)
            for code in self.languages
        ]
        return build_items(NAME, drafts)

    def _questions(self, level: Level) -> list[Draft]:
        draws = Draws(NAME, VERSION, level, self.seed)
        kinds = cycle(QUESTIONS[level])

        def draw() -> Draft:
            doc = {**asdict(next(kinds)(draws)), "level": str(level)}
            return Draft(doc={**doc, "given": list(doc["given"])}, target=doc["key"])

        return draw_distinct(draw, self.items_per_level, f"{NAME} {level}")

    def prompt(self, item: Item, *, chat: bool) -> tuple[Message, ...] | str:
        """Return question and instruction, both in the item's language."""
        language = LANGUAGES[item.doc["language"]]
        question: str = item.doc["question"]
        if chat:
            content = CHAT.format(question=question, instruction=language.instruction)
            return (Message(role="user", content=content),)
        return plain_prompt(language).fill(question, preamble=language.instruction)

    def judge(self, item: Item, text: str) -> Judgement:
        """Return 1 where the answer is right and in the language that was asked for.

        Right: of the words of its kind (numbers, days, and so on) that the question does not
        name itself, the answer mentions the target and no other. In the language: py3langid,
        choosing among the task's languages, is not certain of another one. Where it is certain
        of none, or the answer is too short for it, the word decides: it has to be one of the
        language that was asked for. Digits are such a word only where the sentence around them
        is likely to be in that language. An answer with no word of the kind in any language is
        unparsed.
        """
        answer = split_thought(text).answer
        if answer is None:
            return unparsed()
        asked, kind = item.doc["language"], item.doc["words"]
        spoken = find_language(answer)
        likely = _find_likely(answer)
        in_asked = LANGUAGES[asked].find(kind, answer, digits=likely == asked)
        if in_asked:
            named = in_asked - set(item.doc["given"])
            right = named == {item.doc["key"]} and spoken in (None, asked)
            return Judgement(value=float(right), answer=_describe(in_asked, spoken))
        for code, language in LANGUAGES.items():
            if elsewhere := language.find(kind, answer, digits=likely == code):
                return Judgement(value=0.0, answer=_describe(elsewhere, code))
        return unparsed()


def plain_prompt(language: Language) -> PlainPrompt:
    """Return the plain form; its labels are the same in all languages, as the stop string is."""
    return PlainPrompt(asks="Q", answers="A", shots=language.shots)


def find_language(text: str) -> str | None:
    """Return the language that ``text`` certainly is in, or None if it is short or unclear."""
    return _find_language(text, letters=SHORT_LETTERS, share=CERTAIN)


def _find_likely(text: str) -> str | None:
    """Return the language that ``text`` is likely to be in, or None."""
    return _find_language(text, letters=FEWEST_LETTERS, share=LIKELY)


def _find_language(text: str, *, letters: int, share: float) -> str | None:
    if sum(letter.isalpha() for letter in text) < letters:
        return None
    code, certainty = _identifier().rank(text)[0]
    return str(code) if certainty >= share else None


@cache
def _identifier() -> LanguageIdentifier:
    """Return py3langid, restricted to the task's languages."""
    from py3langid.langid import (
        MODEL_FILE,
        LanguageIdentifier,
    )

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def _translated(draft: Draft, language: Language) -> Draft:
    """Return the question of ``draft`` put into words, with its answer's word as target."""
    doc = draft.doc
    fill = {field: language.show(key) for field, key in doc["fill"].items()}
    return Draft(
        doc={
            "question": language.templates[doc["kind"]].format(**fill),
            "language": language.code,
            "kind": doc["kind"],
            "words": doc["words"],
            "given": doc["given"],
            "key": doc["key"],
            "level": doc["level"],
        },
        target=language.words[doc["words"]][doc["key"]].partition("|")[0],
        cluster=fingerprint([doc["kind"], doc["fill"]])[:16],
        stratum=language.code,
    )


def _describe(keys: frozenset[str], language: str | None) -> str:
    """Return what was found, and in which language where that is known."""
    return " ".join(sorted(keys)) + (f" ({language})" if language else "")
