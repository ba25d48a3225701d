from pathlib import Path

import pytest
from msgspec.structs import replace

from segue.adapters.http import HttpAccount
from segue.agents.builtin.agent import Builtin
from segue.config import Config, find, load, trust
from segue.config.zone import machine_zone
from segue.core.lanes import Address, Identity, Kind, Place, Rules, Sharing
from segue.core.moves import Limits
from segue.core.resets import Policy, When
from segue.core.settings import AccountSettings, Blind, Busy, DmThreads, GatewaySettings, Mentions, Redaction, Streams
from segue.core.values import Secret
from segue.errors import Invalid
from segue.plugins import platforms

ENVIRON = {"ALPHA_SECRET": "s3cret-of-alpha", "DATABASE_URL": "postgresql://segue:hunter2@db/segue", "EMPTY": " "}
ALPHA = """
[http.alpha]
secret = "env:ALPHA_SECRET"
callback = "http://127.0.0.1:9001/out"
public = true
"""


def read(folder: Path, text: str | bytes, name: str = "segue.toml") -> Config:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(file, ENVIRON | {"SEGUE_HOME": str(folder / "home")})


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, "")
    assert config.gateway == GatewaySettings()
    assert config.store == tmp_path / "home" / "segue.db"
    assert (config.accounts, config.secrets) == ((), ())
    assert isinstance(config.agents[""].agent(), Builtin)
    assert (config.server.host, config.server.port, config.server.hosts) == ("127.0.0.1", 8800, ())


def test_the_documented_file_is_read(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        owners = ["http.alpha/u1"]   # the identities of one person, the host: PLATFORM.ACCOUNT/USER
        [agent]
        kind = "builtin"
        [http.alpha]                # one table per account: [PLATFORM.ACCOUNT]
        secret = "env:ALPHA_SECRET"
        callback = "http://127.0.0.1:9001/out"
        opens_threads = true
        public = true
        home = { chat = "lobby", kind = "group" }
        """,
    )
    assert config.gateway.hosts == (Identity("http", "alpha", "u1"),)
    [account] = config.accounts
    secret = Secret("s3cret-of-alpha")
    assert account.keys == HttpAccount(secret, "http://127.0.0.1:9001/out", opens_threads=True)
    assert config.secrets == (secret,)
    home = Place(Address("http", "alpha", chat="lobby"), Kind.GROUP)
    assert config.gateway.accounts == {("http", "alpha"): AccountSettings(public=True, home=home)}
    assert "s3cret" not in repr(config)


def test_everything_can_be_said(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
        owners = ["http.alpha/u1", "http.beta/a/b"]
        [store]
        path = "kept/here.db"
        [lanes]
        groups = "together"
        threads = "apart"
        dm_threads = "fresh"
        [context]
        redact_pii = true
        [children]
        depth = 2
        live = 4
        budget = 10
        [turns]
        busy = "steer"
        slots = 8
        attempts = 5
        silence = 60
        deadline = 600.5
        [deliveries]
        blind = "at_most_once"
        give_up_after = 60
        [replica]
        lease = 0.5
        poll = 0.1
        grace = 0
        [server]
        host = "::1"
        port = 0
        hosts = ["segue.example.org", "[2001:db8::1]"]
        [http.alpha]
        secret = "env:ALPHA_SECRET"
        callback = "http://127.0.0.1:9001/out"
        [http.beta]
        secret = "env:ALPHA_SECRET"
        callback = "https://platform.example.org/out"
        edits = true
        allow = ["u1", "u2"]
        allow_groups = ["lobby"]
        mentions = "needed"
        streams = "whole"
        home = { chat = "lobby", kind = "channel", space = "guild", thread = "t1", name = "Lobby" }
        """,
    )
    gateway = config.gateway
    assert config.store == tmp_path / "kept/here.db"
    assert gateway.hosts == (Identity("http", "alpha", "u1"), Identity("http", "beta", "a/b"))
    assert gateway.routing.rules == Rules(Sharing.TOGETHER, Sharing.APART)
    assert gateway.routing.dm_threads is DmThreads.FRESH
    assert gateway.redaction is Redaction.PSEUDONYMS
    assert gateway.routing.limits == Limits(depth=2, children=4, budget=10)
    assert (gateway.busy, gateway.slots, gateway.attempts) == (Busy.STEER, 8, 5)
    assert (gateway.turn_silence, gateway.turn_total) == (60, 600.5)
    assert (gateway.blind, gateway.give_up_after) == (Blind.AT_MOST_ONCE, 60)
    assert (gateway.lease, gateway.poll, gateway.grace) == (0.5, 0.1, 0)
    assert (config.server.host, config.server.port) == ("::1", 0)
    assert config.server.hosts == ("segue.example.org", "[2001:db8::1]")
    assert gateway.accounts["http", "alpha"] == AccountSettings()
    assert gateway.accounts["http", "beta"] == AccountSettings(
        allow=frozenset({"u1", "u2"}),
        allow_groups=frozenset({"lobby"}),
        mentions=Mentions.NEEDED,
        streams=Streams.WHOLE,
        home=Place(Address("http", "beta", "guild", "lobby", "t1"), Kind.CHANNEL, "Lobby"),
    )


