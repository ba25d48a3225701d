from segue.changes.accept import Fresh, FrontDoor, Queued
from segue.changes.exchange import deliveries, turns
from segue.core.lanes import Address, Identity, Kind, Person, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.settings import GatewaySettings
from segue.core.transcripts import AGENT, Draft
from segue.core.turns import Finish, Reply
from segue.core.values import PersonId, SessionId
from segue.store import Store
from tests.cli.conftest import Home

HERE = Address("http", "alpha", chat="c1")


async def _ask(store: Store) -> Queued:
    speaker = Speaker(Identity("http", "alpha", "u1"), "Ada")
    arrival = Arrival(Place(HERE, Kind.DM), "m1", speaker, (Text("hello"),), 1000.0)
    id = store.new_session_id
    fresh = Fresh(PersonId(id()), SessionId(id()), id(), (id(),), "", 1000.0)
    queued = await store.driver.write(FrontDoor(GatewaySettings()).accept, arrival, fresh, "r")
    assert isinstance(queued, Queued)
    return queued


async def _answer(store: Store, _host: Person) -> None:
    run = (await _ask(store)).run
    assert run is not None
    done = Finish((1,), (Draft(AGENT, (Text("hi"),)),), (Reply(HERE, "hi", 1),))
    await store.driver.write(turns.finish, run.held, done, 1001.0)
    [out] = await store.driver.write(deliveries.outgoing, "r", "http", "alpha", 1)
    await store.driver.write(deliveries.sent, out, "out9", 1002.0)


def test_the_path_of_a_message_is_told(home: Home) -> None:
    home.do(_answer)
    trace = home.json("trace", "m1")
    assert trace["message"] == "m1"
    [turn] = trace["turns"]
    assert (turn["lane"], turn["why"], turn["state"]) == ("http/alpha//c1//", "first", "answered")
    [delivery] = turn["deliveries"]
    assert (delivery["state"], delivery["attempts"], delivery["message"]) == ("sent", 1, "out9")
    lines = [line[21:] for line in home.segue("trace", "m1").stdout.splitlines()]
    assert lines[0] == "received from Ada in http.alpha, chat c1: this chat is one conversation"
    assert lines[1].startswith(f"queued as turn 1 of session {turn['session']}, bound since ")
    assert lines[1].endswith(": first (it was the first message there)")
    assert lines[2:] == ["answered", "sent to http.alpha, chat c1 as out9, 1 attempt"]
    assert home.segue("trace", "out9").stdout == home.segue("trace", "m1").stdout


def test_what_runs_is_told_as_such(home: Home) -> None:
    async def ask(store: Store, _host: Person) -> None:
        await _ask(store)

    home.do(ask)
    assert home.segue("trace", "m1").stdout.splitlines()[-1].split() == ["now", "running"]


def test_an_unknown_message_fails_in_one_line(home: Home) -> None:
    done = home.segue("trace", "m2", "--json")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == 'Error: No message is known by "m2". Give the id that its platform knows it by.\n'
