"""Commands for API keys: issue, list, revoke; in the local store of a running `make run`, or in a stage's table."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import typer

from tools.admin.key_table import (
    Environment,
    KeyAdministrationError,
    KeyRecord,
    KeyTable,
    check_label,
    local_user,
    parse_expiry,
)
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.service import KEY_TABLE, load_template, open_store
from tools.local.tables import ENDPOINT_VARIABLE, client, create_tables

Stage = Literal["staging", "production"]


@contextmanager
def _table(stage: Stage | None, name: str | None) -> Iterator[KeyTable]:
    """Find the table that the options mean, and turn the failures of what follows into messages."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        if stage and name:
            _fail("Give --stage or --table, not both.")
        elif stage:
            yield KeyTable(client(), _stage_table(stage), _caller)
        elif name:
            yield KeyTable(client(), name, _caller)
        else:
            with _local_table() as table:
                yield table
    except (LocalError, KeyAdministrationError) as error:
        _fail(str(error))
    except (BotoCoreError, ClientError) as error:
        _fail(f"AWS does not answer as it should: {error}")


@contextmanager
def _local_table() -> Iterator[KeyTable]:
    """Open the table of DATA, which a running service may be using, or of AWS_ENDPOINT_URL_DYNAMODB."""
    template = load_template()
    with open_store(DataFolder()) as store:
        create_tables(store.dynamodb, template.tables.values())
        yield KeyTable(store.dynamodb, template.tables[KEY_TABLE].name)


def _stage_table(stage: Stage) -> str:
    import boto3

    stack = f"animal-store-{stage}"
    outputs = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0].get("Outputs", [])
    for output in outputs:
        if output.get("OutputKey") == "ApiKeysTableName":
            return str(output["OutputValue"])
    raise KeyAdministrationError(f"The stack {stack} has no output ApiKeysTableName.")


def _caller() -> str:
    """Name the person at work: by ARN on AWS, as on this machine where the SDK has been given another DynamoDB."""
    if os.environ.get(ENDPOINT_VARIABLE):
        return local_user()
    import boto3

    return str(boto3.client("sts").get_caller_identity()["Arn"])


def _fail(message: str) -> None:
    print(*map(_printable, message.splitlines()), sep="\n", file=sys.stderr)
    raise typer.Exit(1)


def _printable(text: str) -> str:
    """Show what could steer the terminal: a table may hold what this command has not written."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


app = typer.Typer(help="Issue, list and revoke API keys.", no_args_is_help=True)

StageOption = Annotated[Stage | None, typer.Option("--stage", help="The deployed stage whose keys are meant.")]
TableOption = Annotated[str | None, typer.Option("--table", help="The table of keys, by name.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def issue(  # noqa: PLR0913 - one argument for each option
    *,
    label: Annotated[str, typer.Option(help="Whose key it is; stands in logs and metrics.")],
    expires: Annotated[str, typer.Option(help="Last day (2027-01-31, UTC), days from now (90d), or never.")] = "365d",
    environment: Annotated[
        Environment | None, typer.Option(help="What the prefix says; live in production, else test.")
    ] = None,
    stage: StageOption = None,
    table: TableOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key. It is shown now and never again: only its hash is stored."""
    with _table(stage, table) as keys:
        until = parse_expiry(expires, datetime.now(UTC))
        key, record = keys.issue(
            check_label(label), environment or ("live" if stage == "production" else "test"), until
        )
        if as_json:
            print(json.dumps({"key": key, **_json(record)}))
        else:
            print(key)
            print(f"Shown this once. Id {record.id}, {_expiry(record)}.", file=sys.stderr)


@app.command("list")
def list_(*, stage: StageOption = None, table: TableOption = None, as_json: JsonOption = False) -> None:
    """Show every key, never the key itself."""
    with _table(stage, table) as keys:
        records = keys.all()
        if as_json:
            print(json.dumps([_json(record) for record in records], indent=2))
        else:
            _print_table(records)


@app.command()
def revoke(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The key's id from `list`, or the key itself.")],
    *,
    stage: StageOption = None,
    table: TableOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key invalid. Functions that have just seen it accept it for up to 60 seconds more."""
    with _table(stage, table) as keys:
        record = keys.revoke(identifier)
        if as_json:
            print(json.dumps(_json(record)))
        else:
            print(_printable(f"Revoked {record.id} ({record.label}); refused everywhere within 60 seconds."))


def _json(record: KeyRecord) -> dict[str, Any]:
    return {"id": record.id, **asdict(record), "state": record.state(time.time())}


def _expiry(record: KeyRecord) -> str:
    return f"expires {_time(record.expires)}" if record.expires else "does not expire"


def _time(seconds: int | None) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M") if seconds else "-"


def _print_table(records: list[KeyRecord]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("Id", "Label", "Created (UTC)", "Expires (UTC)", "State", "Issued by")
    table.columns[0].no_wrap = True
    for record in records:
        state = record.state(time.time())
        # Of an ARN what follows the account; --json has the whole.
        issuer = (record.issuedBy or "-").rpartition(":")[2]
        row = (record.id, record.label, _time(record.created), _time(record.expires), state, issuer)
        style = {"active": "", "expired": "yellow", "revoked": "red"}[state]
        table.add_row(*(Text(_printable(cell)) for cell in row), style=style)
    Console().print(table if records else "No keys.")
