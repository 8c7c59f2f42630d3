"""Use every operation through a generated Python client: GENERATOR BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY."""

import json
import os
import sys
import uuid
from functools import partial
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit


def openapi_python_client(url, key):
    from animal_store_api import AuthenticatedClient
    from animal_store_api.api.pets import create_pet, get_pet, list_pets
    from animal_store_api.models import NewPet

    def call(operation, **options):
        response = operation.sync_detailed(client=AuthenticatedClient(url, key), **options)
        return int(response.status_code), response.parsed, response.headers.get("Link")

    return NewPet, partial(call, create_pet), partial(call, list_pets), partial(call, get_pet)


def openapi_generator(url, key):
    import openapi_client as api
    import urllib3

    def call(method, body=None, **options):
        try:
            response = method(**options, **({"new_pet": body} if body else {}))
        except api.ApiException as error:
            return error.status, SimpleNamespace(**json.loads(error.body)), None
        return response.status_code, response.data, urllib3.HTTPHeaderDict(response.headers).get("Link")  # in any case

    pets = api.PetsApi(api.ApiClient(api.Configuration(host=url, access_token=key)))
    methods = (pets.create_pet_with_http_info, pets.list_pets_with_http_info, pets.get_pet_with_http_info)
    return api.NewPet, *(partial(call, method) for method in methods)


def values(pets):
    return [(pet.id, pet.name, pet.category_id) for pet in pets]


connect, (base_url, scripted, names), api_key = globals()[sys.argv[1]], sys.argv[2:], os.environ["API_KEY"]
new, create, find, get = connect(base_url, api_key)
created = [create(body=new(name=name, category_id=2**53 + 1))[1] for name in json.loads(names)]
once = partial(create, idempotency_key=str(uuid.uuid4()))
once(body=new(name="Mia", category_id=1))
failures = [
    once(body=new(name="Leo", category_id=1)),
    find(cursor="made-up"),
    get(pet_id=2**63 - 1),
    connect(base_url, "x")[2](),
    connect(f"{scripted}/413", api_key)[1](body=new(name="Rex", category_id=1)),
    *(connect(f"{scripted}/{status}", api_key)[2]() for status in (429, 500, 502, 503, 504)),
]
listed, query = [], {}
while query is not None:
    _, page, link = find(limit=2, **query)
    listed += page
    query = {"cursor": parse_qs(urlsplit(link[1 : link.index(">")]).query)["cursor"][0]} if link else None
shown = {"created": created, "listed": listed, "read": [get(pet_id=created[0].id)[1]]}
shown["newer"] = connect(f"{scripted}/newer", api_key)[2]()[1]
errors = {status: getattr(error, "code", None) or None for status, error, _ in failures}
print(json.dumps({name: values(pets) for name, pets in shown.items()} | {"errors": errors}))
