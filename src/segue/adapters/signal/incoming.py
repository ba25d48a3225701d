"""Envelopes, read into arrivals.

What isn't somebody's message to the agent (receipts, reactions, who joined a group) is nothing; what is one, and nobody
here understands, is a letter.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.account import Account, foreign
from segue.adapters.shared.attachments import BEGINNING
from segue.adapters.signal.envelopes import Carried, Envelope, Ids, Mentioned, Said, decode, named, noted
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid

_REMEMBERED = 2000


class Hears(StrEnum):
    """Those whose messages are for the agent."""

    EVERYBODY = "everybody"
    """Everybody who writes to the account: its number is the agent's own."""
    NOTES = "notes"
    """The person whose account it is, in their Note to Self: what others write to them is none of the agent's."""


class Heard(Value, frozen=True):
    """A message to the agent: the arrival, and the files that are to be fetched for it."""

    arrival: Arrival
    files: tuple[Carried, ...] = ()


class Memory:
    """The newest of many facts, each by its key; what was remembered first is forgotten first."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}

    def keep(self, key: str, fact: str) -> None:
        """Remember a fact."""
        self._facts[key] = fact
        if len(self._facts) > _REMEMBERED:
            del self._facts[next(iter(self._facts))]

    def get(self, key: str, otherwise: str = "") -> str:
        """The fact that is remembered."""
        return self._facts.get(key, otherwise)


class Reader:
    """Reads what one account is told; knows what people are called, and the first form of what they changed."""

    def __init__(self, account: Account, number: str, hears: Hears) -> None:
        self._account = account
        self._number = number
        self._hears = hears
        self._names = Memory()
        self._first = Memory()
        """The id of a message by that of its changed form: who changes it again names the last."""
        self.beginnings = Memory()
        """The first words of messages in groups, by their ids: an answer shows them."""

    def read(self, raw: Any, at: Moment) -> Heard | None:
        """The message to the agent in an event, if there is one; raises `Invalid` for what can't be understood."""
        envelope = decode(raw)
        if self._hears is Hears.NOTES:
            envelope = noted(envelope, self._number)
        elif self._is_me(envelope.ids):
            return None
        edit = envelope.edit_message
        said = edit.data_message if edit else envelope.data_message
        if said is None:
            return None
        if not envelope.ids.first:
            raise Invalid("source", "nobody wrote it", "A message has a sender.")
        changed = edit.target_sent_timestamp if edit else 0
        gone = said.remote_delete.timestamp if said.remote_delete else 0
        return self._heard(envelope, said, changed, gone, at)

    def _heard(self, envelope: Envelope, said: Said, changed: int, gone: int, at: Moment) -> Heard | None:
        who, place = envelope.ids, self._place(envelope, said)
        text = "" if gone else self._words(said.message or "", said.mentions, place.kind)
        files = () if gone else said.attachments
        carried = [file.unfetched for file in files]
        if not text and not files and not gone:
            if not said.foreign:
                return None
            carried = [foreign(said.foreign)]
        name, id = envelope.source_name or "", self._id(said.timestamp, who)
        for one in who.all:
            self._names.keep(one, name)
        edits = self._origin(changed, who)
        if edits:
            self._first.keep(id, edits)
        if place.kind is Kind.GROUP and text:
            self.beginnings.keep(id, text[:BEGINNING])
        quote = said.quote
        arrival = Arrival(
            place=place,
            message=id,
            speaker=replace(self._account.speaker(who.first, name, who.others), sole=who.sole),
            parts=(*((Text(text),) if text else ()), *carried),
            at=at,
            # A redelivery may show its sender by another id.
            seen_as=tuple(f"{one}/{said.timestamp}" for one in who.all),
            quotes=self._origin(quote.id, quote.ids) if quote else "",
            edits=edits,
            deletes=self._origin(gone, who),
            mentions_agent=self._is_meant(said),
            chat_aliases=() if said.group_info else who.others,
            cites=tuple(self._cites(said)),
        )
        return Heard(arrival, files)

    def _place(self, envelope: Envelope, said: Said) -> Place:
        group, who = said.group_info, envelope.ids
        if group is None:
            return Place(self._account.address(who.first), Kind.DM, envelope.source_name or "")
        if not group.group_id:
            raise Invalid("groupId", "it is empty", "A group has an id.")
        return Place(self._account.address(group.group_id), Kind.GROUP, group.group_name or "")

    def _origin(self, at: int, author: Ids) -> str:
        """The id of a message by its time and author, as it was first known; empty if there is no time."""
        if not at:
            return ""
        id = self._id(at, author)
        return self._first.get(id, id)

    def _id(self, at: int, author: Ids) -> str:
        return named(at, "" if self._is_me(author) else author.first)

    def _is_me(self, ids: Ids) -> bool:
        return self._number in ids.all

    def _is_meant(self, said: Said) -> bool:
        answers = said.quote is not None and self._is_me(said.quote.ids)
        return answers or any(self._is_me(mentioned.ids) for mentioned in said.mentions)

    def _words(self, text: str, mentions: tuple[Mentioned, ...], kind: Kind) -> str:
        """A text with the names of whom it mentions; without the agent's, so that a command stands at its beginning."""
        units = text.encode("utf-16-le", "surrogatepass")
        for one in sorted(mentions, key=lambda mentioned: -mentioned.start):
            start, end = 2 * one.start, 2 * (one.start + one.length)
            shown = "" if self._is_me(one.ids) else f"@{self._names.get(one.ids.first) or one.ids.first}"
            units = units[: max(start, 0)] + shown.encode("utf-16-le", "surrogatepass") + units[max(end, 0) :]
        words = units.decode("utf-16-le", "surrogatepass")
        return words.strip() if mentions and kind is Kind.GROUP else words

    def _cites(self, said: Said) -> Iterator[Citation]:
        """What is answered, unless the agent said it: that it knows."""
        quote = said.quote
        if quote is not None and quote.text and not self._is_me(quote.ids):
            text = self._words(quote.text, quote.mentions, Kind.DM)
            author = quote.ids.first
            yield Citation(text[:BEGINNING], author, self._names.get(author))
