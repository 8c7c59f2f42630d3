"""The command `animal-store`, or `python -m tools`."""

import os
import signal
import sys

from lambda_local import LocalError


def main() -> None:
    """Run the command that the arguments name."""
    if sys.argv[1:] == ["run"]:
        # At any moment of the start, and after the server has ended: what was answered is on disk.
        # Not an exception, because Python would wait for the thread of a handler that hangs.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: os._exit(0))
        # Not through the command line's library, which takes time that `make run` has no use for.
        from tools.local.run import run

        try:
            run()
        except (LocalError, OSError) as error:  # OSError: a full disk, for instance
            sys.exit(f"make run: {error}")
        return

    from animal_store_client import AnimalStoreError
    from botocore.exceptions import BotoCoreError, ClientError

    from tools.cli import app
    from tools.deployment.service import DeploymentError
    from tools.key_table import KeyAdministrationError

    # As Ctrl-C does: everything that was started is stopped.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    own = (AnimalStoreError, DeploymentError, KeyAdministrationError, LocalError)
    try:
        app(prog_name="animal-store")
    except (*own, BotoCoreError, ClientError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
