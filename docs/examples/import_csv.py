"""Adds an animal for each row of a CSV file: python import_csv.py animals.csv.

The first row names the columns: name, category_id and, if there is one, status. If a cell of any
row is wrong, nothing is added. A row that only the service refuses is named. The same file can be
imported again within 24 hours: each row is added once. A changed file is another import: put rows
that come later into a file of their own.
"""

import codecs
import csv
import hashlib
import io
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import get_args

from animal_store_client import AnimalStoreError, Client, InvalidRequestError, PetStatus


def decode(content: bytes) -> str:
    """Decode UTF-8, UTF-16 with a byte order mark, or Windows-1252, Excel's plain CSV."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        print("The file is not UTF-8: it is read as Windows-1252.", file=sys.stderr)
        return content.decode("cp1252")


def faults(row: dict[str, str]) -> Iterator[str]:
    """Yield a message for each fault of a row."""
    category_id, status = row["category_id"], row["status"]
    if not row["name"]:
        yield "name is empty"
    if not re.fullmatch("-?[0-9]{1,19}", category_id):
        yield f"category_id is {category_id!r}, not an integer of at most 19 digits"
    if status not in ("", *get_args(PetStatus)):
        yield f"status is {status!r}, not one of {', '.join(get_args(PetStatus))}"
    if row.get(""):
        yield f"there are more cells than columns: {row['']!r}"


def read_rows(text: str) -> dict[int, dict[str, str]]:
    """Return the rows by their spreadsheet numbers; raise ValueError if a row has a fault."""
    first_line = text.partition("\n")[0]
    delimiter = max(",;\t", key=first_line.count)
    cells = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    columns = [cell.strip().lower() for cell in next(cells, [])]
    if not {"name", "category_id"} <= set(columns):
        raise ValueError(
            f"The first row must be name,category_id,status; it is {columns}."
        )
    rows = {}
    wrong = []
    for number, row in enumerate(cells, start=2):
        values = {"status": ""} | dict(
            zip_longest(columns, map(str.strip, row), fillvalue="")
        )
        if any(values.values()):
            rows[number] = values
            wrong += [f"row {number}: {fault}" for fault in faults(values)]
    if wrong:
        raise ValueError(
            "\n".join([*wrong, "Nothing was added: correct these rows first."])
        )
    return rows


def main(path: str) -> None:
    """Import the file, and print how many animals were added."""
    content = Path(path).read_bytes()
    rows = read_rows(decode(content))
    digest = hashlib.sha256(content).hexdigest()

    def add(number: int) -> str:
        row, key = rows[number], f"{digest}-{number}"
        category_id, status = int(row["category_id"]), row["status"] or None
        try:
            pet = client.create(row["name"], category_id, status, idempotency_key=key)
        except InvalidRequestError as error:
            print(f"\nrow {number}: {error}", file=sys.stderr)
            return "refused"
        return "added before" if pet.replayed else "added"

    # 20 attempts outlast more than a minute without the service.
    client = Client(
        os.environ["BASE_URL"], os.environ["API_KEY"], attempts=20, deadline_s=300
    )
    counts = {"added": 0, "added before": 0, "refused": 0}
    try:
        with client, ThreadPoolExecutor(20) as pool:
            for finished, outcome in enumerate(pool.map(add, rows), start=1):
                counts[outcome] += 1
                bar = "#" * (40 * finished // len(rows))
                progress = f"[{bar:<40}] {finished} of {len(rows)}"
                print(f"\r{progress}", end="", file=sys.stderr)
    finally:
        print(file=sys.stderr)
        print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if counts["refused"]:
        sys.exit(
            "Put the refused rows, corrected, into a file of their own, and import that."
        )


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except AnimalStoreError as error:
        sys.exit(f"Stopped: {error}\nRun it again: what was added is not added twice.")
    except (OSError, ValueError, csv.Error) as error:
        sys.exit(str(error))
