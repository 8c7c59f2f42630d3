"""`make reliability`: runs every part, prints what came of it, and ends with 1 on a single failure.

python -m tests.reliability [--quick] [--json FILE] [--document FILE] [PART ...]
"""

import argparse
import json
import platform
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "layers/common"))  # it is no package of the environment

from tests.reliability.parts import PARTS, run_parts
from tests.reliability.report import markdown, replace_generated


def main() -> int:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Hold the service to its promises under faults, load and attack.")
    parser.add_argument("--quick", action="store_true", help="a few runs of each kind, about a minute")
    parser.add_argument("--json", type=Path, help="where to write the table as JSON")
    parser.add_argument("--document", type=Path, help="the Markdown document whose table to replace")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    begin = time.monotonic()
    rows = run_parts(arguments.parts or list(PARTS), quick=arguments.quick)
    seconds = time.monotonic() - begin
    print(markdown(rows))
    for row in rows:
        for example in row.examples:
            print(f"{row.part}: {row.tried}: {example}", file=sys.stderr)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(
            json.dumps({"seconds": round(seconds), "rows": [asdict(row) for row in rows]}, indent=2)
        )
    if arguments.document:
        when = f"{datetime.now(UTC):%Y-%m-%d}, CPython {platform.python_version()}, {seconds / 60:.0f} minutes"
        table = f"{when}.\n\n{markdown(rows)}"
        arguments.document.write_text(replace_generated(arguments.document.read_text("utf-8"), table), "utf-8")
    failures = sum(row.failures for row in rows)
    print(f"{sum(row.runs for row in rows):,} runs in {seconds:.0f} s, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
