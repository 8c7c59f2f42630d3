"""Commands that issue, list and revoke API keys, in the local store or in a stage's table."""

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
from animal_store_client.errors import printable

from tools.admin import fail
from tools.key_table import (
    KeyAdministrationError,
    KeyRecord,
    KeyTable,
    aws_caller,
    local_user,
    parse_expiry,
)
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.service import (
    ENDPOINT_VARIABLE,
    KEY_TABLE,
    client,
    create_tables,
    load_template,
    open_store,
)

Stage = Literal["staging", "production"]


@contextmanager
def _table(stage: Stage | None, name: str | None) -> Iterator[KeyTable]:
    """Find the table that the options mean, and turn the failures of what follows into messages."""
    from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

    try:
        if stage and name:
            fail("Give --stage or --table, not both.")
        if stage or name:
            yield KeyTable(client(), name or _stage_table(stage), _caller)
        else:  # of DATA, which a running service may be using, or of AWS_ENDPOINT_URL_DYNAMODB
            template = load_template()
            with open_store(DataFolder()) as store:
                create_tables(store.dynamodb, template.tables.values())
                yield KeyTable(store.dynamodb, template.tables[KEY_TABLE].name)
    except (LocalError, KeyAdministrationError) as error:
        fail(str(error))
    except NoRegionError:
        fail("Set AWS_DEFAULT_REGION to the region of the stage.")
    except (BotoCoreError, ClientError) as error:
        fail(f"AWS does not answer as it should: {error}")


def _stage_table(stage: Stage | None) -> str:
    import boto3

    stack = boto3.client("cloudformation").describe_stacks(
        StackName=f"animal-store-{stage}"
    )["Stacks"][0]
    outputs = {
        output.get("OutputKey"): str(output.get("OutputValue"))
        for output in stack.get("Outputs", [])
    }
    return outputs.get("ApiKeysTableName") or fail(
        f"The stack animal-store-{stage} has no output ApiKeysTableName."
    )


def _caller() -> str:
    """Name the caller by ARN; by user name where the SDK has been given another DynamoDB."""
    if os.environ.get(ENDPOINT_VARIABLE):
        return local_user()
    return aws_caller()


_LINE = "{:12}  {:16}  {:16}  {:7}  {:20}  {}"  # of the list

app = typer.Typer(help="Issue, list and revoke API keys.", no_args_is_help=True)

StageOption = Annotated[
    Stage | None,
    typer.Option("--stage", help="The deployed stage whose keys are meant."),
]
TableOption = Annotated[
    str | None, typer.Option("--table", help="The table of keys, by name.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def issue(
    *,
    label: Annotated[
        str, typer.Option(help="Whose key it is; stands in logs and metrics.")
    ],
    expires: Annotated[
        str,
        typer.Option(help="Last day (2027-01-31, UTC), days from now (90d), or never."),
    ] = "365d",
    stage: StageOption = None,
    table: TableOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key. It is shown now and never again: only its hash is stored."""
    with _table(stage, table) as keys:
        until = parse_expiry(expires, datetime.now(UTC))
        key, record = keys.issue(
            label, "live" if stage == "production" else "test", until
        )
        if as_json:
            print(json.dumps({"key": key, **_json(record)}))
        else:
            print(key)
            print(
                f"Shown this once. Id {record.id}, expires {_time(record.expires, 'never')}.",
                file=sys.stderr,
            )


@app.command("list")
def list_(
    *, stage: StageOption = None, table: TableOption = None, as_json: JsonOption = False
) -> None:
    """Show every key, never the key itself."""
    with _table(stage, table) as keys:
        records = keys.all()
        if as_json:
            print(json.dumps([_json(record) for record in records], indent=2))
            return
        print(
            _LINE.format(
                "Id", "Created (UTC)", "Expires (UTC)", "State", "Label", "Issued by"
            )
        )
        for record in records:
            times, issuer = (
                (_time(record.created), _time(record.expires)),
                (record.issuedBy or "-").rpartition(":")[2],
            )
            print(
                printable(
                    _LINE.format(
                        record.id,
                        *times,
                        record.state(time.time()),
                        record.label,
                        issuer,
                    )
                )
            )


@app.command()
def revoke(
    identifier: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The key's id from `list`, or the key itself."
        ),
    ],
    *,
    stage: StageOption = None,
    table: TableOption = None,
) -> None:
    """Make a key invalid. Functions that have just seen it accept it for up to 60 seconds more."""
    with _table(stage, table) as keys:
        record = keys.revoke(identifier)
        print(
            printable(
                f"Revoked {record.id} ({record.label}); refused everywhere within 60 seconds."
            )
        )


def _json(record: KeyRecord) -> dict[str, Any]:
    return {"id": record.id, **asdict(record), "state": record.state(time.time())}


def _time(seconds: int | None, absent: str = "-") -> str:
    return (
        datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
        if seconds
        else absent
    )
