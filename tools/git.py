"""Runs git on the repository of one folder, without hooks, personal settings or GIT_ variables.

This module itself sets GIT_DIR. Without GIT_DIR, git would also look for a repository in the parent
folders, and would refuse a repository that belongs to another user. With personal settings,
git could sign commits, convert line ends, run hooks or ignore more files.
"""

import os
import subprocess
from pathlib import Path

_NO_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,  # has the user's own `git/ignore` and `git/attributes`
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
}
# These options override the settings of the repository.
_OPTIONS = ("-c", "core.autocrlf=false", "-c", "core.hooksPath=/dev/null")


def git(folder: Path, *arguments: str) -> bytes:
    """Run git and return its output.

    Raises:
        subprocess.CalledProcessError: git failed, and has printed the reason to stderr.
    """
    inherited_variables = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }
    repository = {"GIT_DIR": str(folder / ".git"), "GIT_WORK_TREE": str(folder)}
    return subprocess.run(
        ["git", *_OPTIONS, *arguments],
        cwd=folder,
        env=inherited_variables | _NO_SETTINGS | repository,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
