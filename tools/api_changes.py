"""Find what in openapi.yaml breaks clients of the last release: `python -m tools.api_changes [OLD NEW]`.

Compared are operations, parameters, request bodies, responses with their headers, and schemas by type, enum, bounds,
pattern, required members, `additionalProperties` and items, through `$ref`. Not compared: composition (`oneOf`,
`anyOf`, `allOf`, `not`: any change of these counts as breaking), callbacks, links, servers, and what only prose says.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from tools import ROOT

DOCUMENT = "openapi.yaml"

_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_COMPOSITION = ("oneOf", "anyOf", "allOf", "not")
_PROSE = {"description", "title", "example", "examples"}
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")

Direction = Literal["request", "response"]
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two documents.

    Args:
        document: OpenAPI 3.
    """

    document: Object

    def get(self, value: Any) -> Any:
        """Follow `$ref` as far as it goes (within the document only)."""
        while isinstance(value, Mapping) and "$ref" in value:
            found: Any = self.document
            for part in str(value["$ref"]).removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            value = found
        return value

    def operations(self) -> dict[str, Object]:
        """Return the operations by method and path, with the parameters of their path."""
        found: dict[str, Object] = {}
        for path, item in self.document.get("paths", {}).items():
            for method in item.keys() & set(_METHODS):
                parameters = [*item.get("parameters", []), *item[method].get("parameters", [])]
                found[f"{method.upper()} {path}"] = {**item[method], "parameters": parameters}
        return found


def breaking_changes(old: Object, new: Object) -> list[str]:
    """Compare two documents.

    Args:
        old: What clients were written for.
        new: What they shall live with.

    Returns:
        What can break them, a line each.
    """
    return list(_Comparison(Side(old), Side(new)).all())


@dataclass(frozen=True, slots=True)
class _Comparison:
    old: Side
    new: Side

    def all(self) -> Iterator[str]:
        operations = self.new.operations()
        for name, operation in self.old.operations().items():
            if name not in operations:
                yield f"{name}: removed"
                continue
            for change in self._operation(operation, operations[name]):
                yield f"{name}: {change}"

    def _operation(self, old: Object, new: Object) -> Iterator[str]:
        if self._security(self.old, old) != self._security(self.new, new):
            yield "security changed"
        yield from self._parameters(old, new)
        yield from self._body(self.old.get(old.get("requestBody")) or {}, self.new.get(new.get("requestBody")) or {})
        responses = new.get("responses", {})
        for status, response in old.get("responses", {}).items():
            if status not in responses:
                yield f"response {status} removed"
            else:
                yield from self._response(status, self.old.get(response), self.new.get(responses[status]))

    @staticmethod
    def _security(side: Side, operation: Object) -> Any:
        return operation.get("security", side.document.get("security", []))

    def _parameters(self, old: Object, new: Object) -> Iterator[str]:
        before = {(p["in"], p["name"]): p for p in map(self.old.get, old["parameters"])}
        after = {(p["in"], p["name"]): p for p in map(self.new.get, new["parameters"])}
        for key, parameter in after.items():
            name = f"{key[0]} parameter {key[1]}"
            if parameter.get("required") and not before.get(key, {}).get("required"):
                yield f"{name} became required"
            if key in before:
                yield from self._schema(name, before[key].get("schema", {}), parameter.get("schema", {}), "request")
        for key in before.keys() - after.keys():
            yield f"{key[0]} parameter {key[1]} removed"

    def _body(self, old: Object, new: Object) -> Iterator[str]:
        if new.get("required") and not old.get("required"):
            yield "request body became required"
        yield from self._content("request body", old, new, "request")

    def _response(self, status: str, old: Object, new: Object) -> Iterator[str]:
        where = f"response {status}"
        headers = {name.lower(): header for name, header in new.get("headers", {}).items()}
        for name, header in old.get("headers", {}).items():
            if name.lower() not in headers:
                yield f"{where}: header {name} removed"
                continue
            before, after = self.old.get(header), self.new.get(headers[name.lower()])
            if before.get("required") and not after.get("required"):
                yield f"{where}: header {name} became optional"
            yield from self._schema(
                f"{where}: header {name}", before.get("schema", {}), after.get("schema", {}), "response"
            )
        yield from self._content(where, old, new, "response")

    def _content(self, where: str, old: Object, new: Object, direction: Direction) -> Iterator[str]:
        after = new.get("content", {})
        for media_type, content in old.get("content", {}).items():
            if media_type not in after:
                yield f"{where}: {media_type} removed"
            else:
                yield from self._schema(
                    where, content.get("schema", {}), after[media_type].get("schema", {}), direction
                )

    def _schema(
        self, where: str, old: Any, new: Any, direction: Direction, seen: frozenset[tuple[int, int]] = frozenset()
    ) -> Iterator[str]:
        old, new = self.old.get(old), self.new.get(new)
        pair = (id(old), id(new))
        if pair in seen or old is new:
            return
        if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
            if old != new:
                yield f"{where}: schema changed"
            return
        yield from _values(where, old, new, direction)
        yield from _required(where, old, new, direction)
        yield from self._members(where, old, new, direction, seen | {pair})
        if any(self._expand(self.old, old.get(word)) != self._expand(self.new, new.get(word)) for word in _COMPOSITION):
            yield f"{where}: composition ({', '.join(_COMPOSITION)}) changed"

    def _members(
        self, where: str, old: Object, new: Object, direction: Direction, seen: frozenset[tuple[int, int]]
    ) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        closed = new.get("additionalProperties") is False
        for name, schema in before.items():
            if name in after:
                yield from self._schema(f"{where}: {name}", schema, after[name], direction, seen)
            elif direction == "response" or closed:
                yield f"{where}: {name} removed"
        if direction == "request" and closed and old.get("additionalProperties") is not False:
            yield f"{where}: other members became forbidden"
        if "items" in old or "items" in new:
            yield from self._schema(f"{where}: items", old.get("items", True), new.get("items", True), direction, seen)

    def _expand(self, side: Side, value: Any, depth: int = 0) -> Any:
        """Replace references by what they mean, so that two documents compare; deep recursion stays as written."""
        if depth < 20:  # noqa: PLR2004 - deeper than any schema but an endless one
            value = side.get(value)
        if isinstance(value, Mapping):
            return {key: self._expand(side, item, depth + 1) for key, item in value.items() if key not in _PROSE}
        return [self._expand(side, item, depth + 1) for item in value] if isinstance(value, list) else value


