"""What of a response's text is the answer: behind the thought, as a number or a code.

Every generated task reads a text through ``split_thought`` first, so that thoughts are treated
alike everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from evals.scoring import Judgement

_TAGS = "think|thinking|thought|reasoning|seed:think"

_OPENING = re.compile(
    rf"<(?:{_TAGS})>"
    r"|\[THINK\]"
    r"|◁think▷"
    r"|<\|begin_of_thought\|>"
    r"|<\|channel\|>analysis<\|message\|>"
    r"|\A\s*analysis(?=[A-Z])",
    re.IGNORECASE,
)
"""The last alternative is the channel form once special tokens are left out of the text."""

_CLOSING = re.compile(
    rf"</(?:{_TAGS})>"
    r"|\[/THINK\]"
    r"|◁/think▷"
    r"|<\|end_of_thought\|>"
    r"|<\|channel\|>final<\|message\|>"
    r"|assistantfinal",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A text split into thought and answer."""

    thought: str
    """All before the answer, tags included; empty where there is no thought."""
    answer: str | None
    """What follows the thought; None where the thought never ended."""


def split_thought(text: str) -> Reply:
    """Split ``text`` behind its last closing tag.

    The opening tag may be missing (templates that open the thought in the prompt). A thought
    that opens and never closes leaves no answer, whatever it says.

    >>> split_thought("<think>It is A.</think> B").answer
    ' B'
    >>> split_thought("<think>It is A") == Reply(thought="<think>It is A", answer=None)
    True
    """
    end = 0
    for closing in _CLOSING.finditer(text):
        end = closing.end()
    if _OPENING.search(text, end) is not None:
        return Reply(thought=text, answer=None)
    return Reply(thought=text[:end], answer=text[end:])


def unparsed() -> Judgement:
    """Return the judgement of a text without an answer in it."""
    return Judgement(value=0.0, parsed=False)


_NUMBER = re.compile(
    r"(?:(?<![\w)\]}])(?P<sign>[-−]))?"  # "10-5" holds no minus five
    r"(?:\\?[$€£](?P<inner>[-−])?)?"
    r"(?<!\w)(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
    r"(?P<part>\.\d+)?"
    r"(?:/(?P<under>\d+)(?![\d/]))?",
    re.ASCII,
)

_MARKER = re.compile(
    r"####|\\boxed\s*\{|\banswer\b(?:\s+is\b)?\s*[:=]|\banswer\s+is\b", re.IGNORECASE
)


def find_number(text: str) -> Decimal | None:
    r"""Return the number that ``text`` gives as its answer, or None.

    The rule: the number directly behind the last marker that has one ("####", "\boxed{", "answer
    is", "answer:"); where an equation starts there, the number behind the last equals sign of
    the line. Without such a marker the last number of the text. "1,234", "$18.00", "\$20", "-5"
    and "1/2" are numbers; digits within a word ("A4") and number words are not.

    >>> find_number("So she has 1,234 left.")
    Decimal('1234')
    >>> find_number("The answer is 18, as 9 times 2 is that.")
    Decimal('18')
    """
    for marker in reversed(list(_MARKER.finditer(text))):
        found = _NUMBER.search(text, marker.end())
        if found is None or re.search(r"\w", text[marker.end() : found.start()]):
            continue
        _, equals, rest = text[found.end() :].partition("\n")[0].rpartition("=")
        result = _NUMBER.search(rest) if equals else None
        return _value(result or found)
    numbers = list(_NUMBER.finditer(text))
    return _value(numbers[-1]) if numbers else None


def _value(number: re.Match[str]) -> Decimal:
    """Return the value of a match of ``_NUMBER``."""
    value = Decimal(number["whole"].replace(",", "") + (number["part"] or ""))
    if number["under"] and int(number["under"][:18]):
        value /= Decimal(number["under"])
    return -value if number["sign"] or number["inner"] else value


_CODE = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d{4,})(?!\d)", re.ASCII)


def mentioned_codes(text: str) -> frozenset[str]:
    """Return the numbers of four digits and more in ``text``, without thousands separators.

    >>> sorted(mentioned_codes("Door 3 opens with 48213, or 48,213."))
    ['48213']
    """
    return frozenset(code.replace(",", "") for code in _CODE.findall(text))


def judge_code(text: str, target: str) -> Judgement:
    """Return 1 where ``target`` is the one code that the answer in ``text`` mentions.

    An answer with several codes names none: reciting the text is no retrieval.
    """
    answer = split_thought(text).answer
    codes = mentioned_codes(answer or "")
    if not codes:
        return unparsed()
    return Judgement(value=float(codes == {target}), answer=" ".join(sorted(codes)))
