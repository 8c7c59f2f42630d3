"""`make reliability`: run every part, print what came of it, and end with 1 on a single failure.

python -m tests.reliability [--quick] [--document FILE] [PART ...]
"""

import argparse
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.reliability.parts import PARTS, run_part
from tests.reliability.report import markdown, replace_generated


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Hold the service to its promises under faults, crashes and attack.")
    parser.add_argument("--quick", action="store_true", help="every case once, about a minute")
    parser.add_argument("--document", type=Path, help="the Markdown document whose table to replace")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    begin = time.monotonic()
    rows = [row for part in arguments.parts or PARTS for row in run_part(part, quick=arguments.quick)]
    seconds = time.monotonic() - begin
    print(markdown(rows))
    for row in rows:
        for example in row.examples:
            print(f"{row.part}: {row.tried}: {example}", file=sys.stderr)
    if arguments.document:
        when = f"{datetime.now(UTC):%Y-%m-%d}, CPython {platform.python_version()}, {seconds / 60:.0f} minutes"
        table = f"{when}.\n\n{markdown(rows)}"
        arguments.document.write_text(replace_generated(arguments.document.read_text("utf-8"), table), "utf-8")
    failures = sum(row.failures for row in rows)
    print(f"{sum(row.runs for row in rows):,} runs in {seconds:.0f} s, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
