"""The built-in agent's memory: the texts of a transcript, by author."""

import json
import re
from collections import Counter
from collections.abc import Sequence

from segue.core.contracts.agents import Work
from segue.core.messages import Parts, Summary, in_words
from segue.core.transcripts import Author, Draft, Entry, Role

_SHOWN = 80
_KEPT = re.compile(r'(?P<name>.*) said: (?P<text>"(?:[^"\\]|\\.)*")')


class Memory:
    """The messages before the current one, and the person who asks."""

    def __init__(self, work: Work, before: Sequence[Draft], asker: Author) -> None:
        self.work = work
        self.asker = asker
        items: tuple[Entry | Draft, ...] = (*work.transcript, *before)
        said = [(item.author, item.parts) for item in items]
        self.summed_up = any(isinstance(part, Summary) for _, parts in said for part in parts)
        self.people = [message for author, parts in said for message in _of_people(author, parts, asker)]
        """People's messages with their authors, oldest first, including those that a summary kept."""
        self.own = [text for author, text in self.people if author.person == asker.person]
        """The messages of the person who asks."""
        self.mine = sum(author.role is Role.AGENT for author, _ in said)
        """The number of the agent's own messages."""
        self.met = bool(self.mine or before)
        """Whether the agent has introduced itself."""
        asking = {asker.person} if asker.role is Role.PERSON else set()
        self.shared = len(asking | {author.person for author, _ in self.people}) > 1
        """Whether several people talk here."""
        self.you = f"{asker.name}, you" if self.shared and asker.name else "You"
        """The start of a sentence about the person who asks. Where several people talk, it has their name."""

    def count(self) -> str:
        """Describe the number of messages and their authors."""
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
    """Summarize the first and last message and those to remember, in lines that `Memory` can read."""
    memory = Memory(work, (), Author(Role.GATEWAY))
    kept = [
        (author, text)
        for n, (author, text) in enumerate(memory.people)
        if n in {0, len(memory.people) - 1} or text.casefold().startswith("remember ")
    ]
    return "\n".join(f"{author.name} said: {json.dumps(text, ensure_ascii=False)}" for author, text in kept)


def _of_people(author: Author, parts: Parts, asker: Author) -> list[tuple[Author, str]]:
    """Return a person's message, or the messages in a summary.

    A summary identifies people by name only.
    """
    if author.role is Role.PERSON:
        return [(author, in_words(parts))]
    if author.role is not Role.GATEWAY:
        return []
    lines = [line for part in parts if isinstance(part, Summary) for line in part.text.splitlines()]
    found = [_KEPT.fullmatch(line) for line in lines]
    return [
        (Author(Role.PERSON, asker.person if match["name"] == asker.name else match["name"], match["name"]), text)
        for match in found
        if match and isinstance(text := json.loads(match["text"]), str)
    ]


def ending(text: str) -> str:
    """Quote a text at the end of a sentence: on one line, shortened, with one full stop."""
    line = " ".join(text.split())
    line = line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1].rstrip()}…"
    return f"“{line}”" if line[-1:] in set(".!?…") else f"“{line}”."
