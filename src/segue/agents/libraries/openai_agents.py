"""Converts turns to a `Session` of openai-agents, and a run's items to parts of the answer.

Law: the gateway keeps the transcript. A run adds items to its own turn and removes no others: `/undo` does that.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from segue.core.contracts.agents import Work
from segue.core.messages import File, Notice, Part, Reasoning, Text, ToolCall, ToolResult
from segue.core.prompt.envelopes import by_then, words
from segue.core.transcripts import Role

Item = dict[str, Any]
_LIBRARY = "openai-agents"


class WorkSession:
    """The `Session` of one turn.

    Use it as `Runner.run(agent, session.asked, session=session)`, then yield `session.said`.
    """

    session_settings: Any = None
    """An attribute of the library's protocol, unused here."""

    def __init__(self, work: Work) -> None:
        self.session_id: str = work.session
        heard = list(by_then(chain(work.transcript, work.asked), work.voices))
        said = [list(_answered(m.parts) if m.author.role is Role.AGENT else _person(words(m, v))) for m, v in heard]
        count = len(said) - len(work.asked)
        self._before = list(chain.from_iterable(said[:count]))
        self.asked: list[Item] = [*chain.from_iterable(said[count:]), *_answered(work.journal)]
        """The input of a run: the messages to answer, and the steps of an earlier attempt."""
        self._added: list[Item] = []

    @property
    def said(self) -> list[Part]:
        """Return the run's texts, thoughts, tool calls and results, for the function to yield."""
        own = [item for item in self._added if item not in self.asked]
        return [part for item in own for part in _part(item)]

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """Return the items before and in this run; with a limit, only the last ones."""
        items = [*self._before, *self._added]
        return items if limit is None else items[len(items) - min(limit, len(items)) :]

    async def add_items(self, items: Sequence[Item]) -> None:
        """Add a run's items until the turn is done."""
        self._added += items

    async def pop_item(self) -> Item | None:
        """Remove the last item of this run. Earlier items stay."""
        return self._added.pop() if self._added else None

    async def clear_session(self) -> None:
        """Remove all items of this run."""
        self._added.clear()


def _person(text: str) -> Iterator[Item]:
    if text:
        yield {"role": "user", "content": text}


def _answered(parts: Iterable[Part]) -> Iterator[Item]:
    """Convert the agent's texts, tool calls and results. Thoughts of other libraries are left out."""
    for part in parts:
        match part:
            case Text(text) | Notice(text):
                yield {"role": "assistant", "content": text}
            case File(name=name):
                yield {"role": "assistant", "content": f"(I sent the file {name}.)"}
            case ToolCall(id, name, arguments):
                yield {"type": "function_call", "call_id": id, "name": name, "arguments": _json(arguments)}
            case ToolResult(id, content):
                output = content if isinstance(content, str) else _json(content)
                yield {"type": "function_call_output", "call_id": id, "output": output}
            case Reasoning(provider, raw) if provider == _LIBRARY:
                yield raw
            case _:
                """A model doesn't read other parts."""


def _part(item: Item) -> Iterator[Part]:
    """Convert an item to a part of the answer. People's messages are in the transcript already."""
    match item:
        case {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}:
            yield ToolCall(id, name, msgspec.json.decode(arguments or "{}"))
        case {"type": "function_call_output", "call_id": id, "output": output}:
            yield ToolResult(id, output)
        case {"role": "assistant", "content": content}:
            pieces = [content] if isinstance(content, str) else [piece.get("text", "") for piece in content]
            yield Text("".join(pieces))
        case {"role": _}:
            return
        case _:
            yield Reasoning(_LIBRARY, item)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
