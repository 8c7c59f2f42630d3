"""DynamoDB's values and expressions in a few forms; others are refused."""

import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Value = dict[str, Any]  # one member, named after its type
Item = dict[str, Value]
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")  # DynamoDB keeps 38 digits
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
RESERVED_WORDS = frozenset(
    Path(__file__).with_name("reserved_words.txt").read_text("ascii").split()
)
_COMPARATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NAME, _VALUE = r"(#\w+|[A-Za-z]\w*)", r"(:\w+)"
_COMPARISON = rf"{_NAME}\s*(=|<=|<|>=|>)\s*{_VALUE}"
_TEST = rf"(attribute_exists|attribute_not_exists)\s*\(\s*{_NAME}\s*\)|{_COMPARISON}"
_CHANGES = {
    "SET": rf"{_NAME}\s*=\s*(?:if_not_exists\s*\(\s*{_NAME}\s*,\s*)?{_VALUE}\s*(?(2)\))",
    "ADD": rf"{_NAME}\s*{_VALUE}",
}


class Refusal(Exception):
    """An error of DynamoDB: a message for people, a code for programs, and other members."""

    def __init__(
        self, message: str, code: str = "ValidationException", **members: Any
    ) -> None:
        self.message, self.code, self.members = message, code, members

    @property
    def body(self) -> dict[str, Any]:
        """The body of the response."""
        kind = f"com.amazonaws.dynamodb.v20120810#{self.code}"
        return {"__type": kind, "message": self.message, **self.members}


def unknown(what: str) -> Refusal:
    """Make the error for what DynamoDB may know, but this store does not."""
    return Refusal(
        f"The embedded store does not know {what}. What it knows is in tools/local."
    )


def known(item: Item) -> Item:
    """Return an item if each of its values is of a type that the store supports."""
    for name, value in item.items():
        match [*value.items()]:
            case [("S", str())] | [("BOOL", bool())] | [("NULL", True)]:
                pass
            case [("N", str(number))] if _INTEGER.fullmatch(number):
                pass
            case [("L", list(items))]:
                known({f"{name}[{place}]": each for place, each in enumerate(items)})
            case [("M", dict(members))]:
                known(members)
            case _:
                raise unknown(f"the value {value} of {name}")
    return item


def order(value: Value) -> bytes:
    """Write a value so that the order of bytes is DynamoDB's order."""
    if "S" in value:
        text: str = value["S"]
        return text.encode()
    digits = value["N"].lstrip("-")
    if digits == "0":
        return b"\x80"
    magnitude = bytes([129 + len(digits), *map(int, digits.rstrip("0"))])
    # Of two negative numbers the larger magnitude comes first; the last byte puts -15 before -10.
    is_negative = value["N"].startswith("-")
    return (
        b"\x7f" + bytes(255 - byte for byte in magnitude) + b"\xff"
        if is_negative
        else b"\x81" + magnitude
    )


class Expressions:
    """The expressions of one request."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._names: dict[str, str] = request.get("ExpressionAttributeNames", {})
        self._values = known(request.get("ExpressionAttributeValues", {}))
        self._texts = {
            name: text for name, text in request.items() if name.endswith("Expression")
        }
        used = {*re.findall(r"[#:]\w+", " ".join(self._texts.values()))}
        defined = {*self._names, *self._values}
        # Instead of an empty member, a request has none.
        if used != defined or {} in request.values():
            raise Refusal(
                f"The expressions use {sorted(used)}; defined are {sorted(defined)}"
            )

    def condition(self, item: Item) -> bool:
        """Tell whether the condition holds for an item; without one it does."""
        if "ConditionExpression" not in self._texts:
            return True
        # Each test is made, even if one already holds: a mistake in it is always found.
        alternatives = [
            [self._test(item, part) for part in _parts(text, r"\sAND\s", _TEST)]
            for text in re.split(r"\sOR\s", self._texts["ConditionExpression"])
        ]
        return any(map(all, alternatives))

    def _test(self, item: Item, part: tuple[str, ...]) -> bool:
        function, tested, name, comparator, value = part
        if function:
            return (self._attribute(tested) in item) is (function == "attribute_exists")
        left, right = item.get(self._attribute(name), {}), self._values[value]
        if comparator == "=":
            return left == right
        if not right.keys() <= {"S", "N"}:
            raise Refusal(f"Incorrect operand type for operator {comparator}: {right}")
        return left.keys() == right.keys() and bool(
            _COMPARATORS[comparator](order(left), order(right))
        )

    def key_conditions(self, keys: tuple[str, ...]) -> Item:
        """Read what the hash key must equal and, if given, what the range key must exceed."""
        comparators = dict(zip(keys, "=>", strict=False))
        conditions: Item = {}
        for name, comparator, value in _parts(
            self._texts["KeyConditionExpression"], r"\sAND\s", _COMPARISON
        ):
            attribute = self._attribute(name)
            if attribute in conditions or comparator != comparators.get(attribute):
                raise unknown(f"this condition of a query: {name} {comparator}")
            conditions[attribute] = self._values[value]
        if keys[0] not in conditions:
            raise Refusal(f"Query condition missed key schema element: {keys[0]}")
        return conditions

    def changes(self, item: Item) -> Item:
        """Read the update of an item: the new values of its attributes."""
        if "UpdateExpression" not in self._texts:
            return {}
        section, _, text = self._texts["UpdateExpression"].partition(" ")
        if section not in _CHANGES:
            raise unknown(f"the section {section!r} of an update")
        changes: Item = {}
        for name, *default_of, literal in _parts(
            text, r",(?![^(]*\))", _CHANGES[section]
        ):
            attribute, value = self._attribute(name), self._values[literal]
            if attribute in changes:
                raise Refusal(
                    f"Two document paths overlap with each other: {attribute}"
                )
            if section == "ADD":
                left = item.get(attribute, {"N": "0"})
                if not left.keys() == value.keys() == {"N"}:
                    raise Refusal(
                        "An operand in the update expression has an incorrect data type"
                    )
                value = {"N": str(int(left["N"]) + int(value["N"]))}
            if any(default_of):
                value = item.get(self._attribute(*default_of), value)
            changes[attribute] = value
        return known(changes)

    def _attribute(self, name: str) -> str:
        if name.upper() in RESERVED_WORDS:
            raise Refusal(
                f"Attribute name is a reserved keyword; reserved keyword: {name}"
            )
        return self._names.get(name, name)


def _parts(expression: str, separator: str, form: str) -> Iterator[tuple[str, ...]]:
    """Split an expression, and yield the groups of each part; missing groups are empty."""
    for part in re.split(separator, expression):
        match = re.fullmatch(form, part.strip(), re.ASCII)
        if match is None:
            raise unknown(f"the expression {part!r}")
        yield match.groups("")
