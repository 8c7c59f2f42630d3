"""What is read back as it was written, or not at all: API keys, cursors, the store's JSON."""

import hashlib

import pytest
from animal_store import api_key, cursor, settings, validators
from animal_store.errors import InvalidRequest
from animal_store.pet_status import PET_STATUSES, PetStatus
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import ValidationError

from tests.support.example_key import EXAMPLE_KEY

BASE_62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
FILTERS = st.sampled_from([None, *PET_STATUSES])


@pytest.mark.parametrize("environment", ["live", "test"])
def test_generated_keys_have_the_format_and_differ(environment: str) -> None:
    keys = {api_key.generate(environment) for _ in range(200)}  # type: ignore[arg-type]

    assert len(keys) == 200
    assert all(
        api_key.is_well_formed(key) and key.startswith(f"animal_{environment}_") for key in keys
    )
    assert set("".join(key[12:44] for key in keys)) == set(BASE_62)


def test_issued_keys_stay_valid() -> None:
    short = f"animal_test_{'0' * 27}0023700J7SV"  # its checksum has two leading zeros
    for key in (EXAMPLE_KEY, short):
        assert api_key.is_well_formed(key)
        assert api_key.digest(key) == hashlib.sha256(key.encode()).hexdigest()


@given(
    position=st.integers(0, 50),
    length=st.integers(0, 1),
    text=st.text(max_size=1) | st.sampled_from(BASE_62),
)
def test_key_with_one_change_is_refused(position: int, length: int, text: str) -> None:
    changed = EXAMPLE_KEY[:position] + text + EXAMPLE_KEY[position + length :]

    assert api_key.is_well_formed(changed) is (changed == EXAMPLE_KEY)


@pytest.mark.parametrize(
    "body", ["animal_prod_" + "a" * 32, "Animal_live_" + "a" * 32, "animal_live_" + "\u0661" * 32]
)
def test_key_of_another_format_is_refused_though_its_checksum_is_right(body: str) -> None:
    assert not api_key.is_well_formed(body + api_key._checksum(body))


def refuses(text: str, status: PetStatus | None) -> bool:
    with pytest.raises(
        InvalidRequest, match=r"^cursor: is not a cursor of this list; take it unchanged"
    ):
        cursor.decode(text, status)
    return True


@given(st.integers(1, 2**63 - 1), FILTERS, FILTERS)
def test_cursor_is_read_unchanged_and_with_its_filter_alone(
    after: int, made_for: PetStatus | None, used_with: PetStatus | None
) -> None:
    text = cursor.encode(after, made_for)
    assert set(text) <= set(BASE_62 + "-_")  # so that it needs no escape in a URL
    assert cursor.decode(text, made_for) == after
    assert made_for == used_with or refuses(text, used_with)


def test_cursor_is_of_one_stage_and_survives_a_restore_into_another_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = cursor.encode(7, "sold")

    monkeypatch.setattr(settings, "ANIMALS_TABLE", "restored")
    assert cursor.decode(text, "sold") == 7
    monkeypatch.setattr(
        settings, "STAGE", f"{settings.STAGE}sold"
    )  # stage and filter do not run into each other
    assert refuses(text, None)
    assert refuses(text, "sold")


@pytest.mark.parametrize(
    "change", [(b'"N": "1"', b'"S": "1"'), (b'"S": "Rex"', b'"N": "1"'), (b'"id"', b'"ID"')]
)
def test_item_of_another_shape_is_refused(change: tuple[bytes, bytes]) -> None:
    body = b'{"Item": {"id": {"N": "1"}, "name": {"S": "Rex"}, "categoryId": {"N": "9007199254740993"}}}'
    assert validators.PET_ITEM.json(body)["Item"] == {
        "id": 1,
        "name": "Rex",
        "categoryId": 2**53 + 1,
    }

    with pytest.raises(ValidationError):
        validators.PET_ITEM.json(body.replace(*change))
