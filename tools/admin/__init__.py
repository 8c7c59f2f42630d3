"""What people do with a running service: keys, seed data, exports, the published API page."""

import sys
from typing import NoReturn


def fail(message: str) -> NoReturn:
    """End a command with a message, in which nothing from outside steers the terminal."""
    import typer
    from animal_store_client.errors import printable

    print(*map(printable, message.splitlines()), sep="\n", file=sys.stderr)
    raise typer.Exit(1)
