"""Webhooks, read into arrivals and reports.

Law: a message is known by its wamid, however often it is told. Whoever wrote it has a number, a user id, or both: all
that is told names one person and one private chat. A change of ids comes from WhatsApp itself, and is followed.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from segue.adapters.shared.account import Account
from segue.adapters.whatsapp.outcomes import status_of
from segue.adapters.whatsapp.payloads import Card, Change, Contact, Location, Media, Message, Status, Webhook, decode
from segue.core.contracts.adapters import StatusReport
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Part, Pressed, SendStatus, Speaker, Text
from segue.core.values import Live, Moment, Value
from segue.errors import Invalid

OLDEST = 7.5 * 86400.0
"""Seconds for which WhatsApp tells something again, and a little more: what is older is somebody's replay."""
_SENT = frozenset({"sent", "delivered", "read", "played"})
_NOTHING = frozenset({"reaction", "request_welcome"})
"""Kinds of messages that say nothing to the agent."""
_CHANGED = frozenset({"user_changed_number", "user_changed_user_id"})


class Heard(Value, frozen=True):
    """A message to the agent, and the file that is to be fetched for it."""

    arrival: Arrival
    media: Media | None = None


class Piece(Live, frozen=True):
    """One thing of those that a call tells, not read yet."""

    change: Change
    raw: object
    kind: type[Message] | type[Status]


def pieces(payload: object, number: str) -> Iterator[Piece]:
    """The things that a call tells of a number; raises `Invalid` for a body that is none of WhatsApp's."""
    for entry in decode(payload, Webhook).entry:
        for changed in entry.changes:
            if changed.field != "messages":
                continue
            change: Change = decode(changed.value, Change)
            if change.metadata.phone_number_id != number:
                continue  # another number of the same app's, which another account speaks for
            yield from (Piece(change, raw, Message) for raw in change.messages)
            yield from (Piece(change, raw, Status) for raw in change.statuses)


def report(raw: object, account: Account) -> StatusReport | None:
    """Word of what became of a message."""
    status: Status = decode(raw, Status)
    if status.status in _SENT:
        fate, why = SendStatus.SENT, ""
    elif status.status == "failed":
        fate, why = status_of(status.errors[0] if status.errors else None)
    else:
        return None
    return StatusReport(account.platform, account.name, status.id, fate, why, status.biz_opaque_callback_data)


def heard(piece: Piece, account: Account, now: Moment) -> Heard | None:
    """The message in a piece, if there is one for the agent; raises `Invalid` for what can't be understood."""
    message: Message = decode(piece.raw, Message)
    if not message.id:
        raise Invalid("id", "it is empty", "Every message has one.")
    at = _moment(message.timestamp)
    if at < now - OLDEST or message.type in _NOTHING:
        return None
    if message.type == "system":
        return _moved(message, account, at)
    who = _Who.of(message, piece.change.contacts)
    if message.revoke is not None:
        gone, place = message.revoke.original_message_id, who.place(account, message.group_id)
        return Heard(Arrival(place, message.id, who.speaker(account), (), at, deletes=gone))
    return _said(message, who, piece.change, account, at)


def _said(message: Message, who: "_Who", change: Change, account: Account, at: Moment) -> Heard:
    said = message.edit.message if message.edit else message
    parts = tuple(_parts(said))
    forwarded = said.context.forwarded or said.context.frequently_forwarded
    cited = tuple(part for part in parts if isinstance(part, Text)) if forwarded else ()
    choice = said.interactive.button_reply.id or said.interactive.list_reply.id
    arrival = Arrival(
        who.place(account, message.group_id),
        message.id,
        who.speaker(account),
        tuple(part for part in parts if part not in cited),
        at,
        quotes=said.context.id,
        edits=message.edit.original_message_id if message.edit else "",
        mentions_agent=f"@{change.metadata.display_phone_number.lstrip('+')}" in said.text.body,
        chat_aliases=() if message.group_id else who.ids[1:],
        cites=tuple(Citation(part.text, kind=Citing.FORWARD) for part in cited),
        remarks=tuple(_remarks(said)),
        pressed=Pressed(said.context.id, choice) if choice and said.context.id else None,
    )
    return Heard(arrival, said.media[1] if said.media else None)


class _Who(Value, frozen=True):
    """Somebody by all the ids that were told together, the number first."""

    ids: tuple[str, ...]
    name: str = ""
    user: str = ""
    """Their user id: a number may be given to somebody else, who then has another one."""

    @classmethod
    def of(cls, message: Message, contacts: Iterable[Contact]) -> "_Who":
        ids = {message.sender, message.sender_user} - {""}
        known = [one for one in contacts if ids & {one.wa_id, one.user_id}]
        known = known or ([*contacts] if len([*contacts]) == 1 else [])
        told = [message.sender, *(one.wa_id for one in known), message.sender_user, *(one.user_id for one in known)]
        users = (message.sender_user, *(one.user_id for one in known))
        return cls(_ids(told), next((one.profile.name for one in known), ""), next(filter(None, users), ""))

    def speaker(self, account: Account) -> Speaker:
        return replace(account.speaker(self.ids[0], self.name, self.ids[1:]), sole=self.user)

    def place(self, account: Account, group: str) -> Place:
        if group:
            return Place(account.address(group), Kind.GROUP)
        return Place(account.address(self.ids[0]), Kind.DM, self.name)


def _moved(message: Message, account: Account, at: Moment) -> Heard | None:
    """Word that somebody has other ids now: nobody is answered, and the ids are one person's."""
    system = message.system
    if system.type not in _CHANGED:
        return None
    now, before = [system.wa_id, system.user_id, message.sender_user], [message.sender, system.previous_user_id]
    # Without the user id that they had, nothing but the number that they had tells who it is.
    who = _Who(_ids([*now, *before]), user=system.user_id if system.previous_user_id else "")
    return Heard(Arrival(who.place(account, ""), message.id, who.speaker(account), (), at, chat_aliases=who.ids[1:]))


def _ids(told: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(id for id in told if id))
    if not found:
        raise Invalid("from", "neither a number nor a user id is told", "A message says who sent it.")
    return found


def _parts(message: Message) -> Iterator[Part]:
    if text := message.text.body or (message.media[1].caption if message.media else ""):
        yield Text(text)
    if message.location is not None:
        yield Text(_spot(message.location))
    if message.contacts:
        yield Text("\n".join(map(_card, message.contacts)))
    if message.media:
        kind, file = message.media
        yield file.named(kind)


def _remarks(message: Message) -> Iterator[str]:
    told = message.text.body or message.media or message.location or message.contacts
    if not told and not message.interactive.button_reply.id and not message.interactive.list_reply.id:
        yield f"They sent something that WhatsApp doesn't pass on ({message.type or 'unknown'})."


def _spot(spot: Location) -> str:
    named = ", ".join(filter(None, (spot.name, spot.address)))
    return f"Location: {spot.latitude}, {spot.longitude}" + (f" ({named})" if named else "")


def _card(card: Card) -> str:
    numbers = ", ".join(number.phone for number in card.phones if number.phone)
    return f"Contact: {card.name.formatted_name or card.name.name}" + (f", {numbers}" if numbers else "")


def _moment(timestamp: str) -> Moment:
    if not timestamp.isascii() or not timestamp.isdecimal():
        raise Invalid("timestamp", f"{timestamp!r} is no time", "It is seconds.")
    return float(timestamp[:20])
