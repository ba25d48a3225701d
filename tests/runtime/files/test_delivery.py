"""Exports: made when they are sent, for adapters that send files; for the others, where they are."""

from pathlib import Path

import pytest

from segue import Identity, Kind, Place, Renew, open_store
from segue.core.contracts.adapters import Adapter
from segue.core.exports.jsonl import Form, export_of, from_jsonl, to_jsonl
from segue.core.exports.markdown import to_markdown
from segue.core.lanes import Address
from segue.core.messages import Delivery, File
from segue.runtime.files.delivery import Exporting
from segue.runtime.files.folder import Folder
from segue.runtime.retrying import Patient
from segue.store import Store
from segue.testing import Shelf, WhatsApp
from segue.testing.personas import WhatsAppAdapter
from tests.event_loop import calls_on_this_thread

HERE = Address("whatsapp", "main", chat="c")


class Attaching(WhatsAppAdapter):
    """An adapter that sends files, though no large ones."""

    largest_file = 10_000


async def delivery(store: Store, form: Form) -> tuple[Delivery, File]:
    """A delivery with a session in which something was said."""
    ann = await store.person(Identity("whatsapp", "main", "u"), "Ann")
    lane = await store.lane(Place(HERE, Kind.DM), ann)
    session = store.new_session_id()
    await store.move(Renew(lane, session), ann)
    await store.say(session, ann, "about cats")
    file = export_of(session, form, "Cats")
    return Delivery("1", HERE, "", 0, "Here it is.", "k", file=file), file


@pytest.mark.parametrize("form", Form)
async def test_what_is_sent_is_the_session_as_it_stands(tmp_path: Path, form: Form) -> None:
    shelf = Shelf()
    async with await open_store(tmp_path / "segue.db") as store:
        asked, named = await delivery(store, form)
        exporting = Exporting(Patient(store.driver), shelf)
        with calls_on_this_thread(to_markdown, to_jsonl) as calls:
            ready = await exporting.ready(asked, named, Attaching(WhatsApp()))
        assert calls == [], "a long session takes seconds"
        again = await exporting.ready(asked, named, Attaching(WhatsApp()))
    file = ready.file
    assert file is not None
    assert ready.text == "Here it is."
    assert again == ready
    content = (await shelf.read(file)).decode()
    assert "about cats" in content
    if form is Form.JSONL:
        assert [line.parts for line in from_jsonl(content).lines]
    assert file.name == ("Cats.md" if form is Form.MARKDOWN else "Cats.jsonl")


@pytest.mark.parametrize("adapter", [WhatsAppAdapter, Attaching])
async def test_what_cant_be_sent_there_is_found_in_the_data_folder(
    tmp_path: Path, adapter: type[WhatsAppAdapter]
) -> None:
    large = File("large.bin", "application/octet-stream", "files/ab/cd", 10_001)
    there: Adapter = adapter(WhatsApp())
    async with await open_store(tmp_path / "segue.db") as store:
        exporting = Exporting(Patient(store.driver), Folder(tmp_path))
        ready = await exporting.ready(Delivery("1", HERE, "", 0, "Here it is.", "k", file=large), large, there)
    assert ready.file is None
    assert ready.text == "Here it is.\nlarge.bin can't be sent here: it is files/ab/cd in the data folder."


async def test_a_gateway_that_keeps_no_files_says_so(tmp_path: Path) -> None:
    async with await open_store(tmp_path / "segue.db") as store:
        asked, named = await delivery(store, Form.MARKDOWN)
        ready = await Exporting(Patient(store.driver), None).ready(asked, named, Attaching(WhatsApp()))
    assert ready.file is None
    assert ready.text.endswith("Files aren't kept here. `segue sessions export` writes one.")
