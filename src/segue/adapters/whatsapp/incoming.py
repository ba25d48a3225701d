"""Webhooks, read into messages and reports.

Law: a message is known by its wamid, however often it is told. Whoever wrote it has a number, a user id, or both: all
that is told names one person and one private chat. A change of ids comes from WhatsApp itself, and is followed.
"""

import re
from collections.abc import Sequence

from segue.adapters.shared.account import Account
from segue.adapters.shared.decoding import decode
from segue.adapters.whatsapp.graph import Fault
from segue.adapters.whatsapp.payloads import Change, Contact, Message, Status, Webhook
from segue.adapters.whatsapp.said import Carried, Said
from segue.core.contracts.adapters import StatusReport
from segue.core.messages import SendStatus
from segue.core.values import Moment
from segue.errors import Invalid

OLDEST = 7.5 * 86400.0
"""Seconds for which WhatsApp tells something again, and a little more: what is older is somebody's replay."""
_WHOSE = "The Cloud API"
_MENTION = re.compile(r"@(\d+)")
_SENT = frozenset({"sent", "delivered", "read", "played"})
_NOTHING = frozenset({"reaction", "request_welcome"})
"""Kinds of messages that say nothing to the agent."""
_CHANGED = frozenset({"user_changed_number", "user_changed_user_id"})


def changes(payload: object, number: str) -> list[Change]:
    """What a call tells of a number; raises `Invalid` for a body that is none of WhatsApp's."""
    told = [changed for entry in decode(payload, Webhook, _WHOSE).entry for changed in entry.changes]
    found = [decode(changed.value, Change, _WHOSE) for changed in told if changed.field == "messages"]
    # Another number of the same app's has an account of its own.
    return [change for change in found if change.metadata.get("phone_number_id") == number]


async def report(raw: object, account: Account) -> StatusReport | None:
    """Word of what became of a message."""
    status = decode(raw, Status, _WHOSE)
    if status.status in _SENT:
        fate, why = SendStatus.SENT, ""
    elif status.status == "failed":
        fault = status.errors[0] if status.errors else Fault(message="it doesn't say why")
        fate, why = fault.fate, fault.why
    else:
        return None
    return StatusReport(account.platform, account.name, status.id, fate, why, status.biz_opaque_callback_data)


def heard(raw: object, contacts: Sequence[Contact], now: Moment) -> Said | None:
    """A message, if it is one for the agent; raises `Invalid` for what can't be understood."""
    message = decode(raw, Message, _WHOSE)
    if not message.id:
        raise Invalid("id", "it is empty", "Every message has one.")
    at = _moment(message.timestamp)
    if at < now - OLDEST or message.type in _NOTHING:
        return None
    return _moved(message, at) if message.type == "system" else _said(message, contacts, at)


def _moved(message: Message, at: Moment) -> Said | None:
    """Word that somebody has other ids now: nobody is answered, and the ids are one person's."""
    system = message.system
    if system.type not in _CHANGED:
        return None
    now, before = [system.wa_id, system.user_id, message.sender_user], [message.sender, system.previous_user_id]
    # Without the user id that they had, nothing but the number that they had tells who it is.
    return Said(message.id, _ids(*now, *before), at, sole=system.user_id if system.previous_user_id else "")


def _said(message: Message, contacts: Sequence[Contact], at: Moment) -> Said:
    ids = {message.sender, message.sender_user} - {""}
    known = [one for one in contacts if ids & {one.wa_id, one.user_id}] or (contacts if len(contacts) == 1 else [])
    users = _ids(message.sender_user, *(one.user_id for one in known))
    said = message.edit.message or message
    kind, file = said.file
    choice = said.interactive.button_reply.id or said.interactive.list_reply.id
    told = said.words or kind or choice or message.revoke.original_message_id
    return Said(
        message.id,
        _ids(message.sender, *(one.wa_id for one in known), *users),
        at,
        message.group_id,
        next((one.profile.name for one in known), ""),
        next(iter(users), ""),
        said.words,
        quotes=said.context.id,
        edits=message.edit.original_message_id,
        deletes=message.revoke.original_message_id,
        forwarded=said.context.forwarded or said.context.frequently_forwarded,
        mentions=tuple(_MENTION.findall(said.text.body)),
        choice=choice,
        file=Carried(kind, file.mime_type, file.filename, id=file.id) if kind else None,
        remarks=() if told else (f"They sent something that WhatsApp doesn't pass on ({said.type or 'unknown'}).",),
    )


def _ids(*told: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, told)))


def _moment(timestamp: str) -> Moment:
    if not timestamp.isascii() or not timestamp.isdecimal():
        raise Invalid("timestamp", f"{timestamp!r} is no time", "It is seconds.")
    return float(timestamp[:20])
