"""listPets returns animals page by page ("Paging" in openapi.yaml)."""

from collections.abc import Iterator
from itertools import chain

import pytest
from httpx2 import URL, Client, Response
from jsonschema import Draft202012Validator

from tests.contract.client import assert_error, create, new_pet
from tests.contract.openapi import LIMIT, PARAMETERS
from tests.contract.waiting import wait_for

SCHEMA = Draft202012Validator(PARAMETERS["Cursor"]["schema"])
FILTERS = ["", "status=available", "status=pending", "status=sold"]
MEMBERS = [{}, {"status": "available"}, {"status": "pending"}, {"status": "sold"}]

# For each query, the error's message must name the query's first parameter.
INVALID_QUERIES = [
    "limit=0",
    f"limit={LIMIT['maximum'] + 1}",
    "limit=",
    "limit=1.0",
    "limit=1%5F0",
    "limit=%2B5",
    "limit=5%0A",
    "limit=%D9%A5",
    "limit=5&status=sold&limit=5",
    "status=unknown",
    "status=SOLD",
    "status=",
    "status=sold&status=pending",
    "cursor=",
    "cursor=%FF",
    "cursor=AAAAAAAAAAAAAAAAAAAAAAAA",
    # There are no such parameters. (Names are case-sensitive.)
    "stauts=sold",
    "page=2&limit=5",
    "Limit=5",
    "limit[]=5",
    pytest.param("&".join(f"unknown{n}=1" for n in range(300)), id="300 unknown names"),
]


def pages(client: Client, url: str) -> Iterator[Response]:
    """Follow the links from a page to the end of the list."""
    while url:
        page = client.get(url)
        assert page.status_code == 200, page.text
        yield page
        url = page.links.get("next", {}).get("url", "")


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("query", INVALID_QUERIES)
def test_invalid_parameter_gets_400(client: Client, query: str) -> None:
    """The parameter is unknown, is sent twice, or has a value that is not allowed."""
    name = query.partition("=")[0]
    assert_error(client.get("/pets?" + query), 400, naming=name)


@pytest.mark.smoke_read_only
@pytest.mark.parametrize("query", FILTERS)
def test_page_has_animals_of_requested_status_in_id_order(
    client: Client, query: str
) -> None:
    pets = client.get(f"/pets?{query}").json()
    ids = [pet["id"] for pet in pets]
    assert ids == sorted(set(ids))
    if query:
        assert {f"status={pet['status']}" for pet in pets} <= {query}


@pytest.mark.parametrize("query", FILTERS)
@pytest.mark.parametrize("limit", [2, LIMIT["maximum"]])
def test_pages_together_list_each_animal_once(
    client: Client, query: str, limit: int
) -> None:
    """Ids ascend, and all pages except the last are full."""
    # The store may have any number of animals already.
    *_, last_page = pages(client, f"/pets?limit=100&{query}")
    pets = [create(client, new_pet(**members)) for members in MEMBERS]
    expected_pets = [pet for pet in pets if query in f"status={pet.get('status')}"]
    start = last_page.url.copy_set_param("limit", limit)

    def is_listed() -> bool:
        *full, last = [page.json() for page in pages(client, str(start))]
        assert {len(page) for page in full} <= {limit}
        return [pet for pet in [*chain(*full), *last] if pet in pets] == expected_pets

    # A filtered list may lag behind for a moment.
    wait_for(is_listed, 3)


@pytest.mark.parametrize(
    ("path", "page_size", "next_page"),
    [
        ("/pets", 20, "pets?limit=20&cursor="),
        ("/pets/?limit=2", 2, "pets?limit=2&cursor="),
        # The service percent-decodes names and values.
        ("/pets?%73tatus=sold&limit=%32&&", 2, "pets?limit=2&status=sold&cursor="),
    ],
)
def test_next_link_keeps_limit_and_filter(
    client: Client, path: str, page_size: int, next_page: str
) -> None:
    """The link has the origin of the request, and no slash at the end of its path."""
    for _ in range(page_size + 1):
        create(client, new_pet(status="sold"))
    page = client.get(path)
    assert len(page.json()) == page_size
    url = page.links["next"]["url"]
    assert url.startswith(f"{client.base_url}{next_page}")
    assert SCHEMA.is_valid(URL(url).params["cursor"])


def test_altered_or_misused_cursor_gets_400(client: Client) -> None:
    """A character added before or after the cursor alters it."""
    for _ in range(2):
        create(client, new_pet())
    url = client.get("/pets?limit=1").links["next"]["url"]
    cursor = URL(url).params["cursor"]
    for changed in (
        cursor.swapcase(),
        f"{cursor}A",
        f"{cursor}%0A",
        f"%20{cursor}",
        f"{cursor}&status=sold",
    ):
        assert_error(client.get(f"/pets?cursor={changed}"), 400, naming="cursor")
