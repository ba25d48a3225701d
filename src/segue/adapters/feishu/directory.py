"""People and chats by their ids, and messages: looked up once in a while, and may be missing."""

import logging
import time
from typing import Any

from segue.adapters.feishu.api import Api, Json
from segue.adapters.feishu.events import Fetched, decode
from segue.core.contracts.database import Clock
from segue.core.lanes import Kind
from segue.core.values import Moment
from segue.errors import Invalid, SendError

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
        self._kinds: dict[str, Kind] = {}

    async def name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        found = await self._look_up(f"/contact/v3/users/{user}", user_id_type="open_id")
        known = found.get("user")
        return str(known.get("name") or user) if isinstance(known, dict) else user

    async def chat(self, id: str) -> tuple[str, str]:
        """The name and the topic of a group."""
        found = await self._look_up(f"/im/v1/chats/{id}")
        return str(found.get("name") or ""), str(found.get("description") or "")

    async def kind(self, id: str, told: str = "") -> Kind:
        """The kind of a chat, which a message tells and which never changes."""
        if id not in self._kinds:
            mode = told or (await self._look_up(f"/im/v1/chats/{id}")).get("chat_mode")
            if len(self._kinds) >= _MANY:
                self._kinds.clear()
            if mode:
                self._kinds[id] = Kind.DM if mode == "p2p" else Kind.GROUP
        return self._kinds.get(id, Kind.GROUP)

    async def messages(self, id: str) -> list[Fetched]:
        """A message, and those that it passes on; none, if it can't be had."""
        found = (await self._look_up(f"/im/v1/messages/{id}", user_id_type="open_id")).get("items")
        try:
            return [decode(one, Fetched) for one in found] if isinstance(found, list) else []
        except Invalid as error:
            log.warning("Feishu tells something else than a message: %s", error)
            return []

    async def _look_up(self, path: str, **query: Any) -> Json:
        now = self._clock()
        until, found = self._known.get(path, (now, {}))
        if until > now:
            return found
        try:
            found = await self._api.call("GET", path, **query)
        except SendError as error:
            # Nobody waits for a name.
            log.warning("Feishu doesn't tell what %s is: %s", path, error)
        if len(self._known) >= _MANY:
            del self._known[next(iter(self._known))]
        self._known[path] = (now + _FRESH, found)
        return found
