"""What the built-in agent knows: the words of a transcript, and whose they were."""

import json
import re
from collections import Counter
from collections.abc import Sequence

from segue.core.contracts.agents import Work
from segue.core.messages import Parts, Summary, plain_text
from segue.core.transcripts import Author, Draft, Entry, Role

_SHOWN = 80
_KEPT = re.compile(r'(?P<name>.*) said: (?P<text>"(?:[^"\\]|\\.)*")')


class Memory:
    """All that was said before a message, and who asks."""

    def __init__(self, work: Work, before: Sequence[Draft], asker: Author) -> None:
        self.work = work
        self.asker = asker
        items: tuple[Entry | Draft, ...] = (*work.transcript, *before)
        said = [(item.author, item.parts) for item in items]
        self.summed_up = any(isinstance(part, Summary) for _, parts in said for part in parts)
        self.people = [
            told
            for author, parts in said
            for told in (
                [(author, plain_text(parts))] if author.role is Role.PERSON else _recalled(parts, author, asker)
            )
        ]
        """What people said, the oldest first; of what was summed up, as much as the summary kept."""
        self.mine = sum(author.role is Role.AGENT for author, _ in said)
        """How often the agent has spoken."""
        self.met = bool(self.mine or before)
        """Whether the agent has introduced itself."""

    @property
    def own(self) -> list[str]:
        """What the person who asks said."""
        return [text for author, text in self.people if author.person == self.asker.person]

    def of(self, name: str) -> list[str]:
        """What the people of a name said."""
        return [text for author, text in self.people if author.name.casefold() == name.casefold()]

    @property
    def names(self) -> list[str]:
        """Who spoke here, in the order in which they did."""
        asking = [self.asker] if self.asker.role is Role.PERSON else []
        return list(dict.fromkeys(a.name or "somebody" for a in (*(author for author, _ in self.people), *asking)))

    @property
    def shared(self) -> bool:
        """Whether several people talk here."""
        asking = [self.asker.person] if self.asker.role is Role.PERSON else []
        return len({*asking, *(author.person for author, _ in self.people)}) > 1

    @property
    def called(self) -> str:
        """The name with which to begin an answer where several people talk."""
        return f"{self.asker.name}, " if self.shared and self.asker.name else ""

    def count(self) -> str:
        """How many messages there are, and whose."""
        total = len(self.people) + self.mine
        if not total:
            return "a summary of what was said" if self.summed_up else "nothing from before this message"
        if self.shared:
            by_name = Counter(author.name or "somebody" for author, _ in self.people)
            whose = ", ".join(f"{n} from {name}" for name, n in by_name.items())
        else:
            whose = f"{len(self.people)} of yours"
        older = ", after a summary of what came before" if self.summed_up else ""
        return f"{total} {'message' if total == 1 else 'messages'}: {whose} and {self.mine} of mine{older}"


def sum_up(work: Work) -> str:
    """What people asked to be remembered, and what they said first and last: a line each, read again later."""
    memory = Memory(work, (), Author(Role.GATEWAY))
    kept = [
        (author, text)
        for n, (author, text) in enumerate(memory.people)
        if n in {0, len(memory.people) - 1} or text.casefold().startswith("remember ")
    ]
    return "\n".join(f"{author.name} said: {json.dumps(text, ensure_ascii=False)}" for author, text in kept)


def _recalled(parts: Parts, author: Author, asker: Author) -> list[tuple[Author, str]]:
    """The messages that a summary kept; it knows people by their names alone."""
    if author.role is not Role.GATEWAY:
        return []
    lines = [line for part in parts if isinstance(part, Summary) for line in part.text.splitlines()]
    found = [_KEPT.fullmatch(line) for line in lines]
    return [
        (Author(Role.PERSON, asker.person if match["name"] == asker.name else match["name"], match["name"]), text)
        for match in found
        if match and isinstance(text := json.loads(match["text"]), str)
    ]


def quoted(text: str) -> str:
    """A text in quotes, on one line and not too long."""
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= _SHOWN else f"“{line[: _SHOWN - 1].rstrip()}…”"


def ending(text: str) -> str:
    """A text in quotes at the end of a sentence, which has one full stop."""
    end = quoted(text)
    return end if end[-2] in ".!?…" else f"{end}."
