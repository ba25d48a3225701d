"""The table of all commands, and the help that is made from it."""

from collections.abc import Callable, Mapping, Sequence

from segue.changes.commands.consent import Consents
from segue.changes.commands.handoff import HandoffCommand, HomeCommand
from segue.changes.commands.request import Answer, Request
from segue.changes.commands.schedules import ScheduleCommands
from segue.changes.commands.sessions import SessionCommands
from segue.changes.commands.transcript import TranscriptCommands
from segue.changes.commands.views import ViewCommands
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
    """Runs commands: each by the method of its name, of one of the groups."""

    def __init__(
        self,
        settings: GatewaySettings,
        ids: Ids,
        adapters: Mapping[tuple[str, str], Adapter],
        problems: Callable[[], Sequence[str]],
        me: Callable[[], str],
    ) -> None:
        self._linking = Linking(settings, ids)
        limits, rules = settings.routing.limits, settings.routing.rules
        consents = Consents(limits, Homes(settings.accounts), ids)
        self.handoffs = HandoffCommand(Destinations(adapters, settings, me), consents, settings.handoff, ids)
        groups = (
            self,
            consents,
            self.handoffs,
            HomeCommand(ids),
            ViewCommands(problems, rules),
            SessionCommands(consents, ids),
            TranscriptCommands(limits, rules, ids),
            ScheduleCommands(Planner(adapters, settings), ids),
        )
        self._table: dict[str, Callable[[Request], Transaction[Answer]]] = {
            spec.name: next(getattr(group, spec.name) for group in groups if hasattr(group, spec.name))
            for spec in commands.SPECS
        }

    def run(self, request: Request) -> Transaction[Answer]:
        """Run a command that its person may run; a refusal is an answer, and changes nothing."""
        try:
            return (yield from attempt(self._table[request.command.name](request)))
        except (Refused, Invalid) as error:
            return Answer(str(error))

    def help(self, request: Request) -> Transaction[Answer]:
        yield from ()
        asked = commands.BY_NAME.get(request.rest.lstrip("/").casefold())
        if asked is not None:
            also = f" Also: {', '.join(f'/{alias}' for alias in asked.aliases)}." if asked.aliases else ""
            return Answer(_line(asked) + also)
        if request.rest:
            return Answer("There is no such command. /help lists what there is.")
        return Answer("\n".join(map(_line, commands.SPECS)))

    def link(self, request: Request) -> Transaction[Answer]:
        linked = yield from self._linking.link(
            request.arrival, request.met, request.lane, request.standing, request.rest, request.at
        )
        return Answer(linked.text)


def _line(spec: commands.Spec) -> str:
    return f"/{spec.name} {spec.usage}".rstrip() + f": {spec.does}"