def _values(where: str, old: Object, new: Object, direction: Direction) -> Iterator[str]:
    """Compare what values two schemas allow: a request must not allow less than before, a response not more."""
    narrow, wide = (new, old) if direction == "request" else (old, new)
    verb = "allows less than before" if direction == "request" else "can be more than before"
    if "type" in narrow and not _types(wide) <= _types(narrow):
        yield f"{where}: type {verb}"
    choices, other = _choices(narrow), _choices(wide)
    if choices is not None and (other is None or any(value not in choices for value in other)):
        yield f"{where}: enum {verb}"
    for words, sign in ((_UPPER, 1), (_LOWER, -1)):
        for word in words:
            if word in narrow and (word not in wide or sign * wide[word] > sign * narrow[word]):
                yield f"{where}: {word} {verb}"
    for word in ("pattern", "format", "multipleOf"):
        if word in narrow and wide.get(word) != narrow[word]:
            yield f"{where}: {word} {verb}"


def _required(where: str, old: Object, new: Object, direction: Direction) -> Iterator[str]:
    before, after = set(old.get("required", [])), set(new.get("required", []))
    changed = after - before if direction == "request" else before - after
    for name in sorted(changed):
        yield f"{where}: {name} became {'required' if direction == 'request' else 'optional'}"


def _types(schema: Object) -> set[str]:
    """Return the JSON types that a schema allows; a number may be an integer."""
    found = schema.get("type", ["array", "boolean", "integer", "null", "number", "object", "string"])
    types = {found} if isinstance(found, str) else set(found)
    return types | {"integer"} if "number" in types else types


def _choices(schema: Object) -> list[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _last_release() -> str | None:
    """Return the newest release tag (`v1.2.3`) that this commit comes from, not its own."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip() or None


def main() -> None:
    """Run as a command."""
    if len(sys.argv) == 3:  # noqa: PLR2004 - two file names
        before, (old, new) = sys.argv[1], [Path(name).read_text("utf-8") for name in sys.argv[1:]]
    else:
        tag = _last_release()
        if tag is None:
            print(f"{DOCUMENT}: there is no release (tag v*) yet that it could break")
            return
        show = subprocess.run(
            ["git", "show", f"{tag}:{DOCUMENT}"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        before, old, new = tag, show.stdout, (ROOT / DOCUMENT).read_text("utf-8")
    if changes := breaking_changes(yaml.safe_load(old), yaml.safe_load(new)):
        sys.exit("\n".join([f"{DOCUMENT} breaks clients of {before}:", *(f"  - {change}" for change in changes)]))
    print(f"{DOCUMENT}: breaks nothing of {before}")


if __name__ == "__main__":
    main()
