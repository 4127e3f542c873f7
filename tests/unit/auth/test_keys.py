"""The key: made once, kept to its owner, asked for beyond this machine."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from eloquio.addresses import is_loopback, page_address
from eloquio.auth.keys import known_key, own_key, required_key
from eloquio.settings import Settings


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "home", host="0.0.0.0")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost", "LOCALHOST"])
def test_on_this_machine_alone_no_key_is_asked_for_or_made(tmp_path, host):
    settings = Settings(home=tmp_path / "home", host=host)
    assert required_key(settings) is None
    assert not settings.home.exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.1.2", "studio.example"])
def test_beyond_this_machine_a_key_is_made(tmp_path, host):
    key = required_key(Settings(home=tmp_path / "home", host=host))
    assert key is not None
    assert key.startswith("elq-")
    assert len(key) >= 40


def test_the_key_stays_the_same(settings):
    assert own_key(settings) == own_key(settings) == known_key(settings)


def test_two_homes_have_two_keys(tmp_path):
    keys = {own_key(Settings(home=tmp_path / name)) for name in "abc"}
    assert len(keys) == 3


def test_many_who_make_it_at_once_get_the_same(settings):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: own_key(settings), range(32)))
    assert len(keys) == 1
    assert [path.name for path in settings.home.iterdir()] == ["api-key"]


def test_only_its_owner_can_read_it(settings):
    own_key(settings)
    assert mode(settings.home) == 0o700
    assert mode(settings.home / "api-key") == 0o600


def test_a_key_that_others_can_read_is_closed_to_them(settings):
    own_key(settings)
    (settings.home / "api-key").chmod(0o664)
    assert known_key(settings)
    assert mode(settings.home / "api-key") == 0o600


def test_an_empty_file_is_no_key(settings):
    settings.home.mkdir()
    (settings.home / "api-key").write_text("\n")
    assert own_key(settings).startswith("elq-")


def test_the_environments_key_wins_and_is_asked_for_on_this_machine_too(tmp_path, monkeypatch):
    own_key(Settings(home=tmp_path))
    monkeypatch.setenv("ELOQUIO_API_KEY", "my own")
    assert required_key(Settings(home=tmp_path)) == "my own"


def test_an_empty_variable_is_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("ELOQUIO_API_KEY", "")
    assert required_key(Settings(home=tmp_path)) is None


@pytest.mark.parametrize("host", ["128.0.0.1", "localhost.evil.example", "10.0.0.1", "0.0.0.0"])
def test_other_addresses_are_not_loopback(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8642"),
        ("0.0.0.0", "http://127.0.0.1:8642"),
        ("::", "http://[::1]:8642"),
        ("::1", "http://[::1]:8642"),
        ("studio.example", "http://studio.example:8642"),
    ],
)
def test_a_server_is_asked_where_this_machine_reaches_it(host, address):
    assert page_address(host, 8642) == address
