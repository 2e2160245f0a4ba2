from __future__ import annotations

import pytest
from small_lake import HOSTILE

from app.plain import literal, plain, shortened


def test_plain_writes_out_what_a_browser_can_not_show_or_must_not_obey() -> None:
    assert plain("a\0b\ud800c\u202ed\x1b[31m") == "a\\x00b\\ud800c\\u202ed\\x1b[31m"
    plain(HOSTILE).encode("utf-8")


def test_plain_keeps_all_other_text() -> None:
    text = "line one\n\tline two: naïve 数学 🙂 <b>**not bold**</b>"
    assert plain(text) == text


@pytest.mark.parametrize("mark", list("*_`[]()<>#$:|~!-+.\\&{}^"))
def test_literal_escapes_every_mark(mark: str) -> None:
    assert literal(f"a{mark}b") == f"a\\{mark}b"


def test_literal_is_one_line() -> None:
    assert literal("a\n\n# b") == "a \\# b"


def test_shortened_says_that_it_cut() -> None:
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
    assert shortened("a\n b", 6) == "a b"
