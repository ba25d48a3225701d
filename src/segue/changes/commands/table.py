"""The table of all commands, and the help that is made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from segue.changes.commands.consent import Agreeing
from segue.changes.commands.handoff import Handing
from segue.changes.commands.home import Homing
from segue.changes.commands.request import Answer, Request, Run
from segue.changes.commands.schedules import Timing
from segue.changes.commands.sessions import Moving
from segue.changes.commands.transcript import Telling
from segue.changes.commands.views import Looking
from segue.changes.exchange.planner import Planner
from segue.changes.people.linking import Linking
from segue.changes.places.destinations import Destinations
from segue.changes.places.homes import Homes
from segue.core import commands
from segue.core.contracts.adapters import Adapter
from segue.core.contracts.database import Ids, Transaction
from segue.core.settings import GatewaySettings
from segue.database.transactions import attempt
from segue.errors import Invalid, Refused


class Commands:
    """Runs commands by their table."""

    def __init__(
        self,
        settings: GatewaySettings,
        ids: Ids,
        adapters: Mapping[tuple[str, str], Adapter],
        problems: Callable[[], Sequence[str]],
        me: Callable[[], str],
    ) -> None:
        self._linking = Linking(settings, ids)
        limits = settings.routing.limits
        self.agreeing = Agreeing(limits, Homes(settings.accounts), ids)
        self.handing = Handing(Destinations(adapters, settings, me), self.agreeing, settings.handoff, ids)
        self._table: dict[str, Run] = {
            "help": self._help,
            "link": self._link,
            **self.agreeing.table,
            **self.handing.table,
            **Homing(ids).table,
            **Looking(problems, settings.routing.rules).table,
            **Moving(self.agreeing, ids).table,
            **Telling(limits, settings.routing.rules, ids).table,
            **Timing(Planner(adapters, settings), ids).table,
        }

    @property
    def known(self) -> list[commands.Spec]:
        """What can be typed."""
        return [spec for spec in commands.SPECS if spec.name in self._table]

    def run(self, request: Request) -> Transaction[Answer]:
        """Run a command that its person may run; a refusal is an answer, and changes nothing."""
        run = self._table.get(request.command.name)
        if run is None:
            return Answer(f"/{request.command.name} isn't there yet. /help lists what is.")
        try:
            return (yield from attempt(run(request)))
        except (Refused, Invalid) as error:
            return Answer(str(error))

    def _help(self, request: Request) -> Transaction[Answer]:
        yield from ()
        asked = commands.BY_NAME.get(request.rest.lstrip("/").casefold())
        if asked is not None and asked in self.known:
            also = f" Also: {', '.join(f'/{alias}' for alias in asked.aliases)}." if asked.aliases else ""
            return Answer(_line(asked) + also)
        if request.rest:
            return Answer("There is no such command. /help lists what there is.")
        return Answer("\n".join(map(_line, self.known)))

    def _link(self, request: Request) -> Transaction[Answer]:
        linked = yield from self._linking.link(
            request.arrival, request.met, request.lane, request.standing, request.rest, request.at
        )
        return Answer(linked.text)


def _line(spec: commands.Spec) -> str:
    return f"/{spec.name} {spec.usage}".rstrip() + f": {spec.does}"
