"""Messages of a workspace that nobody told: read back out of its channels after a time without a connection."""

import logging
from collections.abc import AsyncIterator, Callable
from functools import partial

from segue.adapters.slack.api import Api, Json
from segue.core.values import Moment

Pages = Callable[..., AsyncIterator[Json]]
log = logging.getLogger(__name__)

_KINDS = "im,mpim,private_channel,public_channel"
_CHANNELS = 40
"""Channels that are looked at: Slack allows some fifty such calls a minute."""
_PAGE, _MOST = 100, 1000
"""Messages of a channel that are asked for at once, and in all."""


async def missed(api: Api, since: Moment, patience: float) -> list[Json]:
    """The messages since a time in all channels that the app is in, as events, the oldest first.

    `patience` is how many seconds Slack may ask to wait between two calls.
    """
    pages: Pages = partial(api.pages, patience=patience)
    about = {"types": _KINDS, "exclude_archived": True, "limit": 200}
    channels = [one async for one in pages("users.conversations", "channels", most=_CHANNELS + 1, **about)]
    if len(channels) > _CHANNELS:
        log.warning("the app is in more than %d channels: what was missed in the others isn't told", _CHANNELS)
    found: list[Json] = []
    for id in [str(channel.get("id", "")) for channel in channels[:_CHANNELS]]:
        found += [{**message, "type": "message", "channel": id} async for message in _in_channel(pages, id, since)]
    return sorted(found, key=lambda message: _time(message, "ts"))


async def _in_channel(pages: Pages, channel: str, since: Moment) -> AsyncIterator[Json]:
    """What was said in a channel and in its threads; a thread is known by its root among the newest messages."""
    about = {"channel": channel, "limit": _PAGE}
    seen = 0
    async for message in pages("conversations.history", "messages", most=_MOST, **about):
        seen += 1
        is_old = _time(message, "ts") <= since
        if not is_old:
            yield message
        if _time(message, "latest_reply") > since:
            root = message["ts"]
            async for reply in pages("conversations.replies", "messages", ts=root, **about):
                if reply.get("ts") != root and _time(reply, "ts") > since:
                    yield reply
        if is_old and seen >= _PAGE:
            break


def _time(message: Json, name: str) -> Moment:
    try:
        return float(message.get(name) or 0)
    except (TypeError, ValueError):
        return 0.0
