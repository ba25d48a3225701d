"""An account of the Slack adapter, as the host writes it in segue.toml."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

from segue.adapters.shared.outcomes import check_http, connecting
from segue.adapters.slack.adapter import Slack, SlackByEvents
from segue.adapters.slack.api import PUBLIC, Api, Json
from segue.adapters.slack.events import Callback, Event, decode
from segue.adapters.slack.incoming import COMMAND, View
from segue.adapters.slack.outgoing import Pace
from segue.adapters.slack.sockets import opened
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.settings import DmThreads
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid, SendNever

SCOPES = (
    "app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
    "files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write",
    "metadata.message:read", "mpim:history", "mpim:read", "users:read",
)  # fmt: skip
"""What the app may do."""
_EVENTS = (
    "agent_session_stopped", "agent_session_title_changed", "app_mention", "member_joined_channel",
    "message.channels", "message.groups", "message.im", "message.mpim",
)  # fmt: skip
MANIFEST: dict[str, Any] = {
    "display_information": {"name": "Segue", "description": "One conversation with your agent, wherever you talk."},
    "features": {
        "app_home": {"messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
        "agent_view": {"agent_description": "One conversation with your agent, wherever you talk."},
        "bot_user": {"display_name": "Segue", "always_online": True},
        "slash_commands": [
            {"command": COMMAND, "description": "A command for the agent", "usage_hint": "help", "should_escape": False}
        ],
    },
    "oauth_config": {"scopes": {"bot": list(SCOPES)}},
    "settings": {
        "event_subscriptions": {"bot_events": list(_EVENTS)},
        "interactivity": {"is_enabled": True},
        "socket_mode_enabled": True,
    },
}
"""The app, as Slack makes it from one click."""
_MAKE = "https://api.slack.com/apps?new_app=1&manifest_json="
_HELLO = "Hello. Write to me here, or type /segue help."


class SlackAccount(Value, frozen=True):
    """The keys of a table [slack.ACCOUNT]."""

    token: Secret
    """The bot token of the app, which begins with xoxb-."""
    app_token: Secret = Secret("")
    """The app-level token for Socket Mode, which begins with xapp-."""
    signing_secret: Secret = Secret("")
    """The secret with which Slack signs its calls; then Slack calls, and no socket is opened."""
    view: View = View.CHAT
    """The look of its private chat: "agent" if Slack shows the app as an agent."""
    api: str = PUBLIC
    """The address of the Web API, for tests."""

    def __post_init__(self) -> None:
        check_http("api", self.api, PUBLIC)
        if self.token != LEFT and not self.token.reveal().startswith("xoxb-"):
            raise Invalid("token", "it isn't a bot's token", "It begins with xoxb-; see OAuth & Permissions.")
        app, signing = self.app_token, self.signing_secret
        if app not in (LEFT, Secret("")) and not app.reveal().startswith("xapp-"):
            raise Invalid("app_token", "it isn't an app's token", "It begins with xapp-; see Basic Information.")
        if Secret("") == app == signing:
            fix = "Give app_token for Socket Mode, or signing_secret if Slack calls this Segue."
            raise Invalid("app_token", "there is no way in", fix)

    @property
    def dm_threads(self) -> DmThreads | None:
        """In the agent view every message begins a thread: it isn't about what the last one was about."""
        return DmThreads.FRESH if self.view is View.AGENT else None

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked."""
        make = _MAKE + quote(json.dumps(MANIFEST, separators=(",", ":")), safe=",:/")
        return (
            SetupQuestion(
                "token",
                f"Make the app: open {make}\nand click Create, then Install to Workspace.\n"
                "The Bot User OAuth Token, under OAuth & Permissions (xoxb-...)",
                secret=True,
            ),
            SetupQuestion(
                "app_token",
                "The app-level token with the scope connections:write, under Basic Information\n"
                "(xapp-...; empty: Slack calls this Segue)",
                secret=True,
                default="",
            ),
            SetupQuestion(
                "signing_secret",
                "The signing secret, under Basic Information (empty, if you gave an app-level token)",
                secret=True,
                default="",
            ),
            SetupQuestion(
                "view", 'How Slack shows it: "agent", as the link above makes it, or "chat"', default="agent"
            ),
            SetupQuestion("api", "The address of the Web API (empty: Slack's own)", default=""),
        )

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask Slack whose token it is and what it may do."""
        keys = cls._of(answers)
        async with _calling(keys.token, keys.api) as api:
            me, has = await api.scopes()
            missing = [scope for scope in SCOPES if has is not None and scope not in has]
        if missing:
            fix = "Add it under OAuth & Permissions, install the app again, and give the new token."
            raise Invalid("token", f"the app has no scope {', '.join(missing)}", fix)
        secrets = {"token": keys.token}
        if keys.app_token.reveal():
            secrets["app_token"] = keys.app_token
            await _check_socket(keys)
        else:
            secrets["signing_secret"] = keys.signing_secret
        name, team = str(me.get("user") or "segue"), str(me.get("team_id") or "")
        said = f"The app is @{name} in {me.get('team')}, and has every scope that it needs."
        # Only who listens to a socket can wait for somebody to write.
        link = f"https://slack.com/app_redirect?channel={me.get('user_id')}&team={team}"
        written = {"view": str(keys.view), **({"api": keys.api} if keys.api != PUBLIC else {})}
        return Added(name, said, written, secrets, link=link if "app_token" in secrets else "")

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Listen until a person writes in private."""
        keys = cls._of(answers)
        while True:
            async with _calling(keys.app_token, keys.api) as app, opened(app) as socket:
                async for envelope in socket.envelopes():
                    await socket.acknowledge(envelope)
                    event = _private(envelope)
                    if event is not None and event.ts > after:
                        return FoundOwner(event.user, event.channel, await cls._name(keys, event.user), event.ts)

    @classmethod
    async def acknowledge(cls, answers: Mapping[str, str], cursor: str) -> None:
        """Do nothing: what was read was acknowledged when it came."""
        del answers, cursor

    @classmethod
    async def _name(cls, keys: Self, user: str) -> str:
        async with _calling(keys.token, keys.api) as api:
            known = (await api.call("users.info", user=user)).get("user") or {}
        return f"{known.get('real_name') or known.get('name') or user} ({user})"

    @classmethod
    def _of(cls, answers: Mapping[str, str]) -> Self:
        secrets = {key: Secret(answers.get(key, "").strip()) for key in ("token", "app_token", "signing_secret")}
        view = answers.get("view", "").strip() or View.AGENT
        if view not in tuple(View):
            raise Invalid("view", f"{view!r} is no view", 'Write "agent" or "chat".')
        return cls(**secrets, view=View(view), api=(answers.get("api") or PUBLIC).rstrip("/"))

    async def greet(self, account: str, user: str) -> str:
        """Say hello in the private chat."""
        del account
        async with _calling(self.token, self.api) as api:
            try:
                await api.call("chat.postMessage", channel=user, text=_HELLO)
            except SendNever as error:
                return f"Slack didn't let me say hello: {error}"
        return "Said hello to you on Slack."

    def adapter(self, account: str, files: Files, pace: Pace = Pace()) -> Slack:  # noqa: B008 -- frozen
        """The adapter for this account: it opens a socket, unless Slack calls."""
        base = self.api.rstrip("/")
        api, app = Api(self.token, base), Api(self.app_token, base)
        if self.app_token.reveal():
            return Slack(account, api, app, files, view=self.view, pace=pace)
        return SlackByEvents(account, api, self.signing_secret, files, view=self.view, pace=pace)


async def _check_socket(keys: SlackAccount) -> None:
    async with _calling(keys.app_token, keys.api) as api:
        try:
            await api.call("apps.connections.open")
        except SendNever as error:
            fix = "Make one under Basic Information with the scope connections:write, and turn Socket Mode on."
            raise Invalid("app_token", str(error), fix) from error


def _private(envelope: Json) -> Event | None:
    """What a person wrote to the app alone, if that is what happened."""
    try:
        event: Event = decode(envelope.get("payload"), Callback).event
    except Invalid:
        return None
    return event if event.type == "message" and event.spoken and event.channel.startswith("D") else None


@asynccontextmanager
async def _calling(token: Secret, base: str) -> AsyncIterator[Api]:
    api = Api(token, base)
    try:
        with connecting():
            yield api
    finally:
        await api.close()
