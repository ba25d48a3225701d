"""Events, commands and buttons, read into arrivals.

Law: a message is known by its channel and its time, whether it comes as a message, as a mention of the app or out of
the history; so one post is one arrival. What bots write, this one included, is nothing at all.
"""

import re
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.account import Account
from segue.adapters.slack.directory import Directory
from segue.adapters.slack.events import Attachment, Callback, Command, Event, Press, decode, is_known
from segue.adapters.slack.markup import MENTIONED, plain
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
    """A message to the agent: the arrival, the files that are to be fetched for it, and the button that was pressed."""

    arrival: Arrival
    attachments: tuple[Attachment, ...] = ()
    press: Press | None = None
    team: str = ""
    """The workspace of whoever wrote it."""


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
                event = replace(callback.event, team=callback.event.team or callback.team_id)
                return await self._event(event, me, callback.seen_as)
            case "slash_commands":
                return await self._command(decode(payload, Command), at)
            case "interactive":
                return await self._press(decode(payload, Press), at)
            case _:
                raise Invalid("type", f"{kind!r} is not understood", "Segue may be older than what Slack sends.")

    async def _event(self, event: Event, me: str, seen: tuple[str, ...]) -> Heard | None:
        match event.type, event.subtype:
            case "message", "message_changed":
                return await self._changed(event, me, seen)
            case "message", "message_deleted":
                return await self._deleted(event, event.deleted_ts, me, seen)
            case (("message" | "app_mention"), _):
                return await self._said(event, me, seen)
            case ("agent_session_stopped" | "agent_session_title_changed") as done, _:
                text = "/stop" if done == "agent_session_stopped" else f"/title {event.title}"
                return await self._as_command(event, text, seen)
            case "member_joined_channel", _ if event.user == me and event.inviter:
                brought = replace(event, user=event.inviter)
                return Heard(await self._arrival(brought, f"brought.{event.event_ts}", seen_as=seen, brings_agent=True))
            case _:
                return None

    async def _said(self, event: Event, me: str, seen: tuple[str, ...], edits: str = "", id: str = "") -> Heard | None:
        if not event.spoken or event.user == me:
            return None
        text = await self._words(event.text, me)
        shared = [one for one in event.attachments if one.is_share and one.text]
        cites = tuple(Citation(plain(one.text, {}), one.author_id, one.author_name, Citing.FORWARD) for one in shared)
        if not text and not event.files and not edits and not cites:
            return None
        meant = event.type == "app_mention" or f"<@{me}" in event.text or event.parent_user_id == me
        arrival = await self._arrival(
            replace(event, thread_ts=self._thread(event)),
            id or event.ts,
            (*((Text(text),) if text else ()), *(file.named for file in event.files)),
            at=_moment(event.ts),
            seen_as=seen,
            edits=edits,
            cites=cites,
            mentions_agent=meant,
        )
        return Heard(arrival, event.files, team=event.user_team or event.team)

    async def _changed(self, event: Event, me: str, seen: tuple[str, ...]) -> Heard | None:
        """A change by its author; that Slack shows what a link leads to, or counts answers, is none."""
        now, before = event.message, event.previous_message
        if now is None:
            return None
        if now.subtype == "tombstone":
            return await self._deleted(event, now.ts, me, seen)
        if before is not None and before.text == now.text:
            return None
        changed = replace(now, type="message", channel=event.channel, files=(), attachments=())
        return await self._said(changed, me, seen, edits=now.ts, id=f"{now.ts}/{event.event_ts or event.ts}")

    async def _deleted(self, event: Event, ts: str, me: str, seen: tuple[str, ...]) -> Heard | None:
        """That a message is gone; Slack doesn't say by whom, so it counts as its author's doing."""
        before = event.previous_message
        if before is None or not before.spoken or before.user == me or not ts:
            return None
        at = event.event_ts or event.ts
        gone = replace(before, channel=event.channel, event_ts=at)
        gone = replace(gone, thread_ts=self._thread(gone))
        return Heard(await self._arrival(gone, f"{ts}/{at}", seen_as=seen, deletes=ts))

    async def _as_command(self, event: Event, text: str, seen: tuple[str, ...]) -> Heard | None:
        """The Stop button or a new title of a thread in the agent view."""
        if not event.user or not event.thread_ts:
            return None
        id = f"{event.type}.{event.event_ts}"
        return Heard(await self._arrival(event, id, (Text(text),), seen_as=seen, mentions_agent=True))

    async def _command(self, command: Command, at: Moment) -> Heard:
        words = f"{command.command} {command.text}".strip()
        if command.command == COMMAND:
            words = f"/{command.text.strip() or 'help'}"
        used = Event(channel=command.channel_id, user=command.user_id)
        id = f"command.{command.trigger_id}"
        return Heard(await self._arrival(used, id, (Text(plain(words, {})),), at=at, mentions_agent=True))

    async def _press(self, press: Press, at: Moment) -> Heard | None:
        message, [action, *_] = press.container.message_ts or press.message.ts, press.actions or [None]
        if press.type != "block_actions" or not action or not action.value or not message:
            return None
        thread = press.container.thread_ts or press.message.thread_ts
        used = Event(channel=press.channel.id, user=press.user.id, thread_ts=thread if thread != message else "")
        id = f"button.{press.trigger_id or action.action_ts}"
        return Heard(await self._arrival(used, id, at=at, pressed=Pressed(message, action.value)), press=press)

    def _thread(self, event: Event) -> str:
        """The thread of a message; in the agent view each message of a private chat begins one."""
        begins = self._view is View.AGENT and event.channel.startswith("D") and not event.thread
        return event.ts if begins else event.thread

    async def _arrival(
        self, event: Event, id: str, parts: Parts = (), *, at: Moment | None = None, **more: Any
    ) -> Arrival:
        """Something that a person did in a channel, in the thread that is named."""
        if not event.channel:
            raise Invalid("channel", "it isn't named", "An event says where it happened.")
        address = self._account.address(event.channel, event.thread_ts)
        name = await self._directory.name(event.user)
        if event.channel.startswith("D"):
            place = Place(address, Kind.DM, name)
        else:
            place = Place(address, Kind.GROUP, *await self._directory.channel(event.channel))
        moment = _moment(event.event_ts) if at is None else at
        return Arrival(place, id, self._account.speaker(event.user, name), parts, moment, **more)

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
