"""Adds an animal for each row of a CSV file: python import_csv.py animals.csv.

The first row names the columns: name, category_id and, optionally, status. If a cell of any row is
wrong, nothing is added. If only the service refuses a row, the program prints the row's number and
goes on. Within 24 hours, the same file can be imported again: no row is added twice. In a changed
file, all rows count as new, so put later rows into a file of their own.
"""

import codecs
import csv
import hashlib
import io
import os
import re
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from animal_store_client import AnimalStoreError, Client, InvalidRequestError

# For each column: a pattern that its cells must match, and a description of the pattern.
COLUMNS = {
    "name": ("(?s:.{1,256})", "1 to 256 characters"),
    "category_id": ("-?[0-9]{1,19}", "an integer of at most 19 digits"),
    "status": ("(available|pending|sold)?", "available, pending, sold or empty"),
    "surplus cell": ("", "empty"),
}


def decode(content: bytes) -> str:
    """Decode UTF-8, UTF-16 with a byte order mark, or Windows-1252 (Excel's format CSV)."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        print("The file is not UTF-8: it is read as Windows-1252.", file=sys.stderr)
        return content.decode("cp1252")


def read_rows(text: str) -> dict[int, dict[str, str]]:
    """Return each row by its number in the spreadsheet; raise ValueError if a cell is wrong."""
    first_line = text.partition("\n")[0]
    delimiter = max(",;\t", key=first_line.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header = [cell.strip().lower() for cell in next(lines, [])]
    if not {"name", "category_id"} <= set(header):
        raise ValueError(
            f"The first row must be name,category_id,status; it is {header}."
        )
    rows = {}
    errors = []
    for number, line in enumerate(lines, start=2):
        cells = [cell.strip() for cell in line]
        if not any(cells):
            continue
        row = dict.fromkeys(COLUMNS, "") | dict(zip(header, cells, strict=False))
        # A cell in a column without a name is surplus, and must be empty.
        row["surplus cell"] = row.get("", "") + "".join(cells[len(header) :])
        for name, (pattern, rule) in COLUMNS.items():
            if not re.fullmatch(pattern, row[name]):
                errors.append(
                    f"row {number}: {name} is {row[name]!r}; it must be {rule}"
                )
        rows[number] = row
    if errors:
        errors.append("Nothing was added: correct these rows first.")
        raise ValueError("\n".join(errors))
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

    # With 20 attempts, the import survives a minute in which the service is down.
    client = Client(
        os.environ["BASE_URL"], os.environ["API_KEY"], attempts=20, deadline_s=300
    )
    counts = Counter({"added": 0, "added before": 0, "refused": 0})
    try:
        with client, ThreadPoolExecutor(20) as pool:
            for outcome in pool.map(add, rows):
                counts[outcome] += 1
                bar = "#" * (40 * counts.total() // len(rows))
                progress = f"[{bar:<40}] {counts.total()} of {len(rows)}"
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
        sys.exit(f"Stopped: {error}\nRun it again: no row is added twice.")
    except (OSError, ValueError, csv.Error) as error:
        sys.exit(str(error))
