"""What may be deployed, with which parameters, what a failed check goes back to, and what a restore carries over."""

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
from tools.deployment import bootstrap, release, restore, versions
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage
from tools.local.service import load_template
from tools.local.tables import table_request
from tools.packaging.translate import translate

PRODUCTION = Stage("production")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A bucket of artifacts, tables in use, and restored ones (`animals`, `animals-restored`, `keys`, ...)."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(Stage, "account", lambda _: {"ArtifactBucketName": "bucket", "PermissionsBoundaryArn": "arn"})
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="bucket")
        for name, logical_id in (("animals", "AnimalsTable"), ("keys", "ApiKeysTable")):
            request = table_request(load_template().tables[logical_id])
            for table in (name, f"{name}-restored"):
                boto3.client("dynamodb").create_table(**request | {"TableName": table})
        yield boto3.resource("dynamodb").Table


def test_production_takes_commits_of_main_that_are_not_older_than_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
        return subprocess.check_output(command, cwd=tmp_path, text=True, stderr=subprocess.DEVNULL).strip()

    git("init", "--initial-branch", "main")
    commits = []
    for name in ("older", "newer", "beside"):
        git("commit", "--allow-empty", "--message", name)
        commits.append(git("rev-parse", "HEAD"))
    older, newer, beside = commits
    git("reset", "--hard", newer)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "MAIN", "main")
    monkeypatch.setattr(release, "released", lambda _: f"{newer}-sha256")

    release.guard(PRODUCTION, newer, back=False)
    release.guard(PRODUCTION, older, back=True)
    release.guard(Stage("staging"), beside, back=False)
    for commit, back in ((older, False), (beside, False), (beside, True), (f"{newer}-dirty", True)):
        with pytest.raises(DeploymentError, match="production"):
            release.guard(PRODUCTION, commit, back=back)


def test_only_protected_environments_are_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    environment: dict[str, Any] = {"deployment_branch_policy": None, "id": 2, "owner": {"id": 1}}
    monkeypatch.setattr(bootstrap, "run", lambda *_: json.dumps(environment))
    with pytest.raises(DeploymentError, match="only main"):
        bootstrap.identity(PRODUCTION, "octo/animals")
    environment["deployment_branch_policy"] = {"protected_branches": False, "custom_branch_policies": True}
    expected = ["Owner=octo", "Repository=animals", "OwnerId=1", "RepositoryId=2"]
    assert bootstrap.identity(PRODUCTION, "octo/animals") == expected


