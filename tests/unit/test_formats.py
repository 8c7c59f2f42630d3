"""The format of API keys."""

import pytest
from animal_store import api_key

from tools.key_table import EXAMPLE_KEY


def test_generated_keys_are_well_formed_and_use_the_whole_alphabet() -> None:
    used = set()
    for _ in range(200):
        key = api_key.generate("live")
        assert api_key.is_well_formed(key)
        assert key.startswith("animal_live_")
        used |= set(key[12:44])

    assert len(used) == 62


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        (EXAMPLE_KEY, True),
        (EXAMPLE_KEY.replace("AnExample", "anExample"), False),
        (EXAMPLE_KEY[:-1], False),
        (f"{EXAMPLE_KEY}N", False),
        (f"{EXAMPLE_KEY}\n", False),
        # Their checksums are right.
        ("animal_prod_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3i8aJj", False),
        ("Animal_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3i8aJj", False),
        ("animal_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0hGyqJ", False),
    ],
)
def test_only_well_formed_keys_are_accepted(key: str, is_one: bool) -> None:
    assert api_key.is_well_formed(key) is is_one


def test_stored_hashes_and_issued_checksums_stay_the_same() -> None:
    digest = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"

    assert api_key.digest("key") == digest
    assert api_key.checksum("62") == "005Arq"
