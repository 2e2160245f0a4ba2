"""Long texts of plain sentences, no two alike, to hide something in."""

from __future__ import annotations

from collections.abc import Sequence

from evals.errors import InputError
from evals.tasks.draws import Draws

DEFAULT_LENGTHS = (256, 512, 1024, 2048)
"""Tokens of a conversation; with template and answer they fit a context of 4k."""

SHORTEST = 192
LONGEST = 1_000_000
"""Tokens below which the hidden sentences leave no room for hay."""

CHARS_PER_TOKEN = 4.6
"""Characters of this text in one token of a usual English vocabulary of 32k to 128k entries."""

SENTENCES_PER_PARAGRAPH = 6

WHO = (
    "The baker", "The old sailor", "A young teacher", "The gardener", "My uncle", "The librarian",
    "A tired nurse", "The postman", "Our neighbour", "The clockmaker", "A quiet student",
    "The fisherman", "The mayor", "A travelling musician", "The shepherd", "The carpenter",
    "Her sister", "The bus driver", "A retired judge", "The painter", "The miller's son",
    "A curious child", "The night guard", "The beekeeper",
)  # fmt: skip

DID = (
    "bought", "carried", "forgot", "found", "repaired", "sold", "borrowed", "painted", "wrapped",
    "admired", "dropped", "cleaned", "hid", "lost", "returned", "described", "moved",
    "photographed", "weighed", "drew",
)  # fmt: skip

WHAT = (
    "a basket of plums", "an old map", "two wooden chairs", "a blue umbrella", "the brass lamp",
    "a loaf of rye bread", "three clay pots", "a violin case", "the garden ladder",
    "a wool blanket", "a jar of honey", "the broken clock", "some dusty letters",
    "a pair of boots", "a tin kettle",
    "the green bicycle", "a bunch of tulips", "an empty suitcase", "a heavy dictionary",
    "the silver spoon", "a fishing net", "the paper lantern", "a sack of flour", "a small mirror",
)  # fmt: skip

WHERE = (
    "near the fountain", "behind the church", "at the crossroads", "under the bridge",
    "beside the railway", "in the village square", "on the north road", "by the river bank",
    "outside the bakery", "at the edge of the forest", "on the way home", "next to the town hall",
    "in a narrow lane", "at the weekly market", "by the old oak", "in the waiting room",
)  # fmt: skip

WHEN = (
    "before breakfast", "late in the evening", "while it was raining", "during the festival",
    "after a long walk", "on a cold morning", "without saying a word", "as the bells rang",
    "when nobody was looking", "at the end of summer", "in spite of the wind", "just after sunrise",
    "with a broad smile", "once the guests had left", "for no clear reason", "against all advice",
)  # fmt: skip


def sentence(draws: Draws) -> str:
    """Return one sentence; it has no digits and no colon."""
    who, did, what = draws.choice(WHO), draws.choice(DID), draws.choice(WHAT)
    where, when = draws.choice(WHERE), draws.choice(WHEN)
    order = draws.below(3)
    if order == 0:
        return f"{who} {did} {what} {where} {when}."
    if order == 1:
        start = when[0].upper() + when[1:]
        return f"{start}, {who[0].lower() + who[1:]} {did} {what} {where}."
    return f"{who} {did} {what} {where}."


def hay(draws: Draws, characters: int) -> list[str]:
    """Return different sentences that together with their spaces have about ``characters``."""
    sentences: list[str] = []
    seen: set[str] = set()
    length = 0
    while True:
        straw = sentence(draws)
        if straw in seen:
            continue
        if length + len(straw) + 1 > characters:
            return sentences
        seen.add(straw)
        sentences.append(straw)
        length += len(straw) + 1


def hay_for(draws: Draws, length: int, hidden: Sequence[str]) -> list[str]:
    """Return hay that with ``hidden`` and the question makes about ``length`` tokens."""
    frame = len(long_prompt("", "")) + 40
    taken = frame + sum(len(needle) + 1 for needle in hidden)
    return hay(draws, int(length * CHARS_PER_TOKEN) - taken)


def long_prompt(text: str, question: str) -> str:
    """Return what a user says who wants ``question`` answered from ``text``."""
    return (
        "Read the text and answer the question at its end.\n\n"
        f"{text}\n\nQuestion: {question} Answer with the number only."
    )


def require_lengths(where: str, lengths: object) -> None:
    """Hold that ``lengths`` are different whole numbers, none too short to hide anything.

    Raises:
        InputError: They are not.
    """
    fine = (
        isinstance(lengths, tuple)
        and len(lengths) > 0
        and all(type(length) is int and SHORTEST <= length <= LONGEST for length in lengths)
        and len(set(lengths)) == len(lengths)
    )
    if not fine:
        raise InputError(
            f"{lengths!r} are not different whole numbers from {SHORTEST} to {LONGEST}",
            f"{where}.lengths",
            "give a list of lengths in tokens, such as [256, 1024]",
        )


def hide(sentences: Sequence[str], hidden: Sequence[str], places: Sequence[int]) -> str:
    """Return the text with each of ``hidden`` before the sentence of that place.

    Args:
        sentences: The hay.
        hidden: What to hide, in the order of the text.
        places: For each hidden sentence an index into ``sentences``, 0 to its length, rising.
    """
    text: list[str] = []
    done = 0
    for needle, place in zip(hidden, places, strict=True):
        text += [*sentences[done:place], needle]
        done = place
    text += sentences[done:]
    paragraphs = [
        " ".join(text[start : start + SENTENCES_PER_PARAGRAPH])
        for start in range(0, len(text), SENTENCES_PER_PARAGRAPH)
    ]
    return "\n".join(paragraphs)
