"""Pseudonyms: stable, without digits, and the real id again for whoever may know it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.lanes import Address, Identity
from segue.core.prompt.pseudonyms import Pseudonyms

ANN = Identity("signal", "main", "9f1c0ab2-6b1d-4a0e-8d3a-000000000001")
DM = Address("telegram", "bot", "", "123456789")
SLACK = Address("slack", "work", "T1", "CGENERAL", "17.0001")


def test_an_id_has_one_pseudonym_and_two_have_two() -> None:
    veil = Pseudonyms("key")
    assert veil.identity(ANN) == Pseudonyms("key").identity(ANN) != ANN
    assert veil.identity(ANN).user != veil.identity(Identity("signal", "main", "another")).user
    assert veil.identity(ANN).user != veil.identity(Identity("telegram", "main", ANN.user)).user


def test_without_the_secret_it_is_another() -> None:
    assert Pseudonyms("key").identity(ANN) != Pseudonyms("other").identity(ANN)


def test_an_account_that_mentions_people_by_their_ids_shows_them() -> None:
    veil = Pseudonyms("key", {("slack", "work")})
    assert veil.address(SLACK) == SLACK
    assert veil.text("see CGENERAL", [SLACK]) == "see CGENERAL"
    assert veil.address(DM) != DM


def test_an_address_keeps_its_shape() -> None:
    hidden = Pseudonyms("key").address(DM)
    assert (hidden.platform, hidden.account, hidden.space, hidden.thread) == ("telegram", "bot", "", "")
    assert not any(c.isdigit() for c in hidden.chat)


@pytest.mark.parametrize(
    "number",
    ["+4915112345678", "0151 1234567", "(0151) 123-4567", "+49/151/1234567", "٠١٢٣٤٥٦٧٨٩", "0151\u20111234567"],
)
def test_a_phone_number_is_found_however_it_is_written(number: str) -> None:
    told = Pseudonyms("key").text(f"Ann {number}!", ())
    assert not any(c.isdecimal() for c in told)
    assert told.startswith("Ann ")
    assert told.endswith("!")


@pytest.mark.parametrize("text", ["Room 101", "2026-11", "Ann", "v1.2.3", ""])
def test_what_is_no_number_stays(text: str) -> None:
    assert Pseudonyms("key").text(text, [DM]) == text


def test_an_id_is_found_in_a_name_by_the_same_pseudonym() -> None:
    veil = Pseudonyms("key")
    assert veil.text(f"is {ANN.user} here", [ANN]) == f"is {veil.identity(ANN).user} here"


def test_the_real_id_comes_back_only_for_what_may_be_named() -> None:
    veil = Pseudonyms("key")
    said = f"telegram:{veil.address(DM).chat}"
    assert veil.real(said, [ANN, DM]) == "telegram:123456789"
    assert veil.real(said, [ANN]) == said
    assert veil.real("telegram:123456789", []) == "telegram:123456789"


def test_an_account_that_is_a_number_is_hidden_and_found_again() -> None:
    veil, spot = Pseudonyms("key"), Address("signal", "4915112345678", "", "x")
    assert "4915112345678" not in veil.address(spot).key
    assert veil.real(veil.address(spot).account, [spot]) == spot.account


def test_a_number_in_a_name_is_known_again_wherever_it_stood() -> None:
    veil, spot = Pseudonyms("key"), Address("signal", "shop-4915112345678", "", "+4917098765432")
    for text, real in (("signal.shop-4915112345678", "signal.shop-4915112345678"), ("+49 170 98765432", spot.chat)):
        told = veil.text(text, [spot])
        assert not any(c.isdecimal() for c in told)
        assert veil.real(told, [spot]) == real


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_id_is_hidden_and_found_again(platform: str, id: str) -> None:
    veil, spot = Pseudonyms("key"), Identity(platform, "a", id)
    assert veil.real(veil.identity(spot).user, [spot]) == id
