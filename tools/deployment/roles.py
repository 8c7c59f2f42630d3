"""What each function's role may do and what it is denied: written down once more, and tried with the role itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.deployment.emulator import ACCOUNT, REGION, Emulator
from tools.deployment.surface import SurfaceError

ROLES = ("ListPetsRole", "CreatePetRole", "GetPetRole")

_DENIED = {"AccessDenied", "AccessDeniedException"}
_ANIMAL = {"pk": {"S": "role-trial"}, "id": {"N": "0"}}
_KEY = {"hash": {"S": "role-trial"}}

Names = Mapping[str, str]
"""Physical names by logical ids."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A call, and the roles that may make it.

    Args:
        what: For the report.
        service: The SDK's name.
        method: The client's method.
        arguments: Its arguments.
        allowed: Logical ids of the roles.
    """

    what: str
    service: str
    method: str
    arguments: Callable[[Names], dict[str, Any]]
    allowed: tuple[str, ...] = ()


def _table(name: str, **arguments: Any) -> Callable[[Names], dict[str, Any]]:
    return lambda names: {"TableName": names[name], **arguments}


def _query(name: str, key: str, value: str, **arguments: Any) -> Callable[[Names], dict[str, Any]]:
    return _table(
        name,
        KeyConditionExpression="#k = :v",
        ExpressionAttributeNames={"#k": key},
        ExpressionAttributeValues={":v": {"S": value}},
        **arguments,
    )


_UPDATE = {
    "UpdateExpression": "ADD #v :one",
    "ExpressionAttributeNames": {"#v": "value"},
    "ExpressionAttributeValues": {":one": {"N": "1"}},
}

TRIALS = (
    Trial("Query animals", "dynamodb", "query", _query("AnimalsTable", "pk", "pet"), ("ListPetsRole",)),
    Trial(
        "Query index by-status",
        "dynamodb",
        "query",
        _query("AnimalsTable", "status", "sold", IndexName="by-status"),
        ("ListPetsRole",),
    ),
    Trial("GetItem animals", "dynamodb", "get_item", _table("AnimalsTable", Key=_ANIMAL), ("GetPetRole",)),
    Trial("PutItem animals", "dynamodb", "put_item", _table("AnimalsTable", Item=_ANIMAL), ("CreatePetRole",)),
    Trial(
        "UpdateItem animals",
        "dynamodb",
        "update_item",
        _table("AnimalsTable", Key=_ANIMAL, **_UPDATE),
        ("CreatePetRole",),
    ),
    Trial("DeleteItem animals", "dynamodb", "delete_item", _table("AnimalsTable", Key=_ANIMAL)),
    Trial("Scan animals", "dynamodb", "scan", _table("AnimalsTable")),
    Trial("Scan index by-status", "dynamodb", "scan", _table("AnimalsTable", IndexName="by-status")),
    Trial(
        "BatchWriteItem animals",
        "dynamodb",
        "batch_write_item",
        lambda names: {"RequestItems": {names["AnimalsTable"]: [{"PutRequest": {"Item": _ANIMAL}}]}},
    ),
    Trial("DeleteTable animals", "dynamodb", "delete_table", _table("AnimalsTable")),
    Trial("GetItem keys", "dynamodb", "get_item", _table("ApiKeysTable", Key=_KEY), ROLES),
    Trial("Query keys", "dynamodb", "query", _query("ApiKeysTable", "hash", "role-trial")),
    Trial("Scan keys", "dynamodb", "scan", _table("ApiKeysTable")),
    Trial("PutItem keys", "dynamodb", "put_item", _table("ApiKeysTable", Item=_KEY)),
    Trial("UpdateItem keys", "dynamodb", "update_item", _table("ApiKeysTable", Key=_KEY, **_UPDATE)),
    Trial("DeleteItem keys", "dynamodb", "delete_item", _table("ApiKeysTable", Key=_KEY)),
    Trial("read the code's bucket", "s3", "list_buckets", lambda _: {}),
    Trial("invoke a function", "lambda", "invoke", lambda names: {"FunctionName": names["GetPetFunction"]}),
    Trial("make a user", "iam", "create_user", lambda _: {"UserName": "role-trial"}),
)


# The emulator asks for logs:* on the group as a whole, where AWS asks for the stream, so that a call would be denied to
# every role. Its policy simulator takes the resource from us.
LOG_GROUPS = {
    "ListPetsLogGroup": ("ListPetsRole",),
    "CreatePetLogGroup": ("CreatePetRole",),
    "GetPetLogGroup": ("GetPetRole",),
    "AccessLogGroup": (),
}
"""The roles that may write to each log group."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the trials.

    Args:
        table: The report, a line per trial.
        allowed: How many calls were allowed.
        denied: How many were denied.
        wrong: Where a role may do more or less than it should; empty when all is well.
    """

    table: list[str]
    allowed: int
    denied: int
    wrong: list[str]


def try_all(emulator: Emulator, names: Names) -> Outcome:
    """Make every call with every role. What the calls leave behind is removed.

    Args:
        emulator: Where; it must enforce IAM.
        names: Physical names of the stack's resources.
    """
    sts = emulator.client("sts")
    credentials = {
        role: sts.assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{names[role]}", RoleSessionName="rehearsal")[
            "Credentials"
        ]
        for role in ROLES
    }
    found = {
        trial.what: (
            trial.allowed,
            [_may(emulator.client(trial.service, credentials[role]), trial, names) for role in ROLES],
        )
        for trial in TRIALS
    }
    for group, allowed in LOG_GROUPS.items():
        found[f"write to {group}"] = (
            allowed,
            [_may_write(emulator.client("iam"), names[role], names[group]) for role in ROLES],
        )
    emulator.client("dynamodb").delete_item(TableName=names["AnimalsTable"], Key=_ANIMAL)
    return _outcome(found)


def _outcome(found: Mapping[str, tuple[tuple[str, ...], list[bool]]]) -> Outcome:
    table = [f"  {'':28}" + "".join(f"{role.removesuffix('Role'):12}" for role in ROLES)]
    wrong = []
    for what, (allowed, answers) in found.items():
        cells = ["allowed" if may else "denied" for may in answers]
        table.append(f"  {what:28}" + "".join(f"{cell:12}" for cell in cells))
        wrong += [
            f"{role}: {what} is {cell}"
            for role, may, cell in zip(ROLES, answers, cells, strict=True)
            if may != (role in allowed)
        ]
    allowed_calls = sum(sum(answers) for _, answers in found.values())
    return Outcome(table, allowed_calls, len(found) * len(ROLES) - allowed_calls, wrong)


def _may_write(iam: Any, role: str, group: str) -> bool:
    stream = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:{group}:log-stream:role-trial"
    results = iam.simulate_principal_policy(
        PolicySourceArn=f"arn:aws:iam::{ACCOUNT}:role/{role}",
        ActionNames=["logs:CreateLogStream", "logs:PutLogEvents"],
        ResourceArns=[stream],
    )["EvaluationResults"]
    decisions: set[bool] = {result["EvalDecision"] == "allowed" for result in results}
    if len(decisions) != 1:
        raise SurfaceError(f"{role} may do only one of CreateLogStream and PutLogEvents on {group}")
    return decisions.pop()


def _may(client: Any, trial: Trial, names: Names) -> bool:
    from botocore.exceptions import ClientError

    try:
        getattr(client, trial.method)(**trial.arguments(names))
    except ClientError as error:
        if error.response["Error"]["Code"] in _DENIED:
            return False
        raise
    return True
