"""Use every operation through openapi-python-client's client: BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY."""

import json
import os
import sys
import uuid
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
from animal_store_api import AuthenticatedClient
from animal_store_api.api.pets import create_pet, get_pet, list_pets
from animal_store_api.models import Error, IncompleteError, NewPet, Pet
from animal_store_api.types import UNSET, Response, Unset

BASE_URL, SCRIPTED, NAMES = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


def connect(url: str = BASE_URL, key: str = os.environ["API_KEY"]) -> AuthenticatedClient:
    return AuthenticatedClient(url, key)


def note(
    response: Response[Error | list[Pet]] | Response[Error | Pet] | Response[Error | IncompleteError | Pet],
) -> None:
    parsed = response.parsed
    errors[int(response.status_code)] = parsed.code.value if isinstance(parsed, Error) else None


def values(*pets: object) -> list[tuple[int, str, int]]:
    return [(pet.id, pet.name, pet.category_id) for pet in pets if isinstance(pet, Pet)]


def pages() -> Iterator[Pet]:
    cursor: str | Unset | None = UNSET
    while cursor is not None:
        page = list_pets.sync_detailed(client=client, limit=2, cursor=cursor)
        assert isinstance(page.parsed, list)
        yield from page.parsed
        link = httpx.Response(200, headers=page.headers).links.get("next")
        cursor = parse_qs(urlsplit(link["url"]).query)["cursor"][0] if link else None


errors: dict[int, str | None] = {}
client, key = connect(), str(uuid.uuid4())
created = values(*(create_pet.sync(client=client, body=NewPet(name, 2**53 + 1)) for name in NAMES))
create_pet.sync(client=client, body=NewPet("Mia", 1), idempotency_key=key)
note(create_pet.sync_detailed(client=client, body=NewPet("Leo", 1), idempotency_key=key))
note(list_pets.sync_detailed(client=client, cursor="made-up"))
note(get_pet.sync_detailed(2**63 - 1, client=client))
note(list_pets.sync_detailed(client=connect(key="x")))
note(create_pet.sync_detailed(client=connect(f"{SCRIPTED}/413"), body=NewPet("Rex", 1)))
for status in 429, 500, 502, 503, 504:
    note(list_pets.sync_detailed(client=connect(f"{SCRIPTED}/{status}")))
newer = list_pets.sync(client=connect(f"{SCRIPTED}/newer"))
result = {
    "created": created,
    "listed": values(*pages()),
    "read": values(get_pet.sync(created[0][0], client=client)),
    "newer": values(*newer) if isinstance(newer, list) else None,
    "errors": errors,
}
print(json.dumps(result))
