"""Runs the command `animal-store`, which is also `python -m ops`."""

import io
import os
import signal
import sys
from subprocess import CalledProcessError

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    MissingDependencyException,
)

from tools import CommandError

# The user can act on these errors, so the program prints them without a traceback. For instance,
# Python raises OSError if the disk is full.
_EXPECTED_ERRORS = (
    BotoCoreError,
    CalledProcessError,
    ClientError,
    CommandError,
    OSError,
)
# After `aws login`, the SDK asks for `botocore[crt]`, whose import would slow down every command.
_LOGIN_HINT = """If you signed in with `aws login`, do not install it, but run:
eval "$(env -u AWS_ACCESS_KEY_ID aws configure export-credentials --format env)\""""
# The only environment variables of Python that this program and its child processes keep.
_INHERITED_VARIABLES = {"PYTHONBREAKPOINT", "PYTHONUNBUFFERED"}


def main() -> None:
    """Run the command that the program's arguments name."""
    _reset_inherited_state()
    try:
        if sys.argv[1:] == ["run"]:
            _serve()
        else:
            _run_command()
    except MissingDependencyException as error:
        sys.exit(f"{error}\n{_LOGIN_HINT}")
    except _EXPECTED_ERRORS as error:
        sys.exit(str(error))


def _serve() -> None:
    """Run the service; importing the other commands, too, would take half a second."""
    _exit_on_signals()
    from tools.local.serve_api import run

    run()


def _run_command() -> None:
    from ops.cli import app

    # Let SIGINT and SIGTERM raise KeyboardInterrupt, so that the command can report and clean up.
    # By default, SIGTERM raises no exception. In a background process of a script, SIGINT raises
    # none either, because the shell starts such a process with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    # Print each line at once, so that the line precedes the output of child processes. A GitHub
    # workflow must read the command `::add-mask::` for a key before any output that has the key.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    app(prog_name="animal-store")


def _reset_inherited_state() -> None:
    # Child processes must not inherit the user's settings of Python. With PYTHONSAFEPATH, for
    # example, a build would import and pack the checkout's code instead of the commit's code.
    for name in [*os.environ]:
        if name.startswith("PYTHON") and name not in _INHERITED_VARIABLES:
            del os.environ[name]
    os.environ["SAM_CLI_TELEMETRY"] = "0"  # keeps sam from sending usage data
    # The parent process may ignore SIGCHLD. If this process inherited that, Python could not read
    # the exit status of a child process, and would report success.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _exit_on_signals() -> None:
    # Exit without cleaning up. This is safe, because every acknowledged write is on disk. If the
    # signal raised an exception, Python would wait for the threads of all requests, even for one
    # that hangs.
    numbers = [signal.SIGINT, signal.SIGTERM]
    # If nohup has made this process ignore SIGHUP, the service must outlive its terminal.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, lambda *_: os._exit(0))


if __name__ == "__main__":
    main()
