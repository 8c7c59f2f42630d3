"""DynamoDB's values, as far as this project has them: strings and integers."""

import re
from typing import Any

Value = dict[str, str]
"""A value in DynamoDB's JSON: one member, named after its type."""

Item = dict[str, Value]

# As the SDK is given them: DynamoDB returns each as it is. It keeps 38 digits.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")


class Refusal(Exception):
    """An error that DynamoDB answers with: a message for people, a code for programs, and what else it carries."""

    def __init__(self, message: str, code: str = "ValidationException", **members: Any) -> None:
        super().__init__(message)
        self.message, self.code, self.members = message, code, members


def unknown(what: str) -> Refusal:
    """Make the error for what DynamoDB may know, but this store does not."""
    return Refusal(f"The embedded store does not know {what}. What it knows is in tools/local.")


def known(item: Item) -> Item:
    """Return an item if each of its values is a string or an integer."""
    for name, value in item.items():
        if value.keys() != {"S"} and not (value.keys() == {"N"} and _INTEGER.fullmatch(value["N"])):
            raise unknown(f"the value {value} of {name}")
    return item


def add(left: Value, right: Value) -> Value:
    """Add two integers."""
    if not left.keys() == right.keys() == {"N"}:
        raise Refusal("Incorrect operand type for operator or function: ADD")
    return known({"sum": {"N": str(int(left["N"]) + int(right["N"]))}})["sum"]


def order(value: Value) -> bytes:
    """Write a value so that the order of bytes is DynamoDB's order."""
    if "S" in value:
        return value["S"].encode()
    digits = value["N"].lstrip("-")
    if digits == "0":
        return b"\x80"
    magnitude = bytes([129 + len(digits), *map(int, digits.rstrip("0"))])
    # Of two negative numbers the larger magnitude comes first; the last byte puts -15 before -10.
    is_negative = value["N"].startswith("-")
    return b"\x7f" + bytes(255 - byte for byte in magnitude) + b"\xff" if is_negative else b"\x81" + magnitude
