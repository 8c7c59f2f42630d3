"""What every response of the service must be, whatever was asked: one check that each response of the suite passes."""

import httpx

from tests import openapi


def check(response: httpx.Response) -> None:
    """Assert that a response is one that openapi.yaml declares for its request, and no failure of the service."""
    request = response.request
    path = request.url.raw_path.decode().partition("?")[0].rpartition("/v1")[2]
    operation = openapi.find(request.method, path)
    assert response.status_code < 500, f"{request.method} {request.url}: {response.status_code} {response.text[:500]}"
    if request.method == "HEAD":
        assert (response.status_code, response.content) == (404, b""), request.url
        return
    problems = openapi.problems(operation, response.status_code, response.headers, response.content)
    assert not problems, f"{request.method} {request.url}: {response.status_code} {response.text[:500]}: {problems}"


def challenge(response: httpx.Response) -> str | None:
    """Find the `WWW-Authenticate` challenge, also under the name that API Gateway gives to it on its way out."""
    names = ("WWW-Authenticate", "x-amzn-remapped-www-authenticate")
    return next((response.headers[name] for name in names if name in response.headers), None)
