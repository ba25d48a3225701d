"""A message as the platform sends it in, and as the gateway knows it."""

import re
from collections.abc import Iterator

import msgspec

from segue.adapters.shared.account import Account
from segue.core.lanes import Kind, Place
from segue.core.messages import MOST_ALIASES, Arrival, Citation, Citing, File, Pressed, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid

LONGEST_ID = 255
"""Bytes of one id."""
LONGEST_KEY = 2000
"""Bytes of all the ids of an address together, escaped: what either database can index."""

_AT = re.compile(r" - at `\$\.?(.*)`$")
_NAMED = re.compile(r"field `(.*)`$")


class SentPerson(Value, frozen=True, forbid_unknown_fields=True):
    """Who wrote it."""

    id: str
    name: str | None = None
    aliases: tuple[str, ...] = ()


class SentFile(Value, frozen=True, forbid_unknown_fields=True):
    """A file: what is in it, or where that can be fetched."""

    name: str = "file"
    media: str = "application/octet-stream"
    url: str = ""
    data: str = ""
    """Base64."""

    @property
    def named(self) -> File:
        """The file as long as it isn't taken in."""
        return File(self.name, self.media, "", len(self.data) * 3 // 4)


class SentAuthor(Value, frozen=True, forbid_unknown_fields=True):
    """Who said what is cited, as far as that is known."""

    id: str = ""
    name: str = ""


class SentCitation(Value, frozen=True, forbid_unknown_fields=True):
    """Words of somebody else, which the message answers or passes on."""

    text: str
    author: SentAuthor = SentAuthor()
    kind: Citing = Citing.REPLY


class SentPress(Value, frozen=True, forbid_unknown_fields=True):
    """A button that was pressed."""

    message: str
    choice: str


class Sent(Value, frozen=True, forbid_unknown_fields=True):
    """The body of a call to /in/http/ACCOUNT."""

    id: str
    chat_kind: Kind
    """Needed: a group that passes for a private chat would mix what people say."""
    person: SentPerson
    text: str = ""
    space: str | None = None
    chat: str | None = None
    chat_name: str | None = None
    chat_aliases: tuple[str, ...] = ()
    topic: str | None = None
    thread: str | None = None
    files: tuple[SentFile, ...] = ()
    cites: tuple[SentCitation, ...] = ()
    quotes: str | None = None
    edits: str | None = None
    deletes: str | None = None
    pressed: SentPress | None = None
    mentions_agent: bool = False


_decoder = msgspec.json.Decoder(Sent)


def read(body: bytes, account: Account, at: Moment) -> tuple[Arrival, tuple[SentFile, ...]]:
    """The arrival in a body, and the files to take in for it.

    Raises `Invalid` with the name of the field that is wrong.
    """
    sent = _decode(body)
    _check(sent)
    for n, file in enumerate(sent.files):
        if bool(file.url) is bool(file.data):
            raise Invalid(f"files[{n}]", "it has neither or both of url and data", "Give one of the two.")
    address = account.address(sent.chat or "", sent.thread or "", sent.space or "")
    if len(address.key.encode()) > LONGEST_KEY:
        raise Invalid("chat", "the ids of the place are too long together", "Shorten space, chat or thread.")
    arrival = Arrival(
        place=Place(address, sent.chat_kind, sent.chat_name or "", sent.topic or ""),
        message=sent.id,
        speaker=account.speaker(sent.person.id, sent.person.name or "", sent.person.aliases),
        parts=(*((Text(sent.text),) if sent.text.strip() else ()), *(file.named for file in sent.files)),
        at=at,
        quotes=sent.quotes or "",
        edits=sent.edits or "",
        mentions_agent=sent.mentions_agent,
        chat_aliases=sent.chat_aliases,
        cites=tuple(Citation(cited.text, cited.author.id, cited.author.name, cited.kind) for cited in sent.cites),
        deletes=sent.deletes or "",
        pressed=Pressed(sent.pressed.message, sent.pressed.choice) if sent.pressed else None,
    )
    return arrival, sent.files


def _decode(body: bytes) -> Sent:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        problem, _, _ = str(error).partition(" - at ")
        path = found[1] if (found := _AT.search(str(error))) else ""
        if named := _NAMED.search(problem):
            path = f"{path}.{named[1]}" if path else named[1]
        raise Invalid(path or "body", problem, "The fields are in the documentation of the HTTP adapter.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid("body", "it is not JSON in UTF-8", "Send one JSON object.") from error


def _check(sent: Sent) -> None:
    for field, id in _ids(sent):
        if len(id.encode()) > LONGEST_ID:
            raise Invalid(field, f"it has more than {LONGEST_ID} bytes", "Send a shorter id.")
    for field, text in _strings(sent):
        if "\0" in text:
            raise Invalid(field, "it has a NUL character", "Remove it: databases can't keep one.")
    instead = sent.files or sent.cites or sent.deletes or sent.pressed
    for field, needed in (("id", sent.id), ("person.id", sent.person.id), ("text", instead or sent.text)):
        if not needed or (isinstance(needed, str) and not needed.strip()):
            raise Invalid(field, "it is empty", "Every message has one.")
    for field, aliases in (("person.aliases", sent.person.aliases), ("chat_aliases", sent.chat_aliases)):
        if len(aliases) > MOST_ALIASES:
            raise Invalid(field, f"there are {len(aliases):,}", f"Send at most {MOST_ALIASES}.")
        if not all(alias.strip() for alias in aliases):
            raise Invalid(field, "one of them is empty", "Leave it out.")


def _ids(sent: Sent) -> Iterator[tuple[str, str]]:
    yield from (("id", sent.id), ("person.id", sent.person.id))
    for field in ("space", "chat", "thread", "quotes", "edits", "deletes"):
        yield field, getattr(sent, field) or ""
    yield "pressed.message", sent.pressed.message if sent.pressed else ""
    yield from (("cites.author.id", cited.author.id) for cited in sent.cites)
    yield from (("person.aliases", alias) for alias in sent.person.aliases)
    yield from (("chat_aliases", alias) for alias in sent.chat_aliases)


def _strings(sent: Sent) -> Iterator[tuple[str, str]]:
    yield from _ids(sent)
    yield from (("text", sent.text), ("person.name", sent.person.name or ""))
    yield from (("chat_name", sent.chat_name or ""), ("topic", sent.topic or ""))
    yield "pressed.choice", sent.pressed.choice if sent.pressed else ""
    for cited in sent.cites:
        yield from (("cites.text", cited.text), ("cites.author.name", cited.author.name))
    for file in sent.files:
        yield from (("files.name", file.name), ("files.media", file.media))
