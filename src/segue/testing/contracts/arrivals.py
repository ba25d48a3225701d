"""The contract of every adapter for incoming messages."""

import asyncio

from segue.core.contracts.adapters import Accepted, Adapter, Arrived, TakesWebhooks
from segue.core.lanes import Address, Identity, Kind, Lane
from segue.core.messages import Arrival, File, plain_text
from segue.testing.contracts.base import Contract, a_delivery
from segue.testing.harness import Given, Harness, living
from segue.testing.inbox import Inbox

_HELLO = "Grüß dich, 世界 👩‍💻\n\n/not a [command] <b>&amp; @everyone"


class ArrivalContract(Contract):
    """Incoming messages are complete, distinct and in order.

    They are acknowledged only once they are stored, and are never the agent's own.
    """

    async def test_an_arrival_tells_where_it_is_from_and_who_wrote_what(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            for kind in harness.kinds:
                at = await harness.chat(kind)
                text = f"{_HELLO} {kind}"
                message = await harness.say(at, text)
                arrival = await inbox.gets(text)
                assert arrival.place.address == at, "an answer to that address would go elsewhere"
                assert (arrival.place.kind is Kind.DM) is (kind is Kind.DM), "private and shared chats are mixed up"
                assert arrival.message == message
                assert arrival.speaker.identity.user, "the person has no id"
                _belongs(arrival, adapter)

    async def test_ids_come_back_from_their_keys(self, harness: Harness) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            for kind in harness.kinds:
                await harness.say(await harness.chat(kind), f"hello {kind}")
                arrival = await inbox.gets(f"hello {kind}")
                address, identity = arrival.place.address, arrival.speaker.identity
                assert Address.parse(address.key) == address
                assert Lane.parse(Lane(address, "p").key) == Lane(address, "p")
                assert Identity.parse(identity.key) == identity

    async def test_people_chats_and_messages_are_told_apart(self, harness: Harness) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            for kind in harness.kinds:
                for who in ("Ann", "Ben"):
                    at = await harness.chat(kind, who)
                    for _ in range(2):
                        await harness.say(at, "the same words", who)
            await harness.say(await harness.chat(harness.kinds[0]), "done")
            await inbox.gets("done")
        said = inbox.said[:-1]
        chats = 2 * len(harness.kinds)
        assert len(said) == 2 * chats, "messages were taken for one another"
        assert len({arrival.place.address for arrival in said}) == chats, "chats were taken for one another"
        assert len({arrival.speaker.identity for arrival in said}) == 2, "a person isn't always the same one"

    async def test_it_says_that_it_is_well_before_anybody_writes(self, harness: Harness) -> None:
        adapter, given = harness.adapter(), Given(Inbox().accept)
        async with living(adapter, given):
            if not isinstance(adapter, TakesWebhooks):
                await given.is_well()

    async def test_order_is_kept(self, harness: Harness) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            at = await harness.chat(harness.kinds[-1])
            texts = [f"number {n}" for n in range(20)]
            for text in texts:
                await harness.say(at, text)
            await inbox.gets(texts[-1])
        assert inbox.texts == texts

    async def test_a_redelivery_is_told(self, harness: Harness) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            at = await harness.chat(harness.kinds[-1])
            await harness.say(at, "once")
            await inbox.gets("once")
            await harness.redeliver()
            await harness.say(at, "after")
            await inbox.gets("after")
        assert inbox.texts == ["once", "after"]
        assert "once" in [plain_text(arrival.parts) for arrival in inbox.duplicates], "nothing was redelivered"

    async def test_the_agent_never_hears_itself(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            for kind in harness.kinds:
                at = await harness.chat(kind)
                await adapter.send(a_delivery(at, "I am the agent"))
                await harness.say(at, f"after {kind}")
                await inbox.gets(f"after {kind}")
        assert inbox.texts == [f"after {kind}" for kind in harness.kinds]
        assert not inbox.letters

    async def test_what_was_accepted_but_not_acknowledged_comes_again(self, harness: Harness) -> None:
        first, second = Inbox(), Inbox()
        at = await harness.chat(harness.kinds[0])

        async def killed(arrived: Arrived) -> Accepted:
            await first.accept(arrived)
            # The process dies here: the message is accepted, but the adapter never learns it.
            await asyncio.Event().wait()
            return Accepted.NEW

        async with harness.deliver(harness.adapter(), killed):
            await harness.say(at, "hold on to this")
            before = await first.gets("hold on to this")
        async with harness.deliver(harness.adapter(), second.accept):
            after = await second.gets("hold on to this")
        assert set(before.keys) & set(after.keys), "the redelivery has other keys: it would be answered twice"

    async def test_what_could_not_be_kept_comes_again(self, harness: Harness) -> None:
        inbox = Inbox()
        inbox.refusals = 2
        async with harness.deliver(harness.adapter(), inbox.accept):
            await harness.say(await harness.chat(harness.kinds[0]), "the disk is full")
            await inbox.gets("the disk is full")
        assert inbox.refusals == 0

    async def test_a_file_is_kept_whole(self, harness: Harness) -> None:
        inbox, content = Inbox(), b"\x00\xff a picture" * 1000
        async with harness.deliver(harness.adapter(), inbox.accept):
            at = await harness.chat(harness.kinds[0])
            if not await harness.attach(at, "cat.png", content):
                return
            await harness.say(at, "look at it")
            await inbox.gets("look at it")
        files = [part for arrival in inbox.said for part in arrival.parts if isinstance(part, File)]
        assert len(files) == 1, f"one file was sent, and {len(files)} came"
        file = files[0]
        assert (file.name, file.size) == ("cat.png", len(content))
        assert await harness.shelf.read(file) == content

    async def test_the_file_of_a_stranger_is_not_fetched(self, harness: Harness) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            at = await harness.chat(next((kind for kind in harness.kinds if kind is not Kind.DM), harness.kinds[0]))
            await harness.say(at, "it is me", "Ben")
            inbox.strangers.add((await inbox.gets("it is me")).speaker.name)
            if not await harness.attach(at, "virus.png", b"a stranger's", "Ben"):
                return
            told = await inbox.refuses()
            await harness.say(at, "after that")
            await inbox.gets("after that")
        assert [file.name for file in told.unfetched] == ["virus.png"], "what was fetched or left isn't told"
        assert not harness.shelf.kept, "somebody who may not speak has had a file kept"

    async def test_what_cannot_be_understood_is_no_arrival_and_stops_nothing(self, harness: Harness) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            await harness.garble()
            await harness.say(await harness.chat(harness.kinds[0]), "plain words")
            await inbox.gets("plain words")
        assert inbox.texts == ["plain words"]


def _belongs(arrival: Arrival, adapter: Adapter) -> None:
    """Check that every id in an arrival belongs to the adapter's account."""
    own = (adapter.platform, adapter.account)
    assert (arrival.place.address.platform, arrival.place.address.account) == own
    assert (arrival.speaker.identity.platform, arrival.speaker.identity.account) == own
