"""Events, commands and buttons, read into arrivals.

Law: a message is known by its channel and its time, whether it comes as a message, as a mention of the app or out of
the history; so one post is one arrival. What bots write, this one included, is nothing at all.
"""

import re
from enum import StrEnum
from typing import Any

from segue.adapters.shared.account import Account
from segue.adapters.slack.directory import Directory
from segue.adapters.slack.events import Attachment, Callback, Command, Event, Press, decode, is_known
from segue.adapters.slack.markup import MENTIONED, plain
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Pressed, Speaker, Text
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
    """A message to the agent: the arrival, the files that are to be fetched for it, and the button that was pressed."""

    arrival: Arrival
    attachments: tuple[Attachment, ...] = ()
    press: Press | None = None


class Incoming:
    """Reads what one app is told."""

    def __init__(self, account: Account, directory: Directory, view: View) -> None:
        self._account = account
        self._directory = directory
        self._view = view

    async def read(self, kind: str, payload: Any, me: str, at: Moment) -> Heard | None:
        """The message in what was delivered, if there is one; raises `Invalid` for what can't be understood."""
        match kind:
            case "events_api" if not is_known(payload):
                return None
            case "events_api":
                callback: Callback = decode(payload, Callback)
                seen = (f"event/{callback.event_id}",) if callback.event_id else ()
                return await self._event(callback.event, me, seen)
            case "slash_commands":
                return await self._command(decode(payload, Command), at)
            case "interactive":
                return await self._press(decode(payload, Press), at)
            case _:
                raise Invalid("type", f"{kind!r} is not understood", "Segue may be older than what Slack sends.")

    async def _event(self, event: Event, me: str, seen: tuple[str, ...]) -> Heard | None:
        match event.type, event.subtype:
            case "message", "message_changed":
                reading = self._changed(event, me, seen)
            case "message", "message_deleted":
                reading = self._deleted(event, event.deleted_ts, me, seen)
            case (("message" | "app_mention"), _):
                reading = self._said(event, me, seen)
            case "agent_session_stopped", _:
                reading = self._as_command(event, "/stop", seen)
            case "agent_session_title_changed", _:
                reading = self._as_command(event, f"/title {event.title}", seen)
            case "member_joined_channel", _ if event.user == me and event.inviter:
                reading = self._brought(event, seen)
            case _:
                return None
        return await reading

    async def _brought(self, event: Event, seen: tuple[str, ...]) -> Heard | None:
        """That somebody brought the app into a channel."""
        place, speaker = await self._place(event.channel, "", event.inviter), await self._speaker(event.inviter)
        id, at = f"brought.{event.event_ts}", _moment(event.event_ts)
        return Heard(Arrival(place, id, speaker, (), at, seen_as=seen, brings_agent=True))

    async def _said(self, event: Event, me: str, seen: tuple[str, ...], edits: str = "", id: str = "") -> Heard | None:
        if not event.spoken or event.user == me:
            return None
        text = await self._words(event.text, me)
        shared = [one for one in event.attachments if one.is_share and one.text]
        cites = tuple(Citation(plain(one.text, {}), one.author_id, one.author_name, Citing.FORWARD) for one in shared)
        if not text and not event.files and not edits and not cites:
            return None
        arrival = Arrival(
            place=await self._place(event.channel, self._thread(event), event.user),
            message=id or event.ts,
            speaker=await self._speaker(event.user),
            parts=(*((Text(text),) if text else ()), *(file.named for file in event.files)),
            at=_moment(event.ts),
            seen_as=seen,
            edits=edits,
            cites=cites,
            mentions_agent=event.type == "app_mention" or f"<@{me}" in event.text or event.parent_user_id == me,
        )
        return Heard(arrival, event.files)

    async def _changed(self, event: Event, me: str, seen: tuple[str, ...]) -> Heard | None:
        """A change by its author; that Slack shows what a link leads to, or counts answers, is none."""
        now, before = event.message, event.previous_message
        if now is None:
            return None
        if now.subtype == "tombstone":
            return await self._deleted(event, now.ts, me, seen)
        if before is not None and before.text == now.text:
            return None
        changed = Event(
            type="message",
            subtype=now.subtype,
            channel=event.channel,
            user=now.user,
            text=now.text,
            ts=now.ts,
            thread_ts=now.thread_ts,
            bot_id=now.bot_id,
            parent_user_id=now.parent_user_id,
        )
        return await self._said(changed, me, seen, edits=now.ts, id=f"{now.ts}/{event.event_ts or event.ts}")

    async def _deleted(self, event: Event, ts: str, me: str, seen: tuple[str, ...]) -> Heard | None:
        """That a message is gone; Slack doesn't say by whom, so it counts as its author's doing."""
        before = event.previous_message
        if before is None or not before.spoken or before.user == me or not ts:
            return None
        place = await self._place(event.channel, self._thread(before), before.user)
        id, at = f"{ts}/{event.event_ts or event.ts}", _moment(event.event_ts or event.ts)
        return Heard(Arrival(place, id, await self._speaker(before.user), (), at, seen_as=seen, deletes=ts))

    async def _as_command(self, event: Event, text: str, seen: tuple[str, ...]) -> Heard | None:
        """The Stop button or a new title of a thread in the agent view."""
        if not event.user or not event.thread_ts:
            return None
        place, speaker = await self._place(event.channel, event.thread_ts, event.user), await self._speaker(event.user)
        id, at = f"{event.type}.{event.event_ts}", _moment(event.event_ts)
        return Heard(Arrival(place, id, speaker, (Text(text),), at, seen_as=seen, mentions_agent=True))

    async def _command(self, command: Command, at: Moment) -> Heard:
        text = f"/{command.text.strip() or 'help'}" if command.command == COMMAND else command.command
        if command.command != COMMAND and command.text:
            text += f" {command.text}"
        speaker = await self._speaker(command.user_id)
        place, id = await self._place(command.channel_id, "", command.user_id), f"command.{command.trigger_id}"
        return Heard(Arrival(place, id, speaker, (Text(plain(text, {})),), at, mentions_agent=True))

    async def _press(self, press: Press, at: Moment) -> Heard | None:
        message = press.container.message_ts or press.message.ts
        if press.type != "block_actions" or not press.actions or not press.actions[0].value or not message:
            return None
        thread = press.container.thread_ts or press.message.thread_ts
        place = await self._place(press.channel.id, thread if thread != message else "", press.user.id)
        pressed = Pressed(message, press.actions[0].value)
        id = f"button.{press.trigger_id or press.actions[0].action_ts}"
        return Heard(Arrival(place, id, await self._speaker(press.user.id), (), at, pressed=pressed), press=press)

    def _thread(self, event: Event) -> str:
        """The thread of a message; in the agent view each message of a private chat begins one."""
        begins = self._view is View.AGENT and event.channel.startswith("D") and not event.thread
        return event.ts if begins else event.thread

    async def _place(self, channel: str, thread: str, user: str) -> Place:
        if not channel:
            raise Invalid("channel", "it isn't named", "An event says where it happened.")
        address = self._account.address(channel, thread)
        if channel.startswith("D"):
            return Place(address, Kind.DM, await self._directory.name(user))
        return Place(address, Kind.GROUP, *await self._directory.channel(channel))

    async def _speaker(self, user: str) -> Speaker:
        return self._account.speaker(user, await self._directory.name(user))

    async def _words(self, text: str, me: str) -> str:
        """The words without the agent's name before them, so that a command stands at their beginning."""
        text = re.sub(rf"\A\s*<@{re.escape(me)}(?:\|[^<>]*)?>[\s,:]*", "", text)
        names = {user: await self._directory.name(user) for user in dict.fromkeys(MENTIONED.findall(text))}
        return plain(text, names)


def _moment(ts: str) -> Moment:
    try:
        return float(ts)
    except ValueError as error:
        raise Invalid("ts", f"{ts!r} is no time", "It is seconds with a dot.") from error
