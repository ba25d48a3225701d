"""Entries of a transcript as updates of ACP, and prompts of ACP as words and files."""

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from acp import (
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message,
    update_agent_thought_text,
    update_tool_call,
    update_user_message,
)
from acp.helpers import ContentBlock, SessionUpdate, resource_link_block
from acp.schema import (
    AudioContentBlock,
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PermissionOption,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
    UnstructuredCommandInput,
)

from segue.core.messages import File, Notice, Part, Parts, Reasoning, Stone, Summary, Text, ToolCall, ToolResult
from segue.core.questions import ALWAYS, FOR_THIS_SESSION, NO
from segue.core.transcripts import Role
from segue.errors import Invalid
from segue.runtime.windows.frames import SaidFile, ShownCommand, ShownEntry

Locate = Callable[[File], str]
"""Tells the address of a file for the editor; empty, if it can't reach it."""
_LONGEST = 100_000
"""Characters of a tool's result that are shown."""
_THOUGHTS = ("thinking", "text", "content", "summary", "reasoning")
"""Keys under which providers keep the words of a thought."""


class Unfolding:
    """The parts of one answer that an editor has been sent; only what is new is sent, whether it grows or is there."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self._sent: list[Part] = []

    def advance(self, parts: Sequence[Part]) -> Iterator[SessionUpdate]:
        """Updates from what was sent to these parts; parts that changed otherwise than by growing are sent again."""
        for n, part in enumerate(parts):
            was = self._sent[n] if n < len(self._sent) else None
            if isinstance(part, Text) and isinstance(was, Text):
                if was.text.startswith(part.text):
                    continue
                self._sent[n] = part
                grew = part.text.startswith(was.text)
                yield _said(part.text[len(was.text) :] if grew else f"\n\n{part.text}")
            elif was is None or _mark(was) != _mark(part):
                # A text after a text is a paragraph of its own.
                apart = n > 0 and isinstance(self._sent[n - 1], Text | Notice)
                self._sent[n:] = [part]
                yield from self._shown(part, "\n\n" if apart else "")

    def _shown(self, part: Part, before: str) -> Iterator[SessionUpdate]:
        match part:
            case Text(text) | Notice(text) | Summary(text):
                if text:
                    yield _said(before + text)
            case Reasoning(raw=raw):
                if words := thought(raw):
                    yield update_agent_thought_text(words)
            case ToolCall(id, name, arguments):
                yield start_tool_call(id, name, kind="other", status="in_progress", raw_input=arguments)
            case ToolResult(id, content, failed):
                words = content if isinstance(content, str) else msgspec.json.encode(content).decode()
                shown = [tool_content(text_block(words[:_LONGEST]))]
                yield update_tool_call(id, status="failed" if failed else "completed", content=shown)
            case File():
                yield update_agent_message(_file(part, self._locate(part)))
            case Stone():
                yield _said("(Forgotten.)")
            case _:
                """Orders and words for the agent alone are shown to nobody."""


def _mark(part: Part) -> object:
    """The same for the same part, however it grew."""
    return (type(part), part.id) if isinstance(part, ToolCall | ToolResult) else part


def told(entry: ShownEntry, locate: Locate) -> Iterator[SessionUpdate]:
    """An entry as it is replayed."""
    if entry.role is Role.PERSON:
        yield from asked(entry.text, "" if entry.mine else entry.name)
        for file in entry.files:
            yield update_user_message(_file(file, locate(file)))
    else:
        yield from Unfolding(locate).advance(entry.parts)


def asked(text: str, name: str) -> Iterator[SessionUpdate]:
    """Words of a person; with a name, if it is somebody else."""
    if text or name:
        yield update_user_message(text_block(f"**{name}**: {text}" if name else text))


def noticed(text: str) -> SessionUpdate:
    """A line of Segue's own, in a paragraph of its own."""
    return _said(f"\n\n{text}\n\n")


def _said(text: str) -> SessionUpdate:
    return update_agent_message(text_block(text))


def _file(file: File, where: str) -> ContentBlock:
    if not where:
        return text_block(f"({file.name}, {file.media})")
    return resource_link_block(file.name, where, mime_type=file.media, size=file.size or None)


def attached(files: Iterable[File], locate: Locate) -> Iterator[SessionUpdate]:
    """The files of a notice."""
    return (update_agent_message(_file(file, locate(file))) for file in files)


def commands(known: Iterable[ShownCommand]) -> SessionUpdate:
    """The commands that can be typed."""
    offered = [AvailableCommand(name=one.name, description=one.does, input=_arguments(one)) for one in known]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=offered)


def _arguments(command: ShownCommand) -> AvailableCommandInput | None:
    hint = command.usage.partition(" ")[2]
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None


def thought(raw: Any) -> str:
    """The words of a thought in its provider's form; empty, if they are sealed."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, list):
        return "\n".join(filter(None, map(thought, raw)))
    found = (thought(raw[key]) for key in _THOUGHTS if raw.get(key)) if isinstance(raw, dict) else iter(())
    return next(filter(None, found), "")


def options(choices: Iterable[str]) -> list[PermissionOption]:
    """The choices of a question, as an editor offers them."""
    kinds = {NO: "reject_once", ALWAYS: "allow_always", FOR_THIS_SESSION: "allow_always"}
    return [
        PermissionOption(option_id=choice, name=choice, kind=kinds.get(choice.casefold(), "allow_once"))  # type: ignore[arg-type]
        for choice in choices
    ]


def words(prompt: Iterable[ContentBlock]) -> tuple[str, tuple[SaidFile, ...]]:
    """What a prompt says, and the files that came with it."""
    said: list[str] = []
    files: list[SaidFile] = []
    for block in prompt:
        match block:
            case TextContentBlock(text=text):
                said.append(text)
            case ResourceContentBlock(name=name, uri=uri):
                said.append(f"[{name}]({uri})")
            case ImageContentBlock(data=data, mime_type=media) | AudioContentBlock(data=data, mime_type=media):
                kind = media.partition("/")[0]
                files.append(SaidFile(f"{kind}.{media.rpartition('/')[2]}", media, _bytes(data)))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                said.append(f"\n\n{uri}\n\n```\n{text}\n```\n\n")
            case EmbeddedResourceContentBlock(resource=blob):
                name = unquote(urlsplit(blob.uri).path).rpartition("/")[2] or "file"
                files.append(SaidFile(name, blob.mime_type or "application/octet-stream", _bytes(blob.blob)))
    return "".join(said).strip(), tuple(files)


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid("prompt", "an attachment isn't base64", "Encode it.") from error


def grown(sent: Parts, at: int, parts: Parts, *, more: bool) -> Parts:
    """The parts of an answer, after a frame that gives all from one on."""
    kept, first = sent[:at], sent[at] if at < len(sent) else None
    if more and parts and isinstance(first, Text) and isinstance(parts[0], Text):
        return (*kept, Text(first.text + parts[0].text), *parts[1:])
    return (*kept, *parts)
