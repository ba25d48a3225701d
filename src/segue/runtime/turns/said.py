"""An agent's words so far, put together from pieces."""

from collections.abc import Sequence
from types import UnionType

from segue.core.messages import Notice, Part, Parts, Reasoning, Text, ToolCall, ToolResult


class Said:
    """The words of an agent so far in a turn; pieces are joined only when somebody looks."""

    def __init__(self, journal: tuple[Part, ...]) -> None:
        self._parts: list[Part] = list(journal)
        self._pieces: list[str] = []
        """Pieces of the text that the last part is to be."""
        self._kept = len(journal)
        """Parts before which nothing has to be journaled any more."""
        self._known = {part.id for part in journal if isinstance(part, ToolCall)}
        """Calls that are journaled."""

    def add(self, part: Part) -> None:
        """One thing more; pieces of text that follow each other are one text."""
        if not isinstance(part, Text):
            self.parts.append(part)
            self._pieces = []
        elif not self._pieces:
            self._parts.append(part)
        if isinstance(part, Text):
            self._pieces.append(part.text)

    @property
    def parts(self) -> list[Part]:
        """All of it, in order."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
            self._parts[-1] = Text(self._pieces[0])
        return self._parts

    @property
    def text(self) -> str:
        """The words a person reads."""
        return "\n\n".join(p.text.strip() for p in self.parts if isinstance(p, Text | Notice) and p.text.strip())

    def done(self, result: ToolResult) -> Parts:
        """A result as it is journaled: with its call, and the thoughts before that, if they aren't yet."""
        return (*self._call(result.id, Reasoning), result)

    def put_off(self, calls: Sequence[str]) -> Parts:
        """Calls that wait, as they are journaled: their model isn't asked again, so with its words."""
        return tuple(part for id in calls for part in self._call(id, Reasoning | Text))

    def _call(self, id: str, with_it: type[Part] | UnionType) -> Parts:
        """A call and what stands before it, unless it is journaled: providers refuse a call without its thoughts."""
        parts = self.parts
        at = next((n for n in reversed(range(len(parts))) if _calls(parts[n], id)), None)
        if at is None or id in self._known:
            return ()
        self._known.add(id)
        found = [part for part in parts[self._kept : at] if isinstance(part, with_it)]
        self._kept = max(self._kept, at)
        return (*found, parts[at])


def _calls(part: Part, id: str) -> bool:
    return isinstance(part, ToolCall) and part.id == id
