"""`python -m tools export`: writes all animals, page by page, as JSON Lines or CSV."""

import csv
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer
from animal_store.models import Pet
from animal_store.pet_status import PetStatus
from animal_store_client.errors import printable

from tools.admin.target import BaseUrlOption, KeyFileOption, console, open_client

# What makes a spreadsheet take a cell for a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = tuple(
    "=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
)

Write = Callable[[Mapping[str, Any]], object]


def export(  # noqa: PLR0913 - one for each option
    *,
    format_: Annotated[Literal["jsonl", "csv"], typer.Option("--format", help="How to write them.")] = "jsonl",
    raw: Annotated[
        bool, typer.Option("--raw", help="CSV cells exactly as they are, even if a spreadsheet would run them.")
    ] = False,
    status: Annotated[PetStatus | None, typer.Option(help="Only animals with this status.")] = None,
    output: Annotated[
        Path | None, typer.Option(dir_okay=False, help="The file, replaced when all is written; else stdout.")
    ] = None,
    base_url: BaseUrlOption = None,
    api_key_file: KeyFileOption = None,
) -> None:
    """Write all animals, in ascending id order, in UTF-8.

    JSON Lines are exact. In CSV, a name that a spreadsheet would run as a formula gets an apostrophe in front, and
    control characters are written as escapes, unless --raw is given.
    """
    if raw and output is None and sys.stdout.isatty():
        raise typer.BadParameter("--raw may write control characters to the terminal: add --output FILE")
    start, count = time.monotonic(), 0
    try:
        with open_client(base_url, api_key_file) as client, _open(output) as file, console.status("exporting") as shown:
            write = _writer(format_, file, raw=raw)
            for count, pet in enumerate(client.pets(status=status), 1):
                write(pet.raw)
                if count % 100 == 0:
                    shown.update(f"{count} animals")
            file.flush()
    except BrokenPipeError:
        # The reader (`head`) has enough; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        print(f"The animals cannot be written: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    seconds = time.monotonic() - start
    print(f"{count} animals in {seconds:.1f} s{f' to {output}' if output else ''}", file=sys.stderr)


def _writer(format_: Literal["jsonl", "csv"], file: TextIO, *, raw: bool) -> Write:
    if format_ == "jsonl":
        return lambda pet: file.write(_json_line(pet))
    # RFC 4180. A service may be newer than this: what the columns do not know is left out.
    table = csv.DictWriter(file, tuple(Pet.__annotations__), restval="", extrasaction="ignore")
    table.writeheader()
    return table.writerow if raw else lambda pet: table.writerow({name: _cell(value) for name, value in pet.items()})


def _json_line(pet: Mapping[str, Any]) -> str:
    """Write JSON with escapes for what a terminal might obey; parsed, it is the same."""
    text = json.dumps(pet, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text) + "\n"


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


@contextmanager
def _open(output: Path | None) -> Iterator[TextIO]:
    """Open the output; a file appears only when it is complete."""
    if output is None:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8", newline="")
        yield sys.stdout
        return
    part = output.with_name(f".{output.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            yield file
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
