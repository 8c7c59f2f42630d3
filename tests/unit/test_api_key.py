"""The format of API keys: what a typo, a scanner's noise and a look-alike are refused by."""

import hashlib
import zlib

import pytest
from animal_store import api_key
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_key import EXAMPLE_KEY

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("environment", ["live", "test"])
def test_generated_keys_have_the_format_and_differ(environment: str) -> None:
    keys = {api_key.generate(environment) for _ in range(200)}  # type: ignore[arg-type]

    assert len(keys) == 200
    assert all(api_key.is_well_formed(key) and key.startswith(f"animal_{environment}_") for key in keys)
    assert set("".join(key[12:44] for key in keys)) == set(ALPHABET)


def test_issued_keys_stay_valid() -> None:
    # The second is one whose CRC-32 is small enough for two leading zeros.
    bodies = (f"animal_test_{'0' * 27}{number:05}" for number in range(10**5))
    short = next(body for body in bodies if zlib.crc32(body.encode()) < 62**4)
    checksum = "".join(ALPHABET[zlib.crc32(short.encode()) // 62**place % 62] for place in reversed(range(6)))
    for key in (EXAMPLE_KEY, short + checksum):
        assert api_key.is_well_formed(key)
        assert api_key.digest(key) == hashlib.sha256(key.encode()).hexdigest()


@given(position=st.integers(0, 50), length=st.integers(0, 1), text=st.text(max_size=1) | st.sampled_from(ALPHABET))
@settings(deadline=None)
def test_key_with_one_change_is_refused(position: int, length: int, text: str) -> None:
    changed = EXAMPLE_KEY[:position] + text + EXAMPLE_KEY[position + length :]

    assert api_key.is_well_formed(changed) is (changed == EXAMPLE_KEY)


@pytest.mark.parametrize("body", ["animal_prod_" + "a" * 32, "Animal_live_" + "a" * 32, "animal_live_" + "\u0661" * 32])
def test_another_format_is_refused_though_its_checksum_is_right(body: str) -> None:
    assert not api_key.is_well_formed(body + api_key._checksum(body))
