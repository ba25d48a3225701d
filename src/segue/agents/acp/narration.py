"""The updates of one session of an ACP agent's, as the events of an answer."""

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from mimetypes import guess_extension
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    SessionInfoUpdate,
    TextContentBlock,
    TextResourceContents,
    ToolCallProgress,
    ToolCallStart,
)

from segue.agents.acp.calls import Calls
from segue.core.contracts.agents import Event, KeepsFiles, Progress, ReadsFiles, Titled
from segue.core.messages import File, Reasoning, Text

PROVIDER = "acp"
_NAMELESS = "New session"
"""Beginning of what some agents call a session until they have found a title."""


class Narration:
    """All that the agent tells in a session, from one update to the next."""

    def __init__(self, files: ReadsFiles) -> None:
        self._files = files
        self.calls = Calls()
        self._thought = ""
        self._message: str | None = None
        self._doing = ""

    async def take(self, update: Any) -> AsyncGenerator[Event, None]:
        """The events of an update."""
        if self._thought and not isinstance(update, AgentThoughtChunk):
            yield self._thoughts()
        if isinstance(update, AgentMessageChunk):
            async for said in self._said(update):
                yield said
            return
        silent = True
        for event in self._told(update):
            silent = False
            yield event
        if silent and self._doing:
            yield Progress(self._doing)  # it lives

    def rest(self) -> Iterator[Event]:
        """What is left once nothing more comes."""
        if self._thought:
            yield self._thoughts()
        yield from self.calls.unfinished()

    def _thoughts(self) -> Reasoning:
        thought, self._thought = self._thought, ""
        return Reasoning(PROVIDER, {"text": thought})

    async def _said(self, update: AgentMessageChunk) -> AsyncIterator[Event]:
        """A piece of the answer; another message begins a paragraph."""
        if update.message_id and self._message and update.message_id != self._message:
            yield Text("\n\n")
        self._message = update.message_id or self._message
        match update.content:
            case TextContentBlock(text=text):
                yield Text(text)
            case ImageContentBlock(data=data, mime_type=media) | AudioContentBlock(data=data, mime_type=media):
                yield await self._file(f"{media.partition('/')[0]}{guess_extension(media) or ''}", media, data)
            case EmbeddedResourceContentBlock(resource=BlobResourceContents(blob=data, mime_type=media, uri=uri)):
                yield await self._file(uri.rsplit("/", 1)[-1] or "file", media or "", data)
            case EmbeddedResourceContentBlock(resource=TextResourceContents(text=text, uri=uri)):
                yield Text(f"\n\n{uri}\n```\n{text}\n```\n\n")
            case ResourceContentBlock(name=name, uri=uri):
                yield Text(f"[{name}]({uri})")
            case _:
                """There is no other content."""

    async def _file(self, name: str, media: str, data: str) -> File | Text:
        """A file that the agent made."""
        if not isinstance(self._files, KeepsFiles):
            return Text(f"({name} can't be kept here.)")
        try:
            return await self._files.keep(name, media, _once(await asyncio.to_thread(b64decode, data, validate=True)))
        except NotBase64:
            return Text(f"({name} came broken.)")

    def _told(self, update: Any) -> Iterator[Event]:
        """The events of anything else that the agent tells."""
        match update:
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                self._thought += text
                yield self._does("thinking")
            case ToolCallStart() | ToolCallProgress():
                finished = self.calls.heard(update)
                yield self._does(self.calls.line(update.tool_call_id))
                yield from finished
            case AgentPlanUpdate(entries=entries) if entries:
                done = sum(entry.status == "completed" for entry in entries)
                now = next((entry.content for entry in entries if entry.status == "in_progress"), "")
                yield self._does(f"plan {done}/{len(entries)}{f': {now}' if now else ''}"[:200])
            case SessionInfoUpdate(title=str(title)) if not title.startswith(_NAMELESS) and title.strip():
                yield Titled(title)
            case _:
                """Told to the session, or news to this version."""

    def _does(self, doing: str) -> Progress:
        self._doing = doing
        return Progress(doing)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
