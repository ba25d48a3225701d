"""A turn as a `Session` of openai-agents: the transcript as its items, and the items of a run as parts of the answer.

Law: the gateway keeps the transcript. A run adds to its own turn, and takes back nothing else: `/undo` does that.
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
    """The `Session` of one turn: `Runner.run(agent, session.asked, session=session)`, and then `session.said`."""

    session_settings: Any = None
    """The library's; it has no say here."""

    def __init__(self, work: Work) -> None:
        self.session_id: str = work.session
        heard = list(by_then(chain(work.transcript, work.asked), work.voices))
        said = [list(_answered(m.parts) if m.author.role is Role.AGENT else _person(words(m, v))) for m, v in heard]
        count = len(said) - len(work.asked)
        self._before = list(chain.from_iterable(said[:count]))
        self.asked: list[Item] = [*chain.from_iterable(said[count:]), *_answered(work.journal)]
        """The input of a run: what is to be answered, and what an earlier attempt has done about it."""
        self._added: list[Item] = []

    @property
    def said(self) -> list[Part]:
        """The events of a run, for the function to yield: words, thoughts, tool calls and their results."""
        own = [item for item in self._added if item not in self.asked]
        return [part for item in own for part in _part(item)]

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The items said before and in this run, the last of them if there is a limit."""
        items = [*self._before, *self._added]
        return items if limit is None else items[len(items) - min(limit, len(items)) :]

    async def add_items(self, items: Sequence[Item]) -> None:
        """Keep what a run tells, until the turn is done."""
        self._added += items

    async def pop_item(self) -> Item | None:
        """Take the last item of this run back; what was said before stays."""
        return self._added.pop() if self._added else None

    async def clear_session(self) -> None:
        """Take all of this run back."""
        self._added.clear()


def _person(text: str) -> Iterator[Item]:
    if text:
        yield {"role": "user", "content": text}


def _answered(parts: Iterable[Part]) -> Iterator[Item]:
    """The agent's words and deeds; thoughts are only those that this library told."""
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
                """Nothing that a model is sent."""


def _part(item: Item) -> Iterator[Part]:
    """An item as a part of the answer; what people said is in the transcript already."""
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
