"""The table of all commands, and the help that is made from it."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from segue.changes.commands.agents import AgentCommand
from segue.changes.commands.consent import Consents
from segue.changes.commands.forget import ForgetCommand
from segue.changes.commands.handoff import HandoffCommand, HomeCommand
from segue.changes.commands.notes import NotesCommand
from segue.changes.commands.people import LinkCommand, PeopleCommands
from segue.changes.commands.request import Answer, Request
from segue.changes.commands.schedules import ScheduleCommands
from segue.changes.commands.sessions import SessionCommands
from segue.changes.commands.transcript import TranscriptCommands
from segue.changes.commands.views import ViewCommands
from segue.changes.exchange.planner import Planner
from segue.changes.places.addresses import Homes
from segue.changes.places.destinations import Destinations
from segue.changes.places.ways import Ways
from segue.core import commands
from segue.core.accounts import Health
from segue.core.commands import Means, ShownTo
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
        health: Callable[[], Mapping[str, Health]] = dict,
        agents: Sequence[str] = ("",),
    ) -> None:
        limits, rules = settings.routing.limits, settings.routing.rules
        self._ways = Ways(adapters, rules)
        consents = Consents(limits, Homes(settings.accounts), ids)
        self.handoffs = HandoffCommand(Destinations(adapters, settings, me, health), consents, settings.handoff, ids)
        groups = (
            self,
            consents,
            self.handoffs,
            HomeCommand(ids),
            AgentCommand(agents, settings),
            ForgetCommand(consents, rules, ids),
            LinkCommand(settings, consents, ids),
            NotesCommand(),
            PeopleCommands(settings, ids),
            ViewCommands(problems, settings, consents, adapters),
            SessionCommands(consents, ids),
            TranscriptCommands(consents, limits, rules, ids),
            ScheduleCommands(Planner(adapters, settings), ids),
        )
        self._table: dict[str, Callable[[Request], Transaction[Answer]]] = {
            spec.name: next(getattr(group, spec.name) for group in groups if hasattr(group, spec.name))
            for spec in commands.SPECS
        }

    def run(self, request: Request) -> Transaction[Answer]:
        """Run a command that its person may run; a refusal is an answer, and changes nothing."""
        arrival = request.arrival
        user, person = arrival.speaker.identity.user, request.met.person.id
        alone = yield from self._ways.alone(arrival.place, request.lane, person, user, arrival.message)
        request = replace(request, alone=alone)
        try:
            answer = yield from attempt(self._table[request.command.name](request))
        except (Refused, Invalid) as error:
            answer = Answer(str(error))
        return replace(answer, to=request.alone) if request.command.shown_to is ShownTo.ASKER else answer

    def help(self, request: Request) -> Transaction[Answer]:
        yield from ()
        if request.command.means is Means.FOLLOWED:
            return Answer(_greeting(request.met.person.name))
        asked = commands.BY_NAME.get(request.rest.lstrip("/").casefold())
        if asked is not None:
            also = f" Also: {', '.join(f'/{alias}' for alias in asked.aliases)}." if asked.aliases else ""
            return Answer(_line(asked) + also)
        if request.rest:
            return Answer("There is no such command. /help lists what there is.")
        groups = ("\n".join([f"{name}:", *map(_line, specs)]) for name, specs in commands.GROUPS.items())
        return Answer("\n\n".join(groups))


def _greeting(name: str) -> str:
    """The two lines for somebody who pressed Start."""
    return (
        f"Hello{f', {name}' if name else ''}. Write to me, and I answer here.\n"
        "/new begins another conversation, /help shows all that you can type."
    )


def _line(spec: commands.Spec) -> str:
    return f"/{spec.name} {spec.usage}".rstrip() + f": {spec.does}"
