"""Tool calls of an ACP agent, told in pieces: put together, and in short once they are finished."""

from collections.abc import Iterator
from difflib import unified_diff
from hashlib import sha256
from typing import Any

import msgspec
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TextContentBlock,
    TextResourceContents,
    ToolCallUpdate,
)
from acp.schema import ToolCall as AcpCall

from segue.core.messages import ToolCall, ToolResult
from segue.core.values import Plain

_LONGEST = 8_000
"""Characters of a result that are kept."""
_LONG = 2_000
"""Characters of a diff, or of arguments."""
_ENDED = ("completed", "failed")
_FIELDS = ("kind", "status", "title", "content", "locations", "raw_input", "raw_output")


class Calls:
    """The calls of one turn."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._told: set[str] = set()

    def heard(self, update: AcpCall | ToolCallUpdate) -> Iterator[ToolCall | ToolResult]:
        """Take in what is new about a call; the call and its result, if it has just ended."""
        call = self._known.setdefault(update.tool_call_id, {})
        call |= {name: value for name in _FIELDS if (value := getattr(update, name, None)) is not None}
        return self._finished(update.tool_call_id)

    def _finished(self, id: str) -> Iterator[ToolCall | ToolResult]:
        call = self._known[id]
        if call.get("status") in _ENDED and id not in self._told:
            self._told.add(id)
            yield _call(id, call)
            yield ToolResult(id, _result(call), failed=call["status"] == "failed")

    def known(self, id: str) -> dict[str, Any]:
        """All that is known of a call."""
        return self._known[id]

    def line(self, id: str) -> str:
        """A call in one line."""
        return called(self._known[id])

    def unfinished(self) -> Iterator[ToolCall]:
        """The calls of which nobody knows how they ended."""
        for id, call in self._known.items():
            if id not in self._told and call.get("status") is not None:
                yield _call(id, call)


def called(call: dict[str, Any]) -> str:
    """A call in one line that says what is done to what."""
    title = " ".join(str(call.get("title") or call.get("kind") or "a tool").split())
    given = call.get("raw_input")
    command = given.get("command") if isinstance(given, dict) else None
    what = " ".join(map(str, command)) if isinstance(command, list) else str(command or "")
    where = [_place(location) for location in call.get("locations") or ()]
    subject = next((one for one in (" ".join(what.split()), *where) if one), "")
    line = title if not subject or subject in title else f"{title}: {subject}"
    return _cut(line, 200)


def whole(call: dict[str, Any]) -> tuple[str, str]:
    """A call with all that it does, as a person is asked about it, and a hash that no other call has."""
    title, kind = str(call.get("title") or ""), str(call.get("kind") or "other")
    given = msgspec.json.encode(call.get("raw_input"), enc_hook=str, order="deterministic")
    places = [_place(location) for location in call.get("locations") or ()]
    changes = list(_pieces(call, texts=False, longest=None))
    written = msgspec.json.format(given, indent=2).decode() if call.get("raw_input") is not None else ""
    words = "\n".join(filter(None, (title or kind, written, *places, *changes)))
    return words, sha256(msgspec.json.encode([kind, title, given, places, changes])).hexdigest()[:32]


def _call(id: str, call: dict[str, Any]) -> ToolCall:
    """A call as it is kept: its kind is the tool's name, which every provider takes."""
    arguments: dict[str, Plain] = {"title": str(call.get("title") or "")}
    if places := [_place(location) for location in call.get("locations") or ()]:
        arguments["locations"] = places
    if (given := call.get("raw_input")) is not None:
        text = msgspec.json.encode(given, enc_hook=str).decode()
        arguments["input"] = given if len(text) <= _LONG else _cut(text, _LONG)
    return ToolCall(id, str(call.get("kind") or "other"), arguments)


def _result(call: dict[str, Any]) -> str:
    text = "\n".join(_pieces(call, texts=True))
    if not text and (given := call.get("raw_output")) is not None:
        text = given if isinstance(given, str) else msgspec.json.encode(given, enc_hook=str).decode()
    return _cut(text, _LONGEST)


def _pieces(call: dict[str, Any], *, texts: bool, longest: int | None = _LONG) -> Iterator[str]:
    """The content of a call: the changes to files, and its words if they are wanted."""
    for piece in call.get("content") or ():
        match piece:
            case FileEditToolCallContent(path=path, old_text=old, new_text=new):
                before, after = (old or "").splitlines(), new.splitlines()
                diff = "\n".join(unified_diff(before, after, path, path, n=1, lineterm=""))
                yield diff if longest is None else _cut(diff, longest)
            case ContentToolCallContent(content=TextContentBlock(text=text)) if texts:
                yield text
            case ContentToolCallContent(content=content) if texts:
                inside = getattr(content, "resource", None)
                yield inside.text if isinstance(inside, TextResourceContents) else f"({content.type})"
            case _:
                """A terminal of the agent's own, or words that nobody wants here."""


def _place(location: Any) -> str:
    return f"{location.path}:{location.line}" if location.line is not None else str(location.path)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
