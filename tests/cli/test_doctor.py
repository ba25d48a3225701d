import errno
import json
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from segue.changes.exchange import deliveries, letters, turns
from segue.cli.host import config_here, file_store
from segue.config import Fetch
from segue.core.contracts.files import path_of
from segue.core.lanes import Address, Person, Place
from segue.core.messages import File, Text
from segue.core.moves import Renew
from segue.core.turns import Ask, Finish, Outcome, TurnKind
from segue.store import Store
from tests.agents.acp.keys import program
from tests.cli.conftest import Home
from tests.cli.test_serve import run, serve


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


THERE = Address("http", "alpha", chat="c1")


async def nothing(_store: Store, _host: Person) -> None:
    """Only make the database."""


def wrong(home: Home) -> list[tuple[str, str, str]]:
    """What is wrong, which must be what the exit code says."""
    done = home.segue("doctor", "--json")
    findings: list[dict[str, Any]] = json.loads(done.stdout)
    found = [(f["about"], f["says"], f["fix"]) for f in findings if f["state"] == "wrong"]
    assert done.exit_code == (1 if found else 0)
    assert home.segue("doctor").exit_code == done.exit_code
    return found


def test_an_empty_home_has_nothing_wrong_and_stays_empty(home: Home) -> None:
    assert wrong(home) == []
    assert list(home.path.iterdir()) == []
    lines = home.segue("doctor").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["note", "fine", "note", "note"]
    assert "`segue init` writes one." in lines[0]
    assert lines[-1].endswith("`segue serve` runs one.")


def test_a_sound_database_is_told_with_its_version(home: Home) -> None:
    home.do(nothing)
    (home.path / "segue.toml").write_text("")
    assert wrong(home) == []
    text = home.segue("doctor").stdout
    assert f"fine  config        {home.path / 'segue.toml'}\n" in text
    assert f"fine  database      {home.path / 'segue.db'}, version " in text


def test_every_mistake_in_the_config_is_told_with_its_fix(home: Home) -> None:
    (home.path / "segue.toml").write_text(
        'owners = ["http.alpha/u1"]\n[turns]\nslot = 1\n[server]\nport = 8800\n[resets]\nwhen = "daily"\n'
        '[resets.dm]\nhour = 3\n[http.alpha]\nsecret = "env:NOPE"\ncallback = "http://127.0.0.1:9/out"\n[tlegram.x]\n'
    )
    assert wrong(home) == [
        ("config", "turns.slot: there is no such key.", "Did you mean slots?"),
        ("config", "http.alpha.secret: the variable NOPE isn't set.", "Set it: export NOPE=..."),
        ("config", "tlegram: there is no such key or platform.", wrong(home)[2][2]),
    ]


def test_every_mistake_of_a_table_is_told(home: Home) -> None:
    (home.path / "segue.toml").write_text(
        '[turns]\nslot = 1\nbusy = "loud"\nattempts = 0\n[server]\nport = 99999\nurl = "nowhere"\nhosts = ["a b"]\n'
        '[resets.dm]\nhour = 3\nzone = "Mars"\n[resets.dmm]\nhour = 3\n[http.alpha]\nsecert = 1\nedits = 3\n'
    )
    assert [says.partition(":")[0] for _, says, _ in wrong(home)] == [
        "turns.slot",
        "turns.busy",
        "turns.attempts",
        "server.port",
        "server.url",
        "server.hosts",
        "resets.dmm",
        "resets.dm.zone",
        "resets.dm.hour",
        "resets.dm.zone",
        "resets.dmm.hour",
        "http.alpha.secert",
        "http.alpha.edits",
        "http.alpha.secret",
        "http.alpha.callback",
    ]


