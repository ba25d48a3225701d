"""Lanes: no two share a key, and each message finds the one it belongs to."""

import unicodedata
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.lanes import (
    Address,
    Audience,
    Identity,
    Kind,
    Lane,
    Place,
    Rules,
    Sharing,
    account_key,
    clean_name,
    lane_of,
)
from segue.errors import Invalid
from tests.drills import hostile_lanes

anything = st.text(st.characters(exclude_categories=()))
"""Any text that Python can hold, half surrogate pairs included."""
hostile = st.lists(st.sampled_from(hostile_lanes.PIECES) | anything, max_size=4).map("".join)
addresses = st.builds(Address, hostile, hostile, hostile, hostile, hostile)
lanes = st.builds(Lane, addresses, hostile)
identities = st.builds(Identity, hostile, hostile, hostile)


# Keys


@given(lanes)
@example(Lane(Address("", "")))
@example(Lane(Address("p", "a", "s", "c", "same"), "same"))
@example(Lane(Address("p", "a", "s", "\ud83d\ude00", "😀"), "\ud83d"))
@example(Lane(Address("p" * 10_000, "/" * 10_000, "%" * 10_000, "\0" * 10_000, "\ud800" * 10_000), "é" * 10_000))
def test_a_lane_comes_back_from_its_key(lane: Lane) -> None:
    assert Lane.parse(lane.key) == lane
    assert Address.parse(lane.address.key) == lane.address


@given(identities)
def test_an_identity_comes_back_from_its_key(identity: Identity) -> None:
    assert Identity.parse(identity.key) == identity


@given(lanes, lanes)
@example(Lane(Address("a/b", "c")), Lane(Address("a", "b/c")))
@example(Lane(Address("a", "%2F")), Lane(Address("a", "/")))
@example(Lane(Address("a", "b", chat="é")), Lane(Address("a", "b", chat="e\u0301")))
@example(Lane(Address("a", "b", chat="K")), Lane(Address("a", "b", chat="k")))
@example(Lane(Address("a", "b", chat=" c")), Lane(Address("a", "b", chat="c")))
@example(Lane(Address("a", "b", chat="c", thread="u")), Lane(Address("a", "b", chat="c"), "u"))
@example(Lane(Address("a", "b", space="c")), Lane(Address("a", "b", chat="c")))
def test_two_lanes_share_a_key_only_if_they_are_one(lane: Lane, other: Lane) -> None:
    assert (lane.key == other.key) == (lane == other)


@given(lanes)
def test_a_key_fits_into_either_database(lane: Lane) -> None:
    assert "\0" not in lane.key
    assert lane.key.encode().decode() == lane.key


def test_every_lane_over_a_small_hostile_alphabet_has_a_key_of_its_own() -> None:
    alphabet = ["", "/", "%", "%2F", "a", "A", "a/b"]
    keys = set()
    for *parts, person in product(alphabet, repeat=6):
        lane = Lane(Address(*parts), person)
        keys.add(lane.key)
        assert Lane.parse(lane.key) == lane
    assert len(keys) == len(alphabet) ** 6


def test_every_identity_over_all_short_hostile_ids_has_a_key_of_its_own() -> None:
    characters = ["/", "%", "2", "\0", "\ud83d", "\ude00"]
    ids = ["".join(id) for length in range(3) for id in product(characters, repeat=length)]
    keys = set()
    for parts in product(ids, repeat=3):
        identity = Identity(*parts)
        keys.add(identity.key)
        assert Identity.parse(identity.key) == identity
    assert len(keys) == len(ids) ** 3


def test_many_hostile_lanes_lead_back_from_their_keys() -> None:
    assert hostile_lanes.run(seed=1, count=20_000) == []


