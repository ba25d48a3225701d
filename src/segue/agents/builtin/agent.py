"""The built-in agent: answers from the transcript without a model or network, the same way every time.

Things to try, in upper or lower case:

    hello                                  and: help
    what did I say first?                  or: last?
    how many messages do you remember?
    remember SOMETHING                     and later: what do you remember?
    where are we?                          the prompt section about this place
    say SOMETHING                          exactly that
    add 2 and 3                            uses a tool, only once even if the turn is retried
    count to 20 slowly                     streams for five seconds; without "slowly" at once

It repeats any other message, with the one before. It answers a message that arrives meanwhile at the end.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from segue.agents.builtin.memory import Memory, ending, sum_up
from segue.core.contracts.agents import AgentState, Event, SummedUp, Usage, Work
from segue.core.messages import Text, ToolCall, ToolResult, in_words, plain_text
from segue.core.transcripts import Draft, Entry, Role
from segue.core.values import Value

PAUSE = 0.25
"""Seconds between two numbers when it counts slowly."""
_MOST = 1000
_WHO = "I'm Segue's built-in agent: no model, no network, only a memory of this conversation."
_HELP = """Try one of these:

- what did I say first?
- how many messages do you remember?
- remember the tea is in the blue tin
- what do you remember?
- where are we?
- add 2 and 3
- count to 20 slowly

What begins with a slash is for Segue itself: /help lists it."""

Pieces = Iterator[Event | None]
"""The pieces of a reply; None is a pause."""


class Builtin:
    """An agent without a model."""

    window = 0

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._todo: dict[tuple[str, int], list[Draft]] = {}

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Answer word by word."""
        todo = self._todo[work.session, work.turn] = list(work.asked)
        done: list[Draft] = []
        said = ""
        try:
            while todo:
                draft = todo.pop(0)
                if done:
                    yield Text("\n\n")
                for piece in _reply(draft, Memory(work, done, draft.author)):
                    if piece is None:
                        await self._sleep(PAUSE)
                        continue
                    said += piece.text if isinstance(piece, Text) else " "
                    yield piece
                    await asyncio.sleep(0)
                done.append(draft)
        finally:
            del self._todo[work.session, work.turn]
        read, words = _read(work) + sum(_length(draft) for draft in done), len(said.split())
        yield Usage("builtin", input=read, output=words, cost=0.0)
        yield AgentState({"words": read + words})

    async def summary(self, work: Work, focus: str) -> SummedUp:  # noqa: ARG002 -- its summaries have no focus
        """Return the messages worth remembering as a summary."""
        text = sum_up(work) or "Nobody said anything."
        read = sum(_length(entry) for entry in work.transcript)
        return SummedUp(text, (Usage("builtin", input=read, output=len(text.split()), cost=0.0),))

    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        """Add messages to answer next. Return False once the answer is complete."""
        todo = self._todo.get((work.session, work.turn))
        if todo is None:
            return False
        todo += more
        return True


def _read(work: Work) -> int:
    """Count the words of a transcript. Words counted in an earlier turn come from the saved state."""
    words, known = 0, work.state if work.state is not None and not work.state.moved else None
    for entry in reversed(work.transcript):
        if known is not None and entry.tip == known.tip:
            return words + int(known.value["words"])
        words += _length(entry)
    return words


def _length(item: Entry | Draft) -> int:
    return len(plain_text(item.parts).split())


class BuiltinKeys(Value, frozen=True):
    """The built-in agent's settings: there are none."""

    def agent(self) -> Builtin:
        """Return the agent."""
        return Builtin()


def _reply(draft: Draft, memory: Memory) -> Pieces:
    said = in_words(draft.parts).strip()
    for pattern, answer in _REQUESTS:
        if found := pattern.fullmatch(said.rstrip(" .!?")):
            return answer(found, memory)
    return _words(_arrived(memory) if draft.author.role is Role.GATEWAY else _repeated(said, memory))


def _words(text: str) -> Pieces:
    """Split a text into words, each with the white space before it."""
    return (Text(piece) for piece in re.findall(r"\s*\S+|\s+$", text))


