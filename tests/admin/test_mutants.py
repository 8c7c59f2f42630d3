"""Changes made by a program: which are made, and what is said of one that survives."""

import pytest

from tools.mutants import changed_line, diff, values, without_help


def test_a_change_is_named_by_its_file_and_its_lines() -> None:
    assert diff("x.py", "a\nb = 1\nc\n", "a\nb = 2\nc\n") == "x.py\n- b = 1\n+ b = 2"


@pytest.mark.parametrize(
    ("name", "line"),
    [("x.py\n- a = 1\n- b\n+ a = 2\n+ c\n- d", "c"), ("x.yaml\n- a\n-   - b", "- b")],
)
def test_a_change_is_accepted_by_the_last_line_that_comes_or_else_goes(
    name: str, line: str
) -> None:
    assert changed_line(name) == line


def test_a_commands_help_is_not_changed() -> None:
    assert without_help('f(help="a", is_help=None)') == "f(is_help=None)"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("a: true\n", ["a: false\n"]),
        ("Description: any\na: !Ref B\n", ["Description: any\na: !Ref Bx\n"]),
        ("[1, b]\n", ["[b]\n", "[1]\n", "[1, bx]\n", "[10, b]\n"]),
    ],
)
def test_each_value_is_changed_and_each_entry_left_out(
    text: str, changed: list[str]
) -> None:
    assert list(values(text)) == [text, *changed]
