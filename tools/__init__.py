"""Tools for a developer's machine; none of them ships to AWS."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The root of the checkout."""


class CommandError(Exception):
    """A command failed; the message is for the person at the terminal."""
