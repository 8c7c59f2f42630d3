"""Tools for a developer's machine; none of them ships to AWS."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The root of the checkout."""

sys.path.append(str(ROOT / "layers/common"))  # the layer is not an installed package


class CommandError(Exception):
    """A command failed; the message is for the person at the terminal."""
