"""A turn as the content of an ACP prompt.

Law: the agent is told what it hasn't seen, and nothing twice. What people said before comes as JSON, a message a line,
so that nobody's words can pass for another's.
"""

import asyncio
from base64 import b64encode
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec
from acp.helpers import ContentBlock
from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PromptCapabilities,
    TextContentBlock,
    TextResourceContents,
)

from segue.core.contracts.agents import Work
from segue.core.messages import File, Part
from segue.core.prompt.envelopes import by_then, gateway_line, words
from segue.core.prompt.times import TimeLines
from segue.core.prompt.wire import WireForm, messages
from segue.core.transcripts import Draft, Entry
from segue.errors import Invalid

LARGEST = 10 * 1024 * 1024
"""Bytes of a file that is sent along: as base64 it fits into a line."""
_READ = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")
_BEFORE = "The conversation so far, a message a line, the oldest first; the assistant in it is you:"
_SINCE = "Said since your last answer, a message a line; some of it you may have seen:"
_CUT_OFF = "An earlier attempt at the following was cut off. Do again only what isn't done."
_DONE = "Finished then, a message a line:"


def history(work: Work, since: Sequence[Entry] | None) -> str:
    """The words about all that the agent hasn't seen before what is asked now; empty if there is nothing."""
    entries = work.transcript if since is None else since
    told = [_lines(_BEFORE if since is None else _SINCE, work, entries)]
    if work.tries or work.journal:
        told += [gateway_line(_CUT_OFF), _lines(_DONE, work, (), work.journal)]
    return "\n\n".join(filter(None, told))


def _lines(heading: str, work: Work, entries: Iterable[Entry], journal: Sequence[Part] = ()) -> str:
    said = messages(entries, journal, work.voices, work.zone, WireForm.OPENAI)
    lines = [msgspec.json.encode(message).decode() for message in said]
    return "\n".join([gateway_line(heading), *lines]) if lines else ""


async def asked(work: Work, can: PromptCapabilities, more: Sequence[Draft] = ()) -> list[ContentBlock]:
    """The messages to answer now, with their files; or those that came since, while the agent answers."""
    blocks: list[ContentBlock] = []
    times = TimeLines(work.zone)
    heard = list(by_then(chain(work.transcript, work.asked, more), work.voices))[len(work.transcript) :]
    for n, (draft, voices) in enumerate(heard):
        text = words(draft, voices)
        time = times.before(draft.at) if text.lstrip()[:1] != "/" else ""
        if n >= len(work.asked) or not more:
            blocks += [text_block(line) for line in (time, text) if line]
            blocks += [await _attached(part, work, can) for part in draft.parts if isinstance(part, File)]
    return blocks


def text_block(text: str) -> TextContentBlock:
    """Words in a prompt."""
    return TextContentBlock(type="text", text=text)


async def _attached(file: File, work: Work, can: PromptCapabilities) -> ContentBlock:
    """A file as the agent can take it; one that it can't is named."""
    if file.size > LARGEST:
        return _named(file, "it is too large to be sent to you")
    try:
        content = await work.files.read(file)
    except Invalid:
        return _named(file, "it can't be read any more")
    # As base64, up to 10 MB of it: meanwhile the event loop serves everybody else.
    return await asyncio.to_thread(_shown, file, content, can) or _named(file, "you can't be shown it")


def _shown(file: File, content: bytes, can: PromptCapabilities) -> ContentBlock | None:
    """The content of a file in the form that the agent takes; None if it takes none."""
    media, uri = file.media, f"attachment:///{file.name}"
    if media.startswith("image/") and can.image:
        return ImageContentBlock(type="image", data=b64encode(content).decode(), mime_type=media)
    if media.startswith("audio/") and can.audio:
        return AudioContentBlock(type="audio", data=b64encode(content).decode(), mime_type=media)
    inside: TextResourceContents | BlobResourceContents
    if media.startswith(_READ):
        inside = TextResourceContents(uri=uri, text=content.decode("utf-8", "replace"), mime_type=media)
        if not can.embedded_context:
            told = {"file": file.name, "media": media, "text": inside.text}
            return text_block(msgspec.json.encode(told).decode())
    else:
        inside = BlobResourceContents(uri=uri, blob=b64encode(content).decode(), mime_type=media)
    return EmbeddedResourceContentBlock(type="resource", resource=inside) if can.embedded_context else None


def _named(file: File, why: str) -> TextContentBlock:
    told = {"file": file.name, "media": file.media, "bytes": file.size, "note": why}
    return text_block(msgspec.json.encode(told).decode())
