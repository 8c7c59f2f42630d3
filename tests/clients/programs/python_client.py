"""Use a generated client: GENERATOR BASE_URL SCRIPTED_ORIGIN NAMES, and the key in $API_KEY."""

import json
import os
import sys
import uuid
from importlib import import_module
from urllib.parse import parse_qs, urlsplit


def openapi_python_client(url, key):
    from animal_store_api import AuthenticatedClient
    from animal_store_api.models import NewPet

    def call(name, **options):
        operation = import_module(f"animal_store_api.api.pets.{name}")
        response = operation.sync_detailed(
            client=AuthenticatedClient(url, key), **options
        )
        return int(response.status_code), response.parsed, response.headers.get("Link")

    return NewPet, call


def openapi_generator(url, key):
    import openapi_client as api
    import urllib3

    def call(name, **options):
        if "body" in options:
            options["new_pet"] = options.pop("body")
        pets = api.PetsApi(api.ApiClient(api.Configuration(host=url, access_token=key)))
        try:
            response = getattr(pets, f"{name}_with_http_info")(**options)
        except api.ApiException as error:
            return error.status, error.data, None
        headers = urllib3.HTTPHeaderDict(response.headers)  # their names in any case
        return response.status_code, response.data, headers.get("Link")

    return api.NewPet, call


generator, base_url, scripted, names = sys.argv[1:]
connect = globals()[generator]
key = os.environ["API_KEY"]
new, call = connect(base_url, key)
once = {"idempotency_key": str(uuid.uuid4())}
call("create_pet", body=new(name="Mia", category_id=1), **once)
failures = [
    call("create_pet", body=new(name="Leo", category_id=1), **once),
    call("list_pets", cursor="made-up"),
    connect(base_url, "x")[1]("list_pets"),
    connect(f"{scripted}/413", key)[1](
        "create_pet", body=new(name="Rex", category_id=1)
    ),
    connect(f"{scripted}/429", key)[1]("list_pets"),
    connect(f"{scripted}/503", key)[1]("list_pets"),
]
created = [
    call("create_pet", body=new(name=name, category_id=2**53 + 1))[1]
    for name in json.loads(names)
]
_, listed, link = call("list_pets", limit=2)
while link:
    url = urlsplit(link[1 : link.index(">")])
    cursor = parse_qs(url.query)["cursor"][0]
    _, page, link = call("list_pets", limit=2, cursor=cursor)
    listed += page


def values(pets):
    return [(pet.id, pet.name, pet.category_id) for pet in pets]


seen = {
    "created": values(created),
    "listed": values(listed),
    "newer": values(connect(f"{scripted}/newer", key)[1]("list_pets")[1]),
    "errors": {
        status: getattr(error, "code", None) or None for status, error, _ in failures
    },
}
print(json.dumps(seen))