def test_a_taken_port_is_told_with_who_has_it(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (home.path / "segue.toml").write_text(f"[server]\nport = {port}\n")
        [(about, says, fix)] = wrong(home)
        served = home.segue("serve")
    assert (about, says) == ("server", f"port {port} is taken.")
    assert fix.startswith(f"Stop process {os.getpid()} (`")
    assert fix.endswith("or choose another one with port under [server].")
    assert served.exit_code == 2
    assert f"Stop process {os.getpid()} (`" in served.stderr


def test_a_dead_model_server_and_a_dead_callback_are_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALPHA_SECRET", "s" * 32)
    with socket.socket() as nobody:
        # Bound and not listening: whoever calls is refused, and nobody else gets the port.
        nobody.bind(("127.0.0.1", 0))
        there = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        (home.path / "segue.toml").write_text(
            f'[agent]\nkind = "model"\nmodel = "openai:x"\nbase_url = "{there}/v1"\n'
            f'[http.alpha]\nsecret = "env:ALPHA_SECRET"\ncallback = "{there}/out"\npublic = true\n'
        )
        [agent, account] = wrong(home)
    refused = f"([Errno {errno.ECONNREFUSED}] Connection refused)"
    assert agent == ("agent", f"nobody answers at {there}/v1 {refused}.", fix_of("base_url", "agent"))
    assert account == ("http.alpha", f"nobody answers at {there}/out {refused}.", fix_of("callback", "http.alpha"))


def fix_of(key: str, table: str) -> str:
    return f"Start what should, or put right {key} under [{table}]."


def test_a_mistake_between_two_tables_is_told(home: Home) -> None:
    (home.path / "segue.toml").write_text('owners = ["http.alpha/u1"]')
    [(about, says, _)] = wrong(home)
    assert (about, says) == ("config", 'owners: "http.alpha/u1" names no account of this file.')


def test_a_file_that_is_no_toml_is_told(home: Home) -> None:
    (home.path / "segue.toml").write_text("[turns")
    [(about, says, _)] = wrong(home)
    assert about == "config"
    assert says.startswith("segue.toml: line 1 is not TOML")


@pytest.mark.parametrize("name", ["", "token", "segue.db"])
def test_what_others_may_open_is_told_with_the_command_that_ends_it(home: Home, name: str) -> None:
    home.do(nothing)
    (home.path / "token").touch(mode=0o600)
    path = home.path / name if name else home.path
    path.chmod(0o755 if not name else 0o644)
    [(_, says, fix)] = wrong(home)
    assert says == f"others may open {path}."
    assert os.system(fix) == 0
    assert wrong(home) == []


def test_a_file_where_the_folder_should_be_is_told(home: Home) -> None:
    home.path.rmdir()
    home.path.write_text("")
    assert wrong(home)[0] == ("data folder", f"{home.path} is not a folder.", "Move it, or set SEGUE_HOME.")


def test_a_database_that_is_none_is_told(home: Home) -> None:
    (home.path / "segue.db").write_text("only text, again and again. " * 100)
    (home.path / "segue.db").chmod(0o600)
    [(about, says, _)] = wrong(home)
    assert about == "database"
    assert "isn't a database" in says


def test_what_lies_about_is_told_with_the_reason(home: Home) -> None:
    async def litter(store: Store, _host: Person) -> None:
        write = store.driver.write
        await write(deliveries.notify, THERE, "hi", "k1", (), time.time())
        [out] = await write(deliveries.outgoing, "r", "http", "alpha", 1)
        await write(deliveries.give_up, out, "the callback says 410", time.time())
        await write(deliveries.notify, THERE, "hi", "k2", (), 1000.0)
        await write(letters.bury, "http/alpha", "{", "not JSON", time.time())

    home.do(litter)
    dead, unread, late = wrong(home)
    assert (dead[0], unread[0], late[0]) == ("dead letters", "arrivals", "deliveries")
    assert dead[1].startswith("1 couldn't be sent, the last ")
    assert dead[1].endswith(" (the callback says 410).")
    assert unread[1].endswith(" (not JSON).")
    assert late[1].startswith("1 wait to be sent, the oldest since ")
    assert all(fix for _, _, fix in (dead, unread, late))


def test_a_missing_file_is_named(any_home: Home) -> None:
    content = {digest: digest.encode() for digest in ("here", "gone")}
    paths = [path_of(sha256(text).hexdigest()) for text in content.values()]

    async def said(store: Store, host: Person) -> None:
        session = store.new_session_id()
        await store.move(Renew(await store.lane(Place(THERE), host), session), host)
        await store.say(session, host, tuple(File("a", "text/plain", where) for where in paths))
        await file_store(config_here(Fetch.STORE), store).put(paths[0], once(content["here"]))

    any_home.do_configured(said)
    assert wrong(any_home) == []
    [found] = [f for f in json.loads(any_home.segue("doctor", "--json").stdout) if f["about"] == "files"]
    assert (found["state"], found["says"]) == ("note", f"1 file that a message names is missing: {paths[1]}.")
    on_server = "postgresql" in (any_home.path / "segue.toml").read_text()
    assert ("data folder has them" in found["fix"]) is on_server


def test_an_agent_that_fails_is_told_by_the_name_of_its_error(home: Home) -> None:
    async def fail(store: Store, host: Person) -> None:
        session, write = store.new_session_id(), store.driver.write
        await store.move(Renew(await store.lane(Place(THERE), host), session), host)
        await write(turns.ask, Ask(session, TurnKind.SENT, "call", (Text("hello"),), host.id), time.time())
        [run] = await write(turns.claim, "r", 1)
        done = Finish((1,), (), outcome=Outcome.FAILED, error="KeyRefused('sk-secret, hello')", kind=TurnKind.SENT)
        await write(turns.finish, run.held, done, time.time())

    home.do(fail)
    [(about, says, fix)] = wrong(home)
    assert about == "agent"
    assert says.startswith("1 failed since it last answered, the last ")
    assert says.endswith(" (KeyRefused).")
    assert "api_key" in fix


def test_a_server_that_does_not_answer_is_told(home: Home) -> None:
    (home.path / "segue.toml").write_text('[store]\nurl = "postgresql://nobody@127.0.0.1:1/none"')
    [(about, says, _)] = wrong(home)
    assert about == "database"
    assert "127.0.0.1:1" in says


async def test_a_running_gateway_is_told(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").write_text("")
    async with serve(tmp_path) as here:
        async with run(tmp_path, "doctor") as doctor:
            code, out, _ = await doctor.end()
        here.signal(signal.SIGTERM)
        assert (await here.end())[0] == 0
    assert code == 0, out
    assert f"it runs, and answers at {tmp_path / 'gateway.sock'}" in out
    assert "1 alive" in out


async def test_an_account_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    matrix = '[matrix.main]\nhomeserver = "http://127.0.0.1:1"\nuser = "@segue:example.org"\ntoken = "file:token.txt"'
    (tmp_path / "segue.toml").write_text(f"{matrix}\npublic = true\n")
    (tmp_path / "token.txt").write_text("t")
    async with serve(tmp_path) as here:
        assert here.process.stderr is not None
        async for line in here.process.stderr:
            if b"matrix.main lost its connection" in line:
                break
        async with run(tmp_path, "doctor") as doctor:
            code, out, _ = await doctor.end()
        here.signal(signal.SIGTERM)
        assert (await here.end())[0] == 0
    assert code == 1, out
    why = "the homeserver at http://127.0.0.1:1 can't be reached (ConnectionRefusedError)"
    assert f"isn't connected: {why}. It is tried again by itself." in out
    assert f"isn't connected: {why}. See its log." in out


SIGN_IN = "Sign in once with the program itself"


@pytest.mark.parametrize(
    ("more", "says", "fix"),
    [
        ((), "program 1; goes on with its sessions after a restart; takes image, files", ""),
        (("nobody",), "python isn't signed in.", SIGN_IN),
        (("locked",), "python isn't signed in.", f"{SIGN_IN} (it offers: Sign in on the web), or give it its key"),
        (
            ("broken",),
            "python opens no session: Internal error (no model",
            f"If nobody has signed in: {SIGN_IN}",
        ),
    ],
    ids=["works", "nobody", "locked", "broken"],
)
def test_an_agent_that_opens_no_session_is_told_with_the_way_to_sign_in(
    home: Home, tmp_path: Path, more: tuple[str, ...], says: str, fix: str
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    command = json.dumps(program(there, *more).command)
    (home.path / "segue.toml").write_text(f'[agent]\nkind = "acp"\ncommand = {command}\nfolder = "{there}"\n')
    found = {f["about"]: f for f in json.loads(home.segue("doctor", "--json").stdout)}["agent"]
    assert found["state"] == ("wrong" if more else "fine")
    assert found["says"].startswith(says)
    assert found["fix"].startswith(fix)
    log = (there / "log").read_text() if (there / "log").exists() else ""
    opened = 0 if {"locked", "broken"} & {*more} else 1
    assert (log.count("new "), log.count("close ")) == (opened, opened), "what it opened it closes"
