"""Run git on one folder's own repository, whatever a hook, a variable or a personal setting says.

The folder is named, so that git neither looks for a repository above it nor refuses one of another
owner. Personal settings would sign, convert, run hooks, or add another ignore file.
"""

import os
import subprocess
from pathlib import Path

_NO_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
# These hold in a repository's own settings, too.
_OPTIONS = ("-c", "core.autocrlf=false", "-c", "core.hooksPath=/dev/null")


def git(folder: Path, *arguments: str, **variables: str) -> bytes:
    """Return what git prints.

    Raises:
        subprocess.CalledProcessError: git failed; it has said why on stderr.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }
    repository = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
    return subprocess.run(
        ["git", *_OPTIONS, *arguments],
        cwd=folder,
        env=inherited | _NO_SETTINGS | repository | variables,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
