from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from evals.errors import InputError
from evals.yaml_file import load_yaml, parse_yaml


class Leaf(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    margin: float = 0.1
    role: Literal["must", "guard"] = "must"

    @field_validator("margin")
    @classmethod
    def _small(cls, value: float, info: ValidationInfo) -> float:
        if value > 1:
            raise ValueError(f"{info.field_name} {value:g} is above 1 — write a share")
        return value


class Tree(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    leaves: list[Leaf] = []
    named: dict[str, Leaf] = {}
    other: Leaf | None = None


def _error(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "tree.yaml", Tree)
    return caught.value


def test_a_fitting_document_becomes_the_model() -> None:
    tree = parse_yaml("name: oak\nleaves: [{margin: 0.2}]\n", "tree.yaml", Tree)
    assert tree == Tree(name="oak", leaves=[Leaf(margin=0.2)])


def test_anchors_and_merge_keys_are_understood() -> None:
    text = "name: oak\nother: &o {margin: 0.3}\nleaves:\n- <<: *o\n  role: guard\n"
    assert parse_yaml(text, "t", Tree).leaves[0] == Leaf(margin=0.3, role="guard")


@pytest.mark.parametrize(
    ("text", "where", "what", "fix"),
    [
        (
            "name: oak\nleaves:\n  - role: must\n    margn: 0.2\n",
            "tree.yaml:4: leaves[0].margn",
            "`margn` is not a field here",
            "did you mean `margin`? Allowed: margin, role",
        ),
        ("nmae: oak\nname: x", "tree.yaml:1: nmae", "`nmae` is not a field here", "`name`?"),
        ("leaves: []", "tree.yaml:1: name", "`name` is missing", "add `name: …`"),
        (
            "name: oak\nleaves:\n- role: must\n- role: gaurd",
            "tree.yaml:4: leaves[1].role",
            "`gaurd` is not allowed here",
            "did you mean `guard`? Allowed: must, guard",
        ),
        (
            "name: oak\nother:\n  margin: 2%",
            "tree.yaml:3: other.margin",
            "`2%`: input should be a valid number",
            "write 0.02",
        ),
        (
            "name: oak\nother:\n  margin: 2",
            "tree.yaml:3: other.margin",
            "margin 2 is above 1",
            "write a share",
        ),
        ("name: 1.5", "tree.yaml:1: name", "`1.5` does not read as text", '"1.5"'),
        (
            "name: oak\nnamed:\n  a:\n    rol: must",
            "tree.yaml:4: named.a.rol",
            "`rol` is not a field here",
            "did you mean `role`?",
        ),
        ("name: oak\nother: {m: 1, m: 2}", "tree.yaml:2: m", "stands here twice", "keep one"),
        ("name: oak\nother:\n  on: 1", "tree.yaml:3: on", "does not read as text", '"on"'),
        ("name: oak\n  other: 1", "tree.yaml:2", "not YAML", "check indentation"),
        ("", "tree.yaml", "empty", "examples"),
        ("- name", "tree.yaml:1", "not a mapping", "start it with"),
        ("name: !!python/object/apply:os.getcwd []", "tree.yaml", "not readable as YAML", ""),
    ],
)
def test_a_mistake_is_named_by_line_field_and_remedy(
    text: str, where: str, what: str, fix: str
) -> None:
    error = _error(text)
    assert error.where == where
    assert what in error.what
    assert fix in error.fix


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    error = _error("nmae: oak\nleaves:\n- role: gaurd\n- margn: 1\n")
    assert error.what.startswith("4 things are wrong")
    lines = error.what.splitlines()[1:]
    assert [line.split(":")[1] for line in lines] == ["1", "1", "3", "4"]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.write_bytes(b"name: \xff\xfe"), "not UTF-8"),
        (lambda p: p.mkdir(), "can't be read"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, make: object, what: str) -> None:
    path = tmp_path / "tree.yaml"
    assert callable(make)
    make(path)
    with pytest.raises(InputError, match=what) as caught:
        load_yaml(path, Tree)
    assert caught.value.where == str(path)


def test_load_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tree.yaml"
    path.write_text("name: öak\n", encoding="utf-8")
    assert load_yaml(path, Tree).name == "öak"
