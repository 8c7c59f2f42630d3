"""Uses every operation through the generated client: `python journey.py BASE_URL FAILING_ORIGIN` with $API_KEY."""

import os
import sys
import uuid
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
from animal_store_client import AuthenticatedClient
from animal_store_client.api.pets import create_pet, get_pet, list_pets
from animal_store_client.models.error import Error
from animal_store_client.models.error_code import ErrorCode
from animal_store_client.models.new_pet import NewPet
from animal_store_client.models.pet import Pet
from animal_store_client.models.pet_status import PetStatus
from animal_store_client.types import UNSET, Response, Unset

FAILURES = {
    429: ErrorCode.TOO_MANY_REQUESTS,
    500: ErrorCode.INTERNAL_ERROR,
    502: ErrorCode.INTERNAL_ERROR,
    503: ErrorCode.SERVICE_UNAVAILABLE,
    504: ErrorCode.TIMEOUT,
}
BEYOND_DOUBLE = 2**53 + 1


def main(base_url: str, failing_origin: str, api_key: str) -> None:
    with AuthenticatedClient(base_url, api_key) as client:
        created = [create(client, number) for number in range(5)]
        check_listing(client, created)
        check_reading(client, created[0])
        check_repetition(client)
        check_errors(client)
    with AuthenticatedClient(base_url, api_key[:-1]) as stranger:
        assert_error(list_pets.sync_detailed(client=stranger), 401, ErrorCode.UNAUTHORIZED)
        assert_error(create_pet.sync_detailed(client=stranger, body=NewPet("Rex", 1)), 401, ErrorCode.UNAUTHORIZED)
        assert_error(get_pet.sync_detailed(1, client=stranger), 401, ErrorCode.UNAUTHORIZED)
    for status, code in FAILURES.items():
        with AuthenticatedClient(f"{failing_origin}/{status}", api_key) as client:
            answer = list_pets.sync_detailed(client=client)
            assert_error(answer, status, code)
            assert ("Retry-After" in answer.headers) == (status in {429, 503, 504})


def create(client: AuthenticatedClient, number: int) -> Pet:
    status = PetStatus.PENDING if number % 2 else UNSET
    new = NewPet(name=f"Zoë {number}", category_id=BEYOND_DOUBLE + number, status=status)
    answer = create_pet.sync_detailed(client=client, body=new)
    assert answer.status_code == 201, answer
    pet = expect_pet(answer.parsed)
    assert (pet.name, pet.category_id, pet.status) == (new.name, new.category_id, new.status)
    return pet


def pages(client: AuthenticatedClient, limit: int, status: PetStatus | Unset = UNSET) -> Iterator[list[Pet]]:
    cursor: str | Unset = UNSET
    while True:
        answer = list_pets.sync_detailed(client=client, limit=limit, status=status, cursor=cursor)
        assert isinstance(answer.parsed, list), answer
        yield answer.parsed
        following = httpx.Response(200, headers=answer.headers).links.get("next")
        if following is None:
            return
        cursor = parse_qs(urlsplit(following["url"]).query)["cursor"][0]


def check_listing(client: AuthenticatedClient, created: list[Pet]) -> None:
    all_pages = list(pages(client, limit=2))
    assert all(len(page) == 2 for page in all_pages[:-1])
    assert len(all_pages) > 2, "there was no next page to follow"
    listed = [pet for page in all_pages for pet in page]
    assert [pet for pet in listed if pet in created] == created
    pending = [pet for page in pages(client, 1, PetStatus.PENDING) for pet in page]
    assert all(pet.status is PetStatus.PENDING for pet in pending)
    assert [pet for pet in pending if pet in created] == [pet for pet in created if pet.status]


def check_reading(client: AuthenticatedClient, pet: Pet) -> None:
    answer = get_pet.sync_detailed(pet.id, client=client)
    assert expect_pet(answer.parsed) == pet
    assert answer.headers["Sunset"] == "Thu, 05 Dec 2030 00:00:00 GMT"


def check_repetition(client: AuthenticatedClient) -> None:
    key = str(uuid.uuid4())
    first = create_pet.sync_detailed(client=client, body=NewPet("Mia", 1), idempotency_key=key)
    again = create_pet.sync_detailed(client=client, body=NewPet("Mia", 1), idempotency_key=key)
    assert first.parsed == again.parsed
    assert again.headers["Idempotency-Replayed"] == "true"
    other = create_pet.sync_detailed(client=client, body=NewPet("Leo", 1), idempotency_key=key)
    assert_error(other, 422, ErrorCode.IDEMPOTENCY_KEY_REUSED)


def check_errors(client: AuthenticatedClient) -> None:
    assert_error(list_pets.sync_detailed(client=client, limit=101), 400, ErrorCode.INVALID_REQUEST)
    assert_error(list_pets.sync_detailed(client=client, cursor="made-up"), 400, ErrorCode.INVALID_REQUEST)
    assert_error(create_pet.sync_detailed(client=client, body=NewPet(" ", 1)), 400, ErrorCode.INVALID_REQUEST)
    assert_error(get_pet.sync_detailed(2**63 - 1, client=client), 404, ErrorCode.NOT_FOUND)
    huge = NewPet("x" * 11 * 1024 * 1024, 1)
    assert_error(create_pet.sync_detailed(client=client, body=huge), 413, ErrorCode.PAYLOAD_TOO_LARGE)
    # The client always says JSON: only somebody who changes the request gets to see a 415.
    http = client.get_httpx_client()
    plain = http.post("/pets", content="{}", headers={"Content-Type": "text/plain"})
    assert Error.from_dict(plain.json()).code is ErrorCode.UNSUPPORTED_MEDIA_TYPE


def expect_pet(parsed: Pet | Error | None) -> Pet:
    assert isinstance(parsed, Pet), parsed
    return parsed


def assert_error(answer: Response[Error | list[Pet]] | Response[Error | Pet], status: int, code: ErrorCode) -> None:
    assert answer.status_code == status, answer
    assert isinstance(answer.parsed, Error), answer
    assert (answer.parsed.status, answer.parsed.code) == (status, code)
    assert answer.parsed.message


main(sys.argv[1], sys.argv[2], os.environ["API_KEY"])
print("done")
