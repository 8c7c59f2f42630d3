"""Changes made by a program: which are made, and what is said of those that survive."""

import pytest
import typer

from tools import ROOT
from tools.mutants import diff, values
from tools.planted_faults import Fault, judge

MAKEFILE = (ROOT / "Makefile").read_text()
HEADLINE = "help: ## list the commands"


def planted(line: str) -> Fault:
    text = MAKEFILE.replace(HEADLINE, line)
    return Fault(diff("Makefile", MAKEFILE, text), "make help", "Makefile", text)


def test_a_change_that_no_test_notices_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as exited:
        judge([planted("help: nothing"), planted("help: ## list them")])
    assert exited.value.exit_code == 1
    assert capsys.readouterr().out == (
        f"Makefile\n-{HEADLINE}\n+help: ## list them\n1 of 2 were found.\n"
    )


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