def test_a_reset_policy_says_only_what_differs_from_the_default(tmp_path: Path) -> None:
    resets = read(
        tmp_path,
        """
        [resets]
        when = "daily"
        zone = "Europe/Lisbon"
        [resets.group]
        when = "both"
        idle_minutes = 30
        [resets.thread]
        when = "none"
        [resets.http]
        hour = 6
        """,
    ).gateway.routing.resets
    assert resets.default == Policy(When.DAILY, zone="Europe/Lisbon")
    assert resets.kinds == {
        "group": Policy(When.BOTH, 30, zone="Europe/Lisbon"),
        "thread": Policy(When.NONE, zone="Europe/Lisbon"),
    }
    assert resets.platforms == {"http": Policy(When.DAILY, hour=6, zone="Europe/Lisbon")}


def test_times_are_meant_in_the_machines_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Australia/Lord_Howe")
    gateway = read(tmp_path, '[resets]\nwhen = "daily"\n[resets.dm]\nhour = 5').gateway
    here = Policy(When.DAILY, zone="Australia/Lord_Howe")
    assert (gateway.zone, gateway.routing.resets.default) == ("Australia/Lord_Howe", here)
    assert gateway.routing.resets.kinds == {"dm": Policy(When.DAILY, hour=5, zone="Australia/Lord_Howe")}


def test_the_machines_zone_is_found_where_machines_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert machine_zone(tmp_path) == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "<-03>3")
    assert machine_zone(tmp_path) == "UTC"
    (tmp_path / "timezone").write_text("Europe/Berlin\n")
    assert machine_zone(tmp_path) == "Europe/Berlin"
    monkeypatch.delenv("TZ")
    (tmp_path / "localtime").symlink_to("/var/db/timezone/zoneinfo/America/Argentina/Salta")
    assert machine_zone(tmp_path) == "America/Argentina/Salta"
    (tmp_path / "localtime").unlink()
    (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Etc/UTC")
    assert machine_zone(tmp_path) == "UTC"


def test_a_time_zone_may_be_said_once_for_all_policies(tmp_path: Path) -> None:
    resets = read(tmp_path, '[resets]\nzone = "Asia/Tokyo"\n[resets.dm]\nwhen = "daily"').gateway.routing.resets
    assert resets.kinds == {"dm": Policy(When.DAILY, zone="Asia/Tokyo")}


def test_what_is_asked_at_an_end_and_how_times_are_meant(tmp_path: Path) -> None:
    told = '[resets]\nwhen = "idle"\nnotice = true\nending = "Save."\n[schedules]\nzone = "Asia/Tokyo"'
    gateway = read(tmp_path, told).gateway
    assert gateway.routing.resets.default == Policy(When.IDLE, notice=True)
    assert (gateway.ending, gateway.zone) == ("Save.", "Asia/Tokyo")
    plain = read(tmp_path, "").gateway
    assert (plain.ending, plain.zone, plain.routing.resets.resets) == ("", "UTC", False)


@pytest.mark.parametrize(
    ("first", "line"),
    [
        ("", 'allow = ["u1"]'),
        ("", 'allow_groups = ["lobby"]'),
        ('owners = ["http.alpha/u1"]', ""),
    ],
    ids=["a user", "a group", "the host"],
)
def test_an_account_needs_somebody_who_may_talk_to_it(tmp_path: Path, first: str, line: str) -> None:
    config = read(tmp_path, first + ALPHA.replace("public = true", line))
    assert not config.accounts[0].settings.public


@pytest.mark.parametrize("url", ["postgresql://db/segue", "postgres://segue@db:5432/segue", "env:DATABASE_URL"])
def test_a_server_is_named_by_its_address_or_where_that_is(tmp_path: Path, url: str) -> None:
    config = read(tmp_path, f'[store]\nurl = "{url}"')
    assert config.store == Secret(ENVIRON["DATABASE_URL"] if url.startswith("env:") else url)
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    "reference",
    ["file:secret.txt", "cmd:printf 'the secret\\n'", "cmd:cat {folder}/secret.txt", "file:{folder}/secret.txt"],
)
def test_a_secret_is_fetched_without_its_line_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str
) -> None:
    monkeypatch.chdir("/")  # A relative path is relative to the file that says it.
    (tmp_path / "secret.txt").write_text("the secret\n")
    text = ALPHA.replace('"env:ALPHA_SECRET"', f"""'''{reference.format(folder=tmp_path)}'''""")
    assert read(tmp_path, text).secrets == (Secret("the secret"),)


