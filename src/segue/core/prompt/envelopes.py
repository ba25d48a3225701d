"""Envelopes of words for a model: the author is data beside the text, never a prefix that could be forged.

Law: an envelope is one line of JSON, and `read` gives exactly what it was made of. It is a function of its entry and
of the session's voices, and entries never change, so what an entry reads like doesn't change either.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from segue.core.lanes import Address, Identity, clean_name
from segue.core.messages import Aside, Citation, Citing, Notice, Part, Parts, Stone, Text, plain_text, told
from segue.core.prompt.pseudonyms import Veil
from segue.core.text.normal import normal
from segue.core.text.visible import shows
from segue.core.transcripts import Author, Draft, Entry, Role, Source
from segue.core.values import Value

Words = TypeVar("Words", Draft, Entry)
_LATER = re.compile(r'^[^\w{]*+\{[^\w"]*+"(?:author|gateway|[^"\n]{0,40}\\u)', re.MULTILINE)
"""A line that begins as an envelope does, after whatever quotes or fences it."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class Voices(StrEnum):
    """The number of people that an agent hears in a session."""

    ONE = "one"
    """One person: their words are sent as they are, unless they could be taken for an envelope."""
    SEVERAL = "several"
    """Several people may speak: from the second one on, each message is an envelope that names its author."""
    PLACES = "places"
    """A session whose section was written when places were told apart: each envelope names author and place."""


class Envelope(Value, frozen=True):
    """Somebody's words with who said them and, where that can differ, where."""

    id: str
    """The author's id on their platform, or what stands for it: two people of one name have two."""
    name: str
    text: str
    place: Mapping[str, str] = {}
    """The parts of the address that aren't empty."""
    cites: tuple[Citation, ...] = ()
    """Words of others, which these words answer or pass on."""
    gateway: str = ""
    """The gateway's remarks about them."""

    def write(self) -> str:
        """The envelope as a model gets it."""
        more: dict[str, object] = {"place": self.place} if self.place else {}
        if self.cites:
            more["cites"] = [_cited(cited) for cited in self.cites]
        if self.gateway:
            more["gateway"] = self.gateway
        return _line({"author": {"id": self.id, "name": self.name}, **more, "text": self.text})


def by_then(said: Iterable[Draft | Entry], voices: Voices) -> Iterator[tuple[Draft | Entry, Voices]]:
    """Each message with the voices heard by then: one that was sent before a second person spoke stays as it was."""
    people: set[str] = set()
    for item in said:
        if item.author.role is Role.PERSON:
            people.add(item.author.person)
        yield item, Voices.ONE if voices is Voices.SEVERAL and len(people) < 2 else voices


def words(said: Draft | Entry, voices: Voices) -> str:
    """The text of what was said as a model is to get it; only what the gateway said is JSON that says so."""
    if all(isinstance(part, Stone) for part in said.parts):
        return ""
    if said.author.role is Role.AGENT:
        return told(said.parts)
    if said.author.role is Role.GATEWAY:
        return _carried(said.parts, said.author.name)
    beside = any(isinstance(part, Citation | Aside | Notice) for part in said.parts)
    if voices is Voices.ONE and not beside and not _like_an_envelope(said.text):
        return told(said.parts)
    author, source = said.author, said.source
    id = Identity.parse(source.identity).user if source.identity else author.person
    place = _place(source.address) if voices is Voices.PLACES else {}
    cites = tuple(part for part in said.parts if isinstance(part, Citation))
    spoken = plain_text(tuple(part for part in said.parts if not isinstance(part, Notice)))
    return Envelope(id, clean_name(author.name), spoken, place, cites, _remarks(said.parts)).write()


def _cited(cited: Citation) -> dict[str, object]:
    author = {"id": cited.author, "name": clean_name(cited.name)}
    return {"kind": cited.kind, "author": author, "text": cited.text}


def _carried(parts: Parts, name: str) -> str:
    """Words that no person said: the gateway's own say so; those of other sessions and of imports can't."""
    text = told(parts)
    if name:
        return Envelope("", clean_name(name), text).write()
    if not any(isinstance(part, Text) for part in parts):
        return gateway_line(text) if text else ""
    words, remarks = plain_text(tuple(part for part in parts if isinstance(part, Text))), _remarks(parts)
    return Envelope("", "", words, gateway=remarks).write() if remarks or _like_an_envelope(words) else words


def gateway_line(text: str) -> str:
    """The gateway's own words as a model gets them; nobody else's can look so."""
    return _line({"gateway": text})


def _remarks(parts: Parts) -> str:
    """The gateway's own words among somebody else's."""
    return "\n".join(part.text for part in parts if isinstance(part, Aside | Notice))


def _like_an_envelope(text: str) -> bool:
    """Whether a text begins with what is seen as a brace, or has a later line that begins as an envelope does."""
    first = next((c for c in text if unicodedata.category(c)[0] not in "CZM" and shows(c)), "")
    return normal(first, 1) == "{" or _LATER.search(normal(text, len(text))) is not None


def read(text: str) -> Envelope:
    """The envelope that was written so."""
    whole = json.loads(text)
    who = whole["author"]
    cites = tuple(
        Citation(cited["text"], cited["author"]["id"], cited["author"]["name"], Citing(cited["kind"]))
        for cited in whole.get("cites", ())
    )
    gateway = whole.get("gateway", "")
    return Envelope(who["id"], who["name"], whole["text"], whole.get("place", {}), cites, gateway)


def veiled(said: Words, veil: Veil) -> Words:
    """The same words by an author, and from a place, as an agent may know them."""
    if said.author.role is Role.AGENT:
        return said
    identity = Identity.parse(said.source.identity) if said.source.identity else None
    address = Address.parse(said.source.address) if said.source.address else None
    near = [spot for spot in (identity, address) if spot is not None]
    # What people said stays as they said it; what the gateway told the agent of them doesn't.
    parts = tuple(_veiled(part, veil, near, identity) for part in said.parts)
    return msgspec.structs.replace(
        said,
        author=Author(said.author.role, said.author.person, veil.text(said.author.name, near)),
        parts=parts,
        source=Source(
            veil.identity(identity).key if identity else "",
            veil.address(address).key if address else "",
        ),
    )


def _veiled(part: Part, veil: Veil, near: Sequence[Identity | Address], by: Identity | None) -> Part:
    match part:
        case Aside():
            return Aside(veil.text(part.text, near))
        case Citation() if by is not None:
            author = veil.identity(Identity(by.platform, by.account, part.author)).user if part.author else ""
            return Citation(part.text, author, veil.text(part.name, near), part.kind)
        case _:
            return part


def _line(whole: object) -> str:
    line = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    # An id may hold half of a UTF-16 pair, which nothing can send as it is.
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", line)


def _place(address: str) -> dict[str, str]:
    if not address:
        return {}
    parts = msgspec.structs.asdict(Address.parse(address))
    return {name: part for name, part in parts.items() if part}
