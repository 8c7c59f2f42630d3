"""The measured operations as API Gateway hands them to a function, and what a right answer to each looks like."""

import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from benchmarks.table import Animals

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _api_key() -> str:
    """Write a well-formed API key that opens nothing but the table of this benchmark."""
    body = "animal_test_" + "benchmark".ljust(32, "0")
    number, checksum = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, remainder = divmod(number, 62)
        checksum = _BASE62[remainder] + checksum
    return body + checksum


API_KEY = _api_key()


@dataclass(frozen=True)
class Operation:
    """One request that is measured.

    Args:
        name: Its key in `results.json`.
        function: The folder of the function that answers it where each operation has a function of its own.
        method: The HTTP method.
        resource: The route in API Gateway.
        status: The HTTP status of a right answer.
        count: How many animals the answer has; None for a single one that is no list.
        query: The query parameters.
        pet_id: The path parameter.
        body: The request body as JSON.
    """

    name: str
    function: str
    method: str
    resource: str
    status: int
    count: int | None = None
    query: dict[str, str] = field(default_factory=dict)
    pet_id: str | None = None
    body: str | None = None

    def event(self, request_id: str, *, authorization: str = f"Bearer {API_KEY}") -> bytes:
        """Write the proxy event, with the members and headers that a REST API sends behind its regional endpoint.

        Source: https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
        """
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "gzip, br",
            "Authorization": authorization,
            "Host": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
            "User-Agent": "store-front/4.2",
            "X-Amzn-Trace-Id": "Root=1-67891233-abcdef012345678912345678",
            "X-Forwarded-For": "192.0.2.1",
            "X-Forwarded-Port": "443",
            "X-Forwarded-Proto": "https",
        }
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        path = self.resource.replace("{petId}", self.pet_id or "")
        event: dict[str, Any] = {
            "resource": self.resource,
            "path": path,
            "httpMethod": self.method,
            "headers": headers,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
            "queryStringParameters": self.query or None,
            "multiValueQueryStringParameters": {name: [value] for name, value in self.query.items()} or None,
            "pathParameters": {"petId": self.pet_id} if self.pet_id else None,
            "stageVariables": None,
            "requestContext": {
                "accountId": "123456789012",
                "apiId": "abcdefghij",
                "domainName": headers["Host"],
                "domainPrefix": "abcdefghij",
                "extendedRequestId": "JJbxmPLYFiAFY4g=",
                "httpMethod": self.method,
                "identity": {"sourceIp": "192.0.2.1", "userAgent": headers["User-Agent"]},
                "path": f"/staging{path}",
                "protocol": "HTTP/1.1",
                "requestId": request_id,
                "requestTime": "05/Dec/2026:12:00:00 +0000",
                "requestTimeEpoch": 1796472000000,
                "resourceId": "abc123",
                "resourcePath": self.resource,
                "stage": "staging",
            },
            "body": self.body,
            "isBase64Encoded": False,
        }
        return json.dumps(event).encode()

    def mistake(self, answer: bytes) -> str | None:
        """Say what is wrong with an answer of the function; None if nothing is."""
        try:
            response = json.loads(answer)
            body = json.loads(response["body"])
            if response["statusCode"] != self.status:
                return f"status {response['statusCode']} in place of {self.status}: {body}"
            pets = [body] if self.count is None else body
            right = len(pets) == (self.count or 1) and all({"id", "name", "categoryId"} <= pet.keys() for pet in pets)
            names = [json.loads(self.body)["name"]] if self.body else [Animals.name_of(pet["id"]) for pet in pets]
            right = right and [pet["name"] for pet in pets] == names
            if "status" in self.query:
                right = right and all(pet["status"] == self.query["status"] for pet in pets)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            return f"{error!r} in {answer[:300]!r}"
        return None if right else f"not the animals that were asked for: {answer[:300]!r}"


LIST_20 = Operation("list_20", "list_pets", "GET", "/v1/pets", 200, count=20)

OPERATIONS = (
    LIST_20,
    Operation("list_100", "list_pets", "GET", "/v1/pets", 200, count=100, query={"limit": "100"}),
    Operation("list_filtered", "list_pets", "GET", "/v1/pets", 200, count=20, query={"status": "available"}),
    Operation(
        "create",
        "create_pet",
        "POST",
        "/v1/pets",
        201,
        body='{"name": "Rex the benchmark dog", "categoryId": 3, "status": "available"}',
    ),
    Operation("get", "get_pet", "GET", "/v1/pets/{petId}", 200, pet_id="42"),
)
