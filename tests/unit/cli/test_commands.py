"""The commands, against a server that answers as the API does."""

import json
import socket

import pytest

from eloquio.auth.keys import own_key
from eloquio.settings import Settings


@pytest.fixture
def nobody_there(monkeypatch, tmp_path) -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("ELOQUIO_PORT", str(port))
    monkeypatch.setenv("ELOQUIO_HOME", str(tmp_path / "home"))
    return port


def test_a_load_says_what_is_loaded_and_what_the_engine_changed(eloquio, studio, server):
    result = eloquio("load", "builtin/tiny")
    assert result.exit_code == 0
    assert "builtin/tiny is loaded, in 1.2 s." in result.stdout
    assert "2048 tokens instead of 4096" in result.stderr


def test_every_option_of_a_load_reaches_the_server(eloquio, studio, server):
    eloquio(
        *("load", "org/model:Q4_K_M", "--context", "4096", "--kv", "q8_0", "--gpu-layers", "0"),
        *("--parallel", "2", "--keep-others", "--force", "--unload-after", "60", "--pin"),
    )
    [(path, body)] = studio.asked
    assert path == "/v1/load"
    assert body == {
        "model_path": "org/model:Q4_K_M",
        "max_seq_length": 4096,
        "cache_type_kv": "q8_0",
        "gpu_layers": 0,
        "n_parallel": 2,
        "keep_others": True,
        "force": True,
        "ttl_s": 60,
        "pin": True,
    }


def test_a_path_is_meant_from_where_the_person_stands(
    eloquio, studio, server, tmp_path, monkeypatch
):
    (tmp_path / "tiny.gguf").touch()
    monkeypatch.chdir(tmp_path)
    eloquio("load", "tiny.gguf")
    assert studio.asked[0][1]["model_path"] == str(tmp_path / "tiny.gguf")


def test_a_second_load_says_that_it_was_loaded_already(eloquio, studio, server):
    studio.loaded = ["builtin/tiny"]
    assert "loaded already" in eloquio("load", "builtin/tiny").stdout


def test_a_failure_is_told_with_its_evidence_and_what_to_do(eloquio, studio, server, out_of_memory):
    studio.load_error = out_of_memory
    result = eloquio("load", "builtin/tiny")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "It needs 9 GiB.",
        "cudaMalloc failed",
        out_of_memory.next_step,
    ]


def test_what_an_engine_says_cannot_steer_the_terminal(eloquio, studio, server, out_of_memory):
    out_of_memory.message = "It [bold]needs[/] \x1b[2J\x1b]0;owned\x07 9 GiB."
    studio.load_error = out_of_memory
    stderr = eloquio("load", "builtin/tiny").stderr
    assert "It [bold]needs[/]" in stderr
    assert "\x1b" not in stderr
    assert "\x07" not in stderr


@pytest.mark.parametrize(
    "command", [["status"], ["load", "x"], ["unload"], ["chat", "-m", "hello"], ["chat", "x"]]
)
def test_without_a_server_that_is_said_plainly(eloquio, nobody_there, command):
    result = eloquio(*command)
    assert result.exit_code == 1
    assert f"No Eloquio is running at http://127.0.0.1:{nobody_there}." in result.stderr
    assert "eloquio serve" in result.stderr


def test_a_bind_to_every_address_is_asked_at_this_machine(eloquio, studio, server, monkeypatch):
    monkeypatch.setenv("ELOQUIO_HOST", "0.0.0.0")
    assert eloquio("status").exit_code == 0


def test_a_proxy_of_the_environment_is_not_asked(eloquio, studio, server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:9")
    assert eloquio("status").exit_code == 0


def test_an_unload_says_what_is_gone(eloquio, studio, server):
    studio.loaded = ["builtin/tiny"]
    assert "builtin/tiny is unloaded." in eloquio("unload").stdout
    assert studio.asked == [("/v1/unload", {"model_path": None})]
    assert "No model is loaded." in eloquio("unload").stdout
    assert "It isn't loaded." in eloquio("unload", "builtin/tiny").stdout


def test_the_status_is_a_table(eloquio, studio, server):
    studio.loaded = ["builtin/tiny"]
    _, row = eloquio("status").stdout.splitlines()
    assert row.split() == [
        "builtin/tiny",
        "ready",
        "2048",
        "200",
        "MiB",
        "1",
        "1",
        "min",
        "15",
        "s",
    ]


def test_or_a_sentence(eloquio, studio, server):
    assert "No model is loaded" in eloquio("status").stdout
    studio.asleep = ["builtin/tiny"]
    assert eloquio("status").stdout.startswith("builtin/tiny is asleep")


def test_what_a_person_should_know_of_a_loaded_model_stands_under_the_table(
    eloquio, studio, server
):
    studio.loaded = ["builtin/tiny"]
    studio.warnings = ["It is slow."]
    assert eloquio("status").stdout.splitlines()[-1] == "builtin/tiny: It is slow."


def test_or_json_for_a_script(eloquio, studio, server):
    studio.loaded = ["builtin/tiny"]
    assert json.loads(eloquio("status", "--json").stdout)["active_model"] == "builtin/tiny"


def test_the_key_is_printed_and_stays_the_same(eloquio, tmp_path):
    first = eloquio("key", "--home", str(tmp_path)).stdout
    assert first.startswith("elq-")
    assert eloquio("key", "--home", str(tmp_path)).stdout == first


def test_the_version_is_printed(eloquio):
    assert eloquio("--version").stdout.startswith("eloquio ")


def test_a_setting_that_makes_no_sense_is_named(eloquio, monkeypatch):
    monkeypatch.setenv("ELOQUIO_PORT", "eighty")
    result = eloquio("status")
    assert result.exit_code == 2
    assert "port" in result.stderr
    assert "Traceback" not in result.stderr


class TestWithAKey:
    @pytest.fixture
    def key(self, tmp_path) -> str:
        return own_key(Settings(home=tmp_path / "home"))

    def test_the_key_of_the_home_folder_is_sent_when_it_is_asked_for(
        self, eloquio, studio, server, key
    ):
        assert eloquio("status").exit_code == 0
        assert studio.headers[-1]["authorization"] == f"Bearer {key}"

    def test_without_it_the_servers_words_are_told(self, eloquio, server, monkeypatch, tmp_path):
        monkeypatch.setenv("ELOQUIO_HOME", str(tmp_path / "elsewhere"))
        result = eloquio("status")
        assert result.exit_code == 1
        assert "asks for its key" in result.stderr


def test_a_server_that_asks_for_no_key_is_not_told_it(eloquio, studio, server):
    own_key(Settings(home=server.home))
    eloquio("status")
    assert "authorization" not in studio.headers[-1]


def test_another_server_is_told_from_an_eloquio(eloquio, nobody_there):
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Other(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", nobody_there), Other) as other:
        thread = Thread(target=other.handle_request)
        thread.start()
        result = eloquio("status")
        thread.join(10)
    assert result.exit_code == 1
    assert "isn't an Eloquio" in result.stderr
