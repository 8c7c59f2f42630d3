"""`python -m tools COMMAND`, or `scripts/animal-store COMMAND`."""

import os
import signal
import sys

OLDEST_PYTHON = (3, 11)


def main() -> None:
    """Check the interpreter, and run the command."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(
            f"Python {sys.version.split()[0]} is too old: this needs 3.11 or newer (see `make`)."
        )
    if sys.argv[1:] == ["run"]:
        # At any moment of the start, and after the server has ended: what was answered is on disk. Not an exception,
        # because Python would wait for the thread of a handler that hangs.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(0))
        # Not through the command line library: it takes a tenth of a second that `make run` has no use for.
        from tools.local.run import main as run

        sys.exit(run())

    from tools.cli import app

    # Hints name the command as it can be pasted; a shell completes it by its bare name.
    completing = "_ANIMAL_STORE_COMPLETE" in os.environ or any(
        "completion" in argument for argument in sys.argv
    )
    app(prog_name="animal-store" if completing else "scripts/animal-store")


if __name__ == "__main__":
    main()
