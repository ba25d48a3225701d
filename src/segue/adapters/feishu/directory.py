"""People, chats and messages by their ids: looked up once in a while, and may be missing."""

import time
from collections.abc import Awaitable, Callable

from segue.adapters.feishu.api import Api, Json
from segue.adapters.feishu.content import unwrapped
from segue.adapters.feishu.events import Fetched, decode
from segue.adapters.shared.lookups import Lookups
from segue.core.contracts.database import Clock
from segue.core.lanes import Kind

_MANY = 10_000
_SAME = ("message_id", "chat_id", "create_time", "update_time", "root_id", "parent_id", "thread_id", "mentions")
"""Fields that a message has under the same name in an event."""


class Directory:
    """Names, as far as the app may read them."""

    def __init__(self, api: Api, clock: Clock = time.monotonic) -> None:
        self._api = api
        self._lookups = Lookups("Feishu", clock)
        self._kinds: dict[str, Kind] = {}

    async def name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        known = (await self._told(f"/contact/v3/users/{user}")).get("user")
        return str(known.get("name") or user) if isinstance(known, dict) else user

    async def chat(self, id: str) -> tuple[str, str]:
        """The name and the topic of a group."""
        found = await self._told(f"/im/v1/chats/{id}")
        return str(found.get("name") or ""), str(found.get("description") or "")

    async def kind(self, id: str, told: str = "") -> Kind:
        """The kind of a chat, which a message tells and which never changes."""
        if id not in self._kinds:
            mode = told or (await self._told(f"/im/v1/chats/{id}")).get("chat_mode")
            if len(self._kinds) >= _MANY:
                self._kinds.clear()
            if mode:
                self._kinds[id] = Kind.DM if mode == "p2p" else Kind.GROUP
        return self._kinds.get(id, Kind.GROUP)

    async def messages(self, id: str) -> list[Fetched]:
        """A message, and those that it passes on; none, if it can't be had."""
        return await self._lookups.get(f"message {id}", lambda: self.fetch(id), [])

    async def fetch(self, id: str) -> list[Fetched]:
        """The same, from Feishu itself; raises what becomes of the call."""
        return [decode(one, Fetched) for one in await self.items(id)]

    async def items(self, id: str) -> list[Json]:
        """The same, as it came."""
        found = (await self._api.call("GET", f"/im/v1/messages/{id}", user_id_type="open_id")).get("items")
        return [unwrapped(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    async def received(self, raw: Json) -> Json:
        """A message that was fetched, in the form in which an event would have told it.

        The root of a thread is in the thread only where all that is said is: elsewhere it was said in the chat.
        """
        said = {name: raw[name] for name in _SAME if raw.get(name)}
        if "root_id" not in said and "thread_id" in said and not await self._has_topics(str(said.get("chat_id"))):
            del said["thread_id"]
        body, sender = (found if isinstance(found := raw.get(name), dict) else {} for name in ("body", "sender"))
        said |= {"message_type": raw.get("msg_type") or "", "content": body.get("content") or ""}
        by = {"sender_id": {"open_id": sender.get("id") or ""}, "sender_type": sender.get("sender_type") or ""}
        return {"sender": by, "message": said}

    async def _has_topics(self, chat: str) -> bool:
        """Whether each message of a chat is the root of a thread."""
        found = await self._told(f"/im/v1/chats/{chat}")
        return found.get("chat_mode") == "topic" or found.get("group_message_type") == "thread"

    async def _told(self, path: str) -> Json:
        ask: Callable[[], Awaitable[Json]] = lambda: self._api.call("GET", path, user_id_type="open_id")  # noqa: E731
        return await self._lookups.get(path, ask, {})
