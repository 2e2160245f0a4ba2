"""YAML that a person writes, read into a typed record; every mistake is named by file and line.

A mistake says where it is (file, line, field), what is wrong, and what to write instead, with
the nearest allowed name where there is one. All mistakes of a file are told at once.
"""

from __future__ import annotations

import difflib
import textwrap
import types
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evals.errors import InputError

M = TypeVar("M", bound=BaseModel)
Place = tuple[int | str, ...]
"""Keys and list positions from the top of the document to a field."""

REMEDY_MARK = " — "
"""In a validator's ValueError, what stands after this mark is the remedy."""


def load_yaml(path: Path, model: type[M]) -> M:
    """Return the file at ``path`` as a ``model``.

    Raises:
        InputError: The file can't be read, is no YAML, repeats a key, or does not fit the model.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError("there is no such file", str(path), "check the path") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8 text (byte {error.start})", str(path), "save it as UTF-8"
        ) from None
    except OSError as error:
        raise InputError(
            f"can't be read: {error.strerror}", str(path), "check path and permissions"
        ) from None
    return parse_yaml(text, str(path), model)


def parse_yaml(text: str, source: str, model: type[M]) -> M:
    """Return YAML text as a ``model``.

    Args:
        text: The document.
        source: What messages call it, usually the file's path.
        model: What it has to fit.

    Raises:
        InputError: No YAML, a repeated key, or a document that does not fit the model.
    """
    root = _compose(text, source)
    _refuse_odd_keys(root, source)
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"not readable as YAML: {_first_line(error)}", source) from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _input_error(error, root, source, model) from None


def _compose(text: str, source: str) -> yaml.MappingNode:
    """Return the document's tree of nodes, which knows lines; its top has to be a mapping."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise InputError(
            f"not YAML: {error.problem or error.context}",
            where,
            "check indentation, colons and quotes on this line and the one before",
        ) from None
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {_first_line(error)}", source) from None
    if root is None:
        raise InputError("the file is empty", source, "see the shipped examples")
    if not isinstance(root, yaml.MappingNode):
        raise InputError(
            "the document is not a mapping", f"{source}:{_line(root)}", "start it with `name: …`"
        )
    return root


def _refuse_odd_keys(root: yaml.Node, source: str) -> None:
    """Raise InputError for a key that stands twice in one mapping or is no text."""
    for mapping in _mappings(root):
        seen: dict[str, int] = {}
        for key, _ in mapping.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            name = str(key.value)
            where = f"{source}:{_line(key)}: {name}"
            if key.tag != "tag:yaml.org,2002:str":
                raise InputError(
                    f"the key `{name}` does not read as text in YAML", where, f'write "{name}"'
                )
            if name in seen:
                raise InputError(
                    f"`{name}` stands here twice, first on line {seen[name]}",
                    where,
                    "keep one of them",
                )
            seen[name] = _line(key)


