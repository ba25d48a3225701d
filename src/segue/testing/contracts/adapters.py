"""The contracts of every adapter and of optional abilities."""

from itertools import product
from typing import ClassVar

from msgspec.structs import replace

from segue.core.contracts.adapters import (
    Adapter,
    EditsMessages,
    OpensThreads,
    RenamesThreads,
    ShowsSteps,
    ShowsTyping,
    TakesWebhooks,
    Whispers,
)
from segue.core.lanes import Address, Kind, Place, Rules, Sharing, lane_of
from segue.errors import SendNever
from segue.testing.contracts.arrivals import ArrivalContract
from segue.testing.contracts.base import a_delivery, fresh_key
from segue.testing.contracts.sending import SendingContract
from segue.testing.harness import Deletes, Edits, Forges, Harness, Overhears, Quotes
from segue.testing.inbox import Inbox

_TITLES = ("Plans", "a/b:c%2F", "…", "Zoë 👩‍💻\u202e", "#2", "x" * 90)
_GROWING = (("", ("reading",)), ("Once", ()), ("Once upon", ("reading", "writing")), ("Once upon a", ()))
_FINAL = ("Once upon a time", "Something else")
"""The final texts of a growing reply: one continues it, the other replaces it."""
_RULES = [Rules(groups, threads) for groups, threads in product(Sharing, Sharing)]


class AdapterContract(ArrivalContract, SendingContract):
    """The contract of every adapter."""


