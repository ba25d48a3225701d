"""The agent view, in which a thread is a session: its status and its title, and replies that grow as streams.

Law: a stream only grows, and Slack ends it after some five minutes or when its person presses Stop. From then on, and
where a text turns out otherwise, its message is edited like any other.
"""

import contextlib
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from segue.adapters.shared.lookups import Recent
from segue.adapters.shared.rates import Bucket, Limiter
from segue.adapters.slack.api import Api, Json
from segue.adapters.slack.incoming import Heard, View
from segue.adapters.slack.markup import streamable
from segue.core.lanes import Address
from segue.core.messages import Delivery
from segue.errors import SendError, SendLater, SendNever

log = logging.getLogger(__name__)

WORKING, READY = "processing", "active"
_STREAMS, _APPENDED = Bucket(10, 4.0), Bucket(30, 0.7)
"""The rates that Slack allows; what is begun is also stopped, under the same rate."""
_LONGEST_TITLE, _LONGEST_STEP = 200, 256


class _Shown(NamedTuple):
    """What stands in a stream: a text, and each step with how it stands."""

    text: str = ""
    steps: tuple[tuple[str, str], ...] = ()

    def grown(self, text: str, steps: Sequence[str]) -> "_Shown":
        """What is to stand there, as far as it is more of the same; of the steps, the last one goes on."""
        going_on = [
            (step[:_LONGEST_STEP], "complete" if n < len(steps) else "in_progress") for n, step in enumerate(steps, 1)
        ]
        over = ((step, "complete") for step, _ in self.steps[len(steps) :])
        return _Shown(text if self.begins(text) else self.text, (*going_on, *over))

    def begins(self, text: str) -> bool:
        """Whether a text is this one, and more that a stream can show."""
        return text.startswith(self.text) and streamable(text)

    def until(self, then: "_Shown") -> list[Json]:
        """What has to be appended."""
        changed = [(n, step) for n, step in enumerate(then.steps) if self.steps[n : n + 1] != (step,)]
        tasks = [{"type": "task_update", "id": str(n), "title": step, "status": how} for n, (step, how) in changed]
        more = then.text.removeprefix(self.text)
        return [*tasks, *([{"type": "markdown_text", "text": more}] if more else [])]


class AgentView:
    """Threads of one app, as Slack shows them if it is an agent; if not, nothing here is shown."""

    def __init__(self, api: Api, limiter: Limiter, view: View) -> None:
        self._api = api
        self._limiter = limiter
        self.is_shown = view is View.AGENT
        self._statuses: Recent[Address, str] = Recent()
        self._streams: Recent[tuple[str, str], _Shown] = Recent()
        """The streams that this process began, by chat and message."""
        self._askers: Recent[tuple[str, str], tuple[str, str]] = Recent()
        """The person and their team, by chat and message: in a channel a stream is for whoever is answered."""
        self._refused: set[tuple[str, str]] = set()
        """Chats and people for whom Slack begins no stream."""

    def asked(self, heard: Heard) -> None:
        """Remember who said something in a channel, if it is known from where they are."""
        event = heard.event
        if team := event.user_team or event.team:
            self._askers[event.channel, heard.arrival.message] = event.user, team

    async def status(self, thread: Address, status: str, title: str | None = None) -> None:
        """Show whether the agent works on a thread, and its first title; nobody waits for that."""
        if self.is_shown and thread.thread and self._statuses.get(thread) != status:
            self._statuses[thread] = status
            with contextlib.suppress(SendError):
                await self._call("agents.sessions.setStatus", thread, status=status, title=title)

    async def rename(self, thread: Address, title: str) -> None:
        if self.is_shown:
            await self._call("agents.sessions.rename", thread, title=title[:_LONGEST_TITLE])

    async def begin(self, ahead: Delivery) -> str | None:
        """Begin a stream, and return its message; None outside of threads, and in a channel for nobody who is known."""
        chat, thread = ahead.address.chat, ahead.address.thread
        asker = ("", "") if chat.startswith("D") else self._askers.get((chat, ahead.answered))
        if not (self.is_shown and thread and asker):
            return None
        user, team = asker
        if (chat, user) in self._refused or self._limiter.take({"streams": _STREAMS}):
            return None
        about = {"channel": chat, "thread_ts": thread, "task_display_mode": "plan"}
        to = {"recipient_user_id": user or None, "recipient_team_id": team or None}
        try:
            message = str((await self._api.call("chat.startStream", **about, **to))["ts"])
        except SendNever as error:
            self._refused.add((chat, user))
            log.warning("replies in %s grow by edits, since Slack lets this app begin no stream there: %s", chat, error)
            return None
        self._streams[chat, message] = _Shown()
        return message

    async def grow(self, delivery: Delivery, steps: Sequence[str]) -> bool:
        """Show more of a reply; False if its message is no stream, or no more."""
        here = delivery.address.chat, delivery.message
        shown = self._streams.get(here)
        if shown is None:
            return False
        then = shown.grown(delivery.text, steps)
        if chunks := shown.until(then):
            async with self._limiter.paced({"appended": _APPENDED}):
                # Nobody knows what stands there if the call breaks off.
                self._streams.pop(here, None)
                try:
                    await self._api.call("chat.appendStream", channel=here[0], ts=here[1], chunks=chunks)
                except SendLater:
                    self._streams[here] = shown
                    raise
                except SendNever:
                    return False
            self._streams[here] = then
        return True

    async def finish(self, delivery: Delivery, **more: Any) -> bool:
        """Stop a stream with the final text; False if its message is to be edited."""
        here = delivery.address.chat, delivery.message
        shown = self._streams.pop(here, None)
        if shown is None:
            return False
        if not shown.begins(delivery.text) or delivery.file or delivery.choices:
            await self.stop(delivery)
            return False
        chunks = shown.until(shown.grown(delivery.text, ()))
        return await self.stop(delivery, chunks=chunks or None, **more)

    async def stop(self, delivery: Delivery, **more: Any) -> bool:
        """Stop a stream, since it can't be edited before; False if it is none, or over already."""
        about = {"channel": delivery.address.chat, "ts": delivery.message, "session_status": READY}
        try:
            await self._api.call("chat.stopStream", **about, **more)
        except SendNever:
            return False
        self._statuses[delivery.address] = READY
        return True

    async def _call(self, method: str, thread: Address, **fields: Any) -> None:
        await self._api.call(method, channel_id=thread.chat, thread_ts=thread.thread, **fields)
