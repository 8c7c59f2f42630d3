"""What is read back as it was written, or not at all: API keys, cursors, the store's JSON."""

import random
from typing import Literal

import pytest
from animal_store import api_key, cursor, settings, validators
from animal_store.errors import InvalidRequest
from animal_store.pet_status import PetStatus
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic_core import ValidationError

from tools.local.events import EXAMPLE_KEY

BASE_62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("environment", ["live", "test"])
def test_generated_keys_have_the_format_and_every_character(
    environment: Literal["live", "test"],
) -> None:
    used = set()
    for _ in range(200):
        key = api_key.generate(environment)
        assert api_key.is_well_formed(key)
        assert key.startswith(f"animal_{environment}_")
        used |= set(key[12:44])

    assert used == set(BASE_62)


def test_keys_cannot_be_predicted() -> None:
    random.seed(1)
    first = api_key.generate("live")
    random.seed(1)

    assert api_key.generate("live") != first


def test_issued_keys_stay_valid() -> None:
    digest = "be5e6c8907a2496cb881b25f085cfbf1d12d8e43058ba0b93a8c4660cff8c316"

    assert api_key.is_well_formed(EXAMPLE_KEY)
    assert api_key.digest(EXAMPLE_KEY) == digest
    # Its checksum begins with two zeros.
    assert api_key.is_well_formed(f"animal_test_{'0' * 27}0023700J7SV")


@given(
    position=st.integers(0, 50),
    length=st.integers(0, 1),
    text=st.text(max_size=1) | st.sampled_from(BASE_62),
)
def test_key_with_one_change_is_malformed(
    position: int, length: int, text: str
) -> None:
    changed = EXAMPLE_KEY[:position] + text + EXAMPLE_KEY[position + length :]
    assume(changed != EXAMPLE_KEY)

    assert not api_key.is_well_formed(changed)


@pytest.mark.parametrize(
    "body",
    [
        "animal_prod_" + "a" * 32,
        "Animal_live_" + "a" * 32,
        "animal_live_" + "a" * 33,
        "animal_live_" + "\u0661" * 32,
    ],
)
def test_key_of_another_format_is_malformed_though_its_checksum_is_right(
    body: str,
) -> None:
    assert not api_key.is_well_formed(body + api_key._checksum(body))


def test_cursor_survives_a_restore_into_another_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = cursor.encode(7, "sold")
    monkeypatch.setattr(settings, "ANIMALS_TABLE", "restored")

    assert cursor.decode(text, "sold") == 7


@pytest.mark.parametrize(
    ("stage", "status"), [("other", "sold"), ("stagingsold", None)]
)
def test_cursor_of_another_stage_is_refused(
    stage: str, status: PetStatus | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = cursor.encode(7, "sold")
    monkeypatch.setattr(settings, "STAGE", stage)

    with pytest.raises(InvalidRequest):
        cursor.decode(text, status)


ITEM = (
    b'{"Item": {"id": {"N": "1"}, "name": {"S": "Rex"},'
    b' "categoryId": {"N": "9007199254740993"}}}'
)


@pytest.mark.parametrize(
    ("part", "other"),
    [(b'"N": "1"', b'"S": "1"'), (b'"S": "Rex"', b'"N": "1"'), (b'"id"', b'"ID"')],
)
def test_item_of_another_shape_is_refused(part: bytes, other: bytes) -> None:
    with pytest.raises(ValidationError):
        validators.PET_ITEM.json(ITEM.replace(part, other))