def _repeated(said: str, memory: Memory) -> str:
    if not memory.met:
        return f"You said {ending(said)}\n\n{_WHO} Say “help” to see what you can try."
    own = memory.own
    before = f"Before that you said {ending(own[-1])}" if own else "That is your first message here."
    return f"{memory.you} said {ending(said)} {before}"


def _arrived(memory: Memory) -> str:
    """Return the reply to a turn without a message, as after a handoff."""
    last = f" The last of it was {ending(memory.people[-1][1])}" if memory.people else ""
    return f"Here I am. I remember {memory.count()}.{last}"


def _hello(_: re.Match[str], memory: Memory) -> Pieces:
    name = f", {memory.asker.name}" if memory.asker.name else ""
    return _words(f"Hello{name}! {_WHO} Say “help” to see what you can try.")


def _help(_: re.Match[str], _memory: Memory) -> Pieces:
    return _words(f"{_WHO}\n\n{_HELP}")


def _recall(found: re.Match[str], memory: Memory) -> Pieces:
    if not memory.own:
        return _words("I remember nothing that you said before this.")
    first = found["which"].lower() == "first"
    return _words(f"{memory.you} {'first' if first else 'last'} said {ending(memory.own[0 if first else -1])}")


def _count_memory(_: re.Match[str], memory: Memory) -> Pieces:
    return _words(f"I remember {memory.count()}.")


def _remember(found: re.Match[str], memory: Memory) -> Pieces:
    return _words(f"I'll remember that{f', {memory.asker.name}' if memory.shared else ''}: {found['what']}")


def _remembered(_: re.Match[str], memory: Memory) -> Pieces:
    kept = [
        f"- {found['what']}" + (f" ({author.name})" if memory.shared and author.name else "")
        for author, text in memory.people
        if (found := _REMEMBER.fullmatch(text.strip().rstrip(" .!?")))
    ]
    if not kept:
        return _words("Nothing in particular yet. Say “remember” and something after it.")
    return _words("You asked me to remember:\n\n" + "\n".join(kept))


def _where(_: re.Match[str], memory: Memory) -> Pieces:
    told = memory.work.context.strip()
    return _words(f"This is what I was told:\n\n{told}" if told else "Nobody told me where we are.")


def _say(found: re.Match[str], _memory: Memory) -> Pieces:
    return _words(found["what"])


def _add(found: re.Match[str], memory: Memory) -> Pieces:
    one, two = int(found["one"]), int(found["two"])
    id = f"add-{memory.work.turn}-{one}-{two}"
    known = [part for part in memory.work.journal if isinstance(part, ToolResult) and part.id == id]
    if not known:
        yield ToolCall(id, "add", {"one": one, "two": two})
        known = [ToolResult(id, one + two)]
        yield known[0]
    yield from _words(f"{one} and {two} make {known[0].content}.")


def _count(found: re.Match[str], _memory: Memory) -> Pieces:
    for n in range(1, min(int(found["upto"]), _MOST) + 1):
        if found["slowly"] and n > 1:
            yield None
        yield Text(str(n) if n == 1 else f", {n}")
    yield Text(".")


def _request(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_REMEMBER = _request(r"remember (?:that )?(?P<what>.+)")
_REQUESTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Memory], Pieces]], ...] = (
    (_request(r"(?:hi|hello|hey|good (?:morning|day|evening))(?:[ ,]+\w+)?"), _hello),
    (_request(r"help|what can you do|what can i (?:try|do|say)"), _help),
    (_request(r"what did i say (?P<which>first|last|before)"), _recall),
    (_request(r"how many(?: messages)?(?: do you remember| are there)?|how much do you remember"), _count_memory),
    (_request(r"what do you remember|what should you remember"), _remembered),
    (_REMEMBER, _remember),
    (_request(r"where (?:are we|am i|are you)"), _where),
    (_request(r"say (?P<what>.+)"), _say),
    (_request(r"add (?P<one>\d{1,9}) (?:and|to) (?P<two>\d{1,9})"), _add),
    (_request(r"count to (?P<upto>\d{1,5})(?P<slowly>,? slowly)?"), _count),
)
