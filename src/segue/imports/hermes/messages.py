"""Messages as Hermes stores them: chat completions with extra fields."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from segue.core.messages import File, Parts, Reasoning, Text, ToolCall, ToolResult, encode_parts
from segue.core.values import LAST_MOMENT, Moment, Value
from segue.errors import Invalid

UNREADABLE = (ValueError, TypeError, RecursionError, Invalid)
"""Errors of an unreadable message."""
_UNKEEPABLE = re.compile(r"[\0\ud800-\udfff]")
_STRUCTURED = "\0json:"
"""The prefix of structured content in state.db."""
_SUMMARIES = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
"""The prefixes of messages that summarize compacted ones."""
_PLAIN_THOUGHTS = ("reasoning", "reasoning_content")
_STRUCTURED_THOUGHTS = ("reasoning_details", "codex_reasoning_items", "codex_message_items")

Raw = Mapping[str, Any]


class HermesStanding(Enum):
    """The state of a message in its session."""

    SAID = "it is part of the conversation"
    COMPACTED = "a summary stands for it"
    UNDONE = "it was taken back"


class Message(Value, frozen=True):
    """One message of a Hermes session."""

    role: str
    parts: Parts
    at: Moment | None
    standing: HermesStanding = HermesStanding.SAID

    @property
    def summary(self) -> str:
        """Its text, if it is a summary of earlier messages."""
        [*_, last] = self.parts
        return last.text if isinstance(last, Text) and last.text.startswith(_SUMMARIES) else ""


def read_message(raw: Raw) -> Message | None:
    """Read a line of a transcript or a row of state.db. Return None for session metadata."""
    role = raw.get("role")
    if role == "session_meta":
        return None
    if role not in {"user", "assistant", "tool", "system"}:
        raise ValueError(f"nobody knows the role {role!r}")
    content = raw.get("content")
    if isinstance(content, str) and content.startswith(_STRUCTURED):
        content = json.loads(content.removeprefix(_STRUCTURED))
    parts: Parts
    if role == "tool":
        parts = (ToolResult(clean(str(raw.get("tool_call_id") or "")), _kept(content)),)
    elif role == "assistant":
        parts = (*_thoughts(raw), *_said(content), *_calls(raw.get("tool_calls")))
    else:
        parts = tuple(_said(content))
    parts = parts or (Text(""),)
    encode_parts(parts)  # report values that a database can't store here, where their location is known
    standing = HermesStanding.SAID
    if raw.get("active", 1) == 0:
        standing = HermesStanding.COMPACTED if raw.get("compacted") else HermesStanding.UNDONE
    return Message(role, parts, moment(raw.get("timestamp")), standing)


def moment(value: Any) -> Moment | None:
    """Read a time: seconds since 1970 or a written local time. Return None for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < LAST_MOMENT:
        return None
    return float(value)


def clean(text: str) -> str:
    """Remove the few characters that no database stores."""
    return _UNKEEPABLE.sub("\ufffd", text)


def _thoughts(raw: Raw) -> Iterator[Reasoning]:
    """Return the model's thoughts from the fields in which Hermes stores them."""
    fields: dict[str, Any] = {name: raw.get(name) for name in _PLAIN_THOUGHTS}
    for name in _STRUCTURED_THOUGHTS:
        value = raw.get(name)
        # state.db stores these as JSON text, a transcript as values.
        fields[name] = json.loads(value) if isinstance(value, str) and value else value
    if found := {name: _kept(value) for name, value in fields.items() if value}:
        yield Reasoning("hermes", found)


def _said(content: Any) -> Iterator[Text | File]:
    for piece in content if isinstance(content, list) else [content]:
        words = piece.get("text") if isinstance(piece, dict) else piece
        image = piece.get("image_url") if isinstance(piece, dict) else None
        if isinstance(words, str):
            if words:
                yield Text(clean(words))
        elif image:
            where = clean(str(image.get("url") or "") if isinstance(image, dict) else str(image))
            media = re.match(r"data:([^;,]+)", where)
            yield File("", media[1] if media else "image/*", where)
        elif piece is not None:
            yield Text(clean(json.dumps(piece, ensure_ascii=False)))


def _calls(calls: Any) -> Iterator[ToolCall]:
    if isinstance(calls, str):
        calls = json.loads(calls)
    for call in calls or ():
        if not isinstance(call, dict):
            raise TypeError("a tool call isn't an object")
        function = call["function"] if isinstance(call.get("function"), dict) else call
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            arguments = _object_in(arguments)
        id = str(call.get("id") or call.get("call_id") or "")
        yield ToolCall(clean(id), clean(str(function.get("name") or "")), _kept(arguments))


def _object_in(text: str) -> Any:
    """Parse a text as a JSON object; return the text itself if it isn't one."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _kept(value: Any) -> Any:
    """Clean every text in a value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_kept(item) for item in value]
    if isinstance(value, dict):
        return {clean(str(key)): _kept(item) for key, item in value.items()}
    return value
