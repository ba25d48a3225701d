"""An account of the Slack adapter, as the host writes it in segue.toml."""

import json
from collections.abc import Mapping
from importlib.resources import files as packaged
from typing import Any
from urllib.parse import quote

from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import greeted, keys_of, met, written
from segue.adapters.slack.adapter import Slack, SlackByEvents
from segue.adapters.slack.api import PUBLIC, Api
from segue.adapters.slack.incoming import View
from segue.adapters.slack.outgoing import Pace
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.settings import DmThreads
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid, SendNever

MANIFEST: dict[str, Any] = json.loads((packaged(__package__) / "manifest.json").read_text())
"""The app, as Slack makes it from one click."""
SCOPES: list[str] = MANIFEST["oauth_config"]["scopes"]["bot"]
"""What the app may do."""
_MAKE = "https://api.slack.com/apps?new_app=1&manifest_json="


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
        make = _MAKE + quote(json.dumps(MANIFEST, separators=(",", ":")), safe=",:/")
        bot = f"Make the app: open {make}\nand click Create, then Install to Workspace.\n"
        bot += "The Bot User OAuth Token, under OAuth & Permissions (xoxb-...)"
        app = "The app-level token with the scope connections:write, under Basic Information\n"
        app += "(xapp-...; empty: Slack calls this Segue)"
        signing = "The signing secret, under Basic Information (empty, if you gave an app-level token)"
        view = 'How Slack shows it: "agent", as the link above makes it, or "chat"'
        return (
            SetupQuestion("token", bot, secret=True),
            SetupQuestion("app_token", app, secret=True, default=""),
            SetupQuestion("signing_secret", signing, secret=True, default=""),
            SetupQuestion("view", view, default="agent"),
            SetupQuestion("api", "The address of the Web API (empty: Slack's own)", default=""),
        )

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask Slack whose token it is and what it may do."""
        keys = keys_of(cls, answers)
        async with calling(keys.calls) as api:
            me, has = await api.scopes()
            if missing := [scope for scope in SCOPES if has is not None and scope not in has]:
                fix = "Add it under OAuth & Permissions, install the app again, and give the new token."
                raise Invalid("token", f"the app has no scope {', '.join(missing)}", fix)
            try:
                if keys.listens:
                    await api.socket()
            except SendNever as error:
                fix = "Make one under Basic Information with the scope connections:write, and turn Socket Mode on."
                raise Invalid("app_token", str(error), fix) from error
        name = str(me.get("user") or "segue")
        said = f"The app is @{name} in {me.get('team')}, and has every scope that it needs."
        # Only who listens to a socket can wait for somebody to write.
        link = f"https://slack.com/app_redirect?channel={me.get('user_id')}&team={me.get('team_id') or ''}"
        return Added(name, said, *written(keys), link=link if keys.listens else "")

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        return await met(keys_of(cls, answers).adapter, after)

    @property
    def listens(self) -> bool:
        """Whether a socket is opened; else Slack calls."""
        return bool(self.app_token.reveal())

    @property
    def calls(self) -> Api:
        return Api(self.token, self.api, self.app_token)

    async def greet(self, account: str, user: str) -> str:
        del account
        hello = {"channel": user, "text": "Hello. Write to me here, or type /segue help."}
        return await greeted("Slack", self.calls, lambda api: api.call("chat.postMessage", **hello))

    def adapter(self, account: str, files: Files, pace: Pace = Pace()) -> Slack:  # noqa: B008 -- frozen
        """The adapter for this account: it opens a socket, unless Slack calls."""
        if self.listens:
            return Slack(account, self.calls, files, view=self.view, pace=pace)
        return SlackByEvents(account, self.calls, self.signing_secret, files, view=self.view, pace=pace)
