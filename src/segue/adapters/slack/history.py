"""Messages of a workspace that nobody told: read back out of its channels after a time without a connection."""

import logging
from collections.abc import AsyncIterator, Callable
from functools import partial

from segue.adapters.slack.api import Api, Json

Pages = Callable[..., AsyncIterator[Json]]
log = logging.getLogger(__name__)

_KINDS = "im,mpim,private_channel,public_channel"
_CHANNELS = 40
"""Channels that are looked at: Slack allows some fifty such calls a minute."""
_PAGE, _MOST = 100, 1000
"""Messages of a channel that are asked for at once, and in all."""


async def missed(api: Api, since: float, patience: float = 0.0) -> list[Json]:
    """The messages since a time in all channels that the app is in, as events, the oldest first.

    `patience` is how many seconds Slack may ask to wait between two calls.
    """
    found: list[Json] = []
    looked_at = 0
    pages = partial(api.pages, patience=patience)
    async for channel in pages("users.conversations", "channels", types=_KINDS, exclude_archived=True, limit=200):
        if looked_at >= _CHANNELS:
            log.warning("the app is in more than %d channels: what was missed in the others isn't told", _CHANNELS)
            break
        looked_at += 1
        id = str(channel.get("id", ""))
        found += [{**message, "type": "message", "channel": id} for message in await _in_channel(pages, id, since)]
    return sorted(found, key=lambda message: _time(message.get("ts")))


async def _in_channel(pages: Pages, channel: str, since: float) -> list[Json]:
    """What was said in a channel and in its threads; a thread is known by its root among the newest messages."""
    found: list[Json] = []
    seen = 0
    async for message in pages("conversations.history", "messages", channel=channel, limit=_PAGE):
        seen += 1
        said = _time(message.get("ts"))
        if said > since:
            found.append(message)
        if _time(message.get("latest_reply")) > since:
            root = str(message["ts"])
            replies = pages("conversations.replies", "messages", channel=channel, ts=root, limit=_PAGE)
            found += [one async for one in replies if one.get("ts") != root and _time(one.get("ts")) > since]
        if (said <= since and seen >= _PAGE) or seen >= _MOST:
            break
    return found


def _time(ts: object) -> float:
    try:
        return float(str(ts or 0))
    except ValueError:
        return 0.0
