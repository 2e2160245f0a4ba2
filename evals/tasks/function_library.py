"""Small Python functions with their descriptions, reference code and test arguments.

Each has its meaning twice: as ``code``, the reference answer, and as ``compute``, which gives the
expected values and is written in another way where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

from evals.tasks.drafts import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function to be written, or a family of them over a number ``k``."""

    name: str
    """With ``{k}`` where the family's number stands; so in the other texts."""
    takes: str
    """Parameters, as written in the ``def`` line."""
    does: str
    """Completes "a function that"."""
    code: str
    """Body of a right answer."""
    compute: Callable[..., Any]
    """Takes k, if there is one, and the arguments; returns JSON types."""
    arguments: tuple[tuple[Any, ...], ...]
    """Arguments of each test."""
    ks: tuple[int, ...] = ()
    """Members of the family; empty for a single function."""

    @property
    def cases(self) -> tuple[int | None, ...]:
        """Return the numbers of the members, None for a single function."""
        return self.ks or (None,)

    def text(self, template: str, k: int | None) -> str:
        """Return ``template`` for the member ``k``."""
        return template if k is None else template.replace("{k}", str(k))

    def tests(self, k: int | None) -> list[list[Any]]:
        """Return arguments and expected value of each test of the member ``k``."""
        before = () if k is None else (k,)
        return [[list(given), self.compute(*before, *given)] for given in self.arguments]


