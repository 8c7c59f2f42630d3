"""Patterns of texts, and what is said of a text that does not match one."""

# White space is whatever Unicode, ECMAScript or Python calls white space, spelled out because `\s`
# differs between their engines. openapi.yaml has a pattern that is never stricter.
NOT_BLANK = (
    r"^[\s\S]*[^"
    r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
    r"][\s\S]*$"
)
REASONS = {NOT_BLANK: "must have a character that is not white space"}
