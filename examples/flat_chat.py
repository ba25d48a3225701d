"""Several conversations in one flat chat, a branch, and a child session that needs no thread."""

import asyncio
import sys
import tempfile
from pathlib import Path

from segue import AGENT, Address, Fork, Identity, Kind, Place, Refused, Renew, Resume, Spawn, open_store


async def main(where: str) -> None:
    """Two sessions in one WhatsApp chat; switch between them, fork one, and let it spawn a helper."""
    async with await open_store(where) as store:
        bob = await store.person(Identity("whatsapp", "shop", "4915112345678"), "Bob")
        chat = await store.lane(Place(Address("whatsapp", "shop"), Kind.DM), bob)

        tax, holiday = store.new_session_id(), store.new_session_id()
        await store.move(Renew(chat, tax), bob)
        await store.set_title(tax, "Tax", bob)
        await store.say(tax, bob, "What do I need for my tax return?")
        await store.move(Renew(chat, holiday), bob)
        await store.say(holiday, bob, "Somewhere warm in January?")

        shown = await store.sessions_here(chat)
        await store.show_list(chat, bob, shown)
        for number, session in enumerate(shown, 1):
            print(f"{number}. {session.title or 'untitled'}")
        await store.move(Resume(chat, await store.line(chat, bob, 1)), bob)

        second = store.new_session_id()
        await store.move(Fork(chat, tax, second, title="Tax"), bob)
        print("Branched as:", (await store.session(second, bob)).title)

        reader = store.new_session_id()
        await store.move(Spawn(second, reader, label="receipts"), bob)
        await store.say(reader, AGENT, "I read 41 receipts: 1,204.50 in all.")
        print("The child, by its label:", await store.child(second, "receipts") == reader)

        try:
            await store.move(Resume(chat, reader), await store.person(Identity("whatsapp", "shop", "0"), "Eve"))
        except Refused as refused:
            print("Eve is told:", refused)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "segue.db")))
