"""What the built-in agent says to what: one table of requests, and an answer for everything else."""

import re
from collections.abc import Callable, Iterable, Iterator

from segue.agents.builtin.memory import Memory, ending, quoted
from segue.core.contracts.agents import Event
from segue.core.messages import Text, ToolCall, ToolResult, plain_text
from segue.core.transcripts import Draft, Role

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


class Failed(Exception):
    """Somebody asked for it."""


class Wait:
    """Take some time."""


class Hang:
    """Say nothing until stopped."""


Step = Event | Wait | Hang


def reply(draft: Draft, memory: Memory) -> Iterable[Step]:
    """What there is to say to one message."""
    said = plain_text(draft.parts).strip()
    for pattern, answer in _REQUESTS:
        if found := pattern.fullmatch(said.rstrip(" .!?")):
            return answer(found, memory)
    return _words(_arrived(memory) if draft.author.role is Role.GATEWAY else _repeated(said, memory))


def _words(text: str) -> Iterator[Step]:
    """A text word by word, with the white space before each."""
    return (Text(piece) for piece in re.findall(r"\s*\S+|\s+$", text))


def _repeated(said: str, memory: Memory) -> str:
    own = memory.own
    if not memory.met:
        return f"You said {ending(said)}\n\n{_WHO} Say “help” to see what you can try."
    if not own:
        return f"{memory.called}you said {ending(said)} That is your first message here."
    text = f"{memory.called}you said {ending(said)} Before that you said {ending(own[-1])}"
    return text[0].upper() + text[1:]


def _arrived(memory: Memory) -> str:
    """It was called without anybody having spoken, as after a handoff."""
    last = f" The last of it was {ending(memory.people[-1][1])}" if memory.people else ""
    return f"Here I am. I remember {memory.count()}.{last}"


def _hello(_: re.Match[str], memory: Memory) -> Iterator[Step]:
    name = f", {memory.asker.name}" if memory.asker.name else ""
    return _words(f"Hello{name}! {_WHO} Say “help” to see what you can try.")


def _help(_: re.Match[str], _memory: Memory) -> Iterator[Step]:
    return _words(f"{_WHO}\n\n{_HELP}")


def _recall(found: re.Match[str], memory: Memory) -> Iterator[Step]:
    who, first = found["who"], found["which"].lower() == "first"
    mine = who.lower() == "i"
    said = memory.own if mine else memory.of(who)
    whom = f"{memory.called}you" if mine else who
    if not said:
        return _words(f"I remember nothing that {whom} said before this.")
    text = f"{whom} {'first' if first else 'last'} said {ending(said[0 if first else -1])}"
    return _words(text[0].upper() + text[1:])


def _count_memory(_: re.Match[str], memory: Memory) -> Iterator[Step]:
    return _words(f"I remember {memory.count()}.")


def _remember(found: re.Match[str], memory: Memory) -> Iterator[Step]:
    return _words(f"I'll remember that{f', {memory.asker.name}' if memory.called else ''}: {found['what']}")


def _remembered(_: re.Match[str], memory: Memory) -> Iterator[Step]:
    kept = [
        f"- {found['what']}" + (f" ({author.name})" if memory.shared and author.name else "")
        for author, text in memory.people
        if (found := _REMEMBER.fullmatch(text.strip().rstrip(" .!?")))
    ]
    if not kept:
        return _words("Nothing in particular yet. Say “remember” and something after it.")
    return _words("You asked me to remember:\n\n" + "\n".join(kept))


def _who(_: re.Match[str], memory: Memory) -> Iterator[Step]:
    return _words(f"I have heard {', '.join(memory.names)} here.")


def _where(_: re.Match[str], memory: Memory) -> Iterator[Step]:
    told = memory.work.context.strip()
    return _words(f"This is what I was told:\n\n{told}" if told else "Nobody told me where we are.")


def _sum_up(_: re.Match[str], memory: Memory) -> Iterator[Step]:
    if not memory.people:
        return _words("Nothing was said yet.")
    first, last = quoted(memory.people[0][1]), ending(memory.people[-1][1])
    return _words(f"So far there are {memory.count()}. It began with {first}, and the last thing asked was {last}")


def _say(found: re.Match[str], _memory: Memory) -> Iterator[Step]:
    return _words(found["what"])


def _add(found: re.Match[str], memory: Memory) -> Iterator[Step]:
    one, two = int(found["one"]), int(found["two"])
    id = f"add-{memory.work.turn}-{one}-{two}"
    known = [part for part in memory.work.journal if isinstance(part, ToolResult) and part.id == id]
    if not known:
        yield ToolCall(id, "add", {"one": one, "two": two})
        known = [ToolResult(id, one + two)]
        yield known[0]
    yield from _words(f"{one} and {two} make {known[0].content}.")


def _count(found: re.Match[str], _memory: Memory) -> Iterator[Step]:
    slowly = found["slowly"] is not None
    for n in range(1, min(int(found["upto"]), _MOST) + 1):
        if slowly and n > 1:
            yield Wait()
        yield Text(str(n) if n == 1 else f", {n}")
    yield Text(".")


def _write(found: re.Match[str], _memory: Memory) -> Iterator[Step]:
    # A line at a time: so many single words would keep everybody busy with adding them up.
    words = [f"word{n}" for n in range(1, min(int(found["count"]), 20 * _MOST) + 1)]
    for n in range(0, len(words), 100):
        yield Text(("\n" if n else "") + " ".join(words[n : n + 100]))


def _hang(_: re.Match[str], _memory: Memory) -> Iterator[Step]:
    return iter((Hang(),))


def _fail(_: re.Match[str], _memory: Memory) -> Iterator[Step]:
    raise Failed("I was asked to fail.")


def _request(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_REMEMBER = _request(r"remember (?:that )?(?P<what>.+)")
_REQUESTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Memory], Iterator[Step]]], ...] = (
    (_request(r"(?:hi|hello|hey|good (?:morning|day|evening))(?:[ ,]+\w+)?"), _hello),
    (_request(r"help|what can you do|what can i (?:try|do|say)"), _help),
    (_request(r"what did (?P<who>\w+) say (?P<which>first|last|before)"), _recall),
    (_request(r"how many(?: messages)?(?: do you remember| are there)?|how much do you remember"), _count_memory),
    (_request(r"what do you remember|what should you remember"), _remembered),
    (_REMEMBER, _remember),
    (_request(r"who(?:'s| is) (?:here|there)|who am i"), _who),
    (_request(r"where (?:are we|am i|are you)"), _where),
    (_request(r"sum(?:marise|marize)?(?: it| this| that)?(?: up)?"), _sum_up),
    (_request(r"say (?P<what>.+)"), _say),
    (_request(r"add (?P<one>\d{1,9}) (?:and|to) (?P<two>\d{1,9})"), _add),
    (_request(r"count to (?P<upto>\d{1,5})(?P<slowly>,? slowly)?"), _count),
    (_request(r"write (?P<count>\d{1,5}) words"), _write),
    (_request(r"hang"), _hang),
    (_request(r"fail"), _fail),
)