@pytest.mark.parametrize(
    ("lane", "key"),
    [
        pytest.param(Lane(Address("terminal", "local"), "p1"), "terminal/local////p1", id="terminal"),
        pytest.param(
            Lane(Address("telegram", "bot", chat="-1001234567890", thread="42")),
            "telegram/bot//-1001234567890/42/",
            id="telegram: negative numbers",
        ),
        pytest.param(
            Lane(Address("telegram", "bot", chat="-1001234567890")),
            "telegram/bot//-1001234567890//",
            id="telegram: the General topic has no thread id",
        ),
        pytest.param(
            Lane(Address("discord", "bot", "81384788765712384", "381870553235193857", "1141222798222876732")),
            "discord/bot/81384788765712384/381870553235193857/1141222798222876732/",
            id="discord: digits",
        ),
        pytest.param(
            Lane(Address("discord", "bot", "81384788765712384", "1141222798222876732", "1141222798222876732")),
            "discord/bot/81384788765712384/1141222798222876732/1141222798222876732/",
            id="discord: a message's channel is its thread",
        ),
        pytest.param(
            Lane(Address("slack", "app", "T0123", "C0123", "1699999999.000100")),
            "slack/app/T0123/C0123/1699999999.000100/",
            id="slack: a ts has a dot",
        ),
        pytest.param(
            Lane(Address("whatsapp", "cloud", chat="US.1349"), "wamid.HBgLMTU1+/8="),
            "whatsapp/cloud//US.1349//wamid.HBgLMTU1+%2F8=",
            id="whatsapp: . + / =",
        ),
        pytest.param(
            Lane(Address("signal", "+4915112345678", chat="dGVzdC9n+cm91cA==/")),
            "signal/+4915112345678//dGVzdC9n+cm91cA==%2F//",
            id="signal: a number, a base64 group",
        ),
        pytest.param(
            Lane(Address("matrix", "@bot:example.org:8448", "example.org:8448", "!abc:example.org:8448"), "@u:h:1"),
            "matrix/@bot:example.org:8448/example.org:8448/!abc:example.org:8448//@u:h:1",
            id="matrix: colons, twice with a port",
        ),
        pytest.param(
            Lane(Address("matrix", "@bot:h", "h", "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM", "$ev/+=")),
            "matrix/@bot:h/h/!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM/$ev%2F+=/",
            id="matrix: a room of version 12 has no colon",
        ),
        pytest.param(Lane(Address("", "")), "/////", id="nothing at all"),
        pytest.param(
            Lane(Address("p", "%", "\0\n\x7f", "\ud800", "é😀")), "p/%25/%00%0A%7F/%ED%A0%80/é😀/", id="escapes"
        ),
    ],
)
def test_a_key_never_changes_its_spelling(lane: Lane, key: str) -> None:
    assert lane.key == key
    assert Lane.parse(key) == lane


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("", id="nothing"),
        pytest.param("p/a/s/c/t", id="too few parts"),
        pytest.param("p/a/s/c/t/u/", id="too many parts"),
        pytest.param("p/a/s/%41/t/u", id="an escape that wasn't needed"),
        pytest.param("p/a/s/%C3%A9/t/u", id="an escaped letter"),
        pytest.param("p/a/s/%2f/t/u", id="lower-case hex"),
        pytest.param("p/a/s/%ed%a0%80/t/u", id="a surrogate in lower-case hex"),
        pytest.param("p/a/s/%/t/u", id="a bare percent sign"),
        pytest.param("p/a/s/%2/t/u", id="half an escape"),
        pytest.param("p/a/s/%ZZ/t/u", id="an escape of no number"),
        pytest.param("p/a/s/%FF/t/u", id="an escape of no character"),
        pytest.param("p/a/s/%F0%9F/t/u", id="an escape of half a character"),
        pytest.param("p/a/s/%C0%AF/t/u", id="an overlong slash"),
        pytest.param("p/a/s/\0/t/u", id="a bare NUL"),
        pytest.param("p/a/s/\n/t/u", id="a bare newline"),
        pytest.param("p/a/s/\ud800/t/u", id="a bare surrogate"),
    ],
)
def test_a_key_that_no_lane_wrote_is_refused(key: str) -> None:
    with pytest.raises(Invalid) as refused:
        Lane.parse(key)
    assert refused.value.field == "lane"


@given(hostile)
def test_only_what_a_lane_wrote_is_a_key(text: str) -> None:
    try:
        lane = Lane.parse(text)
    except Invalid:
        return
    assert lane.key == text


@pytest.mark.parametrize(("parse", "field"), [(Address.parse, "address"), (Identity.parse, "identity")])
def test_a_broken_key_is_named_by_what_it_should_be(parse: Callable[[str], object], field: str) -> None:
    with pytest.raises(Invalid, match=f"is not the key of any {field}") as refused:
        parse("a/b")
    assert refused.value.field == field


@given(hostile, hostile, hostile, hostile)
def test_two_accounts_share_a_key_only_if_they_are_one(platform: str, account: str, other: str, another: str) -> None:
    same = account_key(platform, account) == account_key(other, another)
    assert same == ((platform, account) == (other, another))
    assert account_key(platform + "/", account) != account_key(platform, "/" + account)


# Which lane a message belongs to


SPACE = Address("p", "acct", "space")
CHAT = Address("p", "acct", "space", "chat")
THREAD = Address("p", "acct", "space", "chat", "thread")
DEFAULT = Rules()
TURNED = Rules(groups=Sharing.TOGETHER, threads=Sharing.APART)