def _collatz(n: int) -> int:
    """Return the steps from ``n`` to 1."""
    return 0 if n == 1 else 1 + _collatz(3 * n + 1 if n % 2 else n // 2)


def _balanced(text: str) -> bool:
    """Return whether the parentheses cancel out."""
    marks = "".join(letter for letter in text if letter in "()")
    while "()" in marks:
        marks = marks.replace("()", "")
    return marks == ""


NUMBERS = ((0,), (7,), (12,), (-3,), (100,))
COUNTS = ((0,), (1,), (2,), (5,), (10,))
TEXTS = (("",), ("a",), ("pawl",), ("Ratchet",), ("one two three",))
LISTS = (([4],), ([3, 1, 2],), ([5, 5, 1],), ([-2, 0, 9, 4],), ([10, 8, 6, 4, 2],))
LISTS_OR_NONE: tuple[tuple[list[int]], ...] = (([],), *LISTS)
PAIRS = ((1, 2), (9, 4), (6, 6), (-5, 3), (12, 18))

EASY = (
    Function(
        name="add_{k}",
        takes="number",
        does="returns the number plus {k}",
        code="return number + {k}",
        compute=lambda k, number: number + k,
        arguments=NUMBERS,
        ks=(3, 7, 10, 25),
    ),
    Function(
        name="times_{k}",
        takes="number",
        does="returns the number multiplied by {k}",
        code="return number * {k}",
        compute=lambda k, number: number * k,
        arguments=NUMBERS,
        ks=(2, 5, 9, 12),
    ),
    Function(
        name="remainder_{k}",
        takes="number",
        does="returns the remainder of the number divided by {k}",
        code="return number % {k}",
        compute=lambda k, number: number - k * (number // k),
        arguments=((0,), (7,), (12,), (35,), (101,)),
        ks=(3, 4, 6, 8),
    ),
    Function(
        name="is_multiple_of_{k}",
        takes="number",
        does="returns True if the number is a multiple of {k} and False otherwise",
        code="return number % {k} == 0",
        compute=lambda k, number: number // k * k == number,
        arguments=((0,), (9,), (12,), (20,), (31,)),
        ks=(3, 4, 5, 10),
    ),
    Function(
        name="longer_than_{k}",
        takes="text",
        does="returns True if the text has more than {k} characters and False otherwise",
        code="return len(text) > {k}",
        compute=lambda k, text: text[k:] != "",
        arguments=TEXTS,
        ks=(2, 3, 5, 6),
    ),
    Function(
        name="first_{k}_letters",
        takes="text",
        does="returns the first {k} characters of the text",
        code="return text[:{k}]",
        compute=lambda k, text: "".join(letter for at, letter in enumerate(text) if at < k),
        arguments=TEXTS,
        ks=(2, 3, 4, 5),
    ),
    Function(
        name="repeat_{k}_times",
        takes="text",
        does="returns the text repeated {k} times without spaces",
        code="return text * {k}",
        compute=lambda k, text: "".join(text for _ in range(k)),
        arguments=TEXTS,
        ks=(2, 3, 4),
    ),
    Function(
        name="square",
        takes="number",
        does="returns the square of the number",
        code="return number ** 2",
        compute=lambda number: number * number,
        arguments=NUMBERS,
    ),
    Function(
        name="is_even",
        takes="number",
        does="returns True if the number is even and False otherwise",
        code="return number % 2 == 0",
        compute=lambda number: number & 1 == 0,
        arguments=NUMBERS,
    ),
    Function(
        name="larger",
        takes="a, b",
        does="returns the larger of the two numbers",
        code="return a if a > b else b",
        compute=max,
        arguments=PAIRS,
    ),
    Function(
        name="distance",
        takes="a, b",
        does="returns the absolute difference of the two numbers",
        code="return abs(a - b)",
        compute=lambda a, b: max(a, b) - min(a, b),
        arguments=PAIRS,
    ),
    Function(
        name="area",
        takes="width, height",
        does="returns the area of a rectangle with the given width and height",
        code="return width * height",
        compute=lambda width, height: width * height,
        arguments=((1, 2), (9, 4), (6, 6), (0, 3), (12, 18)),
    ),
    Function(
        name="last_item",
        takes="items",
        does="returns the last item of the list",
        code="return items[-1]",
        compute=lambda items: items[len(items) - 1],
        arguments=LISTS,
    ),
    Function(
        name="first_item",
        takes="items",
        does="returns the first item of the list",
        code="return items[0]",
        compute=lambda items: items[-len(items)],
        arguments=LISTS,
    ),
    Function(
        name="count_items",
        takes="items",
        does="returns how many items the list has",
        code="return len(items)",
        compute=lambda items: sum(1 for _ in items),
        arguments=LISTS_OR_NONE,
    ),
    Function(
        name="total",
        takes="numbers",
        does="returns the sum of the numbers in the list, 0 for an empty list",
        code="return sum(numbers)",
        compute=lambda numbers: list(accumulate(numbers, initial=0))[-1],
        arguments=LISTS_OR_NONE,
    ),
    Function(
        name="smallest",
        takes="numbers",
        does="returns the smallest number of the list",
        code="return min(numbers)",
        compute=lambda numbers: sorted(numbers)[0],
        arguments=LISTS,
    ),
    Function(
        name="in_order",
        takes="numbers",
        does="returns a list of the numbers sorted from smallest to largest",
        code="return sorted(numbers)",
        compute=lambda numbers: sorted(numbers, reverse=True)[::-1],
        arguments=LISTS_OR_NONE,
    ),
    Function(
        name="is_empty",
        takes="items",
        does="returns True if the list is empty and False otherwise",
        code="return len(items) == 0",
        compute=lambda items: not items,
        arguments=LISTS_OR_NONE,
    ),
    Function(
        name="shout",
        takes="text",
        does="returns the text in upper case",
        code="return text.upper()",
        compute=lambda text: "".join(letter.upper() for letter in text),
        arguments=TEXTS,
    ),
    Function(
        name="backwards",
        takes="text",
        does="returns the text with its characters in reverse order",
        code="return text[::-1]",
        compute=lambda text: "".join(reversed(text)),
        arguments=TEXTS,
    ),
    Function(
        name="with_dashes",
        takes="words",
        does='returns the words of the list joined by "-"',
        code='return "-".join(words)',
        compute=lambda words: "".join(f"-{word}" for word in words)[1:],
        arguments=((["a"],), (["a", "b"],), (["red", "green", "blue"],), ([],)),
    ),
    Function(
        name="greeting",
        takes="name",
        does='returns "Hello, NAME!" with the given name in place of NAME',
        code='return "Hello, " + name + "!"',
        compute=lambda name: f"Hello, {name}!",
        arguments=(("Ana",), ("Ben",), ("Dr. Kim",), ("",)),
    ),
    Function(
        name="begins_with",
        takes="text, letter",
        does="returns True if the text begins with the letter and False otherwise",
        code="return text.startswith(letter)",
        compute=lambda text, letter: text[:1] == letter,
        arguments=(("pawl", "p"), ("pawl", "l"), ("", "a"), ("Apple", "A"), ("Apple", "a")),
    ),
)

HARD = (
    Function(
        name="sum_of_multiples_of_{k}",
        takes="limit",
        does="returns the sum of all positive multiples of {k} that are smaller than limit",
        code="return sum(range({k}, limit, {k}))",
        compute=lambda k, limit: sum(n for n in range(1, limit) if n % k == 0),
        arguments=((1,), (10,), (13,), (30,), (100,)),
        ks=(3, 4, 5, 7),
    ),
    Function(
        name="count_above_{k}",
        takes="numbers",
        does="returns how many numbers of the list are greater than {k}",
        code="return len([number for number in numbers if number > {k}])",
        compute=lambda k, numbers: sum(number > k for number in numbers),
        arguments=(*LISTS_OR_NONE, ([3, 4, 5, 6, 7, 3],)),
        ks=(2, 3, 4, 5),
    ),
    Function(
        name="rotate_left_{k}",
        takes="items",
        does="returns the list rotated {k} places to the left; all lists have more than {k} items",
        code="return items[{k}:] + items[:{k}]",
        compute=lambda k, items: [items[(at + k) % len(items)] for at in range(len(items))],
        arguments=(([1, 2, 3, 4, 5],), ([9, 8, 7, 6],), (["a", "b", "c", "d", "e", "f"],)),
        ks=(1, 2, 3),
    ),
    Function(
        name="groups_of_{k}",
        takes="items",
        does="returns the list cut into lists of {k} items in order; the last one may be shorter",
        code="return [items[at:at + {k}] for at in range(0, len(items), {k})]",
        compute=lambda k, items: [
            [item for at, item in enumerate(items) if at // k == group]
            for group in range(math.ceil(len(items) / k))
        ],
        arguments=(([],), ([1],), ([1, 2, 3, 4],), ([1, 2, 3, 4, 5, 6, 7],)),
        ks=(2, 3, 4),
    ),
    Function(
        name="every_{k}th_item",
        takes="items",
        does="returns a list of every {k}th item, beginning with the first item",
        code="return items[::{k}]",
        compute=lambda k, items: [item for at, item in enumerate(items) if at % k == 0],
        arguments=(([],), ([1],), ([1, 2, 3, 4],), ([1, 2, 3, 4, 5, 6, 7, 8, 9],)),
        ks=(4, 5, 6),
    ),
    Function(
        name="shift_letters_{k}",
        takes="text",
        does="returns the lower-case text with each letter moved {k} places on in the alphabet, "
        "z being followed by a",
        code='return "".join(chr((ord(letter) - 97 + {k}) % 26 + 97) for letter in text)',
        compute=lambda k, text: "".join(
            "abcdefghijklmnopqrstuvwxyz"[("abcdefghijklmnopqrstuvwxyz".index(letter) + k) % 26]
            for letter in text
        ),
        arguments=(("",), ("abc",), ("xyz",), ("pawl",)),
        ks=(1, 2, 3, 5),
    ),
    Function(
        name="count_vowels",
        takes="text",
        does="returns how many of the letters a, e, i, o and u the text has, in either case",
        code='return sum(letter in "aeiou" for letter in text.lower())',
        compute=lambda text: len([letter for letter in text if letter in "aeiouAEIOU"]),
        arguments=(("",), ("pawl",), ("Evaluation",), ("rhythm",), ("AEIOU and you",)),
    ),
    Function(
        name="is_palindrome",
        takes="text",
        does="returns True if the text reads the same backwards, ignoring upper and lower case, "
        "and False otherwise",
        code="return text.lower() == text.lower()[::-1]",
        compute=lambda text: all(
            text[at].lower() == text[-1 - at].lower() for at in range(len(text))
        ),
        arguments=(("",), ("Level",), ("pawl",), ("Noon",), ("abca",)),
    ),
    Function(
        name="without_repeats",
        takes="items",
        does="returns the list without repeated items, in the order of their first appearance",
        code="result = []\nfor item in items:\n    if item not in result:\n"
        "        result.append(item)\nreturn result",
        compute=lambda items: list(dict.fromkeys(items)),
        arguments=(([],), ([1, 1],), ([3, 1, 3, 2, 1],), (["b", "a", "b"],)),
    ),
    Function(
        name="second_largest",
        takes="numbers",
        does="returns the second largest of the different numbers in the list",
        code="return sorted(set(numbers))[-2]",
        compute=lambda numbers: max(number for number in numbers if number != max(numbers)),
        arguments=(([1, 2],), ([5, 5, 3],), ([4, 9, 9, 7, 1],), ([-1, -5, -3],)),
    ),
    Function(
        name="running_total",
        takes="numbers",
        does="returns a list in which each number is replaced by the sum of itself and all "
        "numbers before it",
        code="result = []\ntotal = 0\nfor number in numbers:\n    total += number\n"
        "    result.append(total)\nreturn result",
        compute=lambda numbers: list(accumulate(numbers)),
        arguments=LISTS_OR_NONE,
    ),
    Function(
        name="factorial",
        takes="n",
        does="returns the product of the whole numbers from 1 to n, 1 for n = 0",
        code="result = 1\nfor number in range(2, n + 1):\n    result *= number\nreturn result",
        compute=math.factorial,
        arguments=COUNTS,
    ),
    Function(
        name="fibonacci",
        takes="n",
        does="returns the n-th Fibonacci number, where fibonacci(0) is 0 and fibonacci(1) is 1",
        code="a, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nreturn a",
        compute=lambda n: round(((1 + math.sqrt(5)) / 2) ** n / math.sqrt(5)),
        arguments=COUNTS,
    ),
    Function(
        name="is_prime",
        takes="n",
        does="returns True if n is a prime number and False otherwise",
        code="if n < 2:\n    return False\nfor divisor in range(2, n):\n"
        "    if n % divisor == 0:\n        return False\nreturn True",
        compute=lambda n: sum(n % divisor == 0 for divisor in range(1, n + 1)) == 2,  # noqa: PLR2004
        arguments=((0,), (1,), (2,), (9,), (17,), (91,)),
    ),
    Function(
        name="digit_sum",
        takes="number",
        does="returns the sum of the decimal digits of a number that is not negative",
        code="return sum(int(digit) for digit in str(number))",
        compute=lambda number: sum(number // 10**place % 10 for place in range(12)),
        arguments=((0,), (7,), (12,), (909,), (123456,)),
    ),
    Function(
        name="common_divisor",
        takes="a, b",
        does="returns the greatest common divisor of two positive whole numbers",
        code="while b:\n    a, b = b, a % b\nreturn a",
        compute=math.gcd,
        arguments=((1, 5), (12, 18), (7, 7), (35, 14), (17, 4)),
    ),
    Function(
        name="to_binary",
        takes="number",
        does="returns the number, which is not negative, as a text of binary digits without a "
        "prefix",
        code="return bin(number)[2:]",
        compute=lambda number: f"{number:b}",
        arguments=((0,), (1,), (5,), (8,), (255,)),
    ),
    Function(
        name="longest_word",
        takes="text",
        does="returns the longest word of a text whose words are separated by spaces, the first "
        "one if several are longest",
        code="return max(text.split(), key=len)",
        compute=lambda text: sorted(text.split(), key=lambda word: -len(word))[0],
        arguments=(("one",), ("one three two",), ("aa bb c",), ("a ratchet turns forward",)),
    ),
    Function(
        name="flatten",
        takes="lists",
        does="returns one list with the items of all the lists in a list of lists, in order",
        code="return [item for part in lists for item in part]",
        compute=lambda lists: sum(lists, []),  # noqa: RUF017 - a few items
        arguments=(([],), ([[1], [2, 3]],), ([[], [4, 5], []],), ([["a"], ["b"], ["a"]],)),
    ),
    Function(
        name="interleave",
        takes="a, b",
        does="returns one list with the items of two equally long lists in turn, beginning with "
        "the first item of a",
        code="result = []\nfor left, right in zip(a, b):\n    result.append(left)\n"
        "    result.append(right)\nreturn result",
        compute=lambda a, b: [(a, b)[at % 2][at // 2] for at in range(2 * len(a))],
        arguments=(([], []), ([1], [2]), ([1, 3, 5], [2, 4, 6]), (["x", "y"], [0, 0])),
    ),
    Function(
        name="collatz_steps",
        takes="n",
        does="returns how many steps it takes from n to 1, where a step halves an even number and "
        "turns an odd number into three times the number plus one",
        code="steps = 0\nwhile n != 1:\n    n = n // 2 if n % 2 == 0 else 3 * n + 1\n"
        "    steps += 1\nreturn steps",
        compute=_collatz,
        arguments=((1,), (2,), (3,), (6,), (27,)),
    ),
    Function(
        name="is_balanced",
        takes="text",
        does='returns True if every "(" in the text is closed by a later ")" and no ")" comes '
        "without an open one, and False otherwise",
        code='depth = 0\nfor letter in text:\n    if letter == "(":\n        depth += 1\n'
        '    if letter == ")":\n        depth -= 1\n    if depth < 0:\n        return False\n'
        "return depth == 0",
        compute=_balanced,
        arguments=(("",), ("(a)",), ("(()",), (")(",), ("(a)(b(c))",)),
    ),
    Function(
        name="count_word",
        takes="text, word",
        does="returns how often the word is among the words of the text, which are separated by "
        "spaces",
        code="return text.split().count(word)",
        compute=lambda text, word: sum(part == word for part in text.split(" ")),
        arguments=(("", "a"), ("a b a", "a"), ("cat catalog cat", "cat"), ("one two", "three")),
    ),
    Function(
        name="leading_evens",
        takes="numbers",
        does="returns a list of the numbers from the beginning of the list up to, but without, "
        "the first odd number",
        code="result = []\nfor number in numbers:\n    if number % 2 == 1:\n        break\n"
        "    result.append(number)\nreturn result",
        compute=lambda numbers: list(takewhile(lambda number: number % 2 == 0, numbers)),
        arguments=(([],), ([1, 2],), ([2, 4, 5, 6],), ([8, 6],), ([2, 3, 4],)),
    ),
)

LIBRARY: dict[Level, tuple[Function, ...]] = {Level.EASY: EASY, Level.HARD: HARD}
