"""What a check of a deployed stage uses there: keys of its own, and requests that only read."""

import time
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import MagicMock

import boto3
import pytest
from moto import mock_aws

from tools.deployment import service
from tools.deployment.stage import Stage
from tools.key_table import KeyTable
from tools.local.service import load_template

OUTPUTS = {"ApiKeysTableName": "keys", "BaseUrl": "https://a/v1"}


def stage(execute: MagicMock | None = None) -> Stage:
    """Make a stage with a stack, reached with the credentials of the environment."""
    stage = Stage("staging", execute=execute or MagicMock())
    outputs = [
        {"OutputKey": name, "OutputValue": value} for name, value in OUTPUTS.items()
    ]
    cloudformation = MagicMock()
    cloudformation.describe_stacks.return_value = {"Stacks": [{"Outputs": outputs}]}
    clients = {"cloudformation": lambda _: cloudformation}
    return replace(stage, client=lambda name: clients.get(name, boto3.client)(name))


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyTable]:
    """Make an empty table of keys."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("dynamodb")
        request = load_template().tables["ApiKeysTable"].request
        client.create_table(**request | {"TableName": "keys"})
        yield KeyTable(client, "keys")


def test_two_checks_at_the_same_time_have_valid_keys_of_their_own(
    keys: KeyTable,
) -> None:
    with (
        service.temporary_keys(stage()) as first,
        service.temporary_keys(stage()) as second,
    ):
        assert len({*first, *second}) == 4
        assert {record.state for record in keys.all()} == {"active"}

    assert {record.state for record in keys.all()} == {"revoked"}


@pytest.mark.usefixtures("keys")
def test_a_canary_gets_requests_that_only_read() -> None:
    suite = MagicMock()

    with service.requests_meanwhile(stage(suite)):
        while not suite.called:
            time.sleep(0.01)

    assert "smoke_read_only" in suite.call_args.args[0]


def test_an_address_that_has_not_confirmed_gets_no_alarms() -> None:
    aws = MagicMock()
    resource = {"LogicalResourceId": "AlarmTopic", "PhysicalResourceId": "topic"}
    aws.get_paginator.return_value.paginate.return_value = [
        {"StackResourceSummaries": [resource]}
    ]
    aws.list_subscriptions_by_topic.return_value = {
        "Subscriptions": [
            {"Endpoint": "a@example.com", "SubscriptionArn": "PendingConfirmation"},
            {
                "Endpoint": "b@example.com",
                "SubscriptionArn": "arn:aws:sns:eu-west-1:1:alarms:2",
            },
        ]
    }
    production = Stage("production", client=lambda _: aws)

    assert production.unconfirmed_subscriptions() == ["a@example.com"]
