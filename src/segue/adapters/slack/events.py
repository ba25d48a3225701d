"""Events of Slack's, decoded: the fields that are read, and nothing is trusted to have the right shape."""

from segue.adapters.shared.decoding import text_in
from segue.core.messages import File
from segue.core.values import Value

_READ = {"", "message", "app_mention", "member_joined_channel", "agent_session_stopped", "agent_session_title_changed"}
_SPOKEN = {"", "file_share", "thread_broadcast", "me_message"}
"""Subtypes of messages that a person wrote."""


class Attachment(Value, frozen=True):
    id: str = ""
    name: str = ""
    mimetype: str = ""
    size: int = 0
    url_private: str = ""
    url_private_download: str = ""

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        return File(self.name or "file", self.mimetype, "", self.size)

    @property
    def where(self) -> str:
        """The address that it can be fetched from."""
        return self.url_private_download or self.url_private


class Shared(Value, frozen=True):
    """Something beneath a message: of interest is another message that it passes on."""

    is_share: bool = False
    text: str = ""
    author_id: str = ""
    author_name: str = ""


class Event(Value, frozen=True):
    """Something that happened: most often a message."""

    type: str = ""
    subtype: str = ""
    channel: str = ""
    user: str = ""
    team: str = ""
    user_team: str = ""
    """The workspace of whoever wrote it, in a channel that several share."""
    text: str = ""
    ts: str = ""
    event_ts: str = ""
    thread_ts: str = ""
    parent_user_id: str = ""
    """Who wrote the root of its thread."""
    bot_id: str = ""
    files: tuple[Attachment, ...] = ()
    attachments: tuple[Shared, ...] = ()
    message: "Event | None" = None
    previous_message: "Event | None" = None
    inviter: str = ""
    title: str = ""

    def is_by_person(self, me: str) -> bool:
        """Whether a person wrote it, and no app: not this one either."""
        return self.subtype in _SPOKEN and not self.bot_id and self.user not in ("", "USLACKBOT", me)

    @property
    def thread(self) -> str:
        """The root of the thread that it is in; the root itself is outside of it."""
        return self.thread_ts if self.thread_ts != self.ts else ""


class Callback(Value, frozen=True):
    """An event as it is delivered."""

    event: Event
    team_id: str = ""


class Command(Value, frozen=True):
    command: str
    user_id: str
    channel_id: str
    trigger_id: str
    text: str = ""


class Part(Value, frozen=True):
    """A part of a press: the person, the channel, the button, or the place of its message. Each has some of these."""

    id: str = ""
    value: str = ""
    action_ts: str = ""
    message_ts: str = ""
    thread_ts: str = ""
    is_ephemeral: bool = False


class Press(Value, frozen=True):
    """An interaction with a message."""

    type: str
    user: Part
    channel: Part = Part()
    container: Part = Part()
    message: Event = Event()
    actions: tuple[Part, ...] = ()
    trigger_id: str = ""
    response_url: str = ""
    """The address at which what was pressed can be changed, also if only one person sees it."""


def is_known(raw: object) -> bool:
    """Whether an event is of a kind that is read at all; others have whatever fields they like."""
    return text_in(raw, "event", "type") in _READ
