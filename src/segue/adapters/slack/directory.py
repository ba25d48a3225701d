"""People and channels of a workspace, by their ids: names are looked up once in a while, and may be missing."""

import asyncio
import logging
import time

from segue.adapters.slack.api import Api
from segue.adapters.slack.events import decode
from segue.core.contracts.database import Clock
from segue.core.values import Moment, Value
from segue.errors import Invalid, SendError

log = logging.getLogger(__name__)

_FRESH, _UNKNOWN = 600.0, 30.0
"""Seconds for which a name holds, and one that couldn't be had is missing."""
_PATIENCE = 1.5
"""Seconds that a name may take: Slack wants what people do acknowledged in three."""
_MANY = 10_000


class Profile(Value, frozen=True):
    """A person's own card."""

    display_name: str = ""


class ChannelTopic(Value, frozen=True):
    """The topic of a channel."""

    value: str = ""


class Described(Value, frozen=True):
    """A person or a channel as Slack describes them."""

    name: str = ""
    real_name: str = ""
    profile: Profile = Profile()
    topic: ChannelTopic = ChannelTopic()


class Directory:
    """Names, as far as the app may read them."""

    def __init__(self, api: Api, clock: Clock = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[Moment, Described]] = {}

    async def name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        found = await self._look_up("users.info", "user", user)
        return found.profile.display_name or found.real_name or found.name or user

    async def channel(self, id: str) -> tuple[str, str]:
        """The name and the topic of a channel."""
        found = await self._look_up("conversations.info", "channel", id)
        return found.name, found.topic.value

    async def _look_up(self, method: str, of: str, id: str) -> Described:
        now = self._clock()
        until, found = self._known.get(id, (now, Described()))
        if until > now:
            return found
        lasts = _FRESH
        try:
            async with asyncio.timeout(_PATIENCE):
                found = decode((await self._api.call(method, **{of: id})).get(of), Described)
        except (SendError, Invalid, TimeoutError) as error:
            # Nobody waits for a name.
            log.warning("Slack doesn't tell what %s is called: %s", id, str(error) or "it takes too long")
            lasts = _UNKNOWN
        if len(self._known) >= _MANY:
            del self._known[next(iter(self._known))]
        self._known[id] = (now + lasts, found)
        return found
