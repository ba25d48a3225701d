"""People and channels of a workspace, by their ids: names are looked up once in a while, and may be missing."""

import logging
import time

from segue.adapters.slack.api import Api, Json
from segue.core.contracts.database import Clock
from segue.core.values import Moment
from segue.errors import SendError

log = logging.getLogger(__name__)

_FRESH = 600.0
"""Seconds for which a name holds."""
_MANY = 10_000


class Directory:
    """Names, as far as the app may read them."""

    def __init__(self, api: Api, clock: Clock = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._known: dict[str, tuple[Moment, Json]] = {}

    async def name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        found = await self._look_up("users.info", "user", user)
        profile = found.get("profile") or {}
        return str(profile.get("display_name") or found.get("real_name") or found.get("name") or user)

    async def channel(self, id: str) -> tuple[str, str]:
        """The name and the topic of a channel."""
        found = await self._look_up("conversations.info", "channel", id)
        return str(found.get("name") or ""), str((found.get("topic") or {}).get("value") or "")

    async def _look_up(self, method: str, of: str, id: str) -> Json:
        now = self._clock()
        until, found = self._known.get(id, (now, {}))
        if until > now:
            return found
        try:
            told = (await self._api.call(method, **{of: id})).get(of)
        except SendError as error:
            # Nobody waits for a name.
            log.warning("Slack doesn't tell what %s is called: %s", id, error)
            told = found
        found = told if isinstance(told, dict) else {}
        if len(self._known) >= _MANY:
            del self._known[next(iter(self._known))]
        self._known[id] = (now + _FRESH, found)
        return found