@pytest.mark.parametrize(
    ("place", "rules", "lane"),
    [
        pytest.param(Place(CHAT, Kind.DM), DEFAULT, Lane(CHAT), id="DM: one lane per private chat"),
        pytest.param(Place(CHAT, Kind.DM), TURNED, Lane(CHAT), id="DM: whatever the settings"),
        pytest.param(Place(SPACE, Kind.DM), DEFAULT, Lane(SPACE, "ann"), id="DM without a chat id: by the person"),
        pytest.param(Place(THREAD, Kind.DM), DEFAULT, Lane(THREAD), id="DM thread: its own lane"),
        pytest.param(Place(THREAD, Kind.DM), TURNED, Lane(THREAD), id="DM thread: whatever the settings"),
        pytest.param(Place(CHAT, Kind.GROUP), DEFAULT, Lane(CHAT, "ann"), id="group: apart"),
        pytest.param(Place(CHAT, Kind.CHANNEL), DEFAULT, Lane(CHAT, "ann"), id="channel: apart"),
        pytest.param(Place(CHAT, Kind.GROUP), TURNED, Lane(CHAT), id="group: together"),
        pytest.param(Place(CHAT, Kind.CHANNEL), TURNED, Lane(CHAT), id="channel: together"),
        pytest.param(Place(THREAD, Kind.GROUP), DEFAULT, Lane(THREAD), id="thread: together"),
        pytest.param(Place(THREAD, Kind.CHANNEL), DEFAULT, Lane(THREAD), id="thread of a channel: together"),
        pytest.param(Place(THREAD, Kind.GROUP), TURNED, Lane(THREAD, "ann"), id="thread: apart"),
        pytest.param(Place(THREAD, Kind.GROUP, opened=True), DEFAULT, Lane(THREAD), id="thread we opened: together"),
        pytest.param(Place(THREAD, Kind.GROUP, opened=True), TURNED, Lane(THREAD), id="thread we opened: always"),
        pytest.param(Place(SPACE, Kind.GROUP), DEFAULT, Lane(SPACE, "ann"), id="no chat id: the person's in the space"),
        pytest.param(
            Place(SPACE, Kind.GROUP), TURNED, Lane(SPACE, "ann"), id="no chat id, together: still the person's"
        ),
        pytest.param(
            Place(Address("p", "acct", thread="thread"), Kind.GROUP),
            DEFAULT,
            Lane(Address("p", "acct", thread="thread")),
            id="a thread whose chat is unknown: the thread",
        ),
    ],
)
def test_the_lane_that_a_message_belongs_to(place: Place, rules: Rules, lane: Lane) -> None:
    assert lane_of(place, "ann", rules) == lane


@pytest.mark.parametrize(
    ("place", "rules", "lane"),
    [
        pytest.param(Place(CHAT, Kind.DM), DEFAULT, Lane(CHAT), id="DM: its chat is enough"),
        pytest.param(Place(CHAT, Kind.GROUP), DEFAULT, Lane(CHAT), id="group, apart: the chat"),
        pytest.param(Place(THREAD, Kind.GROUP), TURNED, Lane(THREAD), id="thread, apart: the thread"),
        pytest.param(Place(SPACE, Kind.GROUP), DEFAULT, Lane(SPACE), id="neither chat nor person: the space"),
    ],
)
def test_without_a_person_the_widest_part_that_is_known_counts(place: Place, rules: Rules, lane: Lane) -> None:
    assert lane_of(place, "", rules) == lane


@pytest.mark.parametrize("address", [SPACE, Address("p", "acct", thread="thread")])
def test_a_private_message_that_names_neither_chat_nor_person_is_invalid(address: Address) -> None:
    with pytest.raises(Invalid, match="neither its chat nor its person") as refused:
        lane_of(Place(address, Kind.DM), "", DEFAULT)
    assert refused.value.field == "chat"


ids = st.sampled_from(["", "a", "b", "/"]) | hostile
places = st.builds(
    Place, st.builds(Address, ids, ids, ids, ids, ids), st.sampled_from(Kind), st.just(""), st.just(""), st.booleans()
)
rules = st.builds(Rules, st.sampled_from(Sharing), st.sampled_from(Sharing))


@given(places, ids, rules)
def test_a_lane_is_at_its_own_address_and_nobody_elses(place: Place, person: str, rules: Rules) -> None:
    try:
        lane = lane_of(place, person, rules)
    except Invalid:
        assert (place.kind, place.address.chat, person) == (Kind.DM, "", "")
        return
    assert lane.address == place.address
    assert lane.person in {"", person}


