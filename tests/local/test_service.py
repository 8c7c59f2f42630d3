"""The SDK's clients in the process of the local service, and those of other code."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.session import Session

from tests.support.in_process import own_layer
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.service import (
    ENDPOINT_VARIABLE,
    LocalService,
    load_template,
    open_store,
)

NOWHERE = "http://127.0.0.1:9"
ONCE = Config(retries={"total_max_attempts": 1})


@contextmanager
def opened(folder: Path, **variables: str) -> Iterator[LocalService]:
    """Open a service in an environment with these variables, and restore the environment."""
    with own_layer():
        os.environ.update(variables)
        with open_store(DataFolder(folder)) as service:
            yield service


@pytest.mark.parametrize(
    "variables",
    [
        {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
        {},  # the default profile
        {"AWS_ENDPOINT_URL_SQS": "https://sqs.eu-central-1.amazonaws.com"},
    ],
)
def test_settings_of_the_user_do_not_lead_to_aws(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    (tmp_path / ".aws").mkdir()
    config = "[default]\nignore_configured_endpoint_urls = true\n"
    (tmp_path / ".aws/config").write_text(config)
    engine = "http://localhost:8000"
    variables = {"HOME": str(tmp_path), ENDPOINT_VARIABLE: engine, **variables}

    with opened(tmp_path, **variables) as service:
        sqs: Any = Session().create_client("sqs")

        assert service.dynamodb.meta.endpoint_url == engine
        assert sqs.meta.endpoint_url == NOWHERE
        assert os.environ["AWS_ACCESS_KEY_ID"] == "local"


@pytest.mark.parametrize(
    "url",
    ["https://dynamodb.us-east-1.amazonaws.com", "http://192.0.2.1:8000"],
)
def test_engine_on_another_machine_is_refused(tmp_path: Path, url: str) -> None:
    with (
        pytest.raises(LocalError, match="is not on this machine"),
        opened(tmp_path, **{ENDPOINT_VARIABLE: url}),
    ):
        pass


def test_requests_pass_no_proxy(tmp_path: Path) -> None:
    proxy = {"http_proxy": "http://127.0.0.1:1", "no_proxy": "", "NO_PROXY": ""}
    with opened(tmp_path, **proxy):
        sqs: Any = Session().create_client("sqs", config=ONCE)

        with pytest.raises(EndpointConnectionError, match=NOWHERE):
            sqs.list_queues()


def test_sessions_of_other_code_are_not_answered(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        service.gateway(load_template())
        dynamodb: Any = Session().create_client("dynamodb", config=ONCE)

        with pytest.raises(EndpointConnectionError):
            dynamodb.list_tables()
