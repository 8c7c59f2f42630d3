"""Constraints on what clients send: allowed values, regular expressions and messages.

The Lambda functions import this module, but not `models.py`. That module imports pydantic, which
would make cold starts longer.
"""

from typing import Literal, get_args

PetStatus = Literal["available", "pending", "sold"]
"""The availability of an animal."""
PET_STATUSES: tuple[PetStatus, ...] = get_args(PetStatus)

# Matches a text with at least one character that is not white space. Here, white space is whatever
# Unicode, ECMAScript or Python counts as such. The pattern lists these characters, because regular
# expression engines differ in what `\s` matches. The pattern in openapi.yaml is less strict.
NOT_BLANK = (
    r"^[\s\S]*[^"
    r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    r"][\s\S]*$"
)

REASONS = {
    NOT_BLANK: "must have a character that is not white space",
    "missing": "is required",
    "string_type": "must be a string",
    "string_too_short": "must have at least {min_length} character(s)",
    "string_too_long": "must have at most {max_length} characters",
    "string_unicode": "must be valid Unicode, without lone surrogates",
    "int_type": "must be an integer",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
}
"""The messages for invalid members.

Each key is either a pattern that a member does not match, or the type of a pydantic error:
https://docs.pydantic.dev/latest/errors/validation_errors/
"""
