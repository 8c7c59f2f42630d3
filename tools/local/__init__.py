"""The whole service on this machine: `make run`, `sam local`, and their store."""

from tools import CommandError


class LocalError(CommandError):
    """Something that the person at the terminal has to change; the message says what."""
