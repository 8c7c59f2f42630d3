"""The whole service on this machine: `make run`, `sam local`, and their store."""


class LocalError(Exception):
    """Something that the person at the terminal has to change; the message says what."""
