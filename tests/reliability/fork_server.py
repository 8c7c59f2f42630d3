"""A process with createPet loaded that forks for every event, so that each has a process of its own to be killed in.

Events come in as lines of JSON. For each, lines of JSON go out: `pid` of the process, `answer` if it lived to give one,
and `ended` with its wait status. Nothing but the loaded code is shared: connections, caches and retry quota are fresh.
"""

import json
import os
import sys
import time

from tests.reliability.harness import load_template
from tools.local.functions import load, share_environment
from tools.local.output import OutputLines


def main() -> None:
    """Serve until stdin ends; the SDK's settings are in the environment."""
    lines = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    template = load_template()
    share_environment(template.functions.values())
    function = load(template.functions["CreatePetFunction"], OutputLines())

    def tell(**members: object) -> None:
        print(json.dumps(members), file=lines, flush=True)

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            tell(answer=function.invoke(json.loads(line), time.monotonic() + function.definition.timeout_s))
            os._exit(0)
        tell(pid=pid)
        tell(ended=os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main()
