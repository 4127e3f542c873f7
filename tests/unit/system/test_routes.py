"""Alive, ready, and what machine this is."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from eloquio.engines.devices import Device
from eloquio.engines.inventory import Inventory
from eloquio.errors import EloquioError
from eloquio.settings import Settings
from eloquio.setup.checkout import Checkout
from eloquio.system.machine import with_unusable
from eloquio.system.routes import router
from fixtures.asgi import ask


@pytest.fixture
def app(tmp_path) -> FastAPI:
    app = FastAPI()
    app.include_router(router)
    app.state.inventory = Inventory(Settings(home=tmp_path))
    app.state.pool = SimpleNamespace(is_ready=lambda: True)

    @app.exception_handler(EloquioError)
    async def render(request, error):
        return JSONResponse(error.body(), error.status)

    return app


def test_health_says_who_answers(app):
    reply = ask(app, "/health")
    assert reply.status == 200
    body = json.loads(reply.body)
    assert (body["status"], body["service"]) == ("ok", "eloquio")
    assert body["version"]


def test_ready_follows_the_engines(app):
    assert ask(app, "/ready").status == 200
    app.state.pool = SimpleNamespace(is_ready=lambda: False)
    reply = ask(app, "/ready")
    assert reply.status == 503
    assert json.loads(reply.body)["error"]["code"] == "no_engine_ready"


def test_the_machine_is_told_without_a_path_of_it(app, tmp_path):
    reply = ask(app, "/system")
    body = json.loads(reply.body)
    assert body["cpu"]["threads"] >= 1
    assert body["memory"]["total_bytes"] > body["memory"]["available_bytes"] > 0
    [engine] = body["engines"]
    assert engine["version"]
    assert engine["problem"] is None
    assert body["process"]["resident_bytes"] > 1_000_000
    text = reply.body.decode()
    for path in (sys.prefix, Checkout.here().root, Path.home(), tmp_path):
        assert str(path) not in text


def test_without_an_engine_the_machine_is_told_all_the_same(app, tmp_path):
    missing = Settings(home=tmp_path, llama_server_path=tmp_path / "none")
    app.state.inventory = Inventory(missing)
    body = json.loads(ask(app, "/system").body)
    assert body["engines"] == []
    assert body["cpu"]["threads"] >= 1


def test_an_engine_that_does_not_run_is_told_with_its_problem(app, tmp_path):
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho 'cannot open shared object file' >&2\nexit 127\n")
    program.chmod(0o755)
    app.state.inventory = Inventory(Settings(home=tmp_path, llama_server_path=program))
    [engine] = json.loads(ask(app, "/system").body)["engines"]
    assert engine["version"] is None
    assert engine["problem"]


def test_an_nvidia_card_that_the_engine_does_not_see_is_told_as_such():
    card = Device("CUDA0", "NVIDIA L4", 24, 20)
    [alone] = with_unusable((), [card])
    assert (alone.name, alone.is_usable) == ("NVIDIA L4", False)
    [seen] = with_unusable((Device("Vulkan0", "NVIDIA L4", 24, 19),), [card])
    assert (seen.id, seen.is_usable) == ("Vulkan0", True)
