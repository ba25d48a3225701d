"""The terminal chat: what is said scrolls by, what is being written grows above the line on which one types."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text as Styled

from segue.cli.output import short
from segue.cli.terminal.client import Client
from segue.cli.terminal.handoff import Moved
from segue.cli.terminal.qr import qr

QUIT = ("/quit", "/exit")
_QUITS = {"name": "quit", "does": "Leave; the conversation stays."}
_TAKE_TITLES = ("/resume", "/continue", "/switch")
_TAIL = 12
"""Lines of a growing reply that are shown while it is written."""


class Suggestions(Completer):
    """Completes commands, and the titles of sessions after those that take one."""

    def __init__(self) -> None:
        self.commands: list[dict[str, str]] = []
        self.titles: list[str] = []

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """All that goes on like what was typed."""
        del complete_event
        typed = document.text_before_cursor
        word, space, rest = typed.partition(" ")
        if space and word in _TAKE_TITLES:
            for title in self.titles:
                if title.casefold().startswith(rest.casefold()):
                    yield Completion(title, -len(rest))
        elif typed.startswith("/") and not space:
            for command in (*self.commands, _QUITS):
                if command["name"].startswith(typed[1:]):
                    yield Completion(f"/{command['name']}", -len(typed), display_meta=command["does"])


class Terminal:
    """One person at a terminal."""

    def __init__(self, client: Client, folder: Path, hint: str = "") -> None:
        self._client = client
        self._hint = hint
        self._console = Console()
        self._growing = ""
        self._waiting = 0
        self._title = ""
        self._typed: list[str] = []
        """What was typed here and stands on the screen already."""
        self._shown: list[dict[str, Any]] = []
        """The transcript as it stands on the screen."""
        self._suggestions = Suggestions()
        keys = KeyBindings()
        keys.add("escape", "enter")(_new_line)
        keys.add("c-c")(self._interrupt)
        self._prompt: PromptSession[str] = PromptSession(
            message=self._message,
            bottom_toolbar=self._status,
            history=FileHistory(str(folder / "history")),
            completer=self._suggestions,
            complete_while_typing=True,
            key_bindings=keys,
            refresh_interval=0.5,
        )
        self._invited = False
        """Whether a way to take the conversation along belongs below the next notice."""
        self._stops: set[asyncio.Task[str]] = set()
        self._moved = Moved()

    async def run(self) -> None:
        """Talk until somebody leaves or the gateway goes."""
        await self._client.ask("commands")
        await self._client.ask("list")
        showing = asyncio.create_task(self._show())
        typing = asyncio.create_task(self._type())
        with patch_stdout(raw=True):
            await asyncio.wait([showing, typing], return_when=asyncio.FIRST_COMPLETED)
            # Nobody is asked for anything any more.
            self._prompt.app.erase_when_done = showing.done()
            for task in (showing, typing):
                task.cancel()
            # The prompt is gone before anything is printed below it.
            results = await asyncio.gather(showing, typing, return_exceptions=True)
        if self._moved.done:
            self._console.print(Styled(self._moved.farewell, "green"))
        for error in results:
            if isinstance(error, Exception):
                raise error

    async def _type(self) -> None:
        while True:
            try:
                text = (await self._prompt.prompt_async()).strip()
            except EOFError:
                return
            if text in QUIT:
                return
            if text:
                self._typed.append(text)
                self._invited = self._invited or text == "/handoff"
                await self._client.say(text)

    async def _show(self) -> None:
        async for frame in self._client.frames():
            before = self._title
            self._frame(frame)
            if "transcript" in frame or self._title != before:
                await self._client.ask("list")
            if "notice" in frame and self._invited:
                self._invited = False
                await self._client.ask("invite")
            if self._moved.done:
                return
            if self._prompt.app.is_running:
                self._prompt.app.invalidate()
        self._console.print(Styled("The gateway has gone. Start it again with `segue serve`.", "yellow"))

    def _know(self, frame: dict[str, Any]) -> None:
        """What stands around the conversation: its title, what can be typed, where it goes."""
        if "session" in frame:
            self._title = (frame["session"] or {}).get("title", "")
        if "commands" in frame:
            self._suggestions.commands = frame["commands"]
        if "sessions" in frame:
            self._suggestions.titles = [session["title"] for session in frame["sessions"] if session["title"]]
        if "handoff" in frame:
            for line in self._moved.see(frame["handoff"]):
                self._console.print(Styled(line, "green"))
        if "invitation" in frame:
            self._invite(frame["invitation"])

    def _frame(self, frame: dict[str, Any]) -> None:
        self._know(frame)
        if "growing" in frame:
            self._growing = frame["growing"]
        if "waiting" in frame:
            self._waiting = len(frame["waiting"])
            # A turn that was stopped leaves nothing behind that would take its place.
            self._growing = self._growing if self._waiting else ""
        if "notice" in frame:
            self._typed = [text for text in self._typed if not text.startswith("/")]
            self._console.print(Styled(frame["notice"], "dim"), end="\n\n")
        if "transcript" in frame:
            self._growing = ""
            self._turn_to(frame["transcript"])
        elif frame.get("entries"):
            self._growing = ""
            self._go_on(frame["entries"])

    def _turn_to(self, transcript: list[dict[str, Any]]) -> None:
        """Show another transcript: what stands on the screen already isn't said again."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._shown, transcript, strict=False)))
        if transcript and same < len(self._shown):
            above = (
                f"As above, up to “{short(transcript[same - 1]['text'])}”"
                if same
                else self._title or "untitled session"
            )
            self._console.print(Styled(f"── {above} ──", "dim"))
        self._shown = self._shown[:same]
        self._go_on(transcript[same:])

    def _go_on(self, entries: list[dict[str, Any]]) -> None:
        self._shown += entries
        for entry in entries:
            self._entry(entry)

    def _invite(self, invitation: dict[str, Any]) -> None:
        """Show how to take the conversation along: a code to scan where the platform has such links, else to type."""
        for place, link in invitation["links"].items():
            # Not through the console, which would take the blocks for text to be styled.
            self._console.file.write(f"{qr(link)}\n")
            self._console.print(Styled(f"Scan it, or open {link}: the conversation comes to {place}.", "dim"))
        if invitation["typed"]:
            places = ", ".join(invitation["typed"])
            code = invitation["code"]
            self._console.print(Styled(f"Or send /link {code} to me in a private chat on {places}.", "dim"))
        warning = "Whoever uses that becomes you, within ten minutes: show it to nobody."
        self._console.print(Styled(warning, "dim"), end="\n\n")

    def _entry(self, entry: dict[str, Any]) -> None:
        if entry["role"] == "person":
            if entry["text"] in self._typed:
                self._typed.remove(entry["text"])
                return
            self._console.print(Styled.assemble((f"{entry['name'] or 'You'}  ", "bold cyan"), entry["text"]))
        elif entry["role"] == "agent":
            self._console.print(Markdown(entry["text"]))
            self._console.print()
        else:
            self._console.print(Styled(entry["text"], "dim"))
        for line in self._client.kept(entry["files"]):
            self._console.print(Styled(line, "dim"))

    def _message(self) -> FormattedText:
        # What grows is left out when a line was entered: it grows on below that line, and would stay above it.
        lines = [] if self._prompt.app.is_done else self._growing.splitlines()[-_TAIL:]
        growing = "\n".join(lines) + "\n" if lines else ""
        return FormattedText([("ansibrightblack", growing), ("bold", "> ")])

    def _status(self) -> FormattedText:
        if self._moved.under_way:
            return FormattedText([("", f" {self._moved.under_way} · Ctrl-C cancels it")])
        busy = f"{self._waiting} waiting" if self._waiting > 1 else "answering" if self._waiting else "ready"
        hint = f" · {self._hint}" if self._hint else ""
        return FormattedText([("", f" {self._title or 'untitled session'} · terminal · {busy}{hint} · /help, /quit")])

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Ctrl-C ends the running turn; with nothing running and nothing typed it leaves."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif self._waiting or self._moved.under_way:
            stop = asyncio.create_task(self._client.say("/handoff cancel" if self._moved.under_way else "/stop"))
            self._stops.add(stop)
            stop.add_done_callback(self._stops.discard)
        else:
            event.app.exit(exception=EOFError())


def _new_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")
