"""The format of API keys."""

from typing import Literal

import pytest
from animal_store import api_key

from tools.local.events import EXAMPLE_KEY


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

    assert len(used) == 62


def test_issued_keys_stay_valid() -> None:
    digest = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"

    assert api_key.is_well_formed(EXAMPLE_KEY)
    assert api_key.digest("key") == digest
    # Its checksum begins with two zeros.
    assert api_key.is_well_formed("animal_test_0000000000000000000000000000023700J7SV")


@pytest.mark.parametrize(
    "key",
    [
        EXAMPLE_KEY.replace("AnExample", "anExample"),
        EXAMPLE_KEY.replace("test", "live"),
        EXAMPLE_KEY[:-1],
        f"{EXAMPLE_KEY}N",
        f"{EXAMPLE_KEY}\n",
        # Their checksums are right.
        "animal_prod_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0jOLdn",
        "Animal_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0lPJ9U",
        "animal_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa00RUaZ",
    ],
)
def test_key_of_another_format_or_with_another_checksum_is_malformed(key: str) -> None:
    assert not api_key.is_well_formed(key)
