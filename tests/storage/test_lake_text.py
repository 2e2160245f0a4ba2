from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from storage.text import decode_json, decode_text, encode_json, encode_text

ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)


@given(ANY_TEXT)
@example("")
@example("\0")
@example("\ud800\udc00 \udfff")
@example("\ufdd0D800")
@example("\ufdd0\ufdd00000")
def test_text_comes_back_and_is_storable(text: str) -> None:
    stored = encode_text(text)
    stored.encode("utf-8")
    assert "\0" not in stored
    assert decode_text(stored) == text


def test_ordinary_text_is_stored_as_it_is() -> None:
    assert encode_text("½ é 漢字 \x1a 🙂") == "½ é 漢字 \x1a 🙂"


def test_none_stays_none() -> None:
    assert encode_text(None) is None
    assert decode_text(None) is None


@settings(max_examples=40, deadline=None)
@given(JSON)
def test_json_comes_back_and_is_storable(value: object) -> None:
    stored = encode_json(value)
    stored.encode("utf-8")
    assert decode_json(stored) == value


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_json_refuses_what_is_no_number(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode_json({"value": number})
