"""Commands that issue, list and revoke API keys, in the local store or in a stage's table."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from animal_store import api_key

from ops.stage import Stage
from tools.key_table import KeyTable
from tools.local.folder import DataFolder
from tools.local.open_store import open_store
from tools.local.template import load_template

app = typer.Typer(help="Issue, list and revoke API keys.", no_args_is_help=True)

StageOption = Annotated[
    Stage | None,
    typer.Option(
        parser=Stage,
        metavar="STAGE",
        help="staging or production; by default, the local store.",
    ),
]


@contextmanager
def _table(stage: Stage | None) -> Iterator[KeyTable]:
    if stage:
        yield stage.keys()
        return
    # Without a stage, use the local store, in the folder that the variable DATA names. `make run`
    # may be using it at the same time.
    with open_store(DataFolder(), load_template()) as service:
        yield service.keys()


@app.command()
def issue(
    *,
    label: Annotated[
        str, typer.Option(help="The key's owner; shown in logs and metrics.")
    ],
    days: Annotated[
        int, typer.Option(min=1, max=36500, help="Days until it expires.")
    ] = 365,
    stage: StageOption = None,
) -> None:
    """Issue a key. The key is shown only once, because only its hash is stored."""
    is_live = stage and stage.name == "production"
    expires = int(time.time()) + days * 86_400
    with _table(stage) as keys:
        key, record = keys.issue(label, "live" if is_live else "test", expires)
    print(key)
    typer.echo(
        f"Shown only once. Id {record.id}, expires {_utc(record.expires)}.", err=True
    )


@app.command("list")
def list_(*, stage: StageOption = None) -> None:
    """List the records of all keys, never the keys themselves; times are in UTC.

    Expired keys of the contract suite are left out (unless revoked): each check issues its own.
    """
    with _table(stage) as keys:
        print("Id            Created           Expires           State    Label")
        for record in keys.all():
            if (
                record.hash.startswith(api_key.CHECK_HASH_PREFIX)
                and record.state == "expired"
            ):
                continue
            times = f"{_utc(record.created)}  {_utc(record.expires):16}"
            # Somebody may have written control characters into a record: `!a` escapes them.
            history = f"issued by {record.issuedBy!a}"
            if record.revokedBy:
                history += f", revoked by {record.revokedBy!a}"
            print(
                f"{record.id}  {times}  {record.state:7}  {record.label!a:22}  {history}"
            )


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The key, or its id from `list`.")],
    *,
    stage: StageOption = None,
) -> None:
    """Revoke a key. A function that has cached the key accepts it for up to 60 s more."""
    with _table(stage) as keys:
        record = keys.revoke(key)
    print(f"Revoked {record.id} ({record.label!a}).")


def _utc(seconds: int | None) -> str:
    if seconds is None:
        return "never"
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
