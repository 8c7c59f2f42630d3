"""DynamoDB's values: how they are checked, written and ordered."""

import re
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow, Subnormal
from typing import Any

Value = dict[str, Any]
"""A value in DynamoDB's JSON: one member, named after its type."""

Item = dict[str, Value]

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_RANGE = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow, Subnormal])


class Refusal(Exception):
    """An error that DynamoDB answers with: a message for people, a code for programs, and what else it carries."""

    def __init__(self, message: str, code: str = "ValidationException", **members: Any) -> None:
        super().__init__(message)
        self.message, self.code, self.members = message, code, members


def unknown(what: str) -> Refusal:
    """Make the error for what DynamoDB may know, but this store does not."""
    return Refusal(f"The embedded store does not know {what}. What it knows is in tools/local.")


def kind(value: Value) -> str:
    """Return the name of a value's type."""
    return next(iter(value))


def normal(item: dict[str, Any]) -> Item:
    """Check values by name, and write equal values alike."""
    return {name: _normal(value) for name, value in item.items()}


def _normal(value: Value) -> Value:
    match value:
        case {"S": str()} | {"BOOL": bool()} | {"NULL": True}:
            return value
        case {"N": str(text)}:
            return {"N": _plain(_decimal(text))}
        case {"L": list(elements)}:
            return {"L": [_normal(element) for element in elements]}
        case {"M": dict(members)}:
            return {"M": normal(members)}
    raise unknown(f"a value such as {value}")


def add(left: Value, right: Value, *, minus: bool = False) -> Value:
    """Add two numbers, or subtract the second."""
    if kind(left) != "N" or kind(right) != "N":
        raise Refusal("An operand in the update expression has an incorrect data type")
    compute = _RANGE.subtract if minus else _RANGE.add
    try:
        return {"N": _plain(compute(_decimal(left["N"]), _decimal(right["N"])))}
    except DecimalException as error:
        raise Refusal("The result is out of range, or has more than 38 significant digits.") from error


def order(value: Value) -> bytes:
    """Write a string or a number so that the order of bytes is DynamoDB's order."""
    if "S" in value:
        text: str = value["S"]
        return text.encode(errors="surrogatepass")
    decimal = _RANGE.normalize(_decimal(value["N"]))
    if not decimal:
        return b"\x80"
    magnitude = bytes([decimal.adjusted() + 130, *decimal.as_tuple().digits])
    # Of two negative numbers the larger magnitude comes first; the last byte puts -1.5 before -1.
    return b"\x81" + magnitude if decimal > 0 else b"\x7f" + bytes(255 - byte for byte in magnitude) + b"\xff"


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise Refusal(f"A value provided cannot be converted into a number: {text[:50]!r}")
    try:
        return _RANGE.create_decimal(text)
    except DecimalException as error:
        raise Refusal(f"A number is out of range, or has more than 38 significant digits: {text[:50]}") from error


def _plain(value: Decimal) -> str:
    return f"{_RANGE.normalize(value):f}" if value else "0"
