"""Who comes in where a key is asked for."""

import pytest

from eloquio.auth.door import KeyDoor
from eloquio.auth.sessions import COOKIE, LIFETIME_SECONDS, Sessions
from eloquio.errors import KeyRefused, KeyRequired, TooManyAttempts

KEY = "elq-right"


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock) -> KeyDoor:
    return KeyDoor(KEY, now=clock, clock=clock)


@pytest.fixture
def admit(door):
    def admit(authorization=None, api_key=None, cookie=None, address="192.0.2.1") -> None:
        door.admit(authorization=authorization, api_key=api_key, cookie=cookie, address=address)

    return admit


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer  {KEY} "},
        {"api_key": KEY},
        {"authorization": "Bearer wrong", "api_key": KEY},
        {"authorization": "Basic dXNlcjpwYXNz", "api_key": KEY},
    ],
)
def test_the_key_opens(admit, headers):
    admit(**headers)


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": KEY}, {"authorization": "Basic eA=="}, {"authorization": "Bearer "}],
)
def test_without_a_key_it_is_asked_for(admit, headers):
    with pytest.raises(KeyRequired):
        admit(**headers)


@pytest.mark.parametrize(
    "key", ["x", KEY.upper(), KEY[:-1], KEY + "x", "schl\xfcssel", f"{KEY}, x"]
)
def test_another_key_is_refused(admit, key):
    with pytest.raises(KeyRefused):
        admit(authorization=f"Bearer {key}")
    with pytest.raises(KeyRefused):
        admit(api_key=key)


def test_a_key_may_hold_any_letters(clock):
    door = KeyDoor("schlüssel", now=clock, clock=clock)
    as_sent = "schlüssel".encode().decode("latin-1")
    door.admit(authorization=f"Bearer {as_sent}", api_key=None, cookie=None, address="")
    assert door.sign_in("schlüssel", address="")


def fail(admit, times: int, address: str = "192.0.2.1") -> None:
    for _ in range(times):
        with pytest.raises(KeyRefused):
            admit(api_key="wrong", address=address)


def test_after_ten_wrong_keys_the_address_waits_for_the_rest_of_the_minute(admit, clock):
    fail(admit, 10)
    clock.seconds += 20
    with pytest.raises(TooManyAttempts) as refusal:
        admit(api_key=KEY)
    assert refusal.value.retry_after_seconds == 40
    clock.seconds += 40
    admit(api_key=KEY)


def test_guesses_that_are_spread_out_are_not_slowed(admit, clock):
    for _ in range(30):
        fail(admit, 1)
        clock.seconds += 7


def test_others_are_not_slowed_by_one_who_guesses(admit):
    fail(admit, 10)
    admit(api_key=KEY, address="192.0.2.2")


def test_a_host_with_many_ipv6_addresses_is_one_guesser(admit):
    for n in range(10):
        fail(admit, 1, address=f"2001:db8::{n}")
    with pytest.raises(TooManyAttempts):
        admit(api_key=KEY, address="2001:db8::ffff")
    admit(api_key=KEY, address="2001:db8:0:1::1")


def test_a_request_without_a_key_is_not_a_wrong_guess(admit):
    for _ in range(20):
        with pytest.raises(KeyRequired):
            admit()
    admit(api_key=KEY)


def test_the_form_and_the_headers_count_together(admit, door):
    fail(admit, 9)
    with pytest.raises(KeyRefused):
        door.sign_in("wrong", address="192.0.2.1")
    with pytest.raises(TooManyAttempts):
        door.sign_in(KEY, address="192.0.2.1")


def test_whoever_signed_in_comes_in_even_while_others_guess(admit, door):
    cookie = f"theme=dark; {COOKIE}={door.sign_in(KEY, address='192.0.2.1')}"
    fail(admit, 10)
    admit(cookie=cookie)


def test_a_session_ends_after_thirty_days(admit, door, clock):
    cookie = f"{COOKIE}={door.sign_in(KEY, address='192.0.2.1')}"
    clock.seconds += LIFETIME_SECONDS - 1
    admit(cookie=cookie)
    clock.seconds += 1
    with pytest.raises(KeyRequired):
        admit(cookie=cookie)


def test_a_new_key_ends_the_sessions_of_the_old_one(clock):
    session = Sessions("old", now=clock).issue()
    assert Sessions("old", now=clock).is_valid(session)
    assert not Sessions("new", now=clock).is_valid(session)


def test_a_session_that_was_changed_is_none(clock):
    sessions = Sessions(KEY, now=clock)
    expiry, nonce, signature = sessions.issue().split(".")
    later = int(expiry) + 1
    forged = [
        f"{later}.{nonce}.{signature}",
        f"{expiry}.{nonce}.{signature[:-1]}",
        f"{expiry}.{nonce}.",
        f"{expiry}.{nonce}",
        f".{signature}",
        "",
        ".",
        "\xff.\xfe.\xfd",
    ]
    assert not any(sessions.is_valid(value) for value in forged)


@pytest.mark.parametrize("cookie", ["", ";;;", f"{COOKIE}", f"{COOKIE}=;", "a\x00b=c", '"'])
def test_a_cookie_that_makes_no_sense_is_no_session(admit, cookie):
    with pytest.raises(KeyRequired):
        admit(cookie=cookie)
