"""Use every operation through a generated Python client: GENERATOR BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY."""

import json
import os
import sys
import uuid
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit


class Failed(Exception):
    """A status and a code."""


def openapi_python_client(url, key):
    from animal_store_api import AuthenticatedClient
    from animal_store_api.api.pets import create_pet, get_pet, list_pets
    from animal_store_api.models import Error, NewPet

    client = AuthenticatedClient(url, key)

    def call(operation, *arguments, **options):
        response = operation.sync_detailed(*arguments, client=client, **options)
        if response.status_code >= 400:
            code = response.parsed.code.value if isinstance(response.parsed, Error) else None
            raise Failed(int(response.status_code), code)
        return response.parsed, response.headers.get("Link")

    return SimpleNamespace(
        create=lambda name, category, **key: call(create_pet, body=NewPet(name, category), **key)[0],
        list=lambda **query: call(list_pets, **query),
        get=lambda pet_id: call(get_pet, pet_id)[0],
    )


def openapi_generator(url, key):
    import openapi_client as api

    pets = api.PetsApi(api.ApiClient(api.Configuration(host=url, access_token=key)))

    def call(method, *arguments, **options):
        try:
            response = method(*arguments, **options)
        except api.ApiException as error:
            raise Failed(error.status, json.loads(error.body).get("code")) from error
        return response.data, response.headers.get("Link")

    return SimpleNamespace(
        create=lambda name, category, **key: call(
            pets.create_pet_with_http_info, api.NewPet(name=name, category_id=category), **key
        )[0],
        list=lambda **query: call(pets.list_pets_with_http_info, **query),
        get=lambda pet_id: call(pets.get_pet_with_http_info, pet_id)[0],
    )


def note(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Failed as failed:
        status, errors[status] = failed.args


def pages(link="?cursor="):
    query = {}
    while link:
        page, link = client.list(limit=2, **query)
        yield from page
        query = {"cursor": parse_qs(urlsplit(link[1 : link.index(">")]).query)["cursor"][0]} if link else {}


def values(pets):
    return [(pet.id, pet.name, pet.category_id) for pet in pets]


connect, (base_url, scripted, names) = globals()[sys.argv[1]], sys.argv[2:]
errors, api_key, idempotency_key = {}, os.environ["API_KEY"], str(uuid.uuid4())
client = connect(base_url, api_key)
created = [client.create(name, 2**53 + 1) for name in json.loads(names)]
client.create("Mia", 1, idempotency_key=idempotency_key)
note(client.create, "Leo", 1, idempotency_key=idempotency_key)
note(client.list, cursor="made-up")
note(client.get, 2**63 - 1)
note(connect(base_url, "x").list)
note(connect(f"{scripted}/413", api_key).create, "Rex", 1)
for status in (429, 500, 502, 503, 504):
    note(connect(f"{scripted}/{status}", api_key).list)
shown = {"created": created, "listed": pages(), "read": [client.get(created[0].id)]}
shown["newer"] = connect(f"{scripted}/newer", api_key).list()[0]
print(json.dumps({name: values(pets) for name, pets in shown.items()} | {"errors": errors}))
