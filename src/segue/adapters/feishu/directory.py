"""People, chats and messages by their ids: looked up once in a while, and may be missing."""

from collections.abc import AsyncIterator

from segue.adapters.feishu.api import Api, Json
from segue.adapters.feishu.messages import Message, decode
from segue.adapters.shared.lookups import Lookups, Recent
from segue.core.lanes import Kind

_MANY = 10_000
_PAGE, _PAGES = 50, 10
"""Messages of a page, and pages of a chat or a thread."""


class Directory:
    """Names, as far as the app may read them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lookups = Lookups("Feishu")
        self._kinds = Recent[str, Kind](_MANY)

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
        if id not in self._kinds and (mode := told or (await self._told(f"/im/v1/chats/{id}")).get("chat_mode")):
            self._kinds[id] = Kind.DM if mode == "p2p" else Kind.GROUP
        return self._kinds.get(id, Kind.GROUP)

    async def has_topics(self, chat: str) -> bool:
        """Whether each message of a chat is the root of a thread."""
        found = await self._told(f"/im/v1/chats/{chat}")
        return found.get("chat_mode") == "topic" or found.get("group_message_type") == "thread"

    async def messages(self, id: str) -> list[Message]:
        """A message, and those that it passes on; none, if it can't be had."""
        return await self._lookups.get(f"message {id}", lambda: self.fetch(id), [])

    async def fetch(self, id: str) -> list[Message]:
        """The same, from Feishu itself; raises what becomes of the call."""
        found = (await self._api.call("GET", f"/im/v1/messages/{id}", user_id_type="open_id")).get("items")
        return [decode(one) for one in found] if isinstance(found, list) else []

    async def newest(self, container: str, id: str) -> AsyncIterator[Json]:
        """The messages of a chat or a thread, the newest first, as they came."""
        about: Json = {"container_id_type": container, "container_id": id, "page_size": _PAGE}
        for _ in range(_PAGES):
            told = await self._api.call("GET", "/im/v1/messages", sort_type="ByCreateTimeDesc", **about)
            for raw in told.get("items") or ():
                if isinstance(raw, dict):
                    yield raw
            about["page_token"] = told.get("page_token")
            if not told.get("has_more") or not about["page_token"]:
                break

    async def _told(self, path: str) -> Json:
        return await self._lookups.get(path, lambda: self._api.call("GET", path, user_id_type="open_id"), {})
