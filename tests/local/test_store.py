"""The store's folder, and its tables."""

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from tools import ROOT
from tools.local import store, template
from tools.local.store import DataFolder, RunningService, StoreError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "local"})


def test_tables_are_the_templates() -> None:
    with mock_aws():
        dynamodb: DynamoDBClient = boto3.client("dynamodb", region_name="us-east-1")
        store.create_tables(dynamodb, TEMPLATE.tables.values())
        store.create_tables(dynamodb, TEMPLATE.tables.values())  # what exists is left alone

        animals = TEMPLATE.tables["AnimalsTable"]
        made = dynamodb.describe_table(TableName=animals.name)["Table"]
        expiry = dynamodb.describe_time_to_live(TableName=animals.name)["TimeToLiveDescription"]

    assert made["KeySchema"] == animals.properties["KeySchema"]
    assert [index["IndexName"] for index in made["GlobalSecondaryIndexes"]] == ["by-status"]
    assert expiry == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}


def test_folder_is_for_one(tmp_path: Path) -> None:
    refused = pytest.raises(StoreError, match=rf"in use by another `make run` \(process {os.getpid()}\)")
    with DataFolder(tmp_path).locked(), refused, DataFolder(tmp_path).locked():
        pass

    with DataFolder(tmp_path).locked():
        pass


def test_lock_of_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1")

    with DataFolder(tmp_path).locked():
        assert (tmp_path / "lock").read_text() == str(os.getpid())


def test_announcement(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    service = RunningService(os.getpid(), "http://127.0.0.1:1/v1", "http://127.0.0.1:2", True, {"T": "t"})

    assert folder.running() is None
    folder.announce(service)
    assert folder.running() == service
    folder.withdraw()
    assert folder.running() is None


def test_announcement_of_a_dead_process_counts_for_nothing(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.announce(RunningService(2**22 + 1, "", "", True, {}))

    assert folder.running() is None


def test_damaged_state_is_refused(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.state.mkdir()
    (folder.state / "dynamodb.json").write_text(json.dumps({"good": 1}))
    folder.check_state()
    (folder.state / "dynamodb.json").write_text('{"cut of')

    with pytest.raises(StoreError, match=r"dynamodb\.json is damaged .* start empty: make reset"):
        folder.check_state()


def test_reset_empties_the_state_alone(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.state.mkdir()
    (folder.state / "dynamodb.json").write_text("{}")
    (tmp_path / "api-key").write_text("key")

    folder.empty()

    assert list(folder.state.iterdir()) == []
    assert (tmp_path / "api-key").exists()


def test_secret_is_the_owners(tmp_path: Path) -> None:
    path = tmp_path / "api-key"
    path.write_text("old")
    path.chmod(0o644)

    store.write_secret(path, "new")

    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]


@pytest.mark.usefixtures("clean_environment")
def test_local_store_is_used_whatever_the_users_settings_are() -> None:
    os.environ.update(AWS_PROFILE="work", AWS_SESSION_TOKEN="x", AWS_REGION="eu-west-1", AWS_ACCESS_KEY_ID="real")

    store.use_local_environment("http://127.0.0.1:1")

    assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == "http://127.0.0.1:1"
    assert os.environ["AWS_ACCESS_KEY_ID"] == "local"
    assert os.environ["AWS_REGION"] == os.environ["AWS_DEFAULT_REGION"] == "us-east-1"
    assert not {"AWS_PROFILE", "AWS_SESSION_TOKEN"} & os.environ.keys()


@pytest.mark.usefixtures("clean_environment")
def test_another_store_gets_the_users_settings() -> None:
    os.environ.update(AWS_PROFILE="work")

    store.use_external_environment("https://dynamodb.eu-west-1.amazonaws.com")

    assert os.environ["AWS_PROFILE"] == "work"
    assert not {"AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION"} & os.environ.keys()


@pytest.mark.usefixtures("clean_environment")
def test_another_store_on_this_machine_needs_no_settings() -> None:
    store.use_external_environment("http://localhost:8000")

    assert (os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_DEFAULT_REGION"]) == ("local", "us-east-1")
