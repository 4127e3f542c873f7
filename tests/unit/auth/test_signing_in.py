"""A browser and a script at a door that asks for the key."""

import json

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from eloquio.auth.door import KeyDoor
from eloquio.auth.routes import router
from eloquio.auth.sessions import COOKIE
from eloquio.errors import EloquioError
from eloquio.guard import Guard, HostPolicy
from fixtures.asgi import Reply, ask

KEY = "elq-right"
BROWSER = {"accept": "text/html,application/xhtml+xml"}
FORM = {
    **BROWSER,
    "content-type": "application/x-www-form-urlencoded",
    "origin": "http://localhost:8642",
}


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    app.include_router(router)
    app.state.door = KeyDoor(KEY)
    app.add_middleware(Guard, hosts=HostPolicy(), door=app.state.door)

    @app.exception_handler(EloquioError)
    async def render(request, error):
        return JSONResponse(error.body(), error.status)

    @app.get("/{path:path}")
    async def page(path: str) -> str:
        return path

    return app


def sign_in(app, key: str, headers=FORM, **request) -> Reply:
    return ask(
        app, "/auth/session", method="POST", headers=headers, body=f"key={key}".encode(), **request
    )


EVERY_KIND = ["/", "/assets/index.js", "/openapi.json", "/health", "/v1/models"]


@pytest.mark.parametrize("path", EVERY_KIND)
def test_every_route_needs_the_key(app, path):
    reply = ask(app, path)
    assert reply.status == 401
    assert json.loads(reply.body)["error"]["code"] == "key_required"
    assert reply.header("www-authenticate") == 'Bearer realm="eloquio"'


@pytest.mark.parametrize("path", EVERY_KIND)
def test_the_key_opens_every_route(app, path):
    assert ask(app, path, headers={"authorization": f"Bearer {KEY}"}).status == 200
    assert ask(app, path, headers={"x-api-key": KEY}).status == 200


def test_a_wrong_key_is_told_from_none(app):
    reply = ask(app, "/v1/models", headers={"x-api-key": "wrong"})
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (401, "invalid_api_key")


def test_a_browser_is_shown_a_form_that_works_without_a_script(app):
    reply = ask(app, headers=BROWSER)
    assert reply.status == 401
    assert reply.header("content-type") == "text/html; charset=utf-8"
    assert reply.header("cache-control") == "no-store"
    assert b'<form method="post" action="/auth/session">' in reply.body
    assert b"<script" not in reply.body
    assert b"http" not in reply.body
    assert b'role="alert"' not in reply.body


def test_the_form_is_sent_with_its_origin(app):
    """With no-referrer it would be sent with the origin null, which is refused."""
    assert ask(app, headers=BROWSER).header("referrer-policy") == "same-origin"
    assert sign_in(app, "wrong").header("referrer-policy") == "same-origin"


def test_the_right_key_signs_the_browser_in(app):
    reply = sign_in(app, KEY)
    assert (reply.status, reply.header("location")) == (303, "/")
    cookie = reply.header("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert KEY not in cookie
    assert ask(app, headers={"cookie": cookie.partition(";")[0]}).status == 200


def test_over_https_the_cookie_stays_there(app):
    headers = {**FORM, "origin": "https://localhost:8642"}
    assert "Secure" in sign_in(app, KEY, headers, scheme="https").header("set-cookie")


def test_a_wrong_key_shows_the_form_again_and_says_so(app):
    reply = sign_in(app, "wrong")
    assert reply.status == 401
    assert b'role="alert"' in reply.body
    assert b"not the key" in reply.body
    assert reply.header("set-cookie") is None


def test_a_script_gets_the_error_instead_of_the_form(app):
    reply = sign_in(app, "wrong", {**FORM, "accept": "*/*"})
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (401, "invalid_api_key")


def test_whoever_guesses_at_the_form_is_slowed(app):
    for _ in range(10):
        assert sign_in(app, "wrong").status == 401
    reply = sign_in(app, KEY)
    assert reply.status == 429
    assert 0 < int(reply.header("retry-after")) <= 60
    assert b"Too many wrong keys" in reply.body
    assert ask(app, headers={"x-api-key": KEY}).status == 429
    assert sign_in(app, KEY, client="192.0.2.7").status == 303


def test_another_site_cannot_sign_a_browser_in(app):
    assert sign_in(app, KEY, {**FORM, "origin": "https://evil.example"}).status == 403
    assert sign_in(app, KEY, {**FORM, "sec-fetch-site": "cross-site"}).status == 403


def test_only_signing_in_is_open_to_all(app):
    assert ask(app, "/auth/session", method="DELETE").status == 401
    assert ask(app, "/auth/session").status == 401
    assert ask(app, "/auth/session/", method="POST").status == 401


def test_a_form_far_too_long_is_not_read(app):
    assert sign_in(app, "x" * 5000, {**FORM, "accept": "*/*"}).status == 400


def test_signing_out_takes_the_cookie_back(app):
    reply = ask(app, "/auth/session", method="DELETE", headers={"x-api-key": KEY})
    assert reply.status == 204
    assert reply.header("set-cookie").startswith(f'{COOKIE}="";')
    assert "Max-Age=0" in reply.header("set-cookie")


def test_where_no_key_is_asked_for_the_form_leads_to_the_page():
    app = FastAPI()
    app.include_router(router)
    app.state.door = None
    app.add_middleware(Guard, hosts=HostPolicy())
    assert sign_in(app, "anything").header("location") == "/"
