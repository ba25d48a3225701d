"""What an agent has said so far in a turn."""

from __future__ import annotations

from segue.core.messages import Notice, Part, Reasoning, Text, ToolCall


class Said:
    """What an agent has said so far in a turn."""

    def __init__(self, journal: tuple[Part, ...]) -> None:
        self.parts: list[Part] = list(journal)
        self._open = False
        self._thought = len(journal)

    def add(self, part: Part) -> None:
        """One thing more; pieces of text that follow each other are one text."""
        last = self.parts[-1] if self.parts else None
        if isinstance(part, Text) and isinstance(last, Text) and self._open:
            self.parts[-1] = Text(last.text + part.text)
        else:
            self.parts.append(part)
        self._open = isinstance(part, Text)

    @property
    def text(self) -> str:
        """The words a person reads."""
        return "\n\n".join(p.text.strip() for p in self.parts if isinstance(p, Text | Notice) and p.text.strip())

    def call(self, id: str) -> ToolCall | None:
        """The call that a result answers."""
        return next((p for p in reversed(self.parts) if isinstance(p, ToolCall) and p.id == id), None)

    def thoughts(self, call: ToolCall) -> list[Reasoning]:
        """What was thought before a call and isn't journaled yet: providers refuse a call without its thoughts."""
        at = next(n for n in reversed(range(len(self.parts))) if self.parts[n] is call)
        found = [part for part in self.parts[self._thought : at] if isinstance(part, Reasoning)]
        self._thought = max(self._thought, at)
        return found
