"""`segue tokens`: made and shown once, listed, revoked."""

from segue.changes.people import tokens
from segue.changes.people.access import Access
from segue.changes.people.tokens import Bearer, TokenScope
from segue.core.lanes import Identity, Person
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.windows import HOSTS
from segue.errors import Refusal
from segue.store import Store
from tests.cli.conftest import Home

STILL = Access(GatewaySettings(hosts=HOSTS, accounts={("http", "alpha"): AccountSettings(public=True)}), str).still


def meaning(home: Home, token: str) -> Bearer | Refusal:
    async def look(store: Store, _: Person) -> Bearer | Refusal:
        found: Bearer | Refusal = await store.driver.read(tokens.person_of, token, TokenScope.MCP, STILL, 0.0)
        return found

    return home.do(look)


def test_a_token_is_shown_once_listed_and_revoked(home: Home) -> None:
    async def meet(store: Store, _: Person) -> str:
        return (await store.person(Identity("http", "alpha", "eve"), "Eve")).id

    eve = home.do(meet)
    made = home.segue("tokens", "create", "mcp", "--person", "Eve", "--name", "laptop", "--days", "3")
    shown = made.stdout.strip()
    assert shown.startswith("segue_")
    assert "shown this once" in made.stderr
    bearer = meaning(home, shown)
    assert isinstance(bearer, Bearer)
    assert (bearer.person.id, bearer.token.ends - bearer.token.made) == (eve, 3 * 86400.0)
    listed = home.segue("tokens", "list").stdout
    assert "laptop" in listed
    assert "never used" in listed
    assert shown not in listed + str(home.json("tokens", "list"))
    assert "laptop" in home.segue("people", "show", "Eve").stdout
    revoked = home.segue("tokens", "revoke", bearer.token.id)
    assert revoked.stdout == f"Token {bearer.token.id} counts no more.\n"
    assert "revoked" in home.segue("tokens", "list").stdout
    assert meaning(home, shown) is Refusal.BEARER_REVOKED
    wrong = home.segue("tokens", "revoke", "nothing")
    assert (wrong.exit_code, "segue tokens list" in wrong.stderr) == (2, True)


def test_revoking_a_person_and_signing_everything_out_end_tokens(home: Home) -> None:
    own = home.json("tokens", "create", "mcp")["token"]
    home.do(lambda store, _: store.person(Identity("http", "alpha", "eve"), "Eve"))
    eves = home.json("tokens", "create", "mcp", "--person", "Eve")["token"]
    assert home.segue("people", "revoke", "Eve").stdout.startswith("Revoked: token ")
    assert meaning(home, eves) is Refusal.BEARER_REVOKED
    assert isinstance(meaning(home, own), Bearer)
    assert "every token revoked" in home.segue("people", "signout").stdout
    assert meaning(home, own) is Refusal.BEARER_REVOKED
