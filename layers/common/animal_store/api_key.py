"""The format of API keys: `animal_live_` or `animal_test_`, 32 random characters, 6 of checksum.

The checksum shows a mistyped or invented key without a database read, and the prefix lets secret
scanners find a leaked one. The format follows GitHub's tokens:
https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
"""

import hashlib
import re
import secrets
import zlib
from typing import Literal

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_LENGTH = 32  # 62 ** 32: 190 bits
_CHECKSUM_LENGTH = 6  # 62 ** 6 > 2 ** 32
ID_LENGTH = 12
"""The id of a key is the first 12 digits (48 bits) of its hash; two keys hardly ever share it."""

_FORMAT = re.compile(
    rf"animal_(?:live|test)_([0-9A-Za-z]{{{_RANDOM_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})"
)


def generate(environment: Literal["live", "test"]) -> str:
    """Make a new key from the system's source of randomness.

    Args:
        environment: The second word of the prefix: "live" for production, "test" for anything else.
    """
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return f"animal_{environment}_{random}{checksum(random)}"


def is_well_formed(key: str) -> bool:
    """Return whether a key has the right format and checksum; it may still be unknown."""
    match = _FORMAT.fullmatch(key)
    return match is not None and checksum(match[1]) == match[2]


def digest(key: str) -> str:
    """Compute the SHA-256 of a key in hexadecimal, which is stored in place of the key.

    It needs no salt: a key is random and too long to guess.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def checksum(text: str) -> str:
    """Compute the CRC32 of the text in base 62, padded with zeros to six characters."""
    number, characters = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, remainder = divmod(number, len(_ALPHABET))
        characters = _ALPHABET[remainder] + characters
    return characters
