"""Records the event that SAM's own local server makes of a request, with SAM's own code.

.tools/sam/bin/python tests/local/record_sam_event.py > tests/local/sam_event.json
"""

import json
import sys
from importlib.metadata import version

from flask import Flask, request  # type: ignore[import-not-found]
from samcli.local.apigw.event_constructor import construct_v1_event  # type: ignore[import-not-found]

HTTP = {
    "method": "POST",
    "resource": "/v1/pets/{petId}",
    "path": "/v1/pets/a%20b",
    "query": "limit=5&status=sold&status=available&empty=&plus=a+b%2Bc",
    "headers": [
        ["Host", "127.0.0.1:3000"],
        ["User-Agent", "curl/8.14.1"],
        ["Authorization", "Bearer secret"],
        ["Content-Type", "application/json"],
        ["X-Two", "one"],
        ["X-Two", "two"],
    ],
    "body": '{"name": "Zo\u00eb", "categoryId": 1}',
}


def main() -> None:
    """Write the request and the event."""
    app = Flask(__name__)
    recorded = {}

    @app.route("/v1/pets/<petId>", methods=["POST"], endpoint="/v1/pets/<petId>")  # type: ignore[untyped-decorator]
    def record(petId: str) -> str:  # noqa: ARG001, N803 - the name is the template's
        recorded.update(construct_v1_event(request, 3000, binary_types=[], stage_name="local"))
        return ""

    app.test_client().open(
        f"{HTTP['path']}?{HTTP['query']}",
        method=HTTP["method"],
        headers=[(name, value) for name, value in HTTP["headers"]],
        data=str(HTTP["body"]).encode(),
    )
    how = f"construct_v1_event of aws-sam-cli {version('aws-sam-cli')}, called by record_sam_event.py"
    json.dump({"made by": how, "request": HTTP, "event": recorded}, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
