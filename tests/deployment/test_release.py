"""What may be deployed, with which parameters, what a failed check goes back to, and what a restore carries over."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import boto3
import pytest
from cfnlint.decode import cfn_yaml  # type: ignore[import-untyped]
from moto import mock_aws

from tools.deployment import bootstrap, release, restore, versions
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage
from tools.local.service import load_template, table_request
from tools.packaging.artifact import Artifact
from tools.packaging.translate import TEMPLATE


def artifact(name: str) -> Artifact:
    return Artifact(Path(name), Path(), name, name)


PRODUCTION = Stage("production")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket of artifacts, tables in use, and restored ones (`animals`, `animals-restored`, `keys`, ...)."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(
        Stage,
        "account",
        lambda _: {"ArtifactBucketName": "bucket", "PermissionsBoundaryArn": "arn"},
    )
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="bucket")
        for name, table in (("animals", "AnimalsTable"), ("keys", "ApiKeysTable")):
            request = table_request(load_template().tables[table])
            for each in (name, f"{name}-restored"):
                boto3.client("dynamodb").create_table(**request | {"TableName": each})
        yield boto3.resource("dynamodb").Table


def test_production_takes_newer_commits_of_main(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
        return subprocess.check_output(command, cwd=tmp_path, text=True).strip()

    git("init", "--initial-branch", "main")
    for name in ("older", "newer", "beside"):
        git("commit", "--allow-empty", "--message", name)
    older, newer, beside = git("rev-list", "--reverse", "HEAD").split()
    git("reset", "--hard", newer)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "MAIN", "main")
    monkeypatch.setattr(release, "released", lambda _: f"{newer}-sha256")
    release.guard(PRODUCTION, newer, is_rollback=False)
    release.guard(PRODUCTION, older, is_rollback=True)
    release.guard(Stage("staging"), beside, is_rollback=False)
    for commit, back in ((older, False), (beside, False), (beside, True), (f"{newer}-dirty", True)):
        with pytest.raises(DeploymentError, match="production"):
            release.guard(PRODUCTION, commit, is_rollback=back)


def test_only_protected_environments_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, Any] = {"deployment_branch_policy": None, "id": 2, "owner": {"id": 1}}
    monkeypatch.setattr(bootstrap, "run", lambda *_: json.dumps(environment))
    with pytest.raises(DeploymentError, match="only main"):
        bootstrap.identity(PRODUCTION, "octo/animals")
    environment["deployment_branch_policy"] = {
        "protected_branches": False,
        "custom_branch_policies": True,
    }
    assert "RepositoryId=2" in bootstrap.identity(PRODUCTION, "octo/animals")


@pytest.mark.usefixtures("aws")
def test_a_deployment_has_every_parameter_of_its_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template.yaml").write_text(
        "Parameters: {MemorySize: {Default: 1}, AlarmEmail: {Default: ''}}"
    )
    given = "production.deploy.parameters.parameter_overrides = ['Stage=production', 'Waf=true']"
    (tmp_path / "samconfig.toml").write_text(given)
    used = {
        "MemorySize": "512",
        "AlarmEmail": "a@example.com",
        "Waf": "false",
        "DomainName": "unknown.example.com",
    }
    monkeypatch.setattr(Stage, "used_parameters", lambda _: used)
    monkeypatch.delenv("ALARM_EMAIL", raising=False)
    expected = {
        "Stage": "production",
        "MemorySize": "1",
        "Waf": "true",
        "PermissionsBoundary": "arn",
    }
    assert PRODUCTION.parameters(tmp_path) == expected | {"AlarmEmail": "a@example.com"}
    monkeypatch.setenv("ALARM_EMAIL", "new@example.com")
    assert PRODUCTION.parameters(tmp_path) == expected | {"AlarmEmail": "new@example.com"}


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("ran", [["old", "new"], ["old", "new", "old"], ["old", "new", "another"]])
def test_a_failed_check_goes_back_unless_superseded(
    ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, passes = ["old"], ran[-1] == "new"
    monkeypatch.setattr(release, "install", lambda _, each, **__: done.append(each.path.name))
    monkeypatch.setattr(release, "released", lambda _: done[-1])
    monkeypatch.setattr(release, "fetched", lambda _, name: contextlib.nullcontext(artifact(name)))

    def check() -> None:
        if ran[-1] == "another":
            done.append("another")
        if not passes:
            raise DeploymentError("failed")

    with contextlib.nullcontext() if passes else pytest.raises(DeploymentError, match="failed"):
        release.deploy_and_check(PRODUCTION, artifact("new"), check, canary=True)
    assert done == ran
    passed = boto3.client("s3").list_objects_v2(Bucket="bucket").get("Contents", [])
    assert [each["Key"] for each in passed] == ["passed/new"] * passes


def test_what_did_not_reach_live_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    same = {
        "MemorySize": 512,
        "Architectures": ["arm64"],
        "Layers": [{"Arn": "layer:1"}],
        "CodeSha256": "qg==",
    }
    latest = {
        "Configuration": same | {"Timeout": 5},
        "Concurrency": {"ReservedConcurrentExecutions": 7},
    }
    live = {"Configuration": same | {"MemorySize": 1769, "Description": "v1"}}
    functions = MagicMock(meta=boto3.client("lambda", region_name="eu-central-1").meta)
    functions.get_alias.return_value = {}
    functions.get_function.side_effect = lambda **options: (
        live if "Qualifier" in options else latest
    )
    functions.get_layer_version_by_arn.return_value = {"Content": {"CodeSha256": "uw=="}}
    monkeypatch.setattr(versions, "client", lambda _: functions)
    asked = {"code": "ab", "concurrency": "7", "layer": "cc", "version": "v2"}
    pairs = (
        "MemorySize is 1769, not 512",
        "Timeout is None, not 5",
        "code is aa, not ab",
        "layer is bb, not cc",
    )
    assert [*versions.differences(versions._function("f", asked))] == [
        *pairs,
        "version is v1, not v2",
    ]


def test_restored_tables_take_the_place_of_the_stacks_everywhere() -> None:
    before = cfn_yaml.load(str(TEMPLATE))
    tables = {"AnimalsTable": "restored-animals", "ApiKeysTable": "restored-keys"}
    stack = json.loads(text := release.replace_tables(json.dumps(before), tables))
    for table, name in tables.items():
        assert stack["Resources"][table] == before["Resources"][table]
        assert f'"{table}"' not in text.replace(f'"{table}": {{', "")  # no Ref and no GetAtt
        assert f"${{{table}" not in text
        assert stack["Outputs"][f"{table}Name"]["Value"] == name
        assert name in stack["Globals"]["Function"]["Environment"]["Variables"].values()
        assert text.count(f"AWS::AccountId}}:table/{name}") >= 3  # roles


def test_an_interrupted_cut_over_can_be_repeated(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = aws("animals"), aws("animals-restored")
    for pk, number in (("pet", 1), ("pet", 6), ("pet", 7), ("idempotency#x", 0)):
        old.put_item(Item={"pk": pk, "id": number})
    restore.never_repeat_ids("animals", 7)
    # At the restored moment, the creation of 6 was under way: it had taken its id. 1 was lost and has come back.
    new.put_item(Item={"pk": "pet", "id": 1, "name": "as it was"})
    restore.never_repeat_ids("animals-restored", 6)
    in_use, no_creations = ["animals"], MagicMock(return_value=contextlib.nullcontext())

    def install(*_: object, tables: dict[str, str], **__: object) -> None:
        assert new.scan()["Count"] == old.scan()["Count"]
        assert restore.counter("animals-restored") == restore.counter("animals")
        in_use.append(tables["AnimalsTable"])
        if len(in_use) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "wait", lambda _: None)
    monkeypatch.setattr(
        Stage, "outputs", lambda _: {"AnimalsTableName": in_use[-1], "ApiKeysTableName": "keys"}
    )
    monkeypatch.setattr(
        Stage, "resources", lambda _: {"AnimalsTable": "animals", "ApiKeysTable": "keys"}
    )
    monkeypatch.setattr(restore, "_no_creations", no_creations)
    monkeypatch.setattr(release, "fetched", lambda *_: contextlib.nullcontext(Path()))
    monkeypatch.setattr(release, "install", install)
    with pytest.raises(KeyboardInterrupt):
        restore.cut_over(PRODUCTION, "animals-restored")
    old.put_item(
        Item={"pk": "pet", "id": 8}
    )  # creations went on, until the stack used the new table
    restore.never_repeat_ids("animals", 8)
    restore.cut_over(PRODUCTION, "animals-restored")

    assert no_creations.call_count == 2
    assert new.get_item(Key={"pk": "pet", "id": 1})["Item"]["name"] == "as it was"
    restore.never_repeat_ids("animals-restored", 3)
    assert restore.counter("animals-restored") == 8


def test_revocations_are_carried_over(aws: Any) -> None:
    for name, item in {"kept": {}, "revoked": {"revoked": 1}, "issued": {}}.items():
        aws("keys").put_item(Item={"hash": name, "label": "new", **item})
    for name in ("kept", "revoked", "deleted"):
        aws("keys-restored").put_item(Item={"hash": name, "label": "as it was"})

    restore.carry_over("ApiKeysTable", "keys", "keys-restored")
    found = {
        item["hash"]: item.get("revoked") or item["label"]
        for item in aws("keys-restored").scan()["Items"]
    }
    assert found == {"kept": "as it was", "revoked": 1, "issued": "new", "deleted": "as it was"}


def test_a_stage_is_deployed_without_what_only_tests_need() -> None:
    program = "import sys; sys.modules['pytest'] = None; import tools.cli"
    subprocess.run([sys.executable, "-c", program], check=True)
