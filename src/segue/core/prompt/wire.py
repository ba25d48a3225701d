"""Transcripts in the wire form of a provider's API: what a bot's own library wants, as plain lists and dicts."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from segue.core.messages import File, Notice, Part, Text, ToolCall, ToolResult
from segue.core.prompt.envelopes import Voices, by_then, words
from segue.core.prompt.times import TimeLines
from segue.core.transcripts import Draft, Entry, Role

CUT_OFF = "This call was cut off. Nobody knows whether it was done."
Message = dict[str, Any]


class WireForm(StrEnum):
    """The form of a list of messages."""

    OPENAI = "openai"
    """The messages of Chat Completions, which most libraries take."""
    ANTHROPIC = "anthropic"
    """Those of Anthropic's Messages API."""


class AnswerStep(NamedTuple):
    """The words and calls of an agent between two waits, and the results that it waited for."""

    said: list[Part]
    results: list[ToolResult]


def steps(parts: Iterable[Part], waiting: Collection[str] = ()) -> Iterator[AnswerStep]:
    """The steps of an answer; a call whose result isn't there has one that says so, a result without a call is left.

    Calls that wait have none, and stand last: whoever goes on makes them before it asks a model.
    """
    parts = list(parts)
    calls = {part.id for part in parts if isinstance(part, ToolCall)}
    said: list[Part] = []
    results: list[ToolResult] = []
    for part in parts:
        if isinstance(part, ToolResult):
            results += [part] if part.id in calls else []
            continue
        if results:
            yield from _whole(said, results, waiting)
            said, results = [], []
        said.append(part)
    if said or results:
        yield from _whole(said, results, waiting)


def _whole(said: list[Part], results: list[ToolResult], waiting: Collection[str]) -> Iterator[AnswerStep]:
    known = {result.id for result in results}
    missing = [part for part in said if isinstance(part, ToolCall) and part.id not in known]
    last: list[Part] = [call for call in missing if call.id in waiting]
    results = [*results, *(ToolResult(call.id, CUT_OFF, failed=True) for call in missing if call not in last)]
    if not results:
        yield AnswerStep(said, [])
        return
    yield AnswerStep([part for part in said if part not in last], results)
    if last:
        yield AnswerStep(last, [])


def messages(
    said: Iterable[Draft | Entry], journal: Sequence[Part], voices: Voices, zone: str, form: WireForm
) -> list[Message]:
    """Words and tool calls, oldest first; a file is named, thoughts are left out."""
    answered = {WireForm.OPENAI: _openai, WireForm.ANTHROPIC: _anthropic}[form]
    found: list[Message] = []
    times = TimeLines(zone)
    for item, heard in by_then(said, voices):
        if item.author.role is Role.AGENT:
            found += _answers(item.parts, answered)
            continue
        files = [_named(part) for part in item.parts if isinstance(part, File)]
        lines = [line for line in (words(item, heard), *files) if line]
        if lines and (time := times.before(item.at)):
            lines = [time, *lines]
        found += [{"role": "user", "content": line} for line in lines]
    return found + _answers(journal, answered)


def file_sent(file: File) -> str:
    """An agent's own word for a file that it sent."""
    return f"(I sent the file {file.name}.)"


def _answers(
    parts: Iterable[Part], answered: Callable[[str, list[ToolCall], list[ToolResult]], Iterator[Message]]
) -> list[Message]:
    found: list[Message] = []
    for step in steps(parts):
        text = "\n\n".join(_text(part) for part in step.said if isinstance(part, Text | Notice | File))
        found += answered(text, [part for part in step.said if isinstance(part, ToolCall)], step.results)
    return found


def _text(part: Text | Notice | File) -> str:
    return file_sent(part) if isinstance(part, File) else part.text


def _openai(text: str, calls: list[ToolCall], results: list[ToolResult]) -> Iterator[Message]:
    made = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _json(call.arguments)}}
        for call in calls
    ]
    if text or made:
        yield {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}
    for result in results:
        yield {"role": "tool", "tool_call_id": result.id, "content": _content(result)}


def _anthropic(text: str, calls: list[ToolCall], results: list[ToolResult]) -> Iterator[Message]:
    said: list[Message] = [{"type": "text", "text": text}] if text else []
    said += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}} for call in calls]
    if said:
        yield {"role": "assistant", "content": said}
    if results:
        found = [
            {"type": "tool_result", "tool_use_id": result.id, "content": _content(result), "is_error": result.failed}
            for result in results
        ]
        yield {"role": "user", "content": found}


def _content(result: ToolResult) -> str:
    return result.content if isinstance(result.content, str) else _json(result.content)


def _named(file: File) -> str:
    return _json({"file": file.name, "media": file.media, "bytes": file.size})


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
