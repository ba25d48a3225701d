"""An account of the Signal adapter, as the host writes it in segue.toml."""

import re
from collections.abc import Callable, Mapping
from typing import Self

from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import met
from segue.adapters.signal.adapter import Signal
from segue.adapters.signal.daemon import DEFAULT, Daemon
from segue.adapters.signal.incoming import Hears
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.values import Value
from segue.errors import Disconnected, Invalid, SendNever, SendUnsure

_NUMBER = re.compile(r"\+[1-9][0-9]{2,14}")
_DEVICE = "Segue"
_SCAN = 90.0
"""Seconds for which a code is shown before the next: Signal gives it up after a minute or so."""
_CODES = 5


class SignalAccount(Value, frozen=True):
    """The keys of a table [signal.ACCOUNT]."""

    number: str
    """The account's phone number, such as +491510000000."""
    daemon: str = DEFAULT
    """The address of the signal-cli daemon."""
    hears: Hears = Hears.EVERYBODY
    """Those whose messages are for the agent: everybody's, or the notes to self of the person whose account it is."""

    def __post_init__(self) -> None:
        if not _NUMBER.fullmatch(self.number):
            raise Invalid("number", f'"{self.number}" is no phone number', "Write it like +491510000000.")
        check_http("daemon", self.daemon, DEFAULT)

    @property
    def servers(self) -> dict[str, str]:
        """The daemon."""
        return {"daemon": self.daemon}

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked."""
        return (
            SetupQuestion("daemon", f"The address of your signal-cli daemon (empty: {DEFAULT})", default=""),
            SetupQuestion("number", "The phone number, if the daemon has it (empty: link one by a code)", default=""),
            SetupQuestion("hears", "Is it the agent's own number, or yours? (agent/mine)", default="agent"),
        )

    @classmethod
    async def scanned(cls, answers: Mapping[str, str], show: Callable[[str], None]) -> Mapping[str, str]:
        """The answers with the account's number: the only one that the daemon has, or one that is linked now."""
        _hears(answers)
        if answers.get("number", "").strip():
            return answers
        async with calling(Daemon(_daemon(answers))) as daemon:
            await daemon.version()
            numbers = await daemon.accounts()
            if numbers is None:
                raise Invalid("number", "the daemon was started for one account alone", "Name its number.")
            if len(numbers) > 1:
                raise Invalid("number", f"the daemon has {', '.join(numbers)}", "Name one of them.")
            return {**answers, "number": numbers[0] if numbers else await _link(daemon, show)}

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask the daemon whether it has the account; to listen would make it forget what waits."""
        keys = cls._of(answers)
        async with calling(Daemon(keys.daemon, keys.number)) as daemon:
            version = await daemon.version()
            numbers = await daemon.accounts()
            if numbers is not None and keys.number not in numbers:
                raise daemon.stranger()
        given = {"number": keys.number, "daemon": keys.daemon if keys.daemon != DEFAULT else ""}
        says = f"signal-cli {version} has {keys.number}."
        if keys.hears is Hears.NOTES:
            given["hears"] = keys.hears.value
            says += " Only what you write in Note to Self is for the agent."
        return Added("main", says, given, link=f"https://signal.me/#p/{keys.number}")

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Listen until a person writes in private; the daemon has forgotten what came before them."""
        return await met(cls._of(answers).adapter, after)

    async def greet(self, account: str, user: str) -> str:
        """Say hello."""
        del account
        async with calling(Daemon(self.daemon, self.number)) as daemon:
            await daemon.call("send", recipient=[user], message="Hello. Write to me, or type /help.")
        return "Said hello to you on Signal."

    def adapter(self, account: str, files: Files) -> Signal:
        """The adapter for this account."""
        return Signal(account, Daemon(self.daemon, self.number), self.number, files, self.hears)

    @classmethod
    def _of(cls, answers: Mapping[str, str]) -> Self:
        return cls(answers.get("number", "").strip(), _daemon(answers), _hears(answers))


async def _link(daemon: Daemon, show: Callable[[str], None]) -> str:
    """Link the daemon to the phone that scans a code; returns its number."""
    for _ in range(_CODES):
        code = str((await daemon.call("startLink"))["deviceLinkUri"])
        show(code)
        try:
            linked = await daemon.call("finishLink", _SCAN, deviceLinkUri=code, deviceName=_DEVICE)
            return str(linked["number"])
        except SendUnsure:
            """Signal has given the code up."""
        except SendNever as error:
            if "timed out" not in str(error):
                raise
    raise Disconnected("Nobody scanned a code. In Signal: Settings, Linked devices, Link new device.")


def _daemon(answers: Mapping[str, str]) -> str:
    url = answers.get("daemon", "").strip() or DEFAULT
    check_http("daemon", url, DEFAULT)
    return url.rstrip("/")


def _hears(answers: Mapping[str, str]) -> Hears:
    said = answers.get("hears", "").strip().casefold() or "agent"
    known = {"agent": Hears.EVERYBODY, "mine": Hears.NOTES} | {str(one): one for one in Hears}
    if said not in known:
        raise Invalid("hears", f'"{said}" is neither', 'Say "agent" or "mine".')
    return known[said]
