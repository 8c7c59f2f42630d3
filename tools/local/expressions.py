"""DynamoDB's expressions, evaluated as they are read: conditions, updates and key conditions.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html
Every part is read, even where the result is known already: an expression with a mistake is always refused.
"""

import operator
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tools.local.values import ORDERED, Item, ItemRefusal, Refusal, Value, add, kind, normal, order, unknown

Change = Callable[[], Value | None]
"""Makes the new value of an attribute; None removes it."""

Part = TypeVar("Part")

_TOKEN = re.compile(r"[:#]?[A-Za-z0-9_]+|<>|<=|>=|\S")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
RESERVED_WORDS = frozenset(Path(__file__).with_name("reserved_words.txt").read_text("ascii").split())
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Operand(NamedTuple):
    """A part of an expression that stands for a value.

    Args:
        value: None where the item has no such attribute.
        attribute: Its name, if it is an attribute.
    """

    value: Value | None
    attribute: str = ""

    def must_be(self, kinds: AbstractSet[str], for_what: str) -> None:
        """Refuse a value of the request that can never be right."""
        if self.value and not self.attribute and kind(self.value) not in kinds:
            raise Refusal(f"Incorrect operand type for operator or function: {for_what}, {kind(self.value)}")


class Placeholders:
    """The names and values that the expressions of a request can use, and must use.

    Args:
        request: The parameters of the request.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self._known: dict[str, Any] = dict(request.get("ExpressionAttributeNames", {}))
        self._known |= {name: normal(value) for name, value in request.get("ExpressionAttributeValues", {}).items()}
        self._unused = set(self._known)

    def look_up(self, token: str) -> Any:
        """Return what a `#name` or `:value` stands for."""
        if token not in self._known:
            raise Refusal(f"An expression attribute name or value used in an expression is not defined: {token}")
        self._unused.discard(token)
        return self._known[token]

    def check_all_used(self) -> None:
        """Refuse what no expression has used."""
        if self._unused:
            raise Refusal(f"ExpressionAttributeNames or -Values unused in expressions: {sorted(self._unused)}")


class Expression:
    """An expression and the item that it is about.

    Args:
        text: The expression.
        placeholders: What it can use.
        item: As it is stored; empty if there is none.
    """

    def __init__(self, text: str, placeholders: Placeholders, item: Item) -> None:
        self._text, self._placeholders, self._item = text, placeholders, item
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._group = (0, 0)
        if not self._tokens:
            raise Refusal("The expression can not be empty;")

    def condition(self) -> bool:
        """Evaluate a ConditionExpression."""
        holds = self._any()
        self._end()
        return holds

    def update(self) -> dict[str, Change]:
        """Read an UpdateExpression: the change of each attribute."""
        sections = {"SET": self._set, "REMOVE": self._remove, "ADD": self._add}
        changes: dict[str, Change] = {}
        while self._at < len(self._tokens):
            section = self._next().upper()
            if section not in sections:
                raise unknown(f"the section {section} of an update")
            change = sections.pop(section)
            for attribute, new in self._list(change):
                if attribute in changes:
                    raise Refusal(f"Two document paths overlap with each other: {attribute}")
                changes[attribute] = new
        return changes

    def key_condition(self) -> list[tuple[str, str, list[Value]]]:
        """Read a KeyConditionExpression: attribute, comparator and values of each of its conditions."""
        conditions = [self._key_condition()]
        while self._take("AND"):
            conditions.append(self._key_condition())
        self._end()
        return conditions

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _any(self) -> bool:
        holds = self._all()
        while self._take("OR"):
            holds = self._all() or holds
        return holds

    def _all(self) -> bool:
        holds = self._not()
        while self._take("AND"):
            holds = self._not() and holds
        return holds

    def _not(self) -> bool:
        if self._take("NOT"):
            return not self._not()
        if not self._take("("):
            return self._function() if self._peek(1) == "(" else self._comparison()
        begin = self._at
        holds = self._any()
        if self._group == (begin + 1, self._at):
            raise Refusal("The expression has redundant parentheses;")
        self._expect(")")
        self._group = (begin, self._at)
        return holds

    def _comparison(self) -> bool:
        left, comparator = self._operand(), self._next().upper()
        if comparator == "IN":
            self._expect("(")
            choices = self._list(self._operand)
            self._expect(")")
            return any(_compare(left, "=", choice) for choice in choices)
        right = self._operand()
        if comparator != "BETWEEN":
            return _compare(left, comparator, right)
        self._expect("AND")
        high = self._operand()
        _check_bounds(right, high)
        return all([_compare(left, ">=", right), _compare(left, "<=", high)])

    def _function(self) -> bool:
        if (name := self._next()) not in ("attribute_exists", "attribute_not_exists"):
            raise unknown(f"the function {name} in a condition")
        self._expect("(")
        there = self._attribute() in self._item
        self._expect(")")
        return there is (name == "attribute_exists")

    # -- updates -------------------------------------------------------------------------------------------------------

    def _set(self) -> tuple[str, Change]:
        attribute = self._attribute()
        self._expect("=")
        left = self._new_value()
        if not (sign := self._take("+") or self._take("-")):
            return attribute, lambda: _present(left)
        right = self._new_value()
        left.must_be({"N"}, sign)
        right.must_be({"N"}, sign)
        return attribute, lambda: add(_present(left), _present(right), minus=sign == "-")

    def _new_value(self) -> Operand:
        if self._peek(1) != "(":
            return self._operand()
        if (name := self._next()) != "if_not_exists":
            raise unknown(f"the function {name}")
        self._expect("(")
        there = self._attribute()
        self._expect(",")
        default = self._new_value()
        self._expect(")")
        return Operand(self._item[there], there) if there in self._item else default

    def _remove(self) -> tuple[str, Change]:
        return self._attribute(), lambda: None

    def _add(self) -> tuple[str, Change]:
        attribute, value = self._attribute(), self._literal()
        Operand(value).must_be({"N"}, "ADD")
        return attribute, lambda: add(self._item.get(attribute, {"N": "0"}), value)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _key_condition(self) -> tuple[str, str, list[Value]]:
        if self._take("("):
            inner = self._key_condition()
            self._expect(")")
            return inner
        if self._peek(1) == "(":
            raise unknown(f"the function {self._next()} in a KeyConditionExpression")
        attribute, comparator, values = self._attribute(), self._next().upper(), [self._literal()]
        if comparator == "BETWEEN":
            self._expect("AND")
            values.append(self._literal())
            _check_bounds(*map(Operand, values))
        return attribute, comparator, values

    def _operand(self) -> Operand:
        if self._peek().startswith(":"):
            return Operand(self._literal())
        if self._peek(1) == "(":
            raise unknown(f"the function {self._peek()} in this place")
        attribute = self._attribute()
        return Operand(self._item.get(attribute), attribute)

    def _attribute(self) -> str:
        token = self._next()
        if self._peek() in (".", "["):
            raise unknown("paths into an attribute")
        if token.startswith("#"):
            return str(self._placeholders.look_up(token))
        if not _NAME.fullmatch(token):
            raise self._syntax_error()
        if token.upper() in RESERVED_WORDS:
            raise Refusal(f"Attribute name is a reserved keyword; reserved keyword: {token}")
        return token

    def _literal(self) -> Value:
        token = self._next()
        if not token.startswith(":"):
            raise self._syntax_error()
        value: Value = self._placeholders.look_up(token)
        return value

    def _list(self, part: Callable[[], Part]) -> list[Part]:
        parts = [part()]
        while self._take(","):
            parts.append(part())
        return parts

    # -- tokens --------------------------------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> str:
        return self._tokens[self._at + ahead] if self._at + ahead < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._peek(-1)

    def _take(self, token: str) -> str:
        return self._next() if self._peek().upper() == token else ""

    def _expect(self, token: str) -> None:
        if self._next().upper() != token:
            raise self._syntax_error()

    def _end(self) -> None:
        if self._next():
            raise self._syntax_error()

    def _syntax_error(self) -> Refusal:
        return Refusal(f'Syntax error; token: "{self._peek(-1)}", in: "{self._text}"')


def _compare(left: Operand, comparator: str, right: Operand) -> bool:
    if left.attribute and left.attribute == right.attribute:
        raise Refusal(f"The first operand must be distinct from the remaining operands: {left.attribute}")
    one, two = left.value, right.value
    if comparator in ("=", "<>"):
        return (one is not None and one == two) is (comparator == "=")
    if comparator not in _ORDERS:
        raise Refusal(f'Syntax error; token: "{comparator}"')
    left.must_be(ORDERED, comparator)
    right.must_be(ORDERED, comparator)
    if one is None or two is None or kind(one) != kind(two) or kind(one) not in ORDERED:
        return False
    return bool(_ORDERS[comparator](order(one), order(two)))


def _check_bounds(low: Operand, high: Operand) -> None:
    """Refuse bounds of BETWEEN that no value can lie between."""
    if low.value and high.value and not low.attribute and not high.attribute:
        low.must_be(ORDERED, "BETWEEN")
        if kind(low.value) != kind(high.value) or order(low.value) > order(high.value):
            raise Refusal("BETWEEN requires an upper bound of the same type, greater than or equal to the lower bound;")


def _present(operand: Operand) -> Value:
    if operand.value is None:
        raise ItemRefusal(f"The expression refers to an attribute that does not exist in the item: {operand.attribute}")
    return operand.value
