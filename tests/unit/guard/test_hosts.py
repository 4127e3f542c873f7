"""A page that had its own name point at this machine must not be answered."""

import json

import pytest

from eloquio.guard import HostPolicy
from eloquio.settings import Settings
from fixtures.asgi import ask

OURS = [
    "localhost",
    "localhost:8642",
    "LOCALHOST:1",
    "127.0.0.1",
    "127.0.0.1:8642",
    "0.0.0.0:8642",
    "192.168.1.20:8642",
    "[::1]",
    "[::1]:8642",
    "[fe80::1:2]:8642",
    "[::ffff:127.0.0.1]:8642",
    "studio.example",
    "studio.example:443",
    "my-box:8642",
]
STRANGE = [
    None,
    "",
    " ",
    "evil.example",
    "evil.example:8642",
    "127.0.0.1.evil.com",
    "localhost.evil.com",
    "evil.com/localhost",
    "[::1]x",
    "[::1]x:8642",
    "[::1",
    "::1",
    "[127.0.0.1]",
    "[::1%25lo]",
    "user@localhost",
    "localhost@evil.example",
    "localhost.",
    "localhost.:8642",
    "127.0.0.1.",
    "127.0.0.1..",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "localhost:",
    "localhost:x",
    "localhost:65536",
    "localhost:-1",
    "localhost:8642:8642",
    "localhost, evil.example",
    "localhost evil.example",
    "localhost\x00",
    "localhost\n",
    "sub.studio.example",
    "studio.example.evil.com",
    "\xb9\xb2\xb7.0.0.1",
]
EVERY_KIND = ["/", "/assets/index.js", "/docs", "/openapi.json", "/health", "/v1/status", "/load"]


@pytest.mark.parametrize("host", OURS)
def test_a_name_of_ours_is_answered(status_of, host):
    assert status_of(host=host) == 200


@pytest.mark.parametrize("host", STRANGE)
def test_any_other_name_is_refused(guarded, inner, host):
    reply = ask(guarded, host=host)
    assert reply.status == 403
    assert json.loads(reply.body)["error"]["code"] == "host_not_allowed"
    assert inner.reached == []


@pytest.mark.parametrize("path", EVERY_KIND)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "HEAD"])
def test_a_strange_name_is_refused_on_every_route(status_of, path, method):
    assert status_of(path, method=method, host="evil.example:8642") == 403


def test_two_host_headers_are_refused_even_if_both_are_ours(status_of):
    assert status_of(headers=[("host", "localhost:8642")]) == 403
    assert status_of(headers=[("host", "evil.example")]) == 403


def test_the_settings_name_hosts_and_the_one_listened_at(tmp_path):
    settings = Settings(
        home=tmp_path, host="studio.local", allowed_hosts="one.example, TWO.example"
    )
    policy = HostPolicy.for_settings(settings)
    assert all(policy.allows(name) for name in ("studio.local", "one.example", "two.example:8642"))
    assert not policy.allows("three.example")
