"""Adds an animal for each row of a CSV file: python import_csv.py animals.csv."""

import csv
import hashlib
import io
import os
import re
import sys
from pathlib import Path

from animal_store_client import AnimalStoreError, Client

# The columns in their order, each with a pattern that its cells must match. (A name
# needs a character that is not white space.)
PATTERNS = {
    "name": r"(?s)(?=.*[^\s\ufeff]).{1,256}",
    "category_id": "-?[0-9]{1,19}",
    "status": "(available|pending|sold)?",
}
INT64 = range(-(2**63), 2**63)
RULES = """A name has 1 to 256 characters, not only white space. A category_id is a
64-bit integer. A status is available, pending, sold or empty."""


def read_rows(content: bytes) -> dict[int, list[str]]:
    """Map the number of each row to its cells, without the header and empty rows."""
    lines = io.StringIO(content.decode("utf-8-sig"), newline="")
    delimiter = ";" if ";" in lines.readline() else ","
    lines.seek(0)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    rows, number = {}, 0
    try:
        for number, cells in enumerate(reader, start=1):
            if any(cells):
                rows[number] = cells
    except csv.Error as error:
        raise ValueError(f"Row {number + 1}: {error}.") from error
    if rows.pop(1, None) != [*PATTERNS]:
        raise ValueError("Row 1 must be name,category_id,status.")
    return rows


def main() -> None:
    """Import the file; print the numbers of animals added now and by earlier attempts."""
    content = Path(sys.argv[1]).read_bytes()
    rows = read_rows(content)
    faults = []
    for number, cells in rows.items():
        if len(cells) != 3:
            faults.append(f"Row {number}: {len(cells)} cells, not 3.")
        for (column, pattern), cell in zip(PATTERNS.items(), cells, strict=False):
            matches = re.fullmatch(pattern, cell)
            if not matches or (column == "category_id" and int(cell) not in INT64):
                faults.append(f"Row {number}: the {column} is {cell!r}.")
    if faults:
        raise ValueError("\n".join([*faults, RULES]))
    digest = hashlib.sha256(content).hexdigest()
    added = 0
    # With 20 attempts, the import survives a minute in which the service is down.
    with Client(os.environ["BASE_URL"], os.environ["API_KEY"], attempts=20) as client:
        for number, (name, category, status) in rows.items():
            pet = client.create(
                name,
                int(category),
                status or None,
                idempotency_key=f"{digest}-{number}",
            )
            added += not pet.replayed
    print(f"{added} added, {len(rows) - added} added by an earlier attempt")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not {"BASE_URL", "API_KEY"} <= os.environ.keys():
        sys.exit("Set BASE_URL and API_KEY, and give the name of a CSV file.")
    try:
        main()
    except AnimalStoreError as error:
        sys.exit(
            f"Stopped: {error}\nRun it again within 24 hours of the first start with the same "
            "API key: no row is added twice."
        )
    except (OSError, ValueError) as error:
        sys.exit(f"{error}\nNothing was added.")
