"""Evaluates the forms of DynamoDB's expressions that this service uses; refuses all other forms."""

import re
from typing import Any

Value = dict[str, Any]
"""A value and its type, such as `{"N": "1"}`."""
Item = dict[str, Value]
_ZERO: Value = {"N": "0"}


class DynamoDBError(Exception):
    """An error response of DynamoDB: its message, its code and any other members."""

    def __init__(
        self, message: str, code: str = "ValidationException", **members: Any
    ) -> None:
        self.message, self.code, self.members = message, code, members


class ConditionFailed(DynamoDBError):
    """The condition of a write does not hold."""


def unsupported(feature: str) -> DynamoDBError:
    """Return the error for a feature of DynamoDB that the local store lacks."""
    message = f"The local store does not support {feature}: add it to tools/local"
    return DynamoDBError(message)


class Expressions:
    """The expressions of one request.

    Raises:
        DynamoDBError: A placeholder is missing or unused, or a member empty.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        names = request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        self._expressions = {
            name: value
            for name, value in request.items()
            if name.endswith("Expression")
        }
        self._placeholders = names | values
        used = {*re.findall(r"[#:]\w+", " ".join(self._expressions.values()))}
        # DynamoDB also refuses a request in which `Key` or another member is `{}`.
        if used != self._placeholders.keys() or {} in request.values():
            raise DynamoDBError(
                f"Names and values must match those used in {self._expressions}"
            )

    def condition_holds(self, item: Item) -> bool:
        """Return True if an item meets the condition, or if there is none."""
        if "ConditionExpression" not in self._expressions:
            return True
        alternatives = self._expressions["ConditionExpression"].split(" OR ")
        # Evaluate every comparison, so that a comparison with a mistake is always reported.
        results = [self._comparison_holds(item, each) for each in alternatives]
        return any(results)

    def _comparison_holds(self, item: Item, comparison: str) -> bool:
        match self._tokens(comparison):
            case ["attribute_exists", "(", name, ")"]:
                return name in item
            case ["attribute_not_exists", "(", name, ")"]:
                return name not in item
            case [name, "=", dict(value)]:
                return item.get(name) == value
            case [name, "<=", {"N": number}]:
                value = item.get(name, {})
                return "N" in value and int(value["N"]) <= int(number)
        raise unsupported(f"the condition {comparison!r}")

    def key_condition(self) -> Item:
        """Return a query's hash key, and the range key after which the query starts."""
        comparisons = self._expressions["KeyConditionExpression"].split(" AND ")
        match [self._tokens(comparison) for comparison in comparisons]:
            case [[hash_key, "=", dict(value)], [range_key, ">", dict(after)]]:
                return {hash_key: value, range_key: after}
        raise unsupported(f"the condition {comparisons}")

    def changes(self, item: Item) -> Item:
        """Return the new values of the attributes that the request's update changes."""
        if "UpdateExpression" not in self._expressions:
            return {}
        section, _, assignments = self._expressions["UpdateExpression"].partition(" ")
        changes: Item = {}
        for assignment in assignments.split(","):
            match [section, *self._tokens(assignment)]:
                case ["ADD", name, {"N": number}]:
                    total = int(item.get(name, _ZERO)["N"]) + int(number)
                    changes[name] = {"N": str(total)}
                case ["SET", name, "=", dict(value)]:
                    changes[name] = value
                case _:
                    raise unsupported(f"the update {section} {assignment}")
        return changes

    def _tokens(self, text: str) -> list[Any]:
        """Split an expression into tokens; replace each placeholder by its name or value."""
        tokens = re.findall(r"[#:]?\w+|<=|\S", text)
        return [self._placeholders.get(token, token) for token in tokens]
