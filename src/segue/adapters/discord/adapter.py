"""The Discord adapter: one object per account, which follows the gateway and speaks by the API."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from segue.adapters.discord.api import MESSAGE, MESSAGES, PUBLIC, Api
from segue.adapters.discord.channels import Channels
from segue.adapters.discord.gateway import Gateway
from segue.adapters.discord.incoming import Incoming, slash_token
from segue.adapters.discord.markup import fits, mention, render
from segue.adapters.discord.outgoing import Outgoing, channel_of, nonce
from segue.adapters.discord.payloads import FORUMS, PRIVATE, THREADS, Channel, decode
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.background import beside
from segue.adapters.shared.downloads import Limits
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.threads import Openings
from segue.core.commands import Spec
from segue.core.contracts.adapters import Connection, Files, Intake
from segue.core.lanes import Address
from segue.core.messages import Sending
from segue.core.values import Secret
from segue.errors import SendNever

_LONGEST_TITLE = 100
_LONGEST_OF_MENU = 100
_WEEK = 10_080
"""Minutes without a word after which a thread is folded away; the longest."""
_STRING, _PUBLIC_THREAD = 3, 11
_THREADS = "/channels/{channel_id}/threads"
_HAS_ONE = "(160004)"
"""Discord's word for a message that has a thread already."""
_NAME = re.compile(r"[-_a-z0-9]{1,32}")


class Discord:
    """Speaks to Discord as one bot."""

    platform = "discord"
    sending = Sending.KEYED
    connection = Connection.ONE
    buttons: Literal[True] = True
    largest_file = 10 * 1000 * 1000
    """Bytes of a file that a bot may send anywhere."""

    def __init__(self, account: str, token: Secret, files: Files, api: str = PUBLIC) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._api = Api(token, api)
        self._attachments = Attachments(files, Limits(trusted=api))
        self._channels = Channels(self._own, self._api)
        self._outgoing = Outgoing(self._api, files)
        self._openings = Openings()
        self.fits = fits
        self.mention = mention
        self.send = self._outgoing.send
        self.edit = self._outgoing.edit

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()

    async def run(self, intake: Intake) -> None:
        """Follow the gateway until cancelled; its position moves on once everything before it was accepted."""
        with connecting():
            me = str((await self._api.me()).id)
            incoming = Incoming(self._own, self._api, self._channels, self._attachments, me, intake.accept)
            async with beside(f"the menu of {self._own}", lambda: self._fill_menu(intake.commands)):
                await Gateway(self._api, incoming).follow(intake)

    async def _fill_menu(self, commands: Sequence[Spec]) -> None:
        if menu := [_listed(spec) for spec in commands if _NAME.fullmatch(spec.name)]:
            path, ours = "/applications/{application_id}/commands", (await self._api.client()).application_id
            await self._api.call("PUT", path, menu[:_LONGEST_OF_MENU], application_id=str(ours))

    def whispers_to(self, message: str) -> bool:
        """Whether an answer to a message can be seen by its person alone: to a slash command it can."""
        return slash_token(message) is not None

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours."""
        await self._api.call("DELETE", MESSAGE, channel_id=channel_of(address), message_id=message)

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for ten seconds."""
        await self._api.call("POST", "/channels/{channel_id}/typing", channel_id=channel_of(address))

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a thread in a channel, or a post in a forum; beside a thread, in the channel around it."""
        return await self._openings.open(
            key, lambda: self._open(parent, title.strip()[:_LONGEST_TITLE] or "Session", key)
        )

    async def _open(self, parent: Address, title: str, key: str) -> Address:
        channel = await self._channels.get(channel_of(parent))
        if channel.type in THREADS and channel.parent_id:
            channel = await self._channels.get(channel.parent_id)
        if channel.type == PRIVATE:
            raise SendNever("There are no threads in private chats.")
        thread = {"name": title, "auto_archive_duration": _WEEK}
        head: dict[str, Any] = {"content": render(title), "allowed_mentions": {"parse": []}}
        if channel.type in FORUMS:
            post = {**thread, "message": head}
            raw = await self._api.call("POST", _THREADS, post, channel_id=channel.id)
        else:
            raw = await self._beneath(channel.id, {**head, "nonce": nonce(key), "enforce_nonce": True}, thread)
        opened = decode(raw, Channel)
        self._channels.heed(opened)
        return self._channels.address(opened)

    async def _beneath(self, channel: str, head: dict[str, Any], thread: dict[str, Any]) -> Any:
        """A thread that hangs on a message of ours, and has its id: so the same key finds it again.

        Where a message can't have one, it stands by itself.
        """
        there = partial(self._api.call, "POST", channel_id=channel)
        try:
            root = str((await there(MESSAGES, head))["id"])
        except SendNever:
            return await there(_THREADS, {**thread, "type": _PUBLIC_THREAD})
        try:
            return await there(f"{MESSAGE}/threads", thread, message_id=root)
        except SendNever as error:
            if _HAS_ONE in str(error):
                return await self._api.call("GET", "/channels/{channel_id}", channel_id=root)
            await self._api.call("DELETE", MESSAGE, channel_id=channel, message_id=root)
            raise


def _listed(spec: Spec) -> dict[str, Any]:
    """A command as Discord's menu has it; what may follow it is one field."""
    says = spec.does[:_LONGEST_OF_MENU]
    words = [{"type": _STRING, "name": "text", "description": (spec.usage)[:_LONGEST_OF_MENU], "required": False}]
    return {"name": spec.name, "description": says, "type": 1, "options": words if spec.usage else []}
