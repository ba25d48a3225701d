"""Reads a Hermes home and never writes to it.

- `sessions/sessions.json` and the table gateway_routing map a session key to its session and origin.
- `sessions/ID.jsonl` holds one message a line.
- state.db has the tables sessions and messages. Newer versions have more columns.

Unreadable entries are skipped and reported with their location.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import apsw
from msgspec.structs import replace

from segue.core.contracts.agents import Usage
from segue.core.lanes import Address, Identity, Kind, Place, Sharing
from segue.core.messages import Speaker
from segue.core.values import Moment, Value
from segue.errors import Invalid
from segue.imports.hermes.messages import UNREADABLE, HermesStanding, Message, Raw, clean, moment, read_message

_KINDS = {"dm": Kind.DM, "private": Kind.DM, "channel": Kind.CHANNEL}
_HERE = frozenset({"", "cli", "local"})
"""Hermes' names for the terminal, which is no place on a platform."""
_COSTS = ("actual_cost_usd", "estimated_cost_usd")
_MOST_TOKENS = 2**53
_HOME = re.compile(
    r"""^[ \t]*(?:export[ ])?([A-Z0-9]+)_HOME_(?:CHANNEL|ROOM)(_NAME|_THREAD_ID|)[ \t]*[=:][ \t]*["']?([^"'\n#]*)""",
    re.MULTILINE,
)
_NESTED_HOME = re.compile(r"^[ \t]+home_channel:[ \t]*$", re.MULTILINE)


class Skipped(Value, frozen=True):
    """Something that wasn't imported: its location and the reason."""

    where: str
    why: str


class HermesSpot(Value, frozen=True):
    """The place and the person of a Hermes session."""

    place: Place
    sharing: Sharing
    speaker: Speaker | None = None
    chat_aliases: tuple[str, ...] = ()


class FoundHome(Value, frozen=True):
    """The facts of one session, without its messages."""

    id: str
    title: str = ""
    began: Moment | None = None
    used: Moment | None = None
    parent: str = ""
    ended: str = ""
    """The reason why Hermes ended it."""
    sibling: bool = False
    """Whether it is a branch or a child of its parent, not its continuation."""
    source: str = ""
    user: str = ""
    key: str = ""
    spot: HermesSpot | None = None
    usage: Usage | None = None


class Route(Value, frozen=True):
    """The session of a Hermes lane."""

    key: str
    session: str
    spot: HermesSpot
    used: Moment


