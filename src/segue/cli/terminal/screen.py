"""The terminal chat: messages scroll by, and a growing reply is shown above the input line."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import uuid4

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text as Styled

from segue.cli.host import private_file
from segue.cli.output import printable, short
from segue.cli.terminal.client import Client, NoGateway
from segue.cli.terminal.handoff import Departure
from segue.cli.terminal.qr import qr
from segue.core.commands import Command, parse
from segue.core.messages import File
from segue.core.questions import listed
from segue.core.transcripts import Role
from segue.core.values import SessionId
from segue.runtime.forgetting import HISTORY
from segue.runtime.windows.frames import (
    CommandsFrame,
    CommandsRequest,
    EntriesFrame,
    GrowingFrame,
    HandoffFrame,
    InvitationFrame,
    NoticeFrame,
    QuestionsFrame,
    RefusedFrame,
    SessionsFrame,
    SessionsRequest,
    Shown,
    ShownCommand,
    ShownEntry,
    ShownQuestion,
    ShownSession,
    TranscriptFrame,
    WaitingFrame,
)
from segue.runtime.windows.invitation import WARNING, typed

QUIT = ("/quit", "/exit")
_QUITS = ShownCommand("quit", "", "Leave; the conversation stays.")
_TAKES_TITLES = "resume"
_REMEMBERED = 50
"""The most typed messages that are remembered until they appear as entries."""
_MOMENT = 0.1
GREETING = """Segue keeps this conversation; it goes on here, on the page and in your chats.
Type to talk. /help lists what else you can type, /handoff takes it to your phone, /quit leaves."""
GONE = "The gateway has gone. This terminal waits for it: `segue serve` starts it again, Ctrl-D leaves."
_TAIL = 12
"""The most lines of a growing reply."""


class Suggestions(Completer):
    """Completes commands, and sessions by title or first question after commands that take one."""

    def __init__(self) -> None:
        self.commands: Sequence[ShownCommand] = ()
        self.sessions: Sequence[ShownSession] = ()
        self.here: SessionId | None = None
        """The open session, which is never suggested."""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the completions of the input."""
        del complete_event
        typed = document.text_before_cursor
        word, space, rest = typed.partition(" ")
        if space and isinstance(command := parse(word), Command) and command.name == _TAKES_TITLES:
            for session in self.sessions:
                shown = session.title or session.text
                if session.id != self.here and shown.casefold().startswith(rest.casefold()):
                    # An untitled session is completed by its id.
                    yield Completion(session.title or session.id, -len(rest), display=shown or session.id)
        elif typed.startswith("/") and not space:
            for spec in (*self.commands, _QUITS):
                if spec.name.startswith(typed[1:]):
                    yield Completion(f"/{spec.name}", -len(typed), display_meta=spec.does)


