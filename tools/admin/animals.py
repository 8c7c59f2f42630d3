"""Commands for animals, through the API: `seed` adds made-up ones, `export` writes all."""

import csv
import json
import logging
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import typer
from animal_store import models
from animal_store_client import AnimalStoreError, ApiError, Client, Pet, PetStatus
from animal_store_client.errors import printable
from rich.console import Console
from rich.progress import track

from tools.admin import fail
from tools.local.folder import DataFolder

# What makes a spreadsheet take a cell for a formula:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # and their full-width forms

_NAMES = (
    "Luna",
    "Rex",
    "Zoë",
    "Łatek",
    "Πάρης",
    "Шарик",
    "小白",
    "ハチ",
)
_BREEDS = {  # by category
    1: ("Beagle", "Poodle", "Shiba Inu"),
    2: ("Maine Coon", "Persian", "Siamese"),
    3: ("Bearded Dragon", "Budgerigar", "Gecko"),
}
_STATUSES: tuple[PetStatus | None, ...] = (
    "available",
    "available",
    "available",
    "pending",
    "sold",
    None,
)

_HELP = "The service, ending in /v1, of the key $API_KEY; without it, the running `make run`."
BaseUrlOption = Annotated[str | None, typer.Option(envvar="BASE_URL", help=_HELP)]

_console = Console(stderr=True, highlight=False)


class _Retries(logging.Handler):
    """Shows the client's retries beside the progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        _console.print(record.getMessage(), markup=False, soft_wrap=True)


@contextmanager
def _client(base_url: str | None) -> Iterator[Client]:
    """Open a client of the named service, else of `make run`; if that fails, say why and exit.

    $API_KEY goes to a named service only: the local one has a key of its own.
    """
    logging.getLogger("animal_store_client").handlers = [_Retries()]
    api_key = os.environ.get("API_KEY", "")
    if base_url is None:
        folder = DataFolder()
        if not (base_url := folder.base_url()):
            fail(
                f"No `make run` is using {folder.path}. Start it, or name a service: --base-url"
            )
        api_key = folder.api_key.read_text("utf-8").strip()
    try:
        # Where nothing answers, one attempt is enough.
        with Client(base_url, api_key, attempts=1) as client, suppress(ApiError):
            next(client.pages(page_size=1))
        with Client(base_url, api_key) as client:
            yield client
    except AnimalStoreError as error:
        fail(str(error))
    except ValueError as error:
        fail(f"{error}. Name the service with --base-url, and its key as API_KEY.")


def seed(
    *,
    count: Annotated[int, typer.Option(min=1, help="How many animals.")] = 100,
    seed: Annotated[
        int, typer.Option(help="Which animals: the same number makes the same ones.")
    ] = 1,
    base_url: BaseUrlOption = None,
) -> None:
    """Add made-up animals. The same command continues after an interruption, within 24 hours."""
    outcomes: Counter[bool] = Counter()
    with _client(base_url) as client, ThreadPoolExecutor(8) as pool:

        def add(index: int) -> Pet:
            chance = random.Random(f"{seed}/{index}")  # noqa: S311 - nothing secret
            category = chance.choice(tuple(_BREEDS))
            name = f"{chance.choice(_NAMES)} the {chance.choice(_BREEDS[category])}"
            # A key must not stand for two animals: another number than 3 when they change.
            return client.create(
                name,
                category,
                chance.choice(_STATUSES),
                idempotency_key=f"seed-3-{seed}-{index}",
            )

        try:
            pets = pool.map(add, range(count))
            for pet in track(
                pets, "adding animals", total=count, console=_console, transient=True
            ):
                outcomes[pet.replayed] += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            done, added, known = outcomes.total(), outcomes[False], outcomes[True]
            print(f"{done} of {count} animals: {added} added, {known} already there")


def export(
    *,
    format_: Annotated[
        Literal["jsonl", "csv"], typer.Option("--format", help="How to write them.")
    ] = "jsonl",
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="CSV cells as they are, even if a spreadsheet runs them."
        ),
    ] = False,
    status: Annotated[
        PetStatus | None, typer.Option(help="Only animals with this status.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The file, replaced when all is written; else stdout."),
    ] = None,
    base_url: BaseUrlOption = None,
) -> None:
    """Write all animals, in ascending id order.

    JSON Lines are exact, and in ASCII. In CSV, which is in UTF-8, a name that a spreadsheet would
    run as a formula gets an apostrophe in front, and control characters are written as escapes,
    unless --raw is given.
    """
    if raw and output is None and sys.stdout.isatty():
        raise typer.BadParameter(
            "--raw may write control characters to the terminal: add --output FILE"
        )
    try:
        with _client(base_url) as client, _open(output) as file:
            # RFC 4180. A service may be newer than this: what the columns do not know is left out.
            table = csv.DictWriter(
                file, tuple(models.Pet.__annotations__), extrasaction="ignore"
            )
            if format_ == "csv":
                table.writeheader()
            for pet in track(
                client.pets(status=status),
                "exporting",
                console=_console,
                transient=True,
            ):
                if format_ == "jsonl":
                    file.write(json.dumps(pet.raw) + "\n")
                else:
                    table.writerow(
                        pet.raw
                        if raw
                        else {name: _cell(value) for name, value in pet.raw.items()}
                    )
            file.flush()
    except BrokenPipeError:
        # The reader (`head`) has enough; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except OSError as error:
        fail(f"The animals cannot be written: {error}")


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return f"'{printable(value)}" if value.startswith(_FORMULA) else printable(value)


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
