"""The Python code in an answer: a fenced block, bare code, or the continuation of a function."""

from __future__ import annotations

import re
import textwrap

_FENCE = re.compile(
    r"^[ \t]*```[ \t]*[\w+#.-]*[ \t]*\n(?P<code>.*?)(?:^[ \t]*```|\Z)", re.MULTILINE | re.DOTALL
)
_TOP_LEVEL = re.compile(r"(?:def|class|async|import|from)\s|@|#")
_STATEMENT = re.compile(
    r"(?:return|if|for|while|with|try|def|import|from|raise)\b"
    r"|[\w\[\]., ]+?\s*(?:[-+*/%]|//)?=(?!=)"
    r"|\w[\w.]*\("
    r"|#|\"\"\""
)
_INDENT = "    "


def find_code(text: str, name: str, header: str) -> str | None:
    """Return the code with which ``text`` answers, or None.

    The rule: the last fenced block that defines ``name``, else the last fenced block; a block
    cut off by the end of the text counts. Without a fence the bare code from its first top-level
    line to the next line of prose, if it defines ``name``. Else, if the text begins with a
    statement, it goes on where ``header`` ends.

    Args:
        text: The answer, without a thought.
        name: Function that was asked for.
        header: Its ``def`` line.
    """
    defines = re.compile(rf"^[ \t]*(?:async\s+)?def\s+{name}\s*\(|^{name}\s*=", re.MULTILINE)
    blocks = [textwrap.dedent(block["code"]) for block in _FENCE.finditer(text)]
    if blocks:
        return next((block for block in reversed(blocks) if defines.search(block)), blocks[-1])
    bare = _bare_code(text)
    if defines.search(bare):
        return bare
    return _continued(text, header)


def _bare_code(text: str) -> str:
    """Return the lines from the first top-level line of code to the next line of prose."""
    lines: list[str] = []
    for line in text.splitlines():
        code = bool(_TOP_LEVEL.match(line))
        if lines and line.strip() and not code and not line.startswith((" ", "\t", ")", "]", "}")):
            break
        if lines or (code and not line.startswith("#")):
            lines.append(line)
    return "\n".join(lines)


def _continued(text: str, header: str) -> str | None:
    """Return ``header`` with the function body that ``text`` begins with, or None."""
    lines = text.lstrip("\r\n").splitlines()
    first = lines[0].lstrip() if lines else ""
    if not _STATEMENT.match(first):
        return None
    if len(lines[0]) - len(first) < 2:  # noqa: PLR2004 - a lone space is the tokenizer's
        lines[0] = _INDENT + first
    body: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            break
        body.append(line)
    return "\n".join([header, *body])
