"""Use every operation through openapi-generator's Python client: BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY."""

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import openapi_client as api
import urllib3

BASE_URL, SCRIPTED, NAMES = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


def connect(url: str = BASE_URL, key: str = os.environ["API_KEY"]) -> api.PetsApi:
    return api.PetsApi(api.ApiClient(api.Configuration(host=url, access_token=key)))


def note(call: Callable[..., object], *arguments: object, **options: object) -> None:
    try:
        call(*arguments, **options)
    except api.ApiException as error:
        errors[error.status] = json.loads(error.body).get("code")


def values(*pets: api.Pet) -> list[tuple[int, str, int]]:
    return [(pet.id, pet.name, pet.category_id) for pet in pets]


def pages() -> Iterator[api.Pet]:
    cursor = None
    while page := client.list_pets_with_http_info(limit=2, cursor=cursor):
        yield from page.data
        link = urllib3.HTTPHeaderDict(page.headers).get("Link")
        if not link:
            return
        cursor = parse_qs(urlsplit(link[1 : link.index(">")]).query)["cursor"][0]


errors: dict[int, str | None] = {}
client, key = connect(), str(uuid.uuid4())
created = values(*(client.create_pet(api.NewPet(name=name, category_id=2**53 + 1)) for name in NAMES))
client.create_pet(api.NewPet(name="Mia", category_id=1), key)
note(client.create_pet, api.NewPet(name="Leo", category_id=1), key)
note(client.list_pets, cursor="made-up")
note(client.get_pet, 2**63 - 1)
note(connect(key="x").list_pets)
note(connect(f"{SCRIPTED}/413").create_pet, api.NewPet(name="Rex", category_id=1))
for status in 429, 500, 502, 503, 504:
    note(connect(f"{SCRIPTED}/{status}").list_pets)
result = {
    "created": created,
    "listed": values(*pages()),
    "read": values(client.get_pet(created[0][0])),
    "newer": values(*connect(f"{SCRIPTED}/newer").list_pets()),
    "errors": errors,
}
print(json.dumps(result))