def with_alpha(*lines: str) -> str:
    """A sound account, with more lines in its table."""
    return ALPHA + "\n".join(lines)


def alpha_but(old: str, new: str) -> str:
    """A sound account with one thing changed."""
    assert old in ALPHA
    return ALPHA.replace(old, new)


SECRET = '"env:ALPHA_SECRET"'
BROKEN = {
    "an unknown key": ("onwers = []", "onwers", "Did you mean owners?"),
    "an unknown table": ("[trun]\nslots = 1", "trun", "Did you mean turns?"),
    "an unknown platform": ("[htp.alpha]\npublic = true", "htp", "Did you mean http?"),
    "something far off": ("zebra = 1", "zebra", "There are: agent, agents, budget, children, context, deliveries, "),
    "an unknown key in a table": ("[turns]\nslot = 3", "turns.slot", "Did you mean slots?"),
    "an unknown key of an account": (with_alpha("calback = 1"), "http.alpha.calback", "Did you mean callback?"),
    "an unknown common key": (with_alpha("alow = []"), "http.alpha.alow", "Did you mean allow?"),
    "an unknown key of a home": (
        with_alpha('home = { chta = "x", kind = "dm" }'),
        "http.alpha.home.chta",
        "Did you mean chat?",
    ),
    "a lane of no account": ('[lanes."htpp.alpha:x"]\nagent = ""', 'lanes."htpp.alpha:x"', "terminal, web"),
    "a lane without a chat": (
        ALPHA + '[lanes."http.alpha"]\nagent = ""',
        'lanes."http.alpha"',
        "PLATFORM.ACCOUNT:CHAT",
    ),
    "a lane whose agent isn't there": (
        ALPHA + '[lanes."http.alpha:x"]\nagent = "coder"',
        'lanes."http.alpha:x".agent',
        "there is no table [agents.coder]",
    ),
    "an unknown tool of a lane": (
        ALPHA + '[lanes."http.alpha:x"]\ntools = ["-ak"]',
        'lanes."http.alpha:x".tools',
        "ask",
    ),
    "an unknown key of a lane": (ALPHA + '[lanes."http.alpha:x"]\nagnet = ""', 'lanes."http.alpha:x".agnet', "agent"),
    "a person of no account": ('[people."http.beta/u1"]\nagent = ""', 'people."http.beta/u1"', "names no account"),
    "an unknown key of the agent": ('[agent]\nmodel = "x"', "agent.model", "Remove it."),
    "a number for a text": (
        alpha_but('"http://127.0.0.1:9001/out"', "9001"),
        "http.alpha.callback",
        'callback = "..."',
    ),
    "a text for a number": ('[turns]\nslots = "many"', "turns.slots", '"many" is not a whole number. Write slots = 64'),
    "a text for a truth": (
        alpha_but("true", '"yes"'),
        "http.alpha.public",
        '"yes" is not true or false. Write public = true or false',
    ),
    "a truth for a number": ("[replica]\nlease = true", "replica.lease", "true is not a number. Write lease = 5"),
    "half a turn": ("[turns]\nslots = 1.5", "turns.slots", "1.5 is not a whole number"),
    "no slots": ("[turns]\nslots = 0", "turns.slots", "0 is out of range. Give a whole number of at least 1"),
    "a negative time": ("[replica]\npoll = -1", "replica.poll", "-1 is out of range. Give a number above 0"),
    "no time": ("[replica]\nlease = nan", "replica.lease", "nan is out of range"),
    "an endless time": ("[turns]\nsilence = inf", "turns.silence", "inf is out of range"),
    "a port too high": ("[server]\nport = 70000", "server.port", "of at most 65535"),
    "a host with a scheme": ('[server]\nhosts = ["https://x.org"]', "server.hosts", "without scheme and port"),
    "a host with a port": ('[server]\nhosts = ["x.org:443"]', "server.hosts", "without scheme and port"),
    "an unknown choice": (
        '[turns]\nbusy = "wait"',
        "turns.busy",
        '"wait" is not a choice. There are: interrupt, queue',
    ),
    "a near choice": ('[lanes]\ngroups = "togehter"', "lanes.groups", "Did you mean together?"),
    "a number for a choice": ("[lanes]\nthreads = 1", "lanes.threads", "Choose one of: together, apart."),
    "a table for a list": ("[owners]\nme = 1", "owners", "a table is not a list of texts in quotes"),
    "a text for a list": ('owners = "http.alpha/u1"', "owners", '"http.alpha/u1" is not a list of texts in quotes'),
    "a number in a list": (with_alpha("allow = ['a', 12345]"), "http.alpha.allow[1]", "it is not text in quotes"),
    "a list for a table": ("turns = []", "turns", "a list is not a table. Write its keys under [turns]."),
    "a text for a table": ('store = "segue.db"', "store", '"segue.db" is not a table'),
    "a text for a home": (with_alpha('home = "lobby"'), "http.alpha.home", "is not a table"),
    "keys of no account": ('[http]\nsecret = "env:ALPHA_SECRET"', "http.secret", "Write it under [http.NAME]"),
    "an account's odd name": (alpha_but("http.alpha", 'http."al/pha"'), "http.al/pha", "letters, digits, - and _"),
    "an account twice": (ALPHA + ALPHA, "http.alpha", "line 7 says what was said before"),
    "a key twice": ("[turns]\nslots = 1\nslots = 2", "segue.toml", "line 3 says what was said before"),
    "a missing secret": (alpha_but(f"secret = {SECRET}", ""), "http.alpha.secret", 'Add it: secret = "env:NAME"'),
    "a missing callback": (
        "[http.a]\npublic = true\nsecret = " + SECRET,
        "http.a.callback",
        'Add it: callback = "..."',
    ),
    "a home without a kind": (
        with_alpha('home = { chat = "x" }'),
        "http.alpha.home.kind",
        'Add it: kind = "dm" or "group" or "channel"',
    ),
    "a home without a chat": (with_alpha('home = { chat = " ", kind = "dm" }'), "http.alpha.home.chat", "it is blank"),
    "a blank secret": (alpha_but(SECRET, '""'), "http.alpha.secret", "it is blank"),
    "a secret in the file": (alpha_but(SECRET, '"hunter2"'), "http.alpha.secret", "the secret itself is in the file"),
    "a number for a secret": (alpha_but(SECRET, "12345678"), "http.alpha.secret", "it is not a reference"),
    "another kind of reference": (alpha_but(SECRET, '"vault:x"'), "http.alpha.secret", '"env:NAME", "file:PATH"'),
    "a reference to nothing": (alpha_but(SECRET, '"env:"'), "http.alpha.secret", "nothing follows env:"),
    "an unset variable": (alpha_but(SECRET, '"env:NOPE"'), "http.alpha.secret", "Set it: export NOPE=..."),
    "a blank variable": (alpha_but(SECRET, '"env:EMPTY"'), "http.alpha.secret", "the variable EMPTY is blank"),
    "a missing secret file": (alpha_but(SECRET, '"file:nope"'), "http.alpha.secret", "No such file"),
    "an empty secret file": (alpha_but(SECRET, '"file:/dev/null"'), "http.alpha.secret", "/dev/null is blank"),
    "a command that fails": (alpha_but(SECRET, '"cmd:false"'), "http.alpha.secret", "its command ended with 1"),
    "a missing command": (alpha_but(SECRET, '"cmd:no-such-command"'), "http.alpha.secret", "can't be run"),
    "a silent command": (alpha_but(SECRET, '"cmd:true"'), "http.alpha.secret", "what its command printed is blank"),
    "an open quote": (alpha_but(SECRET, '"cmd:echo \'x"'), "http.alpha.secret", "open quote"),
    "no address to call": (alpha_but("http://127.0.0.1:9001/out", "lobby"), "http.alpha.callback", "http://127.0.0.1"),
    "a password in the callback": (alpha_but("//127", "//u:hunter2@127"), "http.alpha.callback", "Leave it out"),
    "nobody may talk": (alpha_but("public = true", ""), "http.alpha", "nobody may talk to it"),
    "nobody, in so many words": (alpha_but("true", "false"), "http.alpha", "public = true"),
    "everybody by a star": (with_alpha('allow = ["*"]'), "http.alpha.allow", "public = true"),
    "a blank user": (with_alpha('allow = [""]'), "http.alpha.allow", "one of its ids is blank"),
    "an owner without a user": ('owners = ["http.alpha"]\n' + ALPHA, "owners", "PLATFORM.ACCOUNT/USER"),
    "an owner without an account": ('owners = ["http/u1"]\n' + ALPHA, "owners", "PLATFORM.ACCOUNT/USER"),
    "an owner elsewhere": ('owners = ["http.alfa/u1"]\n' + ALPHA, "owners", "Did you mean http.alpha?"),
    "an agent that isn't here": ('[agent]\nkind = "butler"', "agent.kind", 'there is no agent "butler" here'),
    "a list for an agent": ("[agent]\nkind = []", "agent.kind", "There are: acp, builtin, model."),
    "two stores": ('[store]\npath = "x"\nurl = "env:DATABASE_URL"', "store.url", "Keep one of the two."),
    "a blank path": ('[store]\npath = ""', "store.path", "it is blank"),
    "a password in the file": ('[store]\nurl = "postgresql://u:hunter2@db/x"', "store.url", "a password is in it"),
    "another database": ('[store]\nurl = "env:ALPHA_SECRET"', "store.url", "Begin it with postgresql://"),
    "an unknown time zone": ('[resets]\nwhen = "daily"\nzone = "Lisboa"', "resets.zone", "Europe/Lisbon"),
    "an hour that isn't": ('[resets]\nwhen = "daily"\nhour = 24', "resets.hour", "from 0 to 23"),
    "no idle time": ('[resets.dm]\nwhen = "idle"\nidle_minutes = 0', "resets.dm.idle_minutes", "above 0"),
    "a notice of nothing": ("[resets]\nnotice = true", "resets.notice", 'Add when = "idle" or "daily"'),
    "no words for an ending": ("[resets]\nending = 5", "resets.ending", 'ending = "..."'),
    "a zone that isn't": ('[schedules]\nzone = "Lisboa"', "schedules.zone", "Europe/Lisbon"),
    "an hour without a day": ('[resets]\nwhen = "idle"\nhour = 4', "resets.hour", 'Add when = "daily" or "both"'),
    "a time without a reason": (
        "[resets]\nidle_minutes = 5",
        "resets.idle_minutes",
        'it does nothing while when is "none"',
    ),
    "an hour that does nothing there": (
        '[resets]\nwhen = "daily"\n[resets.dm]\nwhen = "idle"\nhour = 5',
        "resets.dm.hour",
        'it does nothing while when is "idle"',
    ),
    "a budget of nothing": ("[budget]\nday = {}", "budget.day.turns", "the budget limits nothing. Give it tokens"),
    "a budget below one": ("[budget]\nsession = { turns = 0 }", "budget.session.turns", "0 is out of range"),
    "a budget of a word": ('[budget]\nday = { tokens = "many" }', "budget.day.tokens", "whole number"),
    "a budget for nobody": ("[budget]\nperson = { turns = 1 }", "budget.person", "Did you mean person_day?"),
    "a policy for nobody": ('[resets.gruop]\nwhen = "idle"', "resets.gruop", "Did you mean group?"),
    "no TOML": ("turns", "segue.toml", "line 1 is not TOML"),
    "a text without quotes": ("[turns]\nbusy = queue", "segue.toml", "line 2 is not TOML: invalid value"),
    "an open text": ('owners = ["http', "segue.toml", "is not TOML"),
    "endless brackets": ("a = " + "[" * 10_000, "segue.toml", "nested too deeply"),
    "a byte order mark": (b"\xef\xbb\xbfowners = []", "segue.toml", "without a byte order mark"),
    "UTF-16": ("owners = []".encode("utf-16"), "segue.toml", "it begins with UTF-16"),
    "Latin-1": (b"owners = []\n# caf\xe9", "segue.toml", "line 2 is not UTF-8"),
}