@pytest.mark.usefixtures("aws")
def test_a_deployment_has_every_parameter_as_its_artifact_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template: Any = {"Parameters": {name: {"Default": 1} for name in ("MemorySize", "AlarmEmail", "Waf")}}
    (tmp_path / "template.yaml").write_text(json.dumps(template))
    given = "production.deploy.parameters.parameter_overrides = ['Stage=production', 'Waf=true']"
    (tmp_path / "samconfig.toml").write_text(given)
    used = {"MemorySize": "512", "AlarmEmail": "a@example.com", "Waf": "false", "DomainName": "unknown.example.com"}
    monkeypatch.setattr(Stage, "used_parameters", lambda _: used)
    monkeypatch.delenv("ALARM_EMAIL", raising=False)
    expected = {"Stage": "production", "MemorySize": "1", "Waf": "true", "PermissionsBoundary": "arn"}

    assert PRODUCTION.parameters(tmp_path) == expected | {"AlarmEmail": "a@example.com"}
    monkeypatch.setenv("ALARM_EMAIL", "new@example.com")
    assert PRODUCTION.parameters(tmp_path) == expected | {"AlarmEmail": "new@example.com"}


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize(
    ("outcome", "ran", "passed"),
    [
        ("passed", ["old", "new"], {"passed/new"}),
        ("failed", ["old", "new", "old"], None),
        ("superseded", ["old", "new", "x"], None),
    ],
)
def test_a_failed_check_goes_back_unless_another_deployment_came_between(
    outcome: str, ran: list[str], passed: set[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ["old"]
    monkeypatch.setattr(release, "install", lambda _, path, **__: done.append(path.name))
    monkeypatch.setattr(release, "released", lambda _: done[-1])
    monkeypatch.setattr(release, "fetched", lambda _, name: contextlib.nullcontext(Path(name)))

    def check() -> None:
        if outcome == "superseded":
            done.append("x")
        if outcome != "passed":
            raise DeploymentError(outcome)

    with contextlib.nullcontext() if passed else pytest.raises(DeploymentError, match=outcome):
        release.promote(PRODUCTION, Path("new"), check, canary=True)
    assert done == ran
    objects = boto3.client("s3").list_objects_v2(Bucket="bucket").get("Contents", [])
    assert {each["Key"] for each in objects} == (passed or set())


def test_what_did_not_reach_live_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    live = {"MemorySize": 1769, "Architectures": ["arm64"], "Layers": [{"Arn": "layer:1"}], "CodeSha256": "qg=="}
    functions = MagicMock(meta=boto3.client("lambda", region_name="eu-central-1").meta)
    functions.get_alias.return_value = {}
    functions.get_function.side_effect = lambda **options: {
        "Configuration": live | ({"Description": "v1"} if "Qualifier" in options else {"MemorySize": 512, "Timeout": 5})
    }
    functions.get_layer_version_by_arn.return_value = {"Content": {"CodeSha256": "uw=="}}
    monkeypatch.setattr(versions, "client", lambda _: functions)
    asked = {"MemorySize": "512", "Architecture": "arm64", "ReservedConcurrency": "0"}

    found = versions._function("F", "f", asked, {"F": "aa", "CommonLayer": "cc", "version": "v2"})

    assert list(found) == [
        "F: MemorySize is 1769, not 512",
        "F: Timeout is None, not 5",
        "F: layer is bb, not cc",
        "F: memory is 1769, not 512",
        "F: version is v1, not v2",
    ]


@pytest.mark.parametrize("table", ["AnimalsTable", "ApiKeysTable"])
def test_a_restored_table_takes_the_place_of_the_stacks_everywhere(table: str) -> None:
    before = translate(parameters("production"))
    stack = json.loads(release.replace_tables(json.dumps(before), {table: "restored"}))

    assert stack["Resources"][table] == before["Resources"][table]
    everything = json.dumps(stack)
    assert f'"{table}"' not in everything.replace(f'"{table}": {{', "")  # no Ref and no GetAtt
    assert f"${{{table}" not in everything
    variable = {"AnimalsTable": "ANIMALS_TABLE", "ApiKeysTable": "API_KEYS_TABLE"}[table]
    functions = of_type(stack, "AWS::Lambda::Function").values()
    assert {function["Environment"]["Variables"][variable] for function in functions} == {"restored"}
    assert stack["Outputs"][f"{table}Name"]["Value"] == "restored"
    arn = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/restored"
    assert json.dumps(of_type(stack, "AWS::IAM::Role")).count(f'"{arn}"') >= 3


def ids(table: Any) -> set[tuple[str, int]]:
    return {(item["pk"], int(item["id"])) for item in table.scan()["Items"] if item["pk"] != "counter"}


def test_an_interrupted_cut_over_that_is_repeated_carries_over_what_is_newer(
    aws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = aws("animals"), aws("animals-restored")
    for pk, number in (("pet", 1), ("pet", 6), ("pet", 7), ("idempotency#x", 0)):
        old.put_item(Item={"pk": pk, "id": number})
    restore.never_repeat_ids("animals", 7)
    # At the restored moment, the creation of 6 was under way: it had taken its id. 1 was lost and has come back.
    new.put_item(Item={"pk": "pet", "id": 1, "name": "as it was"})
    restore.never_repeat_ids("animals-restored", 6)
    in_use, creating = ["animals"], [True]

    @contextlib.contextmanager
    def no_creations(_: Stage) -> Iterator[None]:
        creating[0] = False
        yield
        creating[0] = True

    def install(*_: object, tables: dict[str, str], **__: object) -> None:
        assert ids(new) == ids(old)
        assert restore.counter("animals-restored") == restore.counter("animals")
        assert not creating[0]
        in_use.append(tables["AnimalsTable"])
        if len(in_use) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "wait", lambda _: None)
    monkeypatch.setattr(Stage, "outputs", lambda _: {"AnimalsTableName": in_use[-1], "ApiKeysTableName": "keys"})
    monkeypatch.setattr(Stage, "resources", lambda _: {"AnimalsTable": "animals", "ApiKeysTable": "keys"})
    monkeypatch.setattr(restore, "_no_creations", no_creations)
    monkeypatch.setattr(release, "fetched", lambda *_: contextlib.nullcontext(Path()))
    monkeypatch.setattr(release, "install", install)
    with pytest.raises(KeyboardInterrupt):
        restore.cut_over(PRODUCTION, "animals-restored")
    old.put_item(Item={"pk": "pet", "id": 8})  # creations went on, until the stack used the new table
    restore.never_repeat_ids("animals", 8)
    restore.cut_over(PRODUCTION, "animals-restored")

    assert in_use == ["animals", "animals-restored", "animals-restored"]
    assert new.get_item(Key={"pk": "pet", "id": 1})["Item"]["name"] == "as it was"
    for number, last in ((3, 8), (9, 9)):
        restore.never_repeat_ids("animals-restored", number)
        assert restore.counter("animals-restored") == last


def test_revocations_are_carried_over(aws: Any) -> None:
    for name, item in {"kept": {}, "revoked": {"revoked": 1}, "issued": {}}.items():
        aws("keys").put_item(Item={"hash": name, "label": "new", **item})
    for name in ("kept", "revoked", "deleted"):
        aws("keys-restored").put_item(Item={"hash": name, "label": "as it was"})

    restore.carry_over("ApiKeysTable", "keys", "keys-restored")

    found = {item["hash"]: item for item in aws("keys-restored").scan()["Items"]}
    assert set(found) == {"kept", "revoked", "issued", "deleted"}
    assert found["kept"]["label"] == "as it was"
    assert "revoked" in found["revoked"]
