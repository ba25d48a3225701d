"""Discord's API by discord.py, which keeps to the limits of each route; errors say what became of a call."""

import asyncio
import io
import json
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

import aiohttp
import discord
from discord.http import HTTPClient, Route

from segue.adapters.shared.outcomes import refused
from segue.adapters.shared.web import SLOWEST, Upload
from segue.core.values import Secret
from segue.errors import MessageGone, SendError, SendLater, SendUnsure, Unreachable

T = TypeVar("T")
PUBLIC = "https://discord.com/api/v10"
MESSAGES = "/channels/{channel_id}/messages"
MESSAGE = f"{MESSAGES}/{{message_id}}"
PAGE = 100
SAID_AFTER = f"{MESSAGES}?after={{after}}&limit={PAGE}"
"""A page of messages."""
INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
PORTAL = "https://discord.com/developers/applications"
STRANGER = f"Discord doesn't know the token. Make a new one on the page of the bot at {PORTAL}."
_PATIENCE = 30.0
"""Seconds that a call waits for its turn by itself, the fewest that discord.py knows; for longer, the gateway does."""
_GONE = (10008, 10015, 10062, 50027)
"""Discord's words for a message, an answer to a slash command, and a slash command or a button that isn't there.

The last is for a slash command that is too old to be answered: its token is wrong then, not the bot's.
"""


class _Http(HTTPClient):
    """The library's own client, at an address of one's choice."""

    def __init__(self, base: str) -> None:
        super().__init__(asyncio.get_running_loop(), max_ratelimit_timeout=_PATIENCE)
        self._base = base

    async def request(self, route: Route, **more: Any) -> Any:
        route.url = self._base + route.url.removeprefix(Route.BASE)
        try:
            return await super().request(route, **more)
        except asyncio.CancelledError:
            # If this call was the one to wait for the end of a limit on all calls, nobody else ends it.
            self._global_over.set()
            raise


class Api:
    """Calls Discord as one bot; raises nothing but `SendError`s."""

    def __init__(self, token: Secret, base: str) -> None:
        self.base = base.rstrip("/")
        self._token = token
        self._client: discord.Client | None = None
        self._entering = asyncio.Lock()

    async def close(self) -> None:
        """Let go of the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.http.close()

    async def client(self) -> discord.Client:
        """The library's client, once Discord has said whose token it is."""
        async with self._entering:
            if self._client is None:
                client = discord.Client(intents=INTENTS, max_messages=None, heartbeat_timeout=SLOWEST)
                client.http = _Http(self.base)
                try:
                    await _outcome(client.login(self._token.reveal()))
                except BaseException:
                    await client.http.close()
                    raise
                self._client = client
        return self._client

    async def me(self) -> discord.ClientUser:
        """The bot itself."""
        return cast("discord.ClientUser", (await self.client()).user)

    async def call(self, method: str, path: str, body: object = None, file: Upload | None = None, **ids: str) -> Any:
        """The answer to a call; `ids` stand for what is in braces in the path, and limits go by them."""
        http = (await self.client()).http
        more: dict[str, Any] = {} if body is None else {"json": body}
        if file is not None:
            attached = discord.File(io.BytesIO(file[1]), file[0])
            described = {**more.get("json", {}), "attachments": [{"id": 0, "filename": file[0]}]}
            fields = {"name": "payload_json", "value": json.dumps(described)}
            part = {"name": "files[0]", "value": attached.fp, "filename": file[0]}
            more = {"files": [attached], "form": [fields, part]}
        return await _outcome(http.request(Route(method, path, **ids), **more))


async def _outcome(call: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(SLOWEST):
            return await call
    except discord.RateLimited as error:
        raise SendLater("Discord allows no more calls for now.", error.retry_after) from error
    except discord.LoginFailure as error:
        raise SendLater(STRANGER) from error
    except discord.HTTPException as error:
        raise _refused(error) from error
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(f"Discord can't be reached ({type(error).__name__}).") from error
    except (aiohttp.ClientError, OSError, RuntimeError) as error:
        raise SendUnsure(f"Discord broke off or was too slow ({type(error).__name__}).") from error


def _refused(error: discord.HTTPException) -> SendError:
    why = f"{error.text} ({error.code})" if error.text else ""
    if error.code in _GONE:
        return MessageGone(f"Discord refused it: {why}.")
    if error.status == 401:
        return SendLater(STRANGER)
    return refused("Discord", error.status, why=why)
