"""`animal-store`: the command line for the service, its keys and its stages."""

import typer

from ops import deploy, keys, restore, status
from tools.local import events, sam, serve_api
from tools.packaging import build

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(keys.app, name="keys")
app.add_typer(restore.app, name="restore")
for command in (
    serve_api.run,
    events.invoke,
    build.build,
    deploy.deploy,
    deploy.rollback,
    status.status,
    status.check_stage,
    sam.sam_local,
):
    app.command()(command)