@given(ids, ids, ids, ids, st.text(min_size=1), st.text(min_size=1))
def test_two_people_share_no_private_lane(
    platform: str, account: str, space: str, thread: str, ann: str, bob: str
) -> None:
    place = Place(Address(platform, account, space, "", thread), Kind.DM)
    assert (lane_of(place, ann, DEFAULT) == lane_of(place, bob, DEFAULT)) == (ann == bob)


@pytest.mark.parametrize("address", [CHAT, THREAD])
def test_lane_keys_carry_no_chat_kind(address: Address) -> None:
    """A group that becomes a channel, or a DM that a platform reports as a group, keeps its lanes."""
    together = Rules(Sharing.TOGETHER, Sharing.TOGETHER)
    assert len({lane_of(Place(address, kind), "ann", together).key for kind in Kind}) == 1
    apart = Rules(Sharing.APART, Sharing.APART)
    assert len({lane_of(Place(address, kind), "ann", apart).key for kind in (Kind.GROUP, Kind.CHANNEL)}) == 1


@given(st.builds(Address, ids, ids, ids, st.text(min_size=1), st.text(min_size=1)), st.sampled_from(Kind), rules, ids)
def test_a_reply_in_a_thread_that_was_opened_is_in_its_lane(
    thread: Address, kind: Kind, rules: Rules, person: str
) -> None:
    assert lane_of(Place(thread, kind, opened=True), person, rules) == Lane(thread)


def test_outside_a_thread_is_its_chat() -> None:
    assert THREAD.outside == CHAT
    assert CHAT.outside == CHAT


@pytest.mark.parametrize(
    ("kind", "audience"),
    [(Kind.DM, Audience.ONE), (Kind.GROUP, Audience.MANY), (Kind.CHANNEL, Audience.MANY)],
)
def test_who_can_read_a_place(kind: Kind, audience: Audience) -> None:
    assert Place(CHAT, kind).audience is audience
    assert Place(THREAD, kind).audience is audience


# Names


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("Ann", "Ann", id="plain"),
        pytest.param("", "", id="empty"),
        pytest.param("  Ann \t Lee ", "Ann Lee", id="spaces"),
        pytest.param("Ann\nAgent: yes", "Ann Agent: yes", id="a second line"),
        pytest.param("Ann\u2028Agent\u2029\x85x", "Ann Agent x", id="other line ends"),
        pytest.param("A\0n\x1bn\x9b", "Ann", id="control characters"),
        pytest.param("\u202eAnn\u2066\u200f\u061c", "Ann", id="direction marks"),
        pytest.param("An\u200bn\ufeff\u00ad", "Ann", id="invisible characters"),
        pytest.param("Ann\U000e0041", "Ann", id="tag characters"),
        pytest.param("\uff21nn \u2460 \ufb01", "Ann 1 fi", id="compatibility forms"),
        pytest.param("Zoe\u0308", "Zoë", id="composed"),
        pytest.param("Zoe\u200d\u0308", "Zoë", id="composed across what was hidden"),
        pytest.param("Ann\ud83d", "Ann", id="half a pair"),
        pytest.param("Ann\ue000\U000f0000", "Ann", id="private use"),
        pytest.param("王 小明 😀", "王 小明 😀", id="other scripts stay"),
        pytest.param("x" * 65, "x" * 64, id="at most 64"),
        pytest.param("\ufdfa" * 40, ("صلى الله عليه وسلم" * 40)[:64].rstrip(), id="at most 64 after it grew"),
        pytest.param("x" * 63 + " yz", "x" * 63, id="no space at the cut"),
        pytest.param("\u200b\n\u202e", "", id="nothing to show"),
        pytest.param("\u3164\u115f\u1160\uffa0 \u2800", "", id="blank letters"),
        pytest.param("An\ufe0fn\U000e0100\u034f\u180b\u17b4", "Ann", id="what fonts ignore"),
    ],
)
def test_a_clean_name(name: str, shown: str) -> None:
    assert clean_name(name) == shown


@given(anything | hostile)
@example("e\u200d\u0301")
@example("\u1680\u00a8\u1680\u0301")
def test_a_clean_name_forges_nothing_and_is_clean_already(name: str) -> None:
    shown = clean_name(name)
    assert len(shown) <= 64
    assert unicodedata.is_normalized("NFKC", shown)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert shown == " ".join(shown.split())
    assert clean_name(shown) == shown
