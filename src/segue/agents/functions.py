"""A Python function as an agent: its parameters' types select its input, and it returns or yields the reply.

    async def reply(text: str) -> str: ...                          the text to answer
    async def reply(work: Work) -> str: ...                         the whole turn: transcript, authors, tools
    async def reply(text: str, tools: Tools) -> AsyncIterator[str]: the gateway's tools

Each parameter is a `str`, a `Work` or a `Tools`, at most one of each. The function returns a text or an
event, or yields several.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import chain
from typing import Any

from msgspec.structs import replace

from segue.core.contracts.agents import AgentState, Event, Progress, PutOff, SubAgent, Titled, Tools, Usage, Work
from segue.core.messages import File, Reasoning, Text, ToolCall, ToolResult, in_words, told
from segue.core.prompt.envelopes import Voices, by_then, words
from segue.core.transcripts import Draft
from segue.errors import Invalid

_SAYS = AgentState | File | Progress | PutOff | Reasoning | SubAgent | Text | Titled | ToolCall | ToolResult | Usage
_FIX = "Annotate each parameter with str, Work or Tools, at most one of each."


class FunctionAgent:
    """Answers by a function of the host's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._gives = _parameters(function)
        called = function if inspect.isroutine(function) else type(function).__call__
        self._streams = inspect.isasyncgenfunction(called)
        if not self._streams and not inspect.iscoroutinefunction(called):
            raise Invalid("agent", f"{_name(function)} isn't async", "Write it with `async def`.")

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Yield the function's result, or its pieces as they arrive."""
        given = {name: gives(work) for name, gives in self._gives.items()}
        said = self._function(**given)
        if not self._streams:
            for event in self._events(await said):
                yield event
            return
        try:
            async for piece in said:
                for event in self._events(piece):
                    yield event
        finally:
            await said.aclose()

    def _events(self, piece: object) -> list[Event]:
        if isinstance(piece, str):
            return [Text(piece)] if piece else []
        if isinstance(piece, _SAYS):
            return [piece]
        raise TypeError(f"{_name(self._function)} said {type(piece).__name__}, which is neither text nor an event")


def asked(work: Work) -> str:
    """Return the text to answer now."""
    if work.voices is Voices.ONE:
        return "\n\n".join(told(draft.parts) or in_words(draft.parts) for draft in work.asked)
    said = [draft if draft.text else _by_files(draft) for draft in work.asked]
    heard = list(by_then(chain(work.transcript, said), work.voices))[-len(said) :]
    return "\n\n".join(told(item.parts) if voices is Voices.ONE else words(item, voices) for item, voices in heard)


def _by_files(draft: Draft) -> Draft:
    """Add a description of its files to a message without text."""
    return replace(draft, parts=(*draft.parts, Text(in_words(draft.parts)))) if in_words(draft.parts) else draft


_GIVES: Mapping[object, Callable[[Work], object]] = {
    str: asked,
    Work: lambda work: work,
    Tools: lambda work: work.tools,
}


def _parameters(function: Callable[..., Any]) -> dict[str, Callable[[Work], object]]:
    """Return the source of each parameter's value."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, ValueError) as error:
        raise Invalid("agent", f"the parameters of {_name(function)} can't be read ({error})", _FIX) from error
    wanted = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    for name, kind in wanted.items():
        if kind not in _GIVES or list(wanted.values()).count(kind) > 1:
            raise Invalid("agent", f'nobody knows what "{name}" of {_name(function)} is to get', _FIX)
        if signature.parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY:
            raise Invalid("agent", f'"{name}" of {_name(function)} can\'t be given by name', "Remove the slash.")
    return {name: _GIVES[kind] for name, kind in wanted.items()}


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
