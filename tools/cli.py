"""`animal-store`: the one command line for what people run on their own machine."""

import typer

from tools import planted_faults
from tools.admin import keys
from tools.deployment import commands as deployment
from tools.local import events, run, sam
from tools.packaging import build

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(keys.app, name="keys")
app.add_typer(deployment.app)
for command in (
    run.run,
    run.reset,
    events.invoke,
    build.build,
    planted_faults.faults,
    sam.sam_local,
):
    app.command()(command)
