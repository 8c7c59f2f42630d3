"""What may be deployed, what a failed check goes back to, what is live, and what a restore carries over."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from moto import mock_aws

from tests.template.conftest import of_type, parameters
from tools.deployment import live, release, restore
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage
from tools.packaging.translate import translate

PRODUCTION = Stage("production")


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two commits on main, and one beside it."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    git("init", "--initial-branch", "main")
    made = []
    for name in ("older", "newer", "beside"):
        git("commit", "--allow-empty", "--message", name)
        made.append(git("rev-parse", "HEAD").strip())
    git("reset", "--hard", made[1])
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "MAIN", "main")
    return made


def test_production_takes_commits_of_main_that_are_not_older_than_what_runs(
    commits: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    older, newer, beside = commits
    monkeypatch.setattr(release, "released", lambda _: f"{newer}-sha256")

    release.guard(PRODUCTION, newer, back=False)
    release.guard(PRODUCTION, older, back=True)
    release.guard(Stage("staging"), beside, back=False)
    for commit, back in ((older, False), (beside, False), (beside, True), (f"{newer}-dirty", True)):
        with pytest.raises(DeploymentError, match="production"):
            release.guard(PRODUCTION, commit, back=back)


@pytest.mark.parametrize("superseded", [False, True])
def test_a_failed_check_goes_back_unless_another_deployment_came_between(
    superseded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ["old"]
    monkeypatch.setattr(release, "install", lambda _, path, **__: done.append(path.name))
    monkeypatch.setattr(release, "released", lambda _: done[-1])
    monkeypatch.setattr(release, "fetched", lambda _, name: contextlib.nullcontext(Path(name)))

    def check() -> None:
        if superseded:
            done.append("another")
        raise DeploymentError("failed")

    with pytest.raises(DeploymentError, match="failed"):
        release.promote(PRODUCTION, Path("new"), check, canary=True)
    assert done == (["old", "new", "another"] if superseded else ["old", "new", "old"])


def test_what_did_not_reach_live_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    live_one = {"MemorySize": 1769, "Architectures": ["arm64"], "Layers": [{"Arn": "layer:1"}], "CodeSha256": "qg=="}
    functions = MagicMock(meta=boto3.client("lambda", region_name="eu-central-1").meta)
    functions.get_alias.return_value = {}
    functions.get_function.side_effect = lambda **options: {
        "Configuration": live_one if "Qualifier" in options else live_one | {"MemorySize": 512, "Timeout": 5}
    }
    functions.get_layer_version.return_value = {"Content": {"CodeSha256": "uw=="}}
    monkeypatch.setattr(live, "client", lambda _: functions)
    used = {"MemorySize": "512", "Architecture": "arm64", "ReservedConcurrency": "0"}

    found = live._function("F", "f", used, {"F": "aa", "CommonLayer": "cc"})

    assert list(found) == [
        "F: MemorySize is 1769, not 512",
        "F: Timeout is None, not 5",
        "F: layer is bb, not cc",
        "F: memory is 1769, not 512",
    ]


@pytest.mark.parametrize("table", ["AnimalsTable", "ApiKeysTable"])
def test_a_restored_table_takes_the_place_of_the_stacks_everywhere(table: str) -> None:
    before = translate(parameters("production"))
    stack = json.loads(release.replace_tables(json.dumps(before), {table: "restored"}))

    assert stack["Resources"][table] == before["Resources"][table]
    variable = {"AnimalsTable": "ANIMALS_TABLE", "ApiKeysTable": "API_KEYS_TABLE"}[table]
    functions = of_type(stack, "AWS::Lambda::Function").values()
    assert {function["Environment"]["Variables"][variable] for function in functions} == {"restored"}
    assert stack["Outputs"][f"{table}Name"]["Value"] == "restored"
    everything = json.dumps(stack)
    assert f'"{table}"' not in everything.replace(f'"{table}": {{', "")  # no Ref and no GetAtt
    assert f"${{{table}" not in everything
    arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"
    assert json.dumps(of_type(stack, "AWS::IAM::Role")).count(f'"{arn}"') >= 3


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Tables in use and restored: `animals`, `animals-restored`, `keys`, `keys-restored`."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        definitions = of_type(translate(parameters("production")), "AWS::DynamoDB::Table")
        for name, logical_id in (("animals", "AnimalsTable"), ("keys", "ApiKeysTable")):
            known = {"KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "BillingMode"}
            properties = {key: value for key, value in definitions[logical_id].items() if key in known}
            for table in (name, f"{name}-restored"):
                boto3.client("dynamodb").create_table(TableName=table, **properties)
        yield boto3.resource("dynamodb").Table


def ids(table: Any) -> set[tuple[str, int]]:
    return {(item["pk"], int(item["id"])) for item in table.scan()["Items"] if item["pk"] != "counter"}


def test_what_is_newer_is_carried_over_and_ids_go_on(tables: Any) -> None:
    old, new = tables("animals"), tables("animals-restored")
    for pk, number in (("pet", 1), ("pet", 6), ("pet", 7), ("idempotency#x", 0)):
        old.put_item(Item={"pk": pk, "id": number})
    old.put_item(Item={"pk": "counter", "id": 0, "value": 7})
    # At the restored moment, the creation of 6 was under way: it had taken its id. 1 was lost and has come back.
    new.put_item(Item={"pk": "pet", "id": 1, "name": "as it was"})
    new.put_item(Item={"pk": "counter", "id": 0, "value": 6})

    for _ in range(2):  # safe to repeat
        restore.carry_over("AnimalsTable", "animals", "animals-restored")

    assert ids(new) == ids(old)
    assert new.get_item(Key={"pk": "pet", "id": 1})["Item"]["name"] == "as it was"
    assert restore.counter("animals-restored") == 7
    restore.raise_counter("animals-restored", 3)
    assert restore.counter("animals-restored") == 7
    restore.raise_counter("animals-restored", 9)
    assert restore.counter("animals-restored") == 9


def test_revocations_are_carried_over(tables: Any) -> None:
    for name, item in {"kept": {}, "revoked": {"revoked": 1}, "issued": {}}.items():
        tables("keys").put_item(Item={"hash": name, "label": "new", **item})
    for name in ("kept", "revoked", "deleted"):
        tables("keys-restored").put_item(Item={"hash": name, "label": "as it was"})

    restore.carry_over("ApiKeysTable", "keys", "keys-restored")

    found = {item["hash"]: item for item in tables("keys-restored").scan()["Items"]}
    assert set(found) == {"kept", "revoked", "issued", "deleted"}
    assert found["kept"]["label"] == "as it was"
    assert "revoked" in found["revoked"]
