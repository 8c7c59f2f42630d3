"""The command `animal-store`, or `python -m ops`."""

import io
import os
import signal
import sys
from subprocess import CalledProcessError
from zipfile import BadZipFile

from botocore.exceptions import BotoCoreError, ClientError

from tools import CommandError

# The user can act on these errors, so they are printed without a traceback. A full disk, for
# instance, raises OSError.
_EXPECTED_ERRORS = (
    BadZipFile,
    BotoCoreError,
    CalledProcessError,
    ClientError,
    CommandError,
    OSError,
)
# This program and its children inherit these environment variables of Python; others are removed.
_INHERITED_VARIABLES = {"PYTHONBREAKPOINT", "PYTHONUNBUFFERED"}


def main() -> None:
    """Run the command that the arguments name."""
    _reset_inherited_state()
    try:
        if sys.argv[1:] == ["run"]:
            _serve()
        else:
            _run_command()
    except _EXPECTED_ERRORS as error:
        sys.exit(str(error))


def _serve() -> None:
    """Run the service; do not import the command-line library, which takes half a second."""
    _exit_on_signals()
    from tools.local.run import run

    run()


def _run_command() -> None:
    from ops.cli import app

    # Let both signals raise KeyboardInterrupt, so that child processes are stopped. By itself,
    # Python does that only for SIGINT, and not in a background process, for which a shell ignores
    # the signal.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    # Print each line at once, so that it precedes the output of child processes. A workflow must
    # read the command that masks a key before it reads the key.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    app(prog_name="animal-store")


def _reset_inherited_state() -> None:
    # Child processes must not inherit these variables. With PYTHONSAFEPATH, for example, a build
    # would import and pack the checkout's code instead of the commit's.
    for name in [*os.environ]:
        if name.startswith("PYTHON") and name not in _INHERITED_VARIABLES:
            del os.environ[name]
    os.environ["SAM_CLI_TELEMETRY"] = "0"  # sam sends no usage data
    # If SIGCHLD is ignored, Python cannot read a child's exit status and reports success.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _exit_on_signals() -> None:
    # Exit at once, which is safe because every acknowledged write is on disk. An exception
    # would make Python wait for the thread of a hanging handler.
    numbers = [signal.SIGINT, signal.SIGTERM]
    # nohup ignores SIGHUP so that the service outlives its terminal.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, lambda *_: os._exit(0))


if __name__ == "__main__":
    main()
