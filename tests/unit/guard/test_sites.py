"""What a web page of another site makes a browser send must change and show nothing.

Each case is what one kind of browser really sends for one kind of request.
"""

import json

import pytest

from eloquio.guard import Guard, HostPolicy, is_api_path
from fixtures.asgi import ask, connect

OWN = "http://localhost:8642"

CHROME_NO_CORS_GET = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
REFUSED = {
    "Chrome, image": ("GET", {**CHROME_NO_CORS_GET, "sec-fetch-dest": "image"}),
    "Chrome, script": ("GET", {**CHROME_NO_CORS_GET, "sec-fetch-dest": "script"}),
    "Firefox, fetch no-cors": ("GET", {**CHROME_NO_CORS_GET, "sec-fetch-dest": "empty"}),
    "Safari, fetch no-cors": (
        "GET",
        {**CHROME_NO_CORS_GET, "sec-fetch-dest": "empty", "referer": "https://evil.example/"},
    ),
    "Chrome, fetch text/plain": (
        "POST",
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "no-cors",
            "sec-fetch-dest": "empty",
            "origin": "https://evil.example",
            "content-type": "text/plain",
        },
    ),
    "Chrome, form": (
        "POST",
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
            "sec-fetch-user": "?1",
            "origin": "https://evil.example",
            "content-type": "application/x-www-form-urlencoded",
        },
    ),
    "Firefox, form without a referrer": (
        "POST",
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "document",
            "origin": "null",
        },
    ),
    "a page on another port of localhost": (
        "POST",
        {
            "sec-fetch-site": "same-site",
            "sec-fetch-mode": "cors",
            "origin": "http://localhost:3000",
        },
    ),
    "preflight": (
        "OPTIONS",
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "cors",
            "origin": "https://evil.example",
            "access-control-request-method": "POST",
        },
    ),
    "in a frame": (
        "GET",
        {
            "sec-fetch-site": "cross-site",
            "sec-fetch-mode": "navigate",
            "sec-fetch-dest": "iframe",
        },
    ),
    "old Safari, form": ("POST", {"origin": "https://evil.example"}),
    "old Firefox, sandboxed frame": ("POST", {"origin": "null"}),
    "old browser, other port": ("POST", {"origin": "http://localhost:3000"}),
    "old browser, other scheme": ("POST", {"origin": "https://localhost:8642"}),
    "old browser, other name of this machine": ("POST", {"origin": "http://127.0.0.1:8642"}),
    "old browser, our name as a prefix": ("POST", {"origin": f"{OWN}.evil.example"}),
    "a value that no browser sends": ("GET", {"sec-fetch-site": "same-origin, cross-site"}),
    "an empty value": ("GET", {"sec-fetch-site": ""}),
}


@pytest.mark.parametrize(("method", "headers"), REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("path", ["/", "/unload", "/v1/unload", "/v1/status", "/assets/a.js"])
def test_another_site_reaches_nothing(guarded, inner, path, method, headers):
    reply = ask(guarded, path, method=method, headers=headers)
    assert reply.status == 403
    assert json.loads(reply.body)["error"]["code"] == "cross_site_request"
    assert inner.reached == []


PASSED = {
    "our page, fetch": (
        "POST",
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "origin": OWN},
    ),
    "our sign-in form in a browser that hides the origin": (
        "POST",
        {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "origin": "null"},
    ),
    "typed into the address bar": (
        "GET",
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ),
    "curl": ("POST", {"user-agent": "curl/8"}),
    "our page in an old browser": ("POST", {"origin": OWN}),
    "our page, its name in capitals": ("POST", {"origin": "HTTP://LOCALHOST:8642"}),
}


@pytest.mark.parametrize(("method", "headers"), PASSED.values(), ids=PASSED.keys())
@pytest.mark.parametrize("path", ["/", "/v1/unload"])
def test_our_own_page_and_scripts_pass(status_of, path, method, headers):
    assert status_of(path, method=method, headers=headers) == 200


LINK = {
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "navigate",
    "sec-fetch-dest": "document",
    "sec-fetch-user": "?1",
}


@pytest.mark.parametrize("path", ["/", "/models", "/settings", "/chat/abc"])
def test_a_link_of_another_site_may_be_followed_to_a_page(status_of, path):
    assert status_of(path, headers=LINK) == 200


@pytest.mark.parametrize(
    "path",
    [
        "/v1/status",
        "/v1",
        "/api/inference/status",
        "/auth/session",
        "/load/progress",
        "/status/",
        "/generate/stream",
        "/openapi.json",
    ],
)
def test_but_not_to_the_api(status_of, path):
    assert is_api_path(path)
    assert status_of(path, headers=LINK) == 403


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_and_only_by_get(status_of, method):
    assert status_of("/", method=method, headers=LINK) == 403


def test_nobody_opens_a_socket(guarded, inner):
    reply = connect(guarded, "/events")
    assert [message["type"] for message in reply.messages] == ["websocket.close"]
    assert inner.reached == []


def test_behind_https_the_origin_is_https(inner):
    guarded = Guard(inner.app, hosts=HostPolicy(["studio.example"]))
    headers = {"origin": "https://studio.example"}
    reply = ask(guarded, host="studio.example", scheme="https", method="POST", headers=headers)
    assert reply.status == 200


@pytest.mark.parametrize("path", ["/", "/v1/status", "/from-an-engine"])
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
@pytest.mark.parametrize("origin", [OWN, "https://evil.example", "null"])
def test_no_reply_lets_another_origin_read_it(guarded, path, method, origin):
    reply = ask(guarded, path, method=method, headers={"origin": origin})
    assert [name for name, _ in reply.headers if name.startswith("access-control-")] == []
