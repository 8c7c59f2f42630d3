"""`animal-store`: the one command line of what people run on their own machine."""

import typer

from tools import audit, planted_faults
from tools.admin import keys, seed
from tools.deployment import commands as deployment
from tools.local import invoke, sam
from tools.local import run as service
from tools.packaging import build

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
app.add_typer(keys.app, name="keys")
app.add_typer(deployment.app)
app.command("seed")(seed.seed)
app.command("invoke")(invoke.invoke)
app.command("build")(build.build)
app.command("audit")(audit.audit)
app.command("faults")(planted_faults.faults)
app.command("sam-local")(sam.sam_local)
app.command("sam-invoke")(sam.sam_invoke)


@app.command()
def run() -> None:
    """Serve the API on this machine (PORT, DATA, RELOAD=1, AWS_ENDPOINT_URL_DYNAMODB)."""
    raise typer.Exit(service.main())


@app.command()
def reset() -> None:
    """Empty the local store (DATA)."""
    raise typer.Exit(service.reset())
