import pytest

from evals.tasks.code_block import find_code

HEADER = 'def add(a, b):\n    """Returns the sum."""'
PLAIN = "def add(a, b):\n    return a + b"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{PLAIN}\n```",
        f"```\n{PLAIN}\n```",
        f"```py\n{PLAIN}\n```\n",
        f"``` python\n{PLAIN}\n```",
        f"Sure! Here it is:\n\n```python\n{PLAIN}\n```\n\nIt adds a and b.",
        f"```python\n{PLAIN}",
        f"```python\n{PLAIN}\n```\nFor example:\n```python\nprint(add(1, 2))\n```",
        f"```python\ndef half(n):\n    return n // 2\n```\n\n```python\n{PLAIN}\n```",
        f"```python\ndef add(a, b):\n    return a\n```\nNo, rather:\n```python\n{PLAIN}\n```",
        "1. So:\n   ```python\n   def add(a, b):\n       return a + b\n   ```",
        PLAIN,
        f"{PLAIN}\n\nThis function adds two numbers.",
        f"Here is the function:\n\n{PLAIN}\n",
    ],
)
def test_the_function_is_found(text: str) -> None:
    code = find_code(text, "add", HEADER)
    assert code is not None
    assert code.strip() == PLAIN


def test_a_block_that_was_cut_off_counts_whole() -> None:
    code = f"ONE = 1\n\n{PLAIN}"
    assert find_code(f"Sure.\n```python\n{code}", "add", HEADER) == code


def test_bare_code_keeps_imports_and_helpers_and_ends_at_prose() -> None:
    code = "import math\n\ndef helper(a):\n    return a\n\ndef add(a, b):\n    return helper(a) + b"
    assert find_code(f"{code}\n\nNow you can call it.", "add", HEADER) == f"{code}\n"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("    return a + b\n", "    return a + b"),
        (" return a + b", "    return a + b"),
        ("return a + b", "    return a + b"),
        ("\n    return a + b\n\n# Function 4", "    return a + b\n"),
        ("    total = a\n    total += b\n    return total\nprint(add(1, 2))",
         "    total = a\n    total += b\n    return total"),
        ("  total = a + b\n  return total", "  total = a + b\n  return total"),
        ("    if a:\n        return b\n    return 0", "    if a:\n        return b\n    return 0"),
        ("    # the sum\n    return a + b", "    # the sum\n    return a + b"),
    ],
)  # fmt: skip
def test_a_body_goes_on_where_the_head_ends(text: str, body: str) -> None:
    assert find_code(text, "add", HEADER) == f"{HEADER}\n{body}"


@pytest.mark.parametrize(
    "text",
    ["", "  \n ", "You can add the two numbers.", "I would return a + b.", " To do this, add them.",
     "A def is a definition."],
)  # fmt: skip
def test_prose_holds_no_code(text: str) -> None:
    assert find_code(text, "add", HEADER) is None


def test_a_fenced_function_of_another_name_is_still_the_answer() -> None:
    assert find_code("```\ndef plus(a, b):\n    return a + b\n```", "add", HEADER) is not None


def test_long_texts_are_read_in_linear_time() -> None:
    assert find_code("```\n" * 20_000, "add", HEADER) == ""
    assert find_code("a" * 100_000, "add", HEADER) is None
    assert find_code("a, " * 30_000, "add", HEADER) is None
