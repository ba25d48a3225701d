"""Events, commands and buttons, read into arrivals.

Law: a message is known by its channel and its time, whether it comes as a message, as a mention of the app or out of
the history; so one post is one arrival. What bots write, this one included, is nothing at all.
"""

import re
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.account import Account
from segue.adapters.shared.decoding import decode, text_in
from segue.adapters.shared.lookups import Lookups
from segue.adapters.slack.api import Api, Json
from segue.adapters.slack.events import Callback, Command, Event, Press, is_known
from segue.adapters.slack.markup import MENTIONED, plain
from segue.core.contracts.database import Clock
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Parts, Pressed, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid

COMMAND = "/segue"
"""The one command of the app: Slack has /status, /search and others of its own."""


class View(StrEnum):
    """The look of the app's private chat."""

    CHAT = "chat"
    """One conversation, in which people may begin threads."""
    AGENT = "agent"
    """Each message that begins a thread begins a conversation."""


class Heard(Value, frozen=True):
    """A message to the agent: the arrival, the event that it was read from, and the button that was pressed."""

    arrival: Arrival
    event: Event
    press: Press | None = None


class Incoming:
    """Reads what one app is told; the names of people and channels are looked up, and may be missing."""

    def __init__(self, account: Account, api: Api, view: View, ticks: Clock) -> None:
        self._account = account
        self._api = api
        self._view = view
        self._lookups = Lookups("Slack", ticks)

    async def read(self, kind: str, payload: Any, at: Moment) -> Heard | None:
        """The message in what was delivered, if there is one; raises `Invalid` for what can't be understood."""
        match kind:
            case "events_api" if not is_known(payload):
                return None
            case "events_api":
                told = decode(payload, Callback, "Slack")
                event = replace(told.event, team=told.event.team or told.team_id)
                return await self._event(event, await self._api.who())
            case "slash_commands":
                return await self._command(decode(payload, Command, "Slack"), at)
            case "interactive":
                return await self._press(decode(payload, Press, "Slack"), at)
            case _:
                raise Invalid("type", f"{kind!r} is not understood", "Segue may be older than what Slack sends.")

    async def _event(self, event: Event, me: str) -> Heard | None:
        id = f"{event.type}.{event.event_ts}"
        match event.type, event.subtype:
            case "message", "message_changed":
                return await self._changed(event, me)
            case "message", "message_deleted":
                return await self._deleted(event, me)
            case (("message" | "app_mention"), _):
                return await self._said(event, event.ts, me)
            case "member_joined_channel", _ if event.user == me and event.inviter:
                return await self._heard(replace(event, user=event.inviter), id, brings_agent=True)
            case ("agent_session_stopped" | "agent_session_title_changed") as done, _ if event.user and event.thread_ts:
                text = Text("/stop" if done == "agent_session_stopped" else f"/title {event.title}")
                return await self._heard(event, id, (text,), mentions_agent=True)
            case _:
                return None

    async def _said(self, event: Event, id: str, me: str, edits: str = "") -> Heard | None:
        if not event.is_by_person(me):
            return None
        text = await self._words(event.text, me)
        shared = [one for one in event.attachments if one.is_share and one.text]
        cites = tuple(Citation(plain(one.text, {}), one.author_id, one.author_name, Citing.FORWARD) for one in shared)
        if not (text or event.files or edits or cites):
            return None
        parts = (*((Text(text),) if text else ()), *(file.named for file in event.files))
        meant = event.type == "app_mention" or f"<@{me}" in event.text or event.parent_user_id == me
        said = replace(event, event_ts=event.ts)
        return await self._heard(said, id, parts, edits=edits, cites=cites, mentions_agent=meant)

    async def _changed(self, event: Event, me: str) -> Heard | None:
        """A change by its author; that Slack shows what a link leads to, or counts answers, is none."""
        now, before = event.message, event.previous_message
        if now is not None and now.subtype == "tombstone":
            return await self._deleted(event, me)
        if now is None or (before is not None and before.text == now.text):
            return None
        changed = replace(now, type="message", channel=event.channel, files=(), attachments=())
        return await self._said(changed, f"{now.ts}/{event.event_ts or event.ts}", me, edits=now.ts)

    async def _deleted(self, event: Event, me: str) -> Heard | None:
        """That a message is gone; Slack doesn't say by whom, so it counts as its author's doing."""
        gone, at = event.previous_message, event.event_ts or event.ts
        if gone is None or not gone.is_by_person(me) or not gone.ts:
            return None
        return await self._heard(replace(gone, channel=event.channel, event_ts=at), f"{gone.ts}/{at}", deletes=gone.ts)

    async def _command(self, command: Command, at: Moment) -> Heard:
        words = f"{command.command} {command.text}".strip()
        if command.command == COMMAND:
            words = f"/{command.text.strip() or 'help'}"
        used = Event(channel=command.channel_id, user=command.user_id, event_ts=str(at))
        parts = (Text(plain(words, {})),)
        return await self._heard(used, f"command.{command.trigger_id}", parts, mentions_agent=True)

    async def _press(self, press: Press, at: Moment) -> Heard | None:
        message, [action, *_] = press.container.message_ts or press.message.ts, press.actions or [None]
        if press.type != "block_actions" or not action or not action.value or not message:
            return None
        thread = press.container.thread_ts or press.message.thread_ts
        thread = thread if thread != message else ""
        used = Event(channel=press.channel.id, user=press.user.id, thread_ts=thread, event_ts=str(at))
        id, pressed = f"button.{press.trigger_id or action.action_ts}", Pressed(message, action.value)
        return await self._heard(used, id, press=press, pressed=pressed)

    async def _heard(self, event: Event, id: str, parts: Parts = (), press: Press | None = None, **more: Any) -> Heard:
        """Something that a person did in a channel; in the agent view a message of a private chat begins a thread."""
        if not event.channel:
            raise Invalid("channel", "it isn't named", "An event says where it happened.")
        private = event.channel.startswith("D")
        begun = event.ts if private and self._view is View.AGENT else ""
        address = self._account.address(event.channel, event.thread or begun)
        name = await self._name(event.user)
        if private:
            place = Place(address, Kind.DM, name)
        else:
            found = await self._look_up("conversations.info", "channel", event.channel)
            place = Place(address, Kind.GROUP, text_in(found, "name"), text_in(found, "topic", "value"))
        speaker = self._account.speaker(event.user, name)
        return Heard(Arrival(place, id, speaker, parts, _moment(event.event_ts), **more), event, press)

    async def _words(self, text: str, me: str) -> str:
        """The words without the agent's name before them, so that a command stands at their beginning."""
        text = re.sub(rf"\A\s*<@{re.escape(me)}(?:\|[^<>]*)?>[\s,:]*", "", text)
        names = {user: await self._name(user) for user in dict.fromkeys(MENTIONED.findall(text))}
        return plain(text, names)

    async def _name(self, user: str) -> str:
        """The name of a person; their id if it can't be had."""
        found = await self._look_up("users.info", "user", user)
        names = (text_in(found, "profile", "display_name"), text_in(found, "real_name"), text_in(found, "name"))
        return next(filter(None, names), user)

    async def _look_up(self, method: str, of: str, id: str) -> Json:
        async def ask() -> Any:
            return (await self._api.call(method, **{of: id})).get(of)

        return await self._lookups.get(id, ask, {})


def _moment(ts: str) -> Moment:
    try:
        return float(ts)
    except ValueError as error:
        raise Invalid("ts", f"{ts!r} is no time", "It is seconds with a dot.") from error
