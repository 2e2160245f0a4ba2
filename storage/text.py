"""Text and JSON as the lake holds them.

A model may answer anything that a Python string holds, also NUL and lone surrogates, which
neither Parquet strings nor Postgres take. In the lake each such character, and the escape
character itself, is U+FDD0 (a code point that Unicode keeps free for internal use) followed by
its four hex digits. All other text is stored as it is, so that it can be searched with SQL.
"""

from __future__ import annotations

import json
import re
from typing import Any, overload

from evals.identity import canonical_json

_ESCAPE = "\ufdd0"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0([0-9A-F]{4})")


@overload
def encode_text(text: str) -> str: ...
@overload
def encode_text(text: str | None) -> str | None: ...
def encode_text(text: str | None) -> str | None:
    r"""Return ``text`` as the lake holds it.

    >>> encode_text("a\0b") == "a\ufdd00000b"
    True
    """
    if text is None or _UNSTORABLE.search(text) is None:
        return text
    return _UNSTORABLE.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04X}", text)


@overload
def decode_text(stored: str) -> str: ...
@overload
def decode_text(stored: str | None) -> str | None: ...
def decode_text(stored: str | None) -> str | None:
    """Return the text that ``encode_text`` was given."""
    if stored is None or _ESCAPE not in stored:
        return stored
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), stored)


def encode_json(value: Any) -> str:
    """Return ``value`` as canonical JSON in the lake's text.

    Raises:
        ValueError: NaN or infinity.
    """
    return encode_text(canonical_json(value))


def decode_json(stored: str) -> Any:
    """Return the value that ``encode_json`` was given; tuples come back as lists."""
    return json.loads(decode_text(stored))
