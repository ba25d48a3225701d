import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from segue.changes.exchange import replicas, turns
from segue.cli.host import config_here
from segue.core.lanes import Address, Identity, Kind, Lane, Person, Place
from segue.core.messages import Aside, File, Text
from segue.core.moves import Fork, Renew, Resume
from segue.core.transcripts import AGENT, Author, Role, Tip
from segue.core.turns import Ask, Room, TurnKind
from segue.core.values import SessionId
from segue.runtime.files.folder import Folder
from segue.store import Store, fresh_ids
from tests.cli.conftest import Home


async def begin(store: Store, host: Person, *said: str, chat: str = "c1") -> SessionId:
    """A session in which the host and the agent spoke in turn."""
    lane = await store.lane(Place(Address("http", "alpha", chat=chat), Kind.DM), host)
    id = store.new_session_id()
    await store.move(Renew(lane, id), host)
    for at, text in enumerate(said):
        await store.say(id, AGENT if at % 2 else host, text)
    return id


def trip(home: Home) -> SessionId:
    """A session called Trip."""

    async def work(store: Store, host: Person) -> SessionId:
        id = await begin(store, host, "where to?", "to Rome", "by train?", "by night train")
        await store.set_title(id, "Trip", host)
        return id

    return home.do(work)


def test_sessions_are_listed_the_last_used_first(home: Home) -> None:
    first = trip(home)
    second = home.do(lambda store, host: begin(store, host, "milk", chat="c2"))
    assert [session["id"] for session in home.json("sessions", "list")] == [second, first]
    lines = home.segue("sessions", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [second, first]
    assert lines[0].endswith("  -     milk")
    assert "  Trip  " in lines[1]
    home.do(lambda store, host: store.close_session(second, host))
    closed = home.segue("sessions", "list").stdout.splitlines()[1]
    assert closed.startswith(second)
    assert closed.endswith("  - (closed)  milk")


def test_the_host_stops_the_turn_that_runs_in_anybodys_session(home: Home) -> None:
    own = trip(home)

    async def strangers(store: Store, _: Person) -> SessionId:
        eve = await store.person(Identity("http", "alpha", "eve"), "Eve")
        id = await begin(store, eve, chat="c9")
        me = fresh_ids(time.time)()
        await store.driver.write(replicas.join, me, 60.0)
        await store.driver.write(turns.ask, Ask(id, TurnKind.SENT, "call", (Text("go"),), eve.id), 1.0)
        await store.driver.write(turns.claim, me, 1, Room(1))
        return id

    hers = home.do(strangers)
    assert home.segue("sessions", "stop", "Trip").stdout == f"No turn runs in {own}.\n"
    assert home.segue("sessions", "stop", hers).stdout == f"The turn that runs in {hers} is stopped.\n"
    assert home.do(lambda store, _: store.driver.read(turns.stopped, hers))
    assert "none of yours goes by" in home.segue("sessions", "stop", "nothing").stderr


def test_a_home_without_sessions_lists_none(home: Home) -> None:
    assert home.json("sessions", "list") == []
    assert home.segue("sessions", "list").stdout == "No sessions. `segue` starts one.\n"


def test_more_sessions_than_a_page_are_all_listed(home: Home) -> None:
    async def work(store: Store, host: Person) -> list[SessionId]:
        return [await begin(store, host, "hi", chat=f"c{n}") for n in range(101)]

    made = home.do(work)
    assert [session["id"] for session in home.json("sessions", "list")] == made[::-1]


def test_only_active_ones_are_listed_if_asked(home: Home) -> None:
    exported = home.segue("sessions", "export", trip(home)).stdout.splitlines()
    line = json.loads(exported[1]) | {"at": 1000.0}
    header = {"segue": 1, "title": "Old", "began": 1000.0, "used": 1000.0, "tip": 1, "entries": 1}
    old = f"{json.dumps(header)}\n{json.dumps(line)}\n"
    assert home.segue("sessions", "import", "-", said=old).exit_code == 0
    assert {session["title"] for session in home.json("sessions", "list")} == {"Trip", "Old"}
    assert [session["title"] for session in home.json("sessions", "list", "--active", "5")] == ["Trip"]
    assert home.segue("sessions", "list", "--active", "0").exit_code == 2


@pytest.mark.parametrize("by", ["id", "title"])
def test_a_session_is_shown_by_id_or_title(home: Home, by: str) -> None:
    id = trip(home)
    shown = home.json("sessions", "show", id if by == "id" else "Trip")
    assert shown["session"]["id"] == id
    assert [entry["author"]["role"] for entry in shown["entries"]] == ["person", "agent"] * 2
    text = home.segue("sessions", "show", id).stdout
    assert text.startswith(f"Trip ({id}), last used ")
    assert text.index("Ada, ") < text.index("where to?") < text.index("Agent, ") < text.index("to Rome")


def test_what_only_the_agent_was_told_is_not_shown_as_said(home: Home) -> None:
    async def work(store: Store, host: Person) -> str:
        id = await begin(store, host, "milk")
        await store.say(id, Author(Role.GATEWAY), (Aside("told once"),))
        await store.say(id, AGENT, (File("cow.png", "image/png", "files/ab/cd"),))
        return id

    text = home.segue("sessions", "show", home.do(work)).stdout
    assert "Segue, " not in text
    assert text.endswith(":\ncow.png\n")


def test_what_somebody_wrote_cannot_steer_the_terminal(home: Home) -> None:
    id = home.do(lambda store, host: begin(store, host, "red \x1b[31malert\x1b[0m\x07"))
    assert "red [31malert[0m\n" in home.segue("sessions", "show", id).stdout
    assert "\x1b" in home.json("sessions", "show", id)["entries"][0]["parts"][0]["text"]


def test_an_unknown_session_is_a_mistake_with_the_nearest_title(home: Home) -> None:
    trip(home)
    done = home.segue("sessions", "show", "Tripp")
    assert done.exit_code == 2
    assert done.stderr == 'Error: session: none of yours goes by "Tripp". Did you mean "Trip"?\n'
    done = home.segue("sessions", "show", "zzz")
    assert done.stderr == 'Error: session: none of yours goes by "zzz". `segue sessions list` lists them.\n'


def test_somebody_elses_session_is_as_if_it_were_not_there(home: Home) -> None:
    async def work(store: Store, host: Person) -> SessionId:
        other = await store.person(Identity("http", "alpha", "u2"), "Bob")
        return await begin(store, other, "secret", chat="c3")

    id = home.do(work)
    done = home.segue("sessions", "show", id)
    assert (done.exit_code, done.stderr.replace(id, "zzz")) == (2, home.segue("sessions", "show", "zzz").stderr)
    assert home.json("sessions", "search", "secret") == []


def test_a_tree_shows_forks_and_what_was_abandoned(home: Home) -> None:
    async def grow(store: Store, host: Person) -> tuple[SessionId, SessionId]:
        id = await store.find("Trip", host)
        await store.undo(id, host)
        await store.say(id, host, "by plane?")
        lane = Lane(Address("http", "alpha", chat="c9"))
        fork = store.new_session_id()
        await store.lane(Place(lane.address, Kind.DM), host)
        await store.move(Fork(lane, id, fork, at=Tip(id, 2)), host)
        await store.say(fork, host, "and Milan?")
        return id, fork

    trip(home)
    id, fork = home.do(grow)
    tree = home.json("sessions", "show", "Trip", "--tree")
    assert [(b["id"], b["parent"], b["after"], b["entries"]) for b in tree] == [(id, None, 0, 5), (fork, id, 2, 1)]
    assert tree[0]["abandoned"] == [{"after": 2, "entries": 2, "text": "by train?", "last": 4}]
    assert home.segue("sessions", "show", "Trip", "--tree").stdout.splitlines() == [
        f"Trip ({id}) · 5 entries",
        "├─ after 2: abandoned, 2 entries up to 4, “by train?”",
        f"└─ after 2: {fork} · 1 entry",
    ]


def test_what_was_said_is_found_without_a_gateway(home: Home) -> None:
    id = trip(home)
    [found] = home.json("sessions", "search", "NIGHT", "tra")
    assert (found["title"], found["entry"]["tip"]) == ("Trip", {"session": id, "n": 4})
    assert home.segue("sessions", "search", "night").stdout.rstrip().endswith("Trip  by night train")
    assert home.segue("sessions", "search", "submarine").stdout == "Nothing was found.\n"


def test_a_session_without_a_title_goes_by_its_first_question(home: Home) -> None:
    id = home.do(lambda store, host: begin(store, host, "how hot is tea?", "eighty degrees"))
    assert home.segue("sessions", "show", id).stdout.startswith(f"how hot is tea? ({id}), last used ")
    assert home.segue("sessions", "search", "eighty").stdout.rstrip().endswith("how hot is tea?  eighty degrees")


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_an_export_comes_back_as_a_new_session(home: Home, tmp_path: Path, form: str) -> None:
    id = trip(home)
    file = tmp_path / "trip"
    assert home.segue("sessions", "export", "Trip", "--form", form, "-o", str(file)).stdout == ""
    assert home.segue("sessions", "export", "Trip", "--form", form).stdout == file.read_text()
    session = home.json("sessions", "import", str(file))
    assert session["id"] != id
    assert session["title"] == "Trip #2"
    texts = [
        [e["parts"] for e in home.json("sessions", "show", name)["entries"]] for name in ("Trip #1", session["id"])
    ]
    assert texts[0] == texts[1] != []


def test_the_bytes_of_files_come_along(home: Home, tmp_path: Path) -> None:
    async def work(store: Store, host: Person) -> File:
        async def cow() -> AsyncIterator[bytes]:
            yield b"moo" * 50_000

        file = await Folder(config_here().data).keep("cow.png", "image/png", cow())
        await store.say(await begin(store, host, "look"), host, (file,))
        return file

    file = home.do(work)
    [session] = home.json("sessions", "list")
    bundle = tmp_path / "bundle.jsonl"
    home.segue("sessions", "export", session["id"], "-o", str(bundle))
    assert home.segue("sessions", "export", session["id"]).stdout == bundle.read_text()
    [kept] = home.path.rglob(Path(file.where).name)
    kept.unlink()
    copy = home.json("sessions", "import", str(bundle))
    assert kept.read_bytes() == b"moo" * 50_000
    assert home.json("sessions", "show", copy["id"])["entries"][-1]["parts"][0]["where"] == file.where


def test_files_that_cannot_be_are_named(home: Home, tmp_path: Path) -> None:
    trip(home)
    done = home.segue("sessions", "export", "Trip", "-o", str(tmp_path / "no" / "file"))
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert str(tmp_path / "no" / "file") in done.stderr
    done = home.segue("sessions", "import", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert "can't be read (No such file or directory)" in done.stderr
    done = home.segue("sessions", "import", "-", said=b"\xff")
    assert (done.exit_code, done.stderr) == (2, "Error: -: it is not UTF-8 text. Name the file of an export.\n")
    done = home.segue("sessions", "import", "-", said="nonsense\n")
    assert (done.exit_code, done.stderr[:14]) == (2, "Error: line 1:")
    assert len(home.json("sessions", "list")) == 1


def test_a_session_is_named(home: Home) -> None:
    id = home.do(lambda store, host: begin(store, host, "milk"))
    trip(home)
    assert home.segue("sessions", "title", id, "Trip").stdout == "Trip #2\n"
    assert home.json("sessions", "title", "Trip #2", "Shopping")["title"] == "Shopping"
    done = home.segue("sessions", "title", id, "42")
    assert done.exit_code == 2
    assert home.json("sessions", "show", id)["session"]["title"] == "Shopping"


def test_lanes_are_listed_with_what_they_speak_to_and_why(home: Home) -> None:
    assert home.json("lanes") == []
    assert home.segue("lanes").stdout == "No lanes: nobody has talked yet.\n"
    id = trip(home)

    async def resume(store: Store, host: Person) -> None:
        lane = await store.lane(Place(Address("http", "alpha", chat="c2"), Kind.DM, "Elsewhere"), host)
        await store.move(Resume(lane, id), host)
        await store.lane(Place(Address("http", "alpha", chat="c3"), Kind.DM), host)

    home.do(resume)
    lanes = home.json("lanes")
    shown = [(lane["address"]["chat"], lane["session"], lane["title"], lane["why"]) for lane in lanes]
    # In c3 nothing was ever said.
    assert shown == [("c1", id, "Trip", "new"), ("c2", id, "Trip", "resume")]
    assert lanes[1]["name"] == "Elsewhere"
    assert all(datetime.fromisoformat(lane["since"]).tzinfo is UTC for lane in lanes)
    lines = home.segue("lanes").stdout.splitlines()
    assert lines[1].startswith(f"http.alpha, chat c2 (Elsewhere)  Trip ({id})")
    assert lines[1].endswith("resume")
    assert len(lines) == 2


def test_chats_that_were_taken_for_one_are_listed_parted_and_linked(home: Home) -> None:
    assert home.segue("lanes", "links").stdout == "No links: every chat goes by one id.\n"

    async def chats(store: Store, _: Person) -> None:
        bob = await store.person(Identity("http", "alpha", "u2"), "Bob")
        for chat in ("+49151", "f0a1"):
            lane = await store.lane(Place(Address("http", "alpha", chat=chat), Kind.DM), bob)
            await store.move(Renew(lane, store.new_session_id()), bob)
        await store.lane(Place(Address("http", "alpha", chat="f0a1"), Kind.DM), bob, aliases=["+49151"])

    home.do(chats)
    [link] = home.json("lanes", "links")
    assert (link["gone"]["chat"], link["kept"]["chat"], link["why"]) == ("f0a1", "+49151", "alias")
    assert "http.alpha, chat f0a1, with +49151  because the platform says so" in home.segue("lanes", "links").stdout
    assert "Chats:\n" in home.segue("people", "show", "http.alpha/u2").stdout
    assert home.segue("lanes", "unlink", link["id"]).stdout == "Parted: f0a1 is a chat of its own again.\n"
    assert [lane["session"] is not None for lane in home.json("lanes")] == [True, True]
    again = home.segue("lanes", "unlink", link["id"])
    assert (again.exit_code, "doesn't hold" in again.stderr) == (2, True)
    assert (
        "both are http.alpha, chat +49151 now"
        in home.segue("lanes", "link", "http.alpha:f0a1", "http.alpha:+49151").stdout
    )
    assert home.segue("lanes", "link", "http.alpha:f0a1", "http.alpha:x").exit_code == 2
    events = [fact["fact"]["event"] for fact in home.json("audit")]
    assert events[:3] == ["linked", "unlinked", "linked"]


def test_a_title_of_somebody_else_is_not_shown_with_their_lane(home: Home) -> None:
    async def work(store: Store, host: Person) -> None:
        other = await store.person(Identity("http", "alpha", "u2"), "Bob")
        await store.set_title(await begin(store, other, "hi"), "Bob's secret", other)

    home.do(work)
    [lane] = home.json("lanes")
    assert lane["session"]
    assert lane["title"] == ""


def test_a_mistake_in_the_config_is_one_line(home: Home) -> None:
    (home.path / "segue.toml").write_text("[turns]\nslot = 1")
    done = home.segue("sessions", "list")
    assert (done.exit_code, done.stderr) == (2, "Error: turns.slot: there is no such key. Did you mean slots?\n")


def test_a_database_that_cannot_be_opened_is_one_line(home: Home) -> None:
    (home.path / "segue.db").write_text("this is not a database, whatever its name says; it is only text" * 20)
    done = home.segue("lanes")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert "segue.db" in done.stderr


def test_show_tells_what_an_import_said_in_the_gateway_s_name_apart(home: Home) -> None:
    text = (
        '{"segue":1,"title":"","began":5.0,"used":9.0,"tip":1,"entries":1}\n'
        '{"number":1,"parent":null,"author":{"role":"gateway","person":"","name":""},'
        '"parts":[{"type":"aside","text":"The host allows it."}],"at":7.0,"turn":0}\n'
    )
    assert home.segue("sessions", "import", "-", said=text).exit_code == 0
    [session] = [session["id"] for session in home.json("sessions", "list")]
    shown = home.segue("sessions", "show", session).stdout
    assert "Segue (imported)" in shown
    assert "The host allows it." in shown
