"""Find the service that a command is meant for, and open a client of it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import stamina.instrumentation
import typer
from animal_store_client import AnimalStoreError, Client
from rich.console import Console

from tools.local.folder import DataFolder

BaseUrlOption = Annotated[
    str | None,
    typer.Option(envvar="BASE_URL", help="The service, ending in /v1; without it, the running `make run`."),
]
KeyFileOption = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="File with the API key; without it, $API_KEY or the local key."),
]

console = Console(stderr=True, highlight=False)


@contextmanager
def open_client(base_url: str | None, api_key_file: Path | None) -> Iterator[Client]:
    """Open a client of the named service, else of the one that `make run` serves; say what goes wrong, and exit."""
    stamina.instrumentation.set_on_retry_hooks([_tell])
    try:
        with Client(*_target(base_url, api_key_file)) as client:
            yield client
    except (AnimalStoreError, ValueError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from None


def _target(base_url: str | None, api_key_file: Path | None) -> tuple[str, str]:
    """Return the base URL and the key. $API_KEY goes to a named service only: the local one has a key of its own."""
    if base_url is None:
        folder = DataFolder()
        local_url = folder.base_url()
        if local_url is None:
            raise ValueError(f"No `make run` is using {folder.path}. Start it, or name a service: --base-url URL")
        return local_url, (api_key_file or folder.api_key).read_text("utf-8").strip()
    api_key = api_key_file.read_text("utf-8").strip() if api_key_file else os.environ.get("API_KEY", "")
    if not api_key:
        raise ValueError("No API key: give --api-key-file FILE, or put it into the environment as API_KEY")
    return base_url, api_key


def _tell(details: stamina.instrumentation.RetryDetails) -> None:
    console.print(f"{details.caused_by}; trying again in {details.wait_for:.1f} s", markup=False, soft_wrap=True)
