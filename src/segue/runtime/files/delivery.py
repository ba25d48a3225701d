"""The files of deliveries: made when they are sent; where a platform takes none, a line says where they are."""

import asyncio
from collections.abc import AsyncIterator

from msgspec.structs import replace

from segue.changes.sessions import exports
from segue.core.contracts.adapters import Adapter, Files, SendsFiles
from segue.core.contracts.files import FileStore
from segue.core.exports.jsonl import Form, Transcript, export_named_by, to_jsonl
from segue.core.exports.markdown import to_markdown
from segue.core.messages import Delivery, File
from segue.runtime.retrying import Patient


class Exporting:
    """Makes the file of a delivery, and says where it is if its platform takes none."""

    def __init__(self, store: Patient, files: Files | None) -> None:
        self._store = store
        self._files = files

    async def ready(self, delivery: Delivery, named: File, adapter: Adapter) -> Delivery:
        """The delivery of a file as its adapter can send it."""
        file = await self._made(named)
        if file is not None and isinstance(adapter, SendsFiles) and file.size <= adapter.largest_file:
            return replace(delivery, file=file)
        line = "Files aren't kept here. `segue sessions export` writes one."
        if file is not None:
            lasts = "" if file is named else ", for a day"
            line = f"{file.name} can't be sent here: {self._place(file)}{lasts}."
        return replace(delivery, text=f"{delivery.text}\n{line}".strip(), file=None)

    def _place(self, file: File) -> str:
        return (
            self._files.locate(file) if isinstance(self._files, FileStore) else f"it is {file.where} in the data folder"
        )

    async def _made(self, file: File) -> File | None:
        if self._files is None:
            return None
        if (named := export_named_by(file)) is None:
            return file
        session, form = named
        whole = await self._store.read(exports.whole, session)
        # Of a long session that takes seconds, in which the event loop serves everybody else.
        content = await asyncio.to_thread(_written, whole, form)
        return await self._files.keep(file.name, file.media, _once(content))


def _written(whole: Transcript, form: Form) -> bytes:
    return (to_markdown(whole) if form is Form.MARKDOWN else to_jsonl(whole)).encode()


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
