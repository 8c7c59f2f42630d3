"""Commands that issue, list and revoke API keys, in the local store or in a stage's table."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from animal_store_client.errors import printable

from tools.deployment.stage import Stage, named
from tools.key_table import Environment, KeyTable
from tools.local.folder import DataFolder
from tools.local.service import KEY_TABLE, load_template, open_store
from tools.local.store import create_tables

_LINE = "{:12}  {:16}  {:16}  {:7}  {:20}  {}"  # of the list

app = typer.Typer(help="Issue, list and revoke API keys.", no_args_is_help=True)

StageOption = Annotated[
    Stage | None,
    typer.Option(
        parser=named,
        metavar="STAGE",
        help="Act on this deployed stage's keys (samconfig.toml).",
    ),
]


@contextmanager
def _table(stage: Stage | None) -> Iterator[KeyTable]:
    if stage:
        stage.announce()
        table = stage.deployed()["ApiKeysTableName"]
        yield KeyTable(stage.client("dynamodb"), table, stage.caller)
        return
    # The store of DATA, which a running service may be using, or of AWS_ENDPOINT_URL_DYNAMODB.
    tables = load_template().tables
    with open_store(DataFolder()) as store:
        create_tables(store.dynamodb, tables.values())
        yield KeyTable(store.dynamodb, tables[KEY_TABLE].name)


@app.command()
def issue(
    *,
    label: Annotated[
        str, typer.Option(help="Whose key it is; shown in logs and metrics.")
    ],
    days: Annotated[
        int, typer.Option(min=1, max=36500, help="How long it is valid.")
    ] = 365,
    stage: StageOption = None,
) -> None:
    """Make a key. It is shown now and never again: only its hash is stored."""
    environment: Environment = (
        "live" if stage and stage.name == "production" else "test"
    )
    with _table(stage) as keys:
        expires = int(time.time()) + days * 86_400
        _, record = keys.issue(label, environment, expires, typer.echo)
    typer.echo(
        f"Shown only once. Id {record.id}, expires {_time(record.expires)}.", err=True
    )


@app.command("list")
def list_(
    *,
    stage: StageOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all as JSON.")] = False,
) -> None:
    """List the records of all keys, never the keys themselves."""
    with _table(stage) as keys:
        records = keys.all()
    if as_json:
        as_listed = [
            asdict(record) | {"id": record.id, "state": record.state}
            for record in records
        ]
        print(json.dumps(as_listed, indent=2))
        return
    print(_LINE.format("Id", "Created (UTC)", "Expires", "State", "Label", "Issued by"))
    for record in records:
        line = _LINE.format(
            record.id,
            _time(record.created),
            _time(record.expires),
            record.state,
            record.label,
            record.issuedBy or "-",
        )
        print(printable(line))


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(help="The key, or its id from `list`.")],
    *,
    stage: StageOption = None,
) -> None:
    """Make a key invalid. Functions that have just seen it accept it for up to 60 seconds more."""
    with _table(stage) as keys:
        record = keys.revoke(key)
    print(printable(f"Revoked {record.id} ({record.label})."))


def _time(seconds: int | None) -> str:
    if seconds is None:
        return "never"
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
