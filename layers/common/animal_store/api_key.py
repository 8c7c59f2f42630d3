"""Checks and hashes API keys, for `auth` and for the commands that issue keys.

A key consists of the prefix `animal_live_` or `animal_test_`, 32 random characters, and a checksum
of 6 characters. The checksum reveals most mistyped or invented keys without a database read, and
the prefix lets secret scanners find a leaked key. The format follows GitHub's tokens:
https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
"""

import hashlib
import re
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_LENGTH = 32  # 190 bits of randomness: there are 62 ** 32 such texts
_CHECKSUM_LENGTH = 6  # enough for the 32 bits of a CRC32: 62 ** 6 > 2 ** 32
ID_LENGTH = 12
"""A key's id is the first 12 digits (48 bits) of its hash. Two keys hardly ever share an id."""
CHECK_HASH_PREFIX = "00"
"""The hashes of check keys, and of no other keys, begin with these digits.

Check keys are issued for the contract suite, by the commands for a stage.

KeyTable in tools/key_table.py draws keys until one fits. So IAM can let CheckRole, which runs the
suite, write only the records of these keys (`LeadingKeys` in ops/bootstrap.yaml).
"""
CHECK_KEY_SECONDS = 7_200
"""A check key is refused while it has more than two hours left.

It is issued for one hour, but clocks may differ.
"""

_FORMAT = re.compile(
    rf"animal_(?:live|test)_([0-9A-Za-z]{{{RANDOM_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})"
)


def is_well_formed(key: str) -> bool:
    """Return whether a key has the right format and checksum; such a key may still be unknown."""
    match = _FORMAT.fullmatch(key)
    return match is not None and checksum(match[1]) == match[2]


def digest(key: str) -> str:
    """Compute the SHA-256 hash of a key in hexadecimal. The key table has the hash, not the key.

    The hash needs no salt, because a key is random and too long to guess.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def checksum(random: str) -> str:
    """Compute the CRC32 of a key's random part in base 62, padded with zeros to six characters."""
    number, characters = zlib.crc32(random.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, remainder = divmod(number, len(ALPHABET))
        characters = ALPHABET[remainder] + characters
    return characters
