"""The long form of the suite, and the table of docs/reliability.md: what each test has recorded as its properties."""

import platform
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tools import ROOT

_DOCUMENT = ROOT / "docs/reliability.md"
_TABLE = re.compile(r"(?<=<!-- table: begin -->\n).*(?=<!-- table: end -->)", re.DOTALL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long",
        action="store_true",
        help="try each case often; rewrite docs/reliability.md's table",
    )


@pytest.fixture(scope="session")
def long(request: pytest.FixtureRequest) -> bool:
    """Tell whether to try each case often: about ten minutes instead of one."""
    return bool(request.config.getoption("--long", default=False))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    """Print how often each thing was tried; in the long form, write it into the document unless something failed."""
    tried: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.getreports("passed"):
        part = Path(report.nodeid.partition("::")[0]).stem.removeprefix("test_")
        tried.update(
            {
                (part, what): times
                for what, times in report.user_properties
                if isinstance(times, int)
            }
        )
    if not tried:
        return
    rows = [f"| {part} | {what} | {times:,} |\n" for (part, what), times in tried.items()]
    table = "".join(["| Part | Tried | Times |\n|---|---|--:|\n", *rows])
    terminalreporter.write(table)
    if exitstatus == pytest.ExitCode.OK and config.getoption("--long", default=False):
        when = f"{datetime.now(UTC):%Y-%m-%d}, CPython {platform.python_version()}: no failure.\n\n"
        _DOCUMENT.write_text(
            _TABLE.sub(lambda _: when + table, _DOCUMENT.read_text("utf-8")), "utf-8"
        )
