"""The contract of every adapter for outgoing messages."""

from bisect import bisect_left
from typing import assert_never

import pytest

from segue.core.contracts.adapters import Adapter, EditsMessages, ReadsBack
from segue.core.lanes import Address
from segue.core.messages import Sending
from segue.core.text.splitting import split
from segue.errors import SendNever
from segue.testing.contracts.base import Contract, a_delivery, after_a_crash
from segue.testing.harness import Harness


class SendingContract(Contract):
    """People read a message as it was sent, up to the longest text.

    After a crash, a message is duplicated only where the class of sending allows it.
    """

    async def test_what_is_sent_can_be_read(self, harness: Harness) -> None:
        adapter = harness.adapter()
        for kind in harness.kinds:
            at = await harness.chat(kind)
            sent = [await adapter.send(a_delivery(at, text)) for text in ("one", "two", "one")]
            seen = await harness.read(at)
            assert [message.text for message in seen] == ["one", "two", "one"]
            assert [message.message for message in seen] == sent, "the id is another message's"

    async def test_the_longest_text_is_taken_whole(self, harness: Harness) -> None:
        adapter = harness.adapter()
        at = await harness.chat(harness.kinds[0])
        for character in "ü🚀":
            text = character * _most(adapter, character)
            await adapter.send(a_delivery(at, text))
            seen = (await harness.read(at))[-1]
            assert len(seen.text) == len(text), "the platform takes less than `fits` says"
            assert seen.text == text

    async def test_a_long_text_is_read_piece_by_piece(self, harness: Harness) -> None:
        adapter = harness.adapter()
        at = await harness.chat(harness.kinds[0])
        longest = min(_most(adapter, "ü"), 40_000)
        words = " ".join(f"{n} übergroß 🚀" for n in range(longest // 5))
        pieces = list(split(words, lambda text: len(text) <= longest and adapter.fits(text)))
        for piece in pieces:
            await adapter.send(a_delivery(at, piece))
        assert len(pieces) > 1
        assert [message.text for message in await harness.read(at)] == pieces

    async def test_what_fits_is_taken_with_its_marks(self, harness: Harness) -> None:
        adapter = harness.adapter()
        at = await harness.chat(harness.kinds[0])
        table = "\n".join(["| a | b |", "| --- | --- |", f"| {'long ' * 30} | c |", *["| d | e |"] * 40])
        listed = "\n".join(f"- **item** {n} of [a list](https://example.org/{'far/' * 30})" for n in range(20))
        code = "\n".join(["```python", *["print('<&>')"] * 60, "```"])
        text = "\n\n".join([table, listed, code] * 4)
        pieces = list(split(text, adapter.fits))
        for piece in pieces:
            try:
                await adapter.send(a_delivery(at, piece))
            except SendNever as error:
                pytest.fail(f"the platform takes less than `fits` says: {error}")
        assert len(await harness.read(at)) == len(pieces)

    async def test_where_nobody_listens_nothing_is_tried_again(self, harness: Harness) -> None:
        with pytest.raises(SendNever):
            await harness.adapter().send(a_delivery(await harness.nowhere(), "is anybody there?"))

    async def test_a_crash_after_sending_does_what_the_sending_class_says(self, harness: Harness) -> None:
        adapter = harness.adapter()
        at = await harness.chat(harness.kinds[0])
        match adapter.sending:
            case Sending.KEYED:
                await _keyed(harness, adapter, at)
            case Sending.READ_BACK:
                await _read_back(harness, adapter, at)
            case Sending.EDIT:
                await _edited(harness, adapter, at)
            case Sending.BLIND:
                await _blind(harness, adapter, at)
            case _:
                assert_never(adapter.sending)


async def _keyed(harness: Harness, adapter: Adapter, at: Address) -> None:
    delivery = a_delivery(at, "only once")
    message = await adapter.send(delivery)
    assert await harness.adapter().send(after_a_crash(delivery)) == message
    assert await adapter.send(a_delivery(at, "only once")) != message, "another key is another message"
    assert [seen.text for seen in await harness.read(at)] == ["only once", "only once"]


async def _read_back(harness: Harness, adapter: Adapter, at: Address) -> None:
    delivery = a_delivery(at, "only once")
    assert isinstance(adapter, ReadsBack), "an adapter of class B reads back"
    assert await adapter.find(delivery) is None, "nothing was sent yet"
    message = await adapter.send(delivery)
    restarted = harness.adapter()
    assert isinstance(restarted, ReadsBack)
    assert await restarted.find(after_a_crash(delivery)) == message
    assert await restarted.find(a_delivery(at, "only once")) is None, "another key is another message"


async def _edited(harness: Harness, adapter: Adapter, at: Address) -> None:
    delivery = a_delivery(at, "only once")
    assert isinstance(adapter, EditsMessages), "an adapter of class C edits"
    await adapter.send(delivery.placeholder)
    restarted, again = harness.adapter(), after_a_crash(delivery)
    assert isinstance(restarted, EditsMessages)
    placed = again.with_message(await restarted.send(again.placeholder))
    await restarted.edit(placed)
    # Repeat it, as after a crash between the edit and its record.
    await restarted.edit(placed)
    texts = [seen.text for seen in await harness.read(at)]
    assert texts.count("only once") == 1, "the final text must be there once"
    assert len(texts) <= 2, "at most one placeholder may be left behind"


async def _blind(harness: Harness, adapter: Adapter, at: Address) -> None:
    delivery = a_delivery(at, "at least once")
    first = await adapter.send(delivery)
    again = await harness.adapter().send(after_a_crash(delivery))
    there = await harness.read(at)
    assert {first, again} == {seen.message for seen in there}, "each message is known by the id of its call"
    assert [seen.text for seen in there] in (["at least once"], ["at least once"] * 2)


def _most(adapter: Adapter, character: str) -> int:
    """Return how often a character fits into a message, capped for very large limits."""
    return bisect_left(range(1_000_000), 1, key=lambda count: int(not adapter.fits(character * (count + 1))))
