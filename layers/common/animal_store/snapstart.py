"""What a SnapStart snapshot takes along, and what it must not.

The runtime itself brings the module of the hooks; where it is missing there are no snapshots
(https://docs.aws.amazon.com/lambda/latest/dg/snapstart-runtime-hooks-python.html).
"""

import random
import time

from botocore.exceptions import ClientError

from animal_store import auth, dynamodb
from animal_store.errors import ServiceUnavailable
from animal_store.telemetry import logger

_PRIMING_SECONDS = 10
_NO_KEY = "0" * 64


def prime() -> None:
    """Ask the store once, so that the snapshot has what a first request loads (certificates, endpoint); then hang up.

    A connection would not live through the restore. Credentials may be taken along: the SDK knows when they expire.
    """
    dynamodb.budget.set(dynamodb.Budget(deadline=time.monotonic() + _PRIMING_SECONDS))
    try:
        auth.look_up(_NO_KEY)
    except (ServiceUnavailable, ClientError):
        # A role that was made a moment ago may not be known everywhere yet: no reason to give up a deployment.
        logger().warning("The store did not answer before the snapshot.", exc_info=True)
    dynamodb.client.close()


def restore() -> None:
    """Make the pauses between retries random again: the snapshot's sequence is the same in every copy.

    Tokens need nothing: they come from the system, which a restore seeds anew.
    """
    random.seed()


def register() -> None:
    """Register the hooks, where the runtime has any."""
    try:
        import snapshot_restore_py as runtime  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return
    runtime.register_before_snapshot(prime)
    runtime.register_after_restore(restore)