class ThreadContract(AdapterContract):
    """For adapters that open threads."""

    ability: ClassVar[type | None] = OpensThreads

    async def test_a_reply_comes_from_the_thread_that_was_opened(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            for parent, kind in await _parents(harness, adapter):
                for n, title in enumerate(_TITLES):
                    opened = await _open(adapter, parent, title, fresh_key())
                    text = f"reply {n} in {kind}"
                    await harness.say(opened, text)
                    reply = await inbox.gets(text)
                    assert reply.place.address == opened
                    assert reply.place.around == parent, "nobody would know which chat the thread belongs to"
                    for rules in _RULES:
                        # A handoff binds the lane of the opened thread, so a person who answers there must be in that
                        # lane.
                        there = lane_of(Place(opened, reply.place.kind, opened=True), "p", rules)
                        assert lane_of(Place(reply.place.address, reply.place.kind, opened=True), "p", rules) == there
                        assert there != lane_of(Place(parent, reply.place.kind), "p", rules)

    async def test_the_same_key_opens_the_same_thread(self, harness: Harness) -> None:
        adapter = harness.adapter()
        for parent, _ in await _parents(harness, adapter):
            key = fresh_key()
            first = await _open(adapter, parent, "Plans", key)
            assert await _open(adapter, parent, "Plans", key) == first
            assert await _open(adapter, parent, "Plans", fresh_key()) != first
            assert Address.parse(first.key) == first

    async def test_what_is_sent_to_a_thread_is_read_there_alone(self, harness: Harness) -> None:
        adapter = harness.adapter()
        for parent, _ in await _parents(harness, adapter):
            opened = await _open(adapter, parent, "Plans", fresh_key())
            await adapter.send(a_delivery(opened, "for the thread"))
            await adapter.send(a_delivery(parent, "for the chat"))
            assert "for the thread" in [seen.text for seen in await harness.read(opened)]
            assert "for the thread" not in [seen.text for seen in await harness.read(parent)]
            assert "for the chat" not in [seen.text for seen in await harness.read(opened)]

    async def test_opening_a_thread_is_no_arrival(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            at, _ = (await _parents(harness, adapter))[0]
            opened = await _open(adapter, at, "Plans", fresh_key())
            for spot in (at, opened):
                await harness.say(spot, f"in {spot.key}")
                await inbox.gets(f"in {spot.key}")
        assert inbox.texts == [f"in {at.key}", f"in {opened.key}"], "the agent heard itself open a thread"


class RenameContract(ThreadContract):
    """For adapters that change the titles of threads."""

    ability: ClassVar[type | None] = RenamesThreads

    async def test_a_new_title_is_no_message(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        assert isinstance(adapter, RenamesThreads)
        async with harness.deliver(adapter, inbox.accept):
            parent, _ = (await _parents(harness, adapter))[0]
            opened = await _open(adapter, parent, "Plans", fresh_key())
            for title in (*_TITLES, "x" * 300):
                await adapter.rename(opened, title)
                await adapter.rename(opened, title)
            assert await harness.read(opened) == []
            await harness.say(opened, "after that")
            await inbox.gets("after that")
        assert inbox.texts == ["after that"], "the agent heard itself rename a thread"


class EditContract(AdapterContract):
    """For adapters that change messages."""

    ability: ClassVar[type | None] = EditsMessages

    async def test_an_edit_replaces_the_text_and_nothing_else(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        assert isinstance(adapter, EditsMessages)
        async with harness.deliver(adapter, inbox.accept):
            for kind in harness.kinds:
                at = await harness.chat(kind)
                deliveries = [a_delivery(at, text) for text in ("first", "second")]
                sent = [d.with_message(await adapter.send(d)) for d in deliveries]
                for text in ("sec", "second, and", "second, and last"):
                    await adapter.edit(sent[1].with_text(text))
                seen = await harness.read(at)
                assert [message.text for message in seen] == ["first", "second, and last"]
                assert [message.message for message in seen] == [delivery.message for delivery in sent]
                await harness.say(at, f"after {kind}")
                await inbox.gets(f"after {kind}")
        assert inbox.texts == [f"after {kind}" for kind in harness.kinds], "the agent heard its own edit"


class StepContract(EditContract):
    """For adapters that show the progress of a reply in a form of their own."""

    ability: ClassVar[type | None] = ShowsSteps

    async def test_a_reply_that_grows_ends_as_one_message_with_the_final_text(self, harness: Harness) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        assert isinstance(adapter, ShowsSteps)
        assert isinstance(adapter, EditsMessages)
        async with harness.deliver(adapter, inbox.accept):
            places = [await harness.chat(kind) for kind in harness.kinds]
            if isinstance(adapter, OpensThreads):
                places += [await _open(adapter, places[0], "Plans", fresh_key())]
            for n, (at, final) in enumerate((at, final) for at in places for final in _FINAL):
                asked = await harness.say(at, f"tell me {n}")
                await inbox.gets(f"tell me {n}")
                begun = replace(a_delivery(at, ""), attempt=0, answers=(asked,))
                begun = begun.with_message(await adapter.send(begun.placeholder))
                for text, steps in _GROWING:
                    if not await adapter.grow(begun.with_text(text), steps):
                        await adapter.edit(begun.with_text(text or "(reading …)"))
                await adapter.edit(replace(begun, text=final, attempt=1))
                # Repeat it from the next replica, as after a crash between the call and its record.
                again = harness.adapter()
                assert isinstance(again, EditsMessages)
                await again.edit(replace(begun, text=final, attempt=2, doubtful=1))
                seen = (await harness.read(at))[-1]
                assert (seen.message, seen.text) == (begun.message, final)


class TypingContract(AdapterContract):
    """For adapters that show a typing indicator."""

    ability: ClassVar[type | None] = ShowsTyping

    async def test_typing_writes_nothing(self, harness: Harness) -> None:
        adapter = harness.adapter()
        assert isinstance(adapter, ShowsTyping)
        for kind in harness.kinds:
            at = await harness.chat(kind)
            await adapter.typing(at)
            await adapter.typing(at)
            assert await harness.read(at) == []


class WebhookContract(AdapterContract):
    """For adapters that the platform calls. They refuse calls from anybody else."""

    ability: ClassVar[type | None] = TakesWebhooks

    async def test_what_is_forged_is_refused(self, harness: Forges) -> None:
        inbox = Inbox()
        async with harness.deliver(harness.adapter(), inbox.accept):
            at = await harness.chat(harness.kinds[0])
            await harness.say(at, "really me")
            await inbox.gets("really me")
            statuses = await harness.forge(at, "not really me")
            await harness.say(at, "me again")
            await inbox.gets("me again")
        assert statuses
        assert all(400 <= status < 500 for status in statuses), f"forgeries were answered with {statuses}"
        assert inbox.texts == ["really me", "me again"]
        assert not inbox.letters, "a stranger can fill the dead letters"


class ChangeContract(AdapterContract):
    """For platforms on which people can edit their messages."""

    async def test_a_change_names_what_it_changes_and_is_not_taken_for_it(self, harness: Edits) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            places = [await harness.chat(kind) for kind in harness.kinds]
            if isinstance(adapter, OpensThreads):
                parent, _ = (await _parents(harness, adapter))[0]
                places.append(await _open(adapter, parent, "Plans", fresh_key()))
            for at in places:
                message = await harness.say(at, f"at {at.key}")
                first = await inbox.gets(f"at {at.key}")
                await harness.change(at, message, f"changed at {at.key}")
                change = await inbox.gets(f"changed at {at.key}")
                assert change.edits == message
                assert change.place.address == at, "the change would be looked for elsewhere"
                assert change.speaker.identity == first.speaker.identity


class QuoteContract(AdapterContract):
    """For platforms on which people quote a message."""

    async def test_a_quote_names_the_message_that_was_sent(self, harness: Quotes) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            for kind in harness.kinds:
                at = await harness.chat(kind)
                message = await adapter.send(a_delivery(at, "ask me"))
                await harness.quote(at, message, f"what of that in {kind}?")
                quote = await inbox.gets(f"what of that in {kind}?")
                assert quote.quotes == message
                assert quote.place.address == at


class DeletionContract(AdapterContract):
    """For platforms that report deleted messages."""

    async def test_a_deletion_names_what_it_deletes_and_says_nothing(self, harness: Deletes) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        async with harness.deliver(adapter, inbox.accept):
            places = [await harness.chat(kind) for kind in harness.kinds]
            if isinstance(adapter, OpensThreads):
                parent, _ = (await _parents(harness, adapter))[0]
                places.append(await _open(adapter, parent, "Plans", fresh_key()))
            for n, at in enumerate(places):
                message = await harness.say(at, f"too much {n}")
                first = await inbox.gets(f"too much {n}")
                await harness.delete(at, message)
                await harness.say(at, f"after {n}")
                await inbox.gets(f"after {n}")
                gone = [arrival for arrival in inbox.arrivals if arrival.deletes == message]
                assert len(gone) == 1, "nobody was told that the message is gone"
                assert gone[0].place.address in (at, at.outside), "what is deleted would be looked for elsewhere"
                assert gone[0].parts == ()
                by = gone[0].speaker.identity
                assert by == first.speaker.identity or not by.user, "it is taken for somebody else's doing"
                assert not set(gone[0].keys) & set(first.keys), "it would be taken for a redelivery of the message"


class WhisperContract(AdapterContract):
    """For adapters that show a message to one person only."""

    ability: ClassVar[type | None] = Whispers

    async def test_what_is_for_one_person_is_shown_to_nobody_else(self, harness: Overhears) -> None:
        adapter, inbox = harness.adapter(), Inbox()
        at = await harness.chat(next(kind for kind in harness.kinds if kind is not Kind.DM))
        async with harness.deliver(adapter, inbox.accept):
            await harness.say(at, "Ben is here", "Ben")
            await harness.say(at, "Ann is here")
            ann = (await inbox.gets("Ann is here")).speaker.identity
        await adapter.send(replace(a_delivery(at, "between us"), only=ann.user))
        await adapter.send(a_delivery(at, "for all"))
        assert [seen.text for seen in await harness.read_as(at, "Ann")] == ["between us", "for all"]
        assert [seen.text for seen in await harness.read_as(at, "Ben")] == ["for all"]


async def _parents(harness: Harness, adapter: Adapter) -> list[tuple[Address, Kind]]:
    """Return a chat of each kind that can have threads. There is at least one."""
    found = []
    for kind in harness.kinds:
        at = await harness.chat(kind)
        try:
            await _open(adapter, at, "Try", fresh_key())
        except SendNever:
            continue
        found.append((at, kind))
    assert found, "no chat lets threads be opened"
    return found


async def _open(adapter: Adapter, parent: Address, title: str, key: str) -> Address:
    assert isinstance(adapter, OpensThreads)
    opened = await adapter.open_thread(parent, title, key)
    assert (opened.platform, opened.account, opened.space) == (parent.platform, parent.account, parent.space)
    return opened
