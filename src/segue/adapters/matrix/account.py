"""A Matrix account, as the host writes it in segue.toml."""

import re
from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta

from segue.adapters.matrix.adapter import Matrix
from segue.adapters.matrix.ciphers import is_installed
from segue.adapters.matrix.content import message
from segue.adapters.matrix.homeserver import Homeserver
from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.rates import Bucket
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, SetupQuestion
from segue.core.values import Secret, Value
from segue.errors import Invalid, SendNever

_USER = re.compile(r"@[^:\s]+:\S+")
_NO_ENCRYPTION = " For encrypted rooms, which many clients make of private chats, run `segue install matrix`."


class MatrixAccount(Value, frozen=True):
    """The keys of a table [matrix.ACCOUNT]."""

    homeserver: str
    """The address of its client API, such as "https://matrix.example.org"."""
    user: str
    """The bot's own id, such as "@segue:example.org"."""
    token: Secret
    """Its access token; `segue add matrix` gets one for a password."""
    inviters: tuple[str, ...] = ()
    """Who else may bring the bot into a room of several people; anybody may begin a private chat."""
    allow: tuple[str, ...] = ()
    """Who may talk to it in private may also invite it."""
    public: bool = False
    """Everybody may."""
    rate: Annotated[float, Meta(gt=0, le=1000)] = 0.2
    """Messages a second that the homeserver takes from one user for long; Synapse's own default."""
    burst: Annotated[int, Meta(ge=1, le=100_000)] = 10
    """Messages that it takes at once."""

    recovery: Secret = Secret("")
    """The recovery key, or phrase, of an account whose keys another client made: so its device is vouched for."""
    password: Secret = Secret("")
    """Its password, for homeservers that want it before a device is vouched for; Synapse doesn't."""

    def __post_init__(self) -> None:
        check_http("homeserver", self.homeserver, "https://matrix.example.org")
        for key, user in (("user", self.user), *(("inviters", one) for one in self.inviters)):
            if not _USER.fullmatch(user):
                raise Invalid(key, f"{user!r} is not a user's id", 'Write it whole, such as "@segue:example.org".')

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        return (
            SetupQuestion("homeserver", "The address of the homeserver, such as https://matrix.example.org"),
            SetupQuestion("user", "The bot's own id there, such as @segue:example.org"),
            SetupQuestion("password", "Its password (empty: you have a token)", secret=True, default=""),
            SetupQuestion("token", "Its access token (empty: you gave the password)", secret=True, default=""),
            SetupQuestion("inviters", "Who else may bring it into rooms with others (ids, empty: nobody)", default=""),
        )

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Log in, and ask the homeserver whose token it is."""
        url, user = answers["homeserver"].strip().rstrip("/"), answers["user"].strip()
        password, token = answers.get("password", ""), Secret(answers.get("token", "").strip())
        if not password and not token.reveal():
            raise Invalid("token", "there is neither a password nor a token", "Give one of the two.")
        keys = cls(url, user, token, tuple(answers.get("inviters", "").replace(",", " ").split()))
        async with calling(Homeserver(url, user, token, Secret(password))) as server:
            try:
                if not token.reveal():
                    token = await server.log_in()
                owner, _ = await server.whoami()
            except SendNever as error:
                raise Invalid("password", str(error), "See whether the id and the password are right.") from error
        if owner != user:
            raise Invalid("user", f"the token is {owner}'s, not {user}'s", "Put one of the two right.")
        said = f"The bot is {owner}, and its homeserver answers." + ("" if is_installed() else _NO_ENCRYPTION)
        name, known = user[1:].partition(":")[0], {"homeserver": url, "user": user}
        return Added(name, said, known, {"token": token}, users={"inviters": keys.inviters})

    async def greet(self, account: str, user: str) -> str:
        """Begin a private chat that isn't encrypted, and say hello there."""
        del account
        async with calling(self._server()) as server:
            room = await server.begin_chat(user)
            await server.send(room, "hello", message("Hello. Write to me here, or type /help."))
        return "Said hello to you on Matrix: accept the invitation, and write there. That chat isn't encrypted."

    def adapter(self, account: str, files: Files) -> Matrix:
        return Matrix(account, self._server(), files, self._may_invite, Bucket(self.burst, 1 / self.rate))

    def _server(self) -> Homeserver:
        return Homeserver(self.homeserver, self.user, self.token, self.password, self.recovery)

    def _may_invite(self, user: str) -> bool:
        return self.public or user in self.inviters or user in self.allow
