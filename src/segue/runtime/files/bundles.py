"""Bundles: an export as JSONL with the bytes of its files, in one stream.

Law: the export's own lines come first, then for each file a line with its path and size, and its bytes in base64, a
piece a line. A file is named by its digest, so a change of its bytes is noticed. Memory holds a few pieces at a time.
"""

from collections.abc import AsyncIterator
from typing import BinaryIO

import msgspec

from segue.core.contracts.files import FileStore, is_kept
from segue.core.exports.jsonl import DAMAGED, Transcript, decode, files_after, from_jsonl, invalid, to_jsonl
from segue.core.messages import File
from segue.core.values import Value
from segue.runtime.files.folder import UNKNOWN

_PIECE = 48 * 1024
_LONGEST = 2 * _PIECE
_START = b'{"file":'


class _Enclosed(Value, frozen=True, forbid_unknown_fields=True):
    file: str
    """Its path in the data folder."""
    size: int


class _Piece(Value, frozen=True, forbid_unknown_fields=True):
    bytes: bytes


_enclosed = msgspec.json.Decoder(_Enclosed)
_piece = msgspec.json.Decoder(_Piece)


async def bundle(transcript: Transcript, store: FileStore) -> AsyncIterator[bytes]:
    """A transcript and the files that its entries name, as far as they are kept here."""
    named = {part.where: part for line in transcript.lines for part in line.parts if isinstance(part, File)}
    files = [
        (file, size)
        for file in named.values()
        if is_kept(file.where) and (size := await store.find_size(file.where)) is not None
    ]
    yield to_jsonl(transcript, len(files)).encode()
    for file, size in files:
        yield msgspec.json.encode(_Enclosed(file.where, size)) + b"\n"
        async for content in store.stream(file):
            for start in range(0, len(content), _PIECE):
                yield msgspec.json.encode(_Piece(content[start : start + _PIECE])) + b"\n"


async def unbundle(stream: BinaryIO, store: FileStore) -> str:
    """The text of an export in either form, after the files behind it are kept; a damaged one is refused."""
    lines: list[bytes] = []
    while (line := stream.readline()) and not line.startswith(_START):
        lines.append(line)
    text = b"".join(lines).decode()
    if not line and not text.lstrip("\ufeff").startswith("{"):
        return text
    from_jsonl(text)
    at = len(lines) + 1
    for _ in range(files_after(text)):
        enclosed = decode(_enclosed, line.decode(), at)
        pieces = _Pieces(stream, enclosed.size, at)
        if (await store.keep("", UNKNOWN, pieces.read())).where != enclosed.file:
            raise invalid(at, "the bytes that follow aren't this file's", DAMAGED)
        at = pieces.at + 1
        line = stream.readline(_LONGEST)
    if line:
        raise invalid(at, "more follows than the first line tells of", DAMAGED)
    return text


class _Pieces:
    """The bytes of one file, and how far the stream has been read."""

    def __init__(self, stream: BinaryIO, size: int, at: int) -> None:
        self._stream = stream
        self._left = size
        self.at = at
        """The line read last, counted from 1."""

    async def read(self) -> AsyncIterator[bytes]:
        while self._left > 0:
            self.at += 1
            piece = decode(_piece, self._stream.readline(_LONGEST).decode(), self.at).bytes
            if not 0 < len(piece) <= self._left:
                raise invalid(self.at, "its bytes are none, or more than the file has", DAMAGED)
            self._left -= len(piece)
            yield piece
