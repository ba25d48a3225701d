"""Converts files for a model: pictures and documents as they are, other files as text."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, UserContent, UserPromptPart

from segue.core.contracts.agents import ReadsFiles
from segue.core.messages import File
from segue.errors import Invalid

LARGEST = 20 * 1024 * 1024
"""The largest attachment in bytes: no provider accepts more in one request."""
LONGEST = 100_000
"""The longest text file, in characters."""
_SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
_READ = ("text/", "application/json", "application/xml", "application/yaml", "application/toml")


async def attached(file: File, files: ReadsFiles) -> UserContent:
    """Convert a file to model content. A file that the model can't read is only named."""
    shown, read = file.media in _SHOWN, file.media.startswith(_READ)
    if not (shown or read) or file.size > LARGEST:
        return _named(file, "it can't be shown to you")
    try:
        content = await files.read(file)
    except Invalid:
        return _named(file, "it can't be read any more")
    if len(content) > LARGEST:
        return _named(file, "it can't be shown to you")
    if shown:
        return BinaryContent(content, media_type=file.media)
    text = content.decode("utf-8", "replace")
    return _envelope({"file": file.name, "media": file.media, "text": text[:LONGEST]})


def withheld(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """Replace all pictures and documents by remarks."""
    return [_in_words(message) if isinstance(message, ModelRequest) else message for message in messages]


def _in_words(request: ModelRequest) -> ModelRequest:
    parts = [_without(part) if isinstance(part, UserPromptPart) else part for part in request.parts]
    return replace(request, parts=parts)


def _without(said: UserPromptPart) -> UserPromptPart:
    if isinstance(said.content, str):
        return said
    content = [_unshown(item) if isinstance(item, BinaryContent) else item for item in said.content]
    return replace(said, content=content)


def _unshown(content: BinaryContent) -> str:
    return _envelope({"media": content.media_type, "bytes": len(content.data), "note": "it can't be shown to you"})


def _named(file: File, why: str) -> str:
    return _envelope({"file": file.name, "media": file.media, "bytes": file.size, "note": why})


def _envelope(fields: dict[str, object]) -> str:
    return msgspec.json.encode(fields).decode()
