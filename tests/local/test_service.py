"""The SDK in the process of the local service cannot reach AWS."""

import os
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.session import Session

from tests.support.in_process import own_layer
from tools.local import LocalError
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, open_store

ENGINE = "http://localhost:8000"
NOWHERE = "http://127.0.0.1:9"


def test_settings_of_the_user_do_not_lead_to_aws(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    config = "[default]\nignore_configured_endpoint_urls = true\n"
    (tmp_path / ".aws/config").write_text(config)
    variables = {
        "HOME": str(tmp_path),
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_ENDPOINT_URL_SQS": "https://sqs.eu-central-1.amazonaws.com",
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
        "http_proxy": "http://127.0.0.1:1",
        "no_proxy": "",
        ENDPOINT_VARIABLE: ENGINE,
    }

    with own_layer():
        os.environ.update(variables)
        with open_store(DataFolder(tmp_path)) as service:
            once = Config(retries={"total_max_attempts": 1})
            sqs: Any = Session().create_client("sqs", config=once)

            assert service.dynamodb.meta.endpoint_url == ENGINE
            assert os.environ["AWS_ACCESS_KEY_ID"] == "local"
            with pytest.raises(EndpointConnectionError, match=NOWHERE):
                sqs.list_queues()


def test_engine_on_another_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://dynamodb.us-east-1.amazonaws.com"
    monkeypatch.setenv(ENDPOINT_VARIABLE, url)

    with (
        pytest.raises(LocalError, match="is not on this machine"),
        open_store(DataFolder(tmp_path)),
    ):
        pass
