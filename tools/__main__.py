"""`python -m tools COMMAND`, or `scripts/animal-store COMMAND`."""

import os
import signal
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)


def main() -> None:
    """Check the interpreter, make the layer importable, and run the command."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"Python {sys.version.split()[0]} is too old: this needs 3.11 or newer (see `make`).")
    if sys.argv[1:] == ["run"]:
        signal.signal(signal.SIGINT, lambda *_: os._exit(0))  # Ctrl-C while everything is still being imported
    sys.path.append(str(Path(__file__).resolve().parents[1] / "layers/common"))
    if sys.argv[1:] == ["run"]:
        # Not through the command line library: it takes a tenth of a second that `make run` has no use for.
        from tools.local.run import main as run

        status = run()
        sys.stdout.flush()
        # A handler that hangs would otherwise keep the process: Python waits for its threads.
        os._exit(status)

    from tools.cli import app

    app(prog_name=os.environ.get("TOOLS_NAME"))  # set by scripts/animal-store


if __name__ == "__main__":
    main()
