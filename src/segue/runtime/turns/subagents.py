"""The sub-agents of a turn: what they said and did, as the sessions that are written with its end."""

from segue.core.contracts.agents import SubAgent
from segue.core.contracts.database import Ids
from segue.core.lanes import clean_name
from segue.core.messages import Sent, Text
from segue.core.transcripts import GATEWAY, Author, Draft, Role
from segue.core.turns import Beneath, Run
from segue.core.values import SessionId
from segue.runtime.turns.said import Said


class SubAgents:
    """Those of a turn that runs."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[SubAgent, list[str | Said]]] = {}
        """By id: what was last told of each, and what it was asked and said in turn."""

    def add(self, told: SubAgent) -> None:
        """One thing more."""
        last, talk = self._known.get(told.id, (told, list[str | Said]()))
        self._known[told.id] = told if told.name else last, talk
        if isinstance(told.part, Sent):
            talk.append(told.part.text)
            return
        if not talk or isinstance(talk[-1], str):
            talk.append(Said(()))
        assert isinstance(talk[-1], Said)  # noqa: S101 -- it was put there
        talk[-1].add(told.part)

    def sessions(self, run: Run, agent: str, ids: Ids) -> tuple[Beneath, ...]:
        """Their sessions, each after the one of whoever gave it the work."""
        made: dict[str, SessionId] = {}
        found: list[Beneath] = []
        for id, (last, talk) in self._known.items():
            made[id] = SessionId(ids())
            drafts = tuple(
                Draft(GATEWAY, (Text(said),)) if isinstance(said, str) else Draft(_author(agent), tuple(said.parts))
                for said in talk
            )
            found.append(Beneath(made[id], made.get(last.above, run.held.session), clean_name(last.name), drafts))
        return tuple(found)


def _author(agent: str) -> Author:
    return Author(Role.AGENT, name=agent)
