"""Messages of a workspace that nobody told: read back out of its channels after a time without a connection."""

import logging

from segue.adapters.slack.api import Api, Json

log = logging.getLogger(__name__)

_KINDS = "im,mpim,private_channel,public_channel"
_CHANNELS = 40
"""Channels that are looked at: Slack allows some fifty such calls a minute."""
_PAGE, _MOST = 100, 1000
"""Messages of a channel that are asked for at once, and in all."""


async def missed(api: Api, since: float) -> list[Json]:
    """The messages since a time in all channels that the app is in, as events, the oldest first."""
    found: list[Json] = []
    looked_at = 0
    async for channel in api.pages("users.conversations", "channels", types=_KINDS, exclude_archived=True, limit=200):
        if looked_at >= _CHANNELS:
            log.warning("the app is in more than %d channels: what was missed in the others isn't told", _CHANNELS)
            break
        looked_at += 1
        id = str(channel.get("id", ""))
        found += [{**message, "type": "message", "channel": id} for message in await _in_channel(api, id, since)]
    return sorted(found, key=lambda message: _time(message.get("ts")))


async def _in_channel(api: Api, channel: str, since: float) -> list[Json]:
    """What was said in a channel and in its threads; a thread is known by its root among the newest messages."""
    found: list[Json] = []
    seen = 0
    async for message in api.pages("conversations.history", "messages", channel=channel, limit=_PAGE):
        seen += 1
        said = _time(message.get("ts"))
        if said > since:
            found.append(message)
        if _time(message.get("latest_reply")) > since:
            root = str(message["ts"])
            replies = api.pages("conversations.replies", "messages", channel=channel, ts=root, limit=_PAGE)
            found += [one async for one in replies if one.get("ts") != root and _time(one.get("ts")) > since]
        if (said <= since and seen >= _PAGE) or seen >= _MOST:
            break
    return found


def _time(ts: object) -> float:
    try:
        return float(str(ts or 0))
    except ValueError:
        return 0.0
