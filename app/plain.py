"""Text of others, made fit to be shown: a model's answers, and names that a user chose.

Nothing of it is ever markup. A browser can't show NUL or lone surrogates, and must not obey
characters that turn the direction of what follows: these are written out as escapes.
"""

from __future__ import annotations

import re

_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufdd0\ud800-\udfff\ufffe\uffff]"
)
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_BYTE = 0xFF


def plain(text: str) -> str:
    r"""Return ``text`` with the characters that can't be shown written out.

    >>> plain("a\0b")
    'a\\x00b'
    """
    return _UNSHOWABLE.sub(_escape, text)


def literal(text: str) -> str:
    r"""Return Markdown that shows ``text`` on one line, character by character.

    >>> literal("*a*")
    '\\*a\\*'
    """
    return _PUNCTUATION.sub(r"\\\1", " ".join(plain(text).split()))


def shortened(text: str, length: int) -> str:
    """Return the text on one line, cut after ``length`` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= _BYTE else f"\\u{code:04x}"
