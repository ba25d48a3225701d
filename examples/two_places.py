"""One conversation in a terminal and on a phone: bind, hand off, undo.

Run it with `python examples/two_places.py`, or with a `postgresql://` address as its argument.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from segue import AGENT, Address, Handoff, Identity, Kind, Place, Release, Renew, Why, open_store


async def main(where: str) -> None:
    """Begin on the laptop, go on at the phone, and look at what was kept."""
    async with await open_store(where) as store:
        ann = await store.person(Identity("terminal", "local", "ann"), "Ann")
        laptop = await store.lane(Place(Address("terminal", "local", chat="ann"), Kind.DM), ann)
        phone = await store.lane(Place(Address("telegram", "my_bot", chat="4242"), Kind.DM), ann)

        trip = store.new_session_id()
        await store.move(Renew(laptop, trip), ann)
        await store.set_title(trip, "Lisbon in May", ann)
        await store.say(trip, ann, "Three days in Lisbon: where do I begin?")
        await store.say(trip, AGENT, "In Alfama, early, before the trams are full.")

        # The phone speaks to the same session; the laptop lets go once the first words are there.
        await store.move(Handoff(laptop, phone), ann)
        await store.move(Release(laptop, Why.HANDOFF), ann)
        await store.say(trip, ann, "And for dinner?")
        await store.say(trip, AGENT, "Ask for the grilled sardines.")
        await store.undo(trip, ann)

        print("The phone speaks to:", (await store.bound(phone) or sys.exit("nothing")).title)
        for entry in await store.visible(trip):
            print(f"  {entry.author.name or entry.author.role}: {entry.text}")
        print("Kept, on a branch of its own:", sum([1 async for _ in store.entries(trip)]) - 2, "entries")
        for binding in reversed(await store.history(trip)):
            print(f"  {binding.lane.address.platform} since {binding.why}, until {binding.ended_why or 'now'}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "segue.db")))
