"""Use openapi-python-client's client: BASE_URL SCRIPTED_ORIGIN NAMES, and the key in $API_KEY."""

import json
import os
import sys
import uuid
from importlib import import_module
from urllib.parse import parse_qs, urlsplit

from animal_store_api import AuthenticatedClient
from animal_store_api.models import NewPet

base_url, scripted, names = sys.argv[1:]
own_key = os.environ["API_KEY"]


def call(name, url=base_url, key=own_key, **options):
    operation = import_module(f"animal_store_api.api.pets.{name}")
    return operation.sync_detailed(client=AuthenticatedClient(url, key), **options)


def create(name, category_id, url=base_url, **options):
    pet = NewPet(name=name, category_id=category_id)
    return call("create_pet", url, body=pet, **options)


def values(pets):
    return [(pet.id, pet.name, pet.category_id) for pet in pets]


once = str(uuid.uuid4())
create("Mia", 1, idempotency_key=once)
failures = [
    create("Leo", 1, idempotency_key=once),
    call("list_pets", cursor="made-up"),
    call("list_pets", key="x"),
    create("Rex", 1, f"{scripted}/413"),
    call("list_pets", f"{scripted}/429"),
    call("list_pets", f"{scripted}/503"),
]
created = [create(name, 2**53 + 1).parsed for name in json.loads(names)]
page = call("list_pets", limit=2)
listed = page.parsed
while link := page.headers.get("Link"):
    url = urlsplit(link[1 : link.index(">")])
    page = call("list_pets", limit=2, cursor=parse_qs(url.query)["cursor"][0])
    listed += page.parsed
errors = {}
for failed in failures:
    errors[failed.status_code] = getattr(failed.parsed, "code", None) or None
seen = {
    "created": values(created),
    "listed": values(listed),
    "newer": values(call("list_pets", f"{scripted}/newer").parsed),
    "errors": errors,
}
print(json.dumps(seen))