@pytest.mark.parametrize(("text", "field", "told"), BROKEN.values(), ids=BROKEN)
def test_a_mistake_is_one_line_that_names_the_key_and_the_fix(
    tmp_path: Path, text: str | bytes, field: str, told: str
) -> None:
    with pytest.raises(Invalid) as caught:
        read(tmp_path, text)
    line = str(caught.value)
    assert caught.value.field == field
    assert told in line
    assert "\n" not in line
    assert "hunter2" not in line
    assert "12345678" not in line


def test_what_is_far_off_is_told_of_every_platform(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="There are: ") as caught:
        read(tmp_path, "zebra = 1")
    told = str(caught.value).partition("There are: ")[2].removesuffix(".").split(", ")
    assert told == sorted(told)
    assert set(platforms()) < set(told)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"nope\.toml doesn't exist.*--config"):
        load(tmp_path / "nope.toml", {})
    with pytest.raises(Invalid, match="it can't be read"):
        load(tmp_path, {})


def test_the_file_is_found_in_segue_home_then_here_then_in_the_users_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "xdg"))
    home, here, own = tmp_path / "home", tmp_path / "here", tmp_path / "xdg" / "segue"
    for folder in (home, here, own):
        folder.mkdir(parents=True)
    with pytest.raises(Invalid) as caught:
        find({}, here)
    assert str(here) in caught.value.problem
    assert str(own) in caught.value.problem
    (own / "segue.toml").touch()
    assert find({}, here) == own / "segue.toml"
    (here / "segue.toml").touch()
    trust(here / "segue.toml", {})
    assert find({"SEGUE_HOME": ""}, here) == here / "segue.toml"
    with pytest.raises(Invalid, match=str(home)):
        find({"SEGUE_HOME": str(home)}, here)
    (home / "segue.toml").touch()
    assert find({"SEGUE_HOME": str(home)}, here) == home / "segue.toml"


