"""The command that names a home: /home."""

from segue.changes.commands.request import Answer, Request, counted
from segue.changes.places import addresses
from segue.core.contracts.database import Ids, Transaction
from segue.core.lanes import Audience, Place


class HomeCommand:
    """Names the place in which it is typed the home of its account."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def home(self, request: Request) -> Transaction[Answer]:
        at, person = request.arrival.place, request.met.person
        place = Place(request.lane.address, at.kind, at.name, at.topic)
        yield from addresses.set_home(place, person.id, self._ids(), request.at)
        platform = place.address.platform
        if place.audience is Audience.ONE:
            return Answer(f"This is the home on {platform} now. Only you can read what comes here.")
        others = len((yield from addresses.people(place.address)).keys() - {person.id})
        known = counted(others, "other person has", "other people have")
        return Answer(
            f"This is the home on {platform} now. Everyone in {place.name or 'this chat'} can read what comes here; "
            f"{known} spoken here so far."
        )
