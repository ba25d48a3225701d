"""The places that Segue itself serves: terminals on this machine and pages in browsers.

Their people watch the transcript, so a reply is there already when it is sent; what is in no transcript is shown to
whoever looks at that lane now.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable

from segue.changes.places import windows
from segue.core.contracts.adapters import Adapter, Connection, Intake
from segue.core.lanes import Address
from segue.core.messages import Delivery, Sending
from segue.core.windows import ACCOUNT
from segue.runtime.replica import Pause, Replica
from segue.runtime.retrying import Patient

Show = Callable[[Delivery], None]


class Local:
    """Speaks to the terminals, or the pages, that are open now."""

    account = ACCOUNT
    sending = Sending.KEYED
    connection = Connection.ANY
    largest_file = sys.maxsize
    """It stays in the data folder: a terminal says where, a page fetches it."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self._open: dict[str, dict[object, Show]] = defaultdict(dict)
        self.changed: Callable[[], None] = _nobody
        """Called when a chat is looked at that wasn't before, or not any more."""

    async def run(self, intake: Intake) -> None:
        """Do nothing: windows come by themselves."""

    def fits(self, text: str) -> bool:
        """Say yes: a window shows a text whole."""
        del text
        return True

    async def send(self, delivery: Delivery) -> str:
        """Show a message to everybody who looks at its address."""
        for show in list(self._open[delivery.address.chat].values()):
            show(delivery)
        return delivery.key

    @property
    def chats(self) -> list[str]:
        """Whose terminals or pages are open now."""
        return sorted(chat for chat, open_here in self._open.items() if open_here)

    def watched(self, chat: str) -> bool:
        """Whether anybody looks."""
        return bool(self._open.get(chat))

    def look(self, chat: str, show: Show) -> Callable[[], None]:
        """Somebody opens a window on an address; returns how it is closed."""
        mark = object()
        self._open[chat][mark] = show
        self.changed()

        def close() -> None:
            self._open[chat].pop(mark, None)
            if not self._open[chat]:
                del self._open[chat]
            self.changed()

        return close


def _nobody() -> None:
    """Nobody wants to know."""


class Watched:
    """Writes down which chats somebody looks at here, as soon as that changes."""

    def __init__(self, store: Patient, adapters: Iterable[Adapter], replica: Replica, poll: float) -> None:
        self._store = store
        self._replica = replica
        self._wake = Pause(poll)
        self._local = [adapter for adapter in adapters if isinstance(adapter, Local)]
        for local in self._local:
            local.changed = self._wake.set

    async def run(self) -> None:
        """Tell until cancelled; anew under each id that this replica takes."""
        told: set[Address] = set()
        while True:
            chats = {Address(local.platform, local.account, chat=chat) for local in self._local for chat in local.chats}
            if chats != told:
                await self._store.write(windows.tell, self._replica.id, chats)
                told = chats
            await self._wake.wait()