def _mappings(root: yaml.Node) -> Iterator[yaml.MappingNode]:
    """Yield each mapping of the tree once, also where an alias names it again."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield node
            stack += [part for pair in reversed(node.value) for part in reversed(pair)]
        elif isinstance(node, yaml.SequenceNode):
            stack += reversed(node.value)


def _input_error(
    error: ValidationError, root: yaml.MappingNode, source: str, model: type[BaseModel]
) -> InputError:
    """Return all that pydantic found as one InputError, in the order of the file."""
    found = []
    for detail in error.errors(include_url=False):
        place = _own_place(detail["loc"], root)
        what, fix = _explain(detail, place, model)
        found.append((_line_of(root, place), _field(place), what, fix))
    found.sort(key=lambda one: one[0])
    told = [
        InputError(what, f"{source}:{line}: {field}" if field else f"{source}:{line}", fix)
        for line, field, what, fix in found
    ]
    if len(told) == 1:
        return told[0]
    lines = "".join(f"\n  {one}" for one in told)
    return InputError(f"{len(told)} things are wrong:{lines}", source)


def _explain(detail: ErrorDetails, place: Place, model: type[BaseModel]) -> tuple[str, str]:
    """Return what is wrong and what to write instead."""
    kind = detail["type"]
    name = str(place[-1]) if place else ""
    given = detail.get("input")
    if kind == "extra_forbidden":
        allowed = _names_at(model, place[:-1])
        return f"`{name}` is not a field here", _suggest(name, allowed)
    if kind == "missing":
        return f"`{name}` is missing", f"add `{name}: …`"
    if kind in ("enum", "literal_error"):
        allowed = _quoted(str(detail["ctx"]["expected"]))
        return f"`{given}` is not allowed here", _suggest(str(given), allowed)
    if kind in ("value_error", "assertion_error"):
        what, _, fix = detail["msg"].partition(", ")[2].partition(REMEDY_MARK)
        return what, fix
    if kind == "string_type":
        return f"`{given}` does not read as text", f'write "{given}" in quotes'
    return f"`{_short(given)}`: {detail['msg'].lower()}", _number_fix(given)


def _number_fix(given: object) -> str:
    """Return how to write a share that was given in percent, else nothing."""
    if isinstance(given, str) and given.strip().endswith("%"):
        try:
            return f"write {float(given.strip()[:-1]) / 100:g}"
        except ValueError:
            return ""
    return ""


def _suggest(name: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1, cutoff=0.6)
    hint = f"did you mean `{close[0]}`? " if close else ""
    return f"{hint}Allowed: {', '.join(allowed)}"


def _quoted(expected: str) -> list[str]:
    """Return the names in pydantic's ``'a', 'b' or 'c'``."""
    return expected.replace(" or ", ", ").replace("'", "").split(", ")


def _names_at(model: type[BaseModel], place: Place) -> list[str]:
    """Return the field names that are allowed at ``place``; none where the model has no names."""
    here: Any = model
    for key in place:
        here = _inside(here, key)
    found = _model_in(here)
    return sorted(found.model_fields) if found else []


def _inside(annotation: Any, key: int | str) -> Any:
    """Return the annotation of what ``key`` names within ``annotation``."""
    if isinstance(key, str):
        found = _model_in(annotation)
        if found and key in found.model_fields:
            return found.model_fields[key].annotation
    for part in _options(annotation):
        origin = get_origin(part)
        if isinstance(origin, type) and issubclass(origin, list | tuple | dict):
            return get_args(part)[-1] if origin is dict else get_args(part)[0]
    return annotation


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for part in _options(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def _options(annotation: Any) -> list[Any]:
    """Return the members of a union, or the annotation alone; ``Annotated`` is looked through."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _options(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [member for part in get_args(annotation) for member in _options(part)]
    return [annotation]


def _own_place(loc: tuple[int | str, ...], root: yaml.Node) -> Place:
    """Return ``loc`` without the names of union members that pydantic puts into it.

    The last key may be one that the document lacks (a missing field), so it is kept.
    """
    place: list[int | str] = []
    node: yaml.Node | None = root
    for position, key in enumerate(loc):
        below = _child(node, key)
        if below is None and not (position == len(loc) - 1 and isinstance(node, yaml.MappingNode)):
            continue
        place.append(key)
        node = below
    return tuple(place)


def _line_of(root: yaml.Node, place: Place) -> int:
    """Return the line (from 1) of the key at ``place``, or of the nearest thing around it."""
    node, line = root, _line(root)
    for key in place:
        if isinstance(node, yaml.MappingNode):
            line = next((_line(k) for k, _ in node.value if k.value == key), line)
        below = _child(node, key)
        if below is None:
            return line
        if isinstance(key, int):
            line = _line(below)
        node = below
    return line


def _child(node: yaml.Node | None, key: Hashable) -> yaml.Node | None:
    """Return what ``key`` names in ``node``, through merge keys too, or None."""
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int):
        return node.value[key] if key < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                return value  # type: ignore[no-any-return]
        for name, value in node.value:
            if name.tag == "tag:yaml.org,2002:merge" and (found := _child(value, key)):
                return found
    return None


def _field(place: Place) -> str:
    """Return ``rules[2].margin`` for ``("rules", 2, "margin")``."""
    text = ""
    for key in place:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _short(value: object) -> str:
    return textwrap.shorten(str(value), width=40, placeholder="…")