class HermesHome:
    """A Hermes home, open for reading."""

    def __init__(self, path: Path, accounts: Mapping[str, str]) -> None:
        self._path = path
        self._accounts = accounts
        self._opened = ExitStack()
        self._database: apsw.Connection | None = None
        self._files: dict[str, Path] = {}
        self.sessions: dict[str, FoundHome] = {}
        self.routes: dict[str, Route] = {}
        self.skipped: list[Skipped] = []
        self.homes: list[Place] = []

    @classmethod
    def open(cls, path: Path, accounts: Mapping[str, str]) -> Self:
        """Open a home and list its contents; `accounts` maps each Hermes platform to an account."""
        home = cls(path, accounts)
        with ExitStack() as undo:
            undo.callback(home.close)
            home._explore()
            undo.pop_all()
        return home

    def close(self) -> None:
        self._opened.close()

    def history(self, id: str) -> list[Message]:
        """Return the messages of a session from its file or the database, whichever has more."""
        written = list(self._lines_of(self._files[id])) if id in self._files else []
        kept = list(self._rows_of(self._database, id)) if self._database else []
        said = sum(message.standing is not HermesStanding.UNDONE for message in kept)
        return written if len(written) > said else kept

    def account(self, platform: str, key: str) -> str:
        """Return the account for a platform: the one in `accounts`, else the profile in the key, else `main`."""
        return self._accounts.get(platform, key.split(":")[1] if key.startswith("agent:") else "main")

    def spot(self, found: FoundHome) -> HermesSpot | None:
        """Find the place of a session in its own facts, else in those of its lane."""
        return found.spot or (self.routes[found.key].spot if found.key in self.routes else None)

    def _explore(self) -> None:
        folders = [folder for folder in (self._path / "sessions", self._path) if folder.is_dir()]
        indexes = [folder / "sessions.json" for folder in folders if (folder / "sessions.json").is_file()]
        self._files = {file.stem: file for folder in reversed(folders) for file in sorted(folder.glob("*.jsonl"))}
        database = self._path / "state.db"
        if not (database.is_file() or indexes or self._files):
            fix = "Give the folder that Hermes keeps its state in, usually ~/.hermes."
            raise Invalid("home", f"{self._path} has neither state.db nor sessions", fix)
        if database.is_file():
            self._read_database(database)
        for index in indexes:
            self._read_index(index)
        for id in self._files:
            self.sessions.setdefault(id, FoundHome(id))
        self._read_homes()

    def _skip(self, file: Path, where: str, why: object) -> None:
        name = str(file.relative_to(self._path))
        self.skipped.append(Skipped(f"{name}, {where}" if where else name, str(why)))

    # Files

    def _read_index(self, index: Path) -> None:
        try:
            entries = dict(json.loads(index.read_text("utf-8-sig")))
        except UNREADABLE as error:
            self._skip(index, "", error)
            return
        for key, entry in entries.items():
            if not key.startswith("_"):  # such keys are notes to the reader
                self._add_route(index, key, entry)

    def _add_route(self, file: Path, key: str, entry: Any) -> None:
        if not isinstance(entry, dict) or not entry.get("session_id"):
            self._skip(file, key, "it names no session")
            return
        id = _text(entry, "session_id")
        origin = entry["origin"] if isinstance(entry.get("origin"), dict) else {}
        spot = self._spot({"platform": entry.get("platform"), "chat_type": entry.get("chat_type"), **origin}, key)
        began, used = moment(entry.get("created_at")), moment(entry.get("updated_at"))
        found = self.sessions.setdefault(id, FoundHome(id, began=began, used=used))
        # An older state.db has no origin of a session. A session from elsewhere was handed off to this lane.
        if spot is not None and not found.key and found.source in {"", spot.place.address.platform}:
            self.sessions[id] = replace(found, key=key)
        if spot is None:
            self._skip(file, key, "it doesn't say where its chat is")
        elif key not in self.routes or self.routes[key].used < (used or 0.0):
            self.routes[key] = Route(key, id, spot, used or 0.0)

    def _spot(self, origin: Raw, key: str) -> HermesSpot | None:
        platform, chat, thread = _text(origin, "platform"), _text(origin, "chat_id"), _text(origin, "thread_id")
        users = [user for user in (_text(origin, "user_id"), _text(origin, "user_id_alt")) if user]
        if platform in _HERE or not (chat or users):
            return None
        account = self.account(platform, key)
        kind = _KINDS.get(_text(origin, "chat_type") or "dm", Kind.GROUP)
        space = _text(origin, "scope_id") or _text(origin, "guild_id")
        # In a Discord thread, the chat's id is the thread's; another field has the parent's id.
        address = Address(platform, account, space, (thread and _text(origin, "parent_chat_id")) or chat, thread)
        place = Place(address, kind, _text(origin, "chat_name"), _text(origin, "chat_topic"))
        # A key that ends in a person's id belongs to that person alone.
        alone = kind is Kind.DM or any(key.endswith(f":{user}") for user in users)
        speaker = None
        if users:
            identity = Identity(platform, account, users[0])
            speaker = Speaker(identity, _text(origin, "user_name"), tuple(users[1:]))
        aliases = [alias for alias in [_text(origin, "chat_id_alt")] if alias]
        return HermesSpot(place, Sharing.APART if alone else Sharing.TOGETHER, speaker, tuple(aliases))

    def _lines_of(self, file: Path) -> Iterator[Message]:
        for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                message = read_message(dict(json.loads(line.decode("utf-8-sig"))))
            except UNREADABLE as error:
                self._skip(file, f"line {number}", error)
            else:
                if message is not None:
                    yield message

    # Homes

    def _read_homes(self) -> None:
        said: dict[str, dict[str, str]] = {}
        for file in (self._path / "config.yaml", self._path / ".env"):  # the environment has precedence
            try:
                text = file.read_text("utf-8-sig") if file.is_file() else ""
            except (OSError, UnicodeDecodeError) as error:
                self._skip(file, "", error)
                continue
            for platform, what, value in _HOME.findall(text):
                said.setdefault(platform.lower(), {})[what] = clean(value.strip())
            if _NESTED_HOME.search(text):
                self._skip(file, "home_channel", "a home in it isn't read; name it with /home in its chat")
        for platform, home in said.items():
            if home.get(""):
                self.homes.append(self._home_place(platform, home))

    def _home_place(self, platform: str, home: Mapping[str, str]) -> Place:
        address = Address(platform, self.account(platform, ""), "", home[""], home.get("_THREAD_ID", ""))
        spots = [route.spot for route in self.routes.values()]
        near = [
            spot for spot in spots if spot.place.address.platform == platform and spot.place.address.chat == home[""]
        ]
        if near:
            place = near[0].place
            return replace(place, address=replace(place.address, thread=address.thread))
        own = any(spot.speaker and spot.speaker.identity.user == home[""] for spot in spots)
        return Place(address, Kind.DM if own else Kind.GROUP, home.get("_NAME", ""))

    # The database

    def _read_database(self, file: Path) -> None:
        try:
            connection = self._connect(file)
            sessions = list(_rows(connection, "select * from sessions"))
            tables = {name for (name,) in connection.execute("select name from sqlite_schema where type = 'table'")}
            routes = list(_rows(connection, "select * from gateway_routing")) if "gateway_routing" in tables else []
        except (apsw.Error, UnicodeDecodeError) as error:
            self._skip(file, "", error)
            return
        self._database = connection
        for row in sessions:
            self._add_session(file, row)
        for row in routes:
            key = _text(row, "session_key")
            try:
                entry = json.loads(row["entry_json"])
            except UNREADABLE as error:
                self._skip(file, key, error)
            else:
                self._add_route(file, key, entry)

    def _connect(self, file: Path) -> apsw.Connection:
        """Open the database in place, read-only.

        If a write-ahead log beside it holds its latest changes, open a copy.
        """
        log = file.with_name(f"{file.name}-wal")
        if log.is_file() and log.stat().st_size:
            before = _stamps(file, log)
            folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(prefix="segue-hermes-")))
            for path in (file, log):
                shutil.copyfile(path, folder / path.name)
            if before != _stamps(file, log):
                raise Invalid("home", f"Hermes is writing to {file}", "Stop Hermes, then import again.")
            connection = apsw.Connection(str(folder / file.name))
        else:
            flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
            connection = apsw.Connection(f"file:{quote(str(file.absolute()))}?immutable=1", flags)
        self._opened.callback(connection.close)
        return connection

    def _add_session(self, file: Path, row: Raw) -> None:
        id, key = _text(row, "id"), _text(row, "session_key")
        try:
            origin = dict(json.loads(row.get("origin_json") or "{}"))
            setup = dict(json.loads(row.get("model_config") or "{}"))
        except UNREADABLE as error:
            self._skip(file, f"session {id}", error)
            origin, setup = {}, {}
        columns = {name: row[name] for name in ("chat_id", "chat_type", "thread_id", "user_id") if row.get(name)}
        self.sessions[id] = FoundHome(
            id,
            _text(row, "title"),
            moment(row.get("started_at")),
            moment(row.get("last_activity_at")),
            _text(row, "parent_session_id"),
            _text(row, "end_reason"),
            any(setup.get(mark) for mark in ("_branched_from", "_delegate_from", "_reset_from")),
            _text(row, "source"),
            _text(row, "user_id"),
            key,
            self._spot({"platform": row.get("source"), **columns, **origin}, key)
            if origin or columns.get("chat_id")
            else None,
            _usage(row),
        )

    def _rows_of(self, database: apsw.Connection, id: str) -> Iterator[Message]:
        file = self._path / "state.db"
        try:
            numbers = database.execute("select id from messages where session_id = ? order by id", (id,)).fetchall()
        except apsw.Error as error:
            self._skip(file, f"messages of {id}", error)
            return
        for (number,) in numbers:
            try:
                # Read one row at a time, so that an unreadable row doesn't hide the others.
                [row] = _rows(database, "select * from messages where id = ?", number)
                message = read_message(row)
            except (apsw.Error, *UNREADABLE) as error:
                self._skip(file, f"message {number}", error)
            else:
                if message is not None:
                    yield message


def _text(raw: Raw, name: str) -> str:
    value = raw.get(name)
    return "" if value is None else clean(str(value))


def _usage(row: Raw) -> Usage | None:
    """Return the cost of a session; older databases don't record it."""

    def count(name: str) -> int:
        value = row.get(f"{name}_tokens")
        return value if isinstance(value, int) and 0 < value < _MOST_TOKENS else 0

    cost = next((row[name] for name in _COSTS if isinstance(row.get(name), int | float)), None)
    read, written = count("cache_read"), count("cache_write")
    # Hermes counts cached tokens apart from the rest of the prompt.
    whole = count("input") + read + written
    used = Usage(_text(row, "model") or "unknown", whole, count("output"), count("reasoning"), read, written, cost)
    return used if used.input or used.output or used.cost else None


def _stamps(*files: Path) -> list[tuple[int, int]]:
    return [(file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def _rows(connection: apsw.Connection, sql: str, *arguments: Any) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(sql, arguments)
    for row in cursor:
        yield dict(zip((column[0] for column in cursor.getdescription()), row, strict=True))