TWO = """
[agents.coder]
kind = "builtin"
[http.alpha]
secret = "env:ALPHA_SECRET"
callback = "http://127.0.0.1:9001/out"
public = true
agent = "{name}"
"""


def test_an_account_names_one_of_several_agents(tmp_path: Path) -> None:
    config = read(tmp_path, TWO.format(name="coder"))
    assert list(config.agents) == ["", "coder"]
    assert config.gateway.accounts["http", "alpha"].agent == "coder"


CHOSEN = """
[lanes]
groups = "together"
[lanes."http.alpha:lobby"]
agent = "coder"
[lanes."http.alpha:quiet"]
tools = ["-schedule"]
commands = ["new"]
[lanes.terminal]
agent = "coder"
[people."http.alpha/u7"]
agent = "coder"
"""


def test_a_person_beats_a_place_which_beats_an_account(tmp_path: Path) -> None:
    settings = read(tmp_path, TWO.format(name="") + CHOSEN).gateway
    assert settings.routing.rules.groups is Sharing.TOGETHER
    assert settings.tools_of_lanes == {"http.alpha:quiet": ("-schedule",)}
    assert settings.commands_of_lanes == {"http.alpha:quiet": ("new",)}
    lobby, other = Address("http", "alpha", "space", "lobby", "thread"), Address("http", "alpha", chat="x")
    seven, eight = (Identity("http", "alpha", user).key for user in ("u7", "u8"))
    assert [settings.agent_of(place, [eight]) for place in (lobby, other)] == ["coder", ""]
    assert settings.agent_of(other, [eight, seven]) == "coder"
    assert settings.agent_of(Address("terminal", "local", chat="tty"), ()) == "coder"
    own = replace(settings, agents_of_lanes={"http.alpha:lobby/thread": "", "http.alpha:lobby": "coder"})
    assert own.agent_of(lobby, [eight]) == ""
    assert own.agent_of(lobby, [seven]) == "coder"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TWO.format(name="codre"), "http.alpha.agent: there is no table [agents.codre]."),
        ('[agents.coder]\nkind = "bulitin"', 'agents.coder.kind: there is no agent "bulitin" here.'),
        ("agents = 3", "agents: "),
    ],
)
def test_a_mistake_about_several_agents_names_the_key(tmp_path: Path, text: str, line: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(line)
