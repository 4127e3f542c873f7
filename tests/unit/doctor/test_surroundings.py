"""What the doctor sees of a machine's good and bad sides."""

import socket
import stat

import pytest

from eloquio.doctor import surroundings
from eloquio.engines.devices import Device
from eloquio.engines.inventory import Build
from eloquio.errors import EngineIllegalInstruction, EngineMissing
from eloquio.settings import Settings
from fixtures.running import serving


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=tmp_path / "home", hf_hub_cache=tmp_path / "hub", port=0)


def test_a_new_home_is_made_and_closed_to_others(settings):
    assert surroundings.home(settings).verdict == "ok"
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700
    assert list(settings.home.iterdir()) == []


def test_a_home_open_to_others_is_closed(settings):
    settings.home.mkdir(mode=0o755)
    assert surroundings.home(settings).verdict == "ok"
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700


def test_a_home_that_cannot_be_made_fails_with_the_reason(settings):
    settings.home.write_text("a file in the way")
    check = surroundings.home(settings)
    assert check.verdict == "fail"
    assert "ELOQUIO_HOME" in check.next_step


def test_an_engine_is_told_with_where_it_comes_from():
    check = surroundings.llama_server(Build("wheel", "b10434"))
    assert check.verdict == "ok"
    assert "b10434" in check.sentence
    assert "prebuilt" in check.sentence


def test_no_engine_fails():
    check = surroundings.llama_server(EngineMissing("There is no llama-server."))
    assert check.verdict == "fail"
    assert "scripts/start" in check.next_step


def test_an_engine_of_another_processor_fails_with_its_own_words():
    problem = EngineIllegalInstruction("It can't run here.", evidence="SIGILL")
    check = surroundings.llama_server(Build("path", None, problem=problem))
    assert (check.verdict, check.evidence) == ("fail", "SIGILL")
    assert "--build" in check.next_step


def test_the_accelerators_are_named():
    build = Build("path", "1", (Device("Vulkan0", "Radeon", 8 * 1024**3, 6 * 1024**3),))
    assert "Vulkan0 (Radeon, 6.0 GiB free)" in surroundings.devices(build).sentence


def test_without_one_the_processor_is(monkeypatch):
    monkeypatch.setattr(surroundings, "nvidia_devices", lambda: [])
    check = surroundings.devices(Build("path", "1"))
    assert check.verdict == "ok"
    assert "processor" in check.sentence


def test_a_card_that_the_engine_cannot_use_is_a_warning(monkeypatch):
    monkeypatch.setattr(surroundings, "nvidia_devices", lambda: [Device("CUDA0", "L4", 24, 20)])
    check = surroundings.devices(Build("path", "1"))
    assert check.verdict == "warn"
    assert "L4" in check.sentence
    assert "--cuda" in check.next_step


def test_a_folder_is_counted_and_what_is_broken_in_it_named(settings, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "page.gguf").write_text("<!doctype html>")
    folders = (folder, tmp_path / "nowhere")
    here, missing, hub = surroundings.model_folders(folders, surroundings.scan(settings, folders))
    assert here.verdict == "warn"
    assert "1 model in" in here.sentence
    assert "page" in here.sentence
    assert missing.verdict == "warn"
    assert "ELOQUIO_MODEL_DIRS" in missing.next_step
    assert (hub.verdict, hub.sentence[:8]) == ("ok", "0 models")


def test_the_built_in_model_must_be_there_and_whole(settings):
    assert surroundings.builtin_model(settings).verdict == "fail"
    path = surroundings.builtin_path(settings)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF, but cut")
    check = surroundings.builtin_model(settings)
    assert check.verdict == "fail"
    assert "cut on the way" in check.sentence


def test_a_free_port_is_well(settings):
    assert surroundings.port(settings).verdict == "ok"


def test_a_port_that_another_program_holds_fails(settings):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        # Closes each connection at once, so that nobody waits for an answer.
        holder.settimeout(0)
        check = surroundings.port(settings.model_copy(update={"port": port}))
    assert check.verdict == "fail"
    assert str(port) in check.sentence
    assert "--port" in check.next_step


def test_a_port_that_an_eloquio_holds_is_well(settings):
    settings.home.mkdir()
    with serving(settings.home, "--no-load-on-start") as server:
        port = int(server.url.rpartition(":")[2])
        check = surroundings.port(settings.model_copy(update={"port": port}))
    assert check.verdict == "ok"
    assert server.url in check.sentence