class Terminal:
    """The terminal chat of one person."""

    def __init__(self, client: Client, folder: Path, hint: str = "") -> None:
        self._client = client
        self._hint = hint
        self._console = Console()
        self._growing = ""
        self._waiting = 0
        self._title = ""
        self._exporting = False
        """Whether the next export is written to the current folder."""
        self._typed: dict[str, str] = {}
        """Typed messages that are on the screen and have no answer yet."""
        self._shown: list[ShownEntry] = []
        """The transcript on the screen."""
        self._questions: Sequence[ShownQuestion] = ()
        """Open questions to the person."""
        self._suggestions = Suggestions()
        keys = KeyBindings()
        keys.add("escape", "enter")(_new_line)
        keys.add("enter", filter=Condition(_is_cut_short))(_take_offer)
        keys.add("c-c")(self._interrupt)
        self._prompt: PromptSession[str] = PromptSession(
            message=self._message,
            bottom_toolbar=self._status,
            history=FileHistory(str(private_file(folder / HISTORY))),
            completer=self._suggestions,
            complete_while_typing=True,
            key_bindings=keys,
            refresh_interval=0.5,
        )
        self._stops: set[asyncio.Task[str]] = set()
        self._reached = asyncio.Event()
        """Whether a gateway listens."""
        self._reached.set()
        self._departure = Departure()

    async def run(self) -> None:
        """Talk until the person leaves. If the gateway ends, wait for another."""
        await self._client.ask(CommandsRequest())
        await self._client.ask(SessionsRequest())
        showing = asyncio.create_task(self._show())
        typing = asyncio.create_task(self._type())
        self._console.print(Styled(GREETING, "dim"), end="\n\n")
        with patch_stdout(raw=True):
            await asyncio.wait([showing, typing], return_when=asyncio.FIRST_COMPLETED)
            # Ask for nothing more.
            self._prompt.app.erase_when_done = showing.done()
            for task in (showing, typing):
                task.cancel()
            # Remove the prompt before printing below it.
            results = await asyncio.gather(showing, typing, return_exceptions=True)
        if self._departure.done:
            self._console.print(Styled(self._departure.farewell, "green"))
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
                id = uuid4().hex
                self._typed[id] = printable(text)
                # A command never becomes an entry. It is dropped after enough later messages.
                while len(self._typed) > _REMEMBERED:
                    del self._typed[next(iter(self._typed))]
                command = parse(text)
                self._exporting = isinstance(command, Command) and command.name == "export"
                await self._say(text, id)

    async def _say(self, text: str, id: str) -> None:
        """Send a message, and send it again to a later gateway under the same id."""
        while True:
            await self._reached.wait()
            try:
                await self._client.say(text, id)
            except NoGateway:
                await asyncio.sleep(_MOMENT)
                continue
            return

    async def _show(self) -> None:
        while True:
            async for frame in self._client.frames():
                before = self._title
                if self._exporting and isinstance(frame, NoticeFrame) and frame.files:
                    await self._write_export(frame.files[0])
                else:
                    self._frame(frame)
                if isinstance(frame, TranscriptFrame) or self._title != before or self._begins(frame):
                    await self._client.ask(SessionsRequest())
                if self._departure.done:
                    return
                if self._prompt.app.is_running:
                    self._prompt.app.invalidate()
            self._reached.clear()
            self._growing, self._waiting = "", 0
            self._console.print(Styled(GONE, "yellow"))
            await self._client.again(self._suggestions.here)
            self._reached.set()
            self._console.print(Styled("The gateway is back.", "yellow"))

    def _frame(self, frame: Shown) -> None:
        """Show a frame of the conversation."""
        match frame:
            case TranscriptFrame():
                self._growing = ""
                self._name(frame.session)
                self._turn_to(frame)
            case EntriesFrame():
                self._growing = "" if frame.entries else self._growing
                self._name(frame.session)
                self._go_on(frame.entries)
            case WaitingFrame():
                self._waiting = len(frame.turns)
                # A stopped turn leaves no reply that would replace its growing text.
                self._growing = self._growing if self._waiting else ""
            case GrowingFrame():
                self._growing = frame.text if frame.begins else self._growing + frame.text
            case _:
                self._know(frame)

    def _begins(self, frame: Shown) -> bool:
        """Return whether this is a new session's first question, which the list doesn't know yet."""
        known = {one.id for one in self._suggestions.sessions if one.text}
        return isinstance(frame, EntriesFrame) and self._suggestions.here not in known

    def _name(self, session: ShownSession | None) -> None:
        self._title, self._suggestions.here = (session.title, session.id) if session else ("", None)

    def _know(self, frame: Shown) -> None:
        """Show a frame about the conversation: notices, questions, commands and handoffs."""
        match frame:
            case NoticeFrame() | RefusedFrame():
                self._note(frame.text, frame.files if isinstance(frame, NoticeFrame) else ())
            case QuestionsFrame():
                self._ask(frame.questions)
            case HandoffFrame():
                for line in self._departure.see(frame):
                    self._console.print(Styled(line, "green"))
            case InvitationFrame():
                self._invite(frame)
            case CommandsFrame():
                self._suggestions.commands = frame.commands
            case SessionsFrame():
                self._suggestions.sessions = frame.sessions
            case _:
                """A terminal requests no other frames."""

    def _note(self, text: str, files: Sequence[File]) -> None:
        self._console.print(Styled(self._client.lines(text, files), "dim"), end="\n\n")

    async def _write_export(self, file: File) -> None:
        """Write an export that was requested by name. No other file goes to the user's current folder."""
        self._exporting = False
        self._console.print(Styled(f"Wrote {await self._client.brought(file, Path.cwd())}", "dim"), end="\n\n")

    def _ask(self, questions: Sequence[ShownQuestion]) -> None:
        for question in questions:
            if question not in self._questions:
                self._console.print(Styled(asked(question), "yellow"), end="\n\n")
        self._questions = questions

    def _turn_to(self, frame: TranscriptFrame) -> None:
        """Show another transcript without repeating the entries on the screen."""
        stands = {entry.tip: n for n, entry in enumerate(self._shown, 1)}
        same = max((n for n, entry in enumerate(frame.entries, 1) if entry.tip in stands), default=0)
        kept = stands[frame.entries[same - 1].tip] if same else 0
        if frame.entries and kept < len(self._shown):
            last = f"As above, up to “{short(self._shown[kept - 1].text)}”" if kept else self._called()
            self._console.print(Styled(f"── {last} ──", "dim"))
        if frame.earlier and not same:
            self._console.print(Styled("── Earlier messages are left out here; /export has them all ──", "dim"))
        self._shown = self._shown[:kept]
        self._go_on(frame.entries[same:])

    def _go_on(self, entries: Sequence[ShownEntry]) -> None:
        self._shown += entries
        for entry in entries:
            self._entry(entry)

    def _invite(self, invitation: InvitationFrame) -> None:
        """Show how to take the conversation along: a QR code where the platform has links, else a text to type."""
        for place, link in invitation.links.items():
            # Bypass the console, which would style the blocks as text.
            self._console.file.write(f"{qr(link)}\n")
            self._console.print(Styled(f"Scan it, or open {link}: the conversation comes to {place}.", "dim"))
        for line in typed(invitation):
            self._console.print(Styled(line, "dim"))
        self._console.print(Styled(WARNING, "dim"), end="\n\n")

    def _entry(self, entry: ShownEntry) -> None:
        if entry.role is Role.PERSON:
            mine = next((id for id, text in self._typed.items() if entry.mine and text == entry.text), None)
            if mine is not None:
                del self._typed[mine]
                return
            self._console.print(Styled.assemble((f"{entry.name or 'You'}  ", "bold cyan"), entry.text))
        elif entry.role is Role.AGENT:
            if entry.name:
                self._console.print(Styled(entry.name, "dim"))
            self._console.print(Markdown(entry.text))
            self._console.print()
        else:
            self._console.print(Styled(f"{entry.name}  {entry.text}" if entry.name else entry.text, "dim"))
        for line in self._client.kept(entry.files):
            self._console.print(Styled(line, "dim"))

    def _message(self) -> FormattedText:
        # After Enter, leave the growing reply out: it continues below the line and would stay above it too.
        lines = [] if self._prompt.app.is_done else self._growing.splitlines()[-_TAIL:]
        growing = "\n".join(lines) + "\n" if lines else ""
        return FormattedText([("ansibrightblack", growing), ("bold", "> ")])

    def _status(self) -> FormattedText:
        if self._departure.under_way:
            return FormattedText([("", f" {self._departure.under_way} · Ctrl-C cancels it")])
        busy = f"{self._waiting} waiting" if self._waiting > 1 else "answering" if self._waiting else "ready"
        hint = f" · {self._hint}" if self._hint else ""
        return FormattedText([("", f" {self._called()} · terminal · {busy}{hint} · /help, /quit")])

    def _called(self) -> str:
        """Return the session's title, or the first question of an untitled session."""
        asked = (session.text for session in self._suggestions.sessions if session.id == self._suggestions.here)
        return self._title or short(next(asked, "")) or "untitled session"

    def _interrupt(self, event: KeyPressEvent) -> None:
        """Stop the running turn at Ctrl-C. With no turn and no input, leave."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif self._waiting or self._departure.under_way:
            stop = asyncio.create_task(self._client.say("/handoff cancel" if self._departure.under_way else "/stop"))
            self._stops.add(stop)
            stop.add_done_callback(self._stops.discard)
        else:
            event.app.exit(exception=EOFError())


def asked(question: ShownQuestion) -> str:
    """Format a question with the ways to answer it."""
    if not question.here:
        how = "Asked elsewhere: /questions numbers it, /answer N TEXT answers it."
    else:
        how = "Type the number or the words of your choice." if question.choices else "Type your answer."
    return "\n".join(filter(None, [f"? {question.words}", listed(question.choices), how]))


def _offers() -> list[str]:
    """Return the input lines that the completion menu offers, the highlighted or first one at the front."""
    buffer = get_app().current_buffer
    if (state := buffer.complete_state) is None:
        return []
    typed = state.original_document.text_before_cursor
    offers = [state.current_completion] if state.current_completion else []
    return [typed[: len(typed) + offer.start_position] + offer.text for offer in (*offers, *state.completions)]


def _is_cut_short() -> bool:
    typed, offers = get_app().current_buffer.text, _offers()
    return bool(offers) and typed not in offers and not typed.endswith(" ")


def _take_offer(event: KeyPressEvent) -> None:
    """Complete an unfinished word on Enter; a second Enter sends it."""
    event.current_buffer.document = Document(_offers()[0])


def _new_line(event: KeyPressEvent) -> None:
    event.current_buffer.insert_text("\n")
