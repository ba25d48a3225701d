"""Exports on their way out: a delivery names the session, and the file is made when it is sent.

So a command that asks for an export needs no disk: it is durable like every other delivery, and what is sent again
after a crash is made again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec.structs import replace

from segue.core.contracts import Adapter, Files, SendsFiles
from segue.core.exports import Form, export_named_by, to_jsonl
from segue.core.messages import Delivery, File
from segue.core.readable import to_markdown
from segue.runtime.patience import Patient
from segue.store import exports


class Exporting:
    """Makes the files of a delivery, and says where they are if its platform takes none."""

    def __init__(self, store: Patient, files: Files | None) -> None:
        self._store = store
        self._files = files

    async def ready(self, delivery: Delivery, adapter: Adapter) -> Delivery:
        """The delivery as its adapter can send it."""
        if not delivery.files:
            return delivery
        made = [await self._made(file) for file in delivery.files]
        kept = [file for file in made if file is not None]
        fits = isinstance(adapter, SendsFiles) and all(file.size <= adapter.largest_file for file in kept)
        if fits and len(kept) == len(made):
            return replace(delivery, files=tuple(kept))
        lines = [f"{file.name} can't be sent here: it is {file.where} in the data folder." for file in kept]
        if len(kept) < len(made):
            lines.append("Files aren't kept here. `segue sessions export` writes one.")
        return replace(delivery, text="\n".join([delivery.text, *lines]), files=())

    async def _made(self, file: File) -> File | None:
        if self._files is None:
            return None
        if (named := export_named_by(file)) is None:
            return file
        session, form = named
        whole = await self._store.read(exports.whole, session)
        text = to_markdown(whole) if form is Form.MARKDOWN else to_jsonl(whole)
        return await self._files.keep(file.name, file.media, _once(text.encode()))


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
