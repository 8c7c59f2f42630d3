"""Adds an animal for each row of a CSV file: python import_csv.py animals.csv."""

import csv
import hashlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from animal_store_client import AnimalStoreError, Client


def find_faults(name: str, category_id: str, status: str = "") -> Iterator[str]:
    """Yield what is wrong with the cells of a row."""
    if not name.replace("\ufeff", "").strip() or len(name) > 256:
        yield "name must have 1 to 256 characters, not only white space"
    is_integer = re.fullmatch("-?[0-9]{1,19}", category_id)
    if not is_integer or not -(2**63) <= int(category_id) < 2**63:
        yield f"category_id is {category_id!r}, not a 64-bit integer"
    if status not in ("available", "pending", "sold", ""):
        yield f"status is {status!r}, not available, pending, sold or empty"


def read_rows(content: bytes) -> dict[int, dict[str, str]]:
    """Return each row by its number; raise ValueError if anything is wrong."""
    try:
        lines = io.StringIO(content.decode().removeprefix("\ufeff"), newline="")
    except UnicodeDecodeError as error:
        line = len(content[: error.start + 1].splitlines())
        raise ValueError(f"Line {line} is not UTF-8: save the file as UTF-8.") from None
    delimiter = ";" if ";" in lines.readline() else ","
    lines.seek(0)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    columns = ["category_id", "name", "status"]  # in any order; status is optional
    rows, errors, number = {}, [], 0
    try:
        header = next(reader, [])
        if sorted(header) not in (columns, columns[:2]):
            raise ValueError(f"Row 1 must be name,category_id,status; it is {header}.")
        number = 1
        for number, cells in enumerate(reader, start=2):
            if len(cells) == len(header) and any(cells):
                rows[number] = dict(zip(header, cells, strict=True))
                faults = find_faults(**rows[number])
                errors += [f"Row {number}: {fault}" for fault in faults]
            elif any(cells):  # otherwise, the row is empty
                errors.append(f"Row {number}: {len(cells)} cells, not {len(header)}")
    except csv.Error as error:
        errors.append(f"Row {number + 1}: {error}")
    if errors:
        raise ValueError("\n".join([*errors, "Nothing was added."]))
    return rows


def main() -> None:
    """Import the file, and print how many animals were added."""
    content = Path(sys.argv[1]).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    replayed = []
    # With 20 attempts, the import survives a minute in which the service is down.
    with Client(os.environ["BASE_URL"], os.environ["API_KEY"], attempts=20) as client:
        for number, row in read_rows(content).items():
            category_id, status = int(row["category_id"]), row.get("status") or None
            key = f"{digest}-{number}"
            pet = client.create(row["name"], category_id, status, idempotency_key=key)
            replayed.append(pet.replayed)
    print(f"{replayed.count(False)} added, {replayed.count(True)} added before")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not {"BASE_URL", "API_KEY"} <= os.environ.keys():
        sys.exit("Set BASE_URL and API_KEY, and give the name of a CSV file.")
    try:
        main()
    except AnimalStoreError as error:
        sys.exit(f"Stopped: {error}\nRun it again: no row is added twice.")
    except (OSError, ValueError) as error:
        sys.exit(str(error))
