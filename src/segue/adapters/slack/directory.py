"""People and channels of a workspace, by their ids: names are looked up once in a while, and may be missing."""

import time

from segue.adapters.shared.lookups import Lookups
from segue.adapters.slack.api import Api
from segue.adapters.slack.events import decode
from segue.core.contracts.database import Clock
from segue.core.values import Value


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
        self._lookups = Lookups("Slack", clock)

    async def name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        found = await self._look_up("users.info", "user", user)
        return found.profile.display_name or found.real_name or found.name or user

    async def channel(self, id: str) -> tuple[str, str]:
        """The name and the topic of a channel."""
        found = await self._look_up("conversations.info", "channel", id)
        return found.name, found.topic.value

    async def _look_up(self, method: str, of: str, id: str) -> Described:
        async def ask() -> Described:
            described: Described = decode((await self._api.call(method, **{of: id})).get(of), Described)
            return described

        return await self._lookups.get(id, ask, Described())
