"""Messages that nobody told: read back out of the chats after a time without a connection.

Feishu lists groups to an app and no private chats, so these are remembered. Without the scope for all that is said in
groups, it tells nothing of them.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.messages import Json, moment
from segue.adapters.shared.decoding import listed, text_in
from segue.core.values import Moment
from segue.errors import SendNever

_GROUPS, _THREADS = 40, 10
"""Groups that are looked at, and threads of a chat."""
_OVERLAP = 60.0
"""Seconds before the kept place that are read once more: messages of several chats overtake each other."""


async def missed(api: Api, since: Moment, private: Iterable[str]) -> list[Json]:
    """What was said and changed since a time in the groups and these private chats, as events, the oldest first."""
    told = await api.call("GET", "/im/v1/chats", sort_type="ByActiveTimeDesc", page_size=_GROUPS)
    groups = filter(None, (text_in(one, "chat_id") for one in listed(told.get("items"))))
    found: list[tuple[Moment, Json]] = []
    for chat, kind in {**dict.fromkeys(groups, "group"), **dict.fromkeys(private, "p2p")}.items():
        await api.kind(chat, kind)
        # What is said in groups is told only with a scope that an app may do without.
        with suppress(SendNever):
            found += [event for raw in await _in_chat(api, chat, since) for event in _events(raw, since)]
    return [event for _, event in sorted(found, key=lambda one: one[0])]


async def _in_chat(api: Api, chat: str, since: Moment) -> list[Json]:
    """The messages of a chat and of its threads; a thread is known by its root among the newest messages."""
    found = await api.newest("chat", chat, since - _OVERLAP)
    threads = dict.fromkeys(filter(None, (text_in(raw, "thread_id") for raw in found)))
    for thread in list(threads)[:_THREADS]:
        found += await api.newest("thread", thread, since - _OVERLAP)
    return found


def _events(raw: Json, since: Moment) -> Iterator[tuple[Moment, Json]]:
    """The events that would have told of a message, if it was said or changed since a time."""
    said, changed = moment(raw.get("create_time")), moment(raw.get("update_time")) if raw.get("updated") else 0.0
    if said > since - _OVERLAP:
        told = {"sender": raw.get("sender") or {}, "message": raw}
        yield said, {"header": {"event_type": "im.message.receive_v1"}, "event": told}
    if said <= since < changed:
        named = {"message": {"message_id": raw.get("message_id")}}
        yield changed, {"header": {"event_type": "im.message.updated_v1"}, "event": named}
