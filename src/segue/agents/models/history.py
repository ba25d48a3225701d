"""Converts transcripts to pydantic-ai's message history, and responses to parts of an entry.

Law: a provider adds data to its responses, such as thoughts, signatures and ids. It is stored verbatim as `Reasoning`
and returns to the same place of the history. Data about a text follows the text; data about a tool call precedes the
call.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from segue.agents.models.attachments import attached
from segue.core.contracts.agents import ReadsFiles, Work
from segue.core.messages import File, Notice, Part, Reasoning, Text, ToolCall, ToolResult
from segue.core.prompt.envelopes import Voices, by_then, words
from segue.core.prompt.times import TimeLines
from segue.core.prompt.wire import CUT_OFF, file_sent, steps
from segue.core.transcripts import Draft, Entry, Role

_LIBRARY = "pydantic-ai"
_adapter: TypeAdapter[ModelResponsePart] = TypeAdapter(ModelResponsePart)


async def history(work: Work, done: Iterable[Part] = (), own: str = "") -> list[ModelMessage]:
    """Return a turn's messages for a model: the transcript, the question and the steps so far.

    `own` is the model's provider; the data of other providers is left out. It is empty if the provider is unknown.
    """
    messages = await history_of(chain(work.transcript, work.asked), work, own)
    parts = [*work.journal, *done]
    return messages + list(_answered(parts, own, put_off(work.journal)))


def put_off(journal: Iterable[Part]) -> set[str]:
    """Return the calls of an earlier attempt that still wait for a person's answer."""
    journal = list(journal)
    return {p.id for p in journal if isinstance(p, ToolCall)} - {p.id for p in journal if isinstance(p, ToolResult)}


async def history_of(entries: Iterable[Draft | Entry], work: Work, own: str = "") -> list[ModelMessage]:
    """Convert entries of a transcript, in the order in which they were written."""
    messages: list[ModelMessage] = []
    times = TimeLines(work.zone)
    for entry, voices in by_then(entries, work.voices):
        if entry.author.role is Role.AGENT:
            messages += _answered(entry.parts, own)
        elif content := await _said(entry, voices, work.files):
            time = times.before(entry.at)
            said = content[0] if len(content) == 1 and isinstance(content[0], str) else content
            messages.append(ModelRequest([*([UserPromptPart(time)] if time else []), UserPromptPart(said)]))
    return messages


def verbatim(part: ModelResponsePart) -> Reasoning | None:
    """Return the data of a model's part beside its text; None if it has only text."""
    if isinstance(part, TextPart | ToolCallPart) and not (part.id or part.provider_details):
        return None
    raw: dict[str, Any] = _adapter.dump_python(part, mode="json", exclude_none=True)
    if isinstance(part, TextPart):
        del raw["content"]
    if isinstance(part, ToolCallPart):
        del raw["args"]
    return Reasoning(getattr(part, "provider_name", None) or _LIBRARY, raw)


async def _said(said: Draft | Entry, voices: Voices, files: ReadsFiles) -> list[UserContent]:
    """Convert a message of a person or the gateway."""
    content: list[UserContent] = [text] if (text := words(said, voices)) else []
    return content + [await attached(part, files) for part in said.parts if isinstance(part, File)]


def _answered(parts: Iterable[Part], own: str, waiting: Collection[str] = ()) -> Iterator[ModelMessage]:
    """Convert the agent's parts: responses, and between them the results of their tool calls."""
    parts = [part for part in parts if not (isinstance(part, Reasoning) and _foreign(part, own))]
    calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
    marks = _marks(parts)
    for step in steps(parts, waiting):
        said: list[ModelResponsePart] = []
        for part in step.said:
            if isinstance(part, Text | Notice):
                said.append(TextPart(part.text))
            elif isinstance(part, File):
                said.append(TextPart(file_sent(part)))
            elif isinstance(part, ToolCall):
                said.append(_dressed(ToolCallPart(part.name, part.arguments, part.id), marks.get(part.id)))
            elif isinstance(part, Reasoning):
                _think(said, part)
        provider = next((name for part in said if (name := getattr(part, "provider_name", None))), None)
        if said:
            yield ModelResponse(said, provider_name=provider)
        if step.results:
            yield ModelRequest([_result(result, calls[result.id]) for result in step.results])


def _foreign(thought: Reasoning, own: str) -> bool:
    """Return whether another provider made it. Only that provider can read it."""
    return bool(own) and thought.provider not in (own, _LIBRARY)


def _think(said: list[ModelResponsePart], thought: Reasoning) -> None:
    """Put a thought back in its place."""
    kind = thought.raw.get("part_kind") if isinstance(thought.raw, dict) else None
    if kind == "tool-call":
        return  # `_dressed` adds it to its call
    if kind == "text":
        if said and isinstance(said[-1], TextPart):
            said[-1] = _dressed(said[-1], thought)
        return
    try:
        said.append(_adapter.validate_python(thought.raw))
    except ValidationError:
        """Another library's thoughts, in a form that no model of this library accepts."""


def _marks(parts: list[Part]) -> dict[str, Reasoning]:
    """Return the provider's data about its tool calls, by call id."""
    thoughts = [part for part in parts if isinstance(part, Reasoning) and isinstance(part.raw, dict)]
    return {t.raw.get("tool_call_id", ""): t for t in thoughts if t.raw.get("part_kind") == "tool-call"}


def _dressed(part: ModelResponsePart, mark: Reasoning | None) -> ModelResponsePart:
    """Return a text or call with its provider's data."""
    if mark is None:
        return part
    plain = _adapter.dump_python(part, mode="json", exclude_none=True)
    return _adapter.validate_python({**mark.raw, **plain})


def _result(result: ToolResult, call: ToolCall) -> ToolReturnPart:
    if result.content == CUT_OFF:
        return ToolReturnPart(call.name, CUT_OFF, call.id, outcome="interrupted")
    return ToolReturnPart(call.name, result.content, call.id, outcome="failed" if result.failed else "success")
