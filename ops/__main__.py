"""The command `animal-store`, or `python -m ops`."""

import io
import os
import signal
import sys
from subprocess import CalledProcessError
from zipfile import BadZipFile

from botocore.exceptions import BotoCoreError, ClientError

from tools import CommandError

# Errors that the person at the terminal can act on; OSError: a full disk, for instance.
_EXPLAINED = (
    BadZipFile,
    BotoCoreError,
    CalledProcessError,
    ClientError,
    CommandError,
    OSError,
)
# Python's variables that are meant for this program.
_KEPT = {"PYTHONBREAKPOINT", "PYTHONUNBUFFERED"}


def main() -> None:
    """Run the command that the arguments name."""
    _leave_what_was_inherited()
    try:
        if sys.argv[1:] == ["run"]:
            _serve()
        else:
            _run_command()
    except _EXPLAINED as error:
        sys.exit(str(error))


def _serve() -> None:
    """Run the service, without the command-line library, whose import takes half a second."""
    _exit_on_signals()
    from tools.local.run import run

    run()


def _run_command() -> None:
    from ops.cli import app

    # Stop everything that was started. Ctrl-C is listed too: what a shell starts in the background
    # ignores it, and so would sam, which is stopped with it.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    # In a log, a line stands before the output of the programs that are started after it: a
    # workflow must read that a key is to be masked before it reads the key.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    app(prog_name="animal-store")


def _leave_what_was_inherited() -> None:
    # What is started must not get Python's other variables: with PYTHONSAFEPATH a build would
    # import and pack the checkout's code instead of the commit's.
    for name in [*os.environ]:
        if name.startswith("PYTHON") and name not in _KEPT:
            del os.environ[name]
    # Where SIGCHLD is ignored, a program that failed would count as one that succeeded.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _exit_on_signals() -> None:
    # At any point in start-up, and after the server has ended: what was answered is on disk.
    # No exception is raised, because Python would wait for the thread of a hanging handler.
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    # nohup ignores SIGHUP so that the service outlives its terminal.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signals.remove(signal.SIGHUP)
    for number in signals:
        signal.signal(number, lambda *_: os._exit(0))


if __name__ == "__main__":
    main()
