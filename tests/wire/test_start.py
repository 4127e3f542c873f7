"""What a person sees when Eloquio can't start."""

import subprocess
import sys

import httpx2 as httpx
import pytest


def start(home):
    command = [sys.executable, "-m", "eloquio", "serve", "--no-browser", "--port", "0"]
    return subprocess.run(
        [*command, "--home", str(home)], capture_output=True, text=True, timeout=60
    )


def test_a_home_that_is_no_folder_is_told_in_one_sentence(tmp_path):
    home = tmp_path / "home"
    home.write_text("a file")
    ended = start(home)
    assert ended.returncode == 1
    assert "can't be used" in ended.stderr
    assert "--home" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_database_that_is_none_is_told_with_what_to_do(tmp_path):
    (tmp_path / "eloquio.db").write_text("this is no database, and longer than its header is")
    ended = start(tmp_path)
    assert ended.returncode == 3
    assert "Eloquio is at" not in ended.stdout
    *_, message, next_step = ended.stderr.splitlines()
    assert "database" in message
    assert next_step


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/load"])
def test_a_body_that_is_too_large_is_refused_before_it_is_parsed(server, path, is_told):
    body = b'{"messages":"' + b"x" * 33_000_000 + b'"}'
    headers = {"content-type": "application/json"}
    content = body if is_told else iter([body[:16_000_000], body[16_000_000:]])
    reply = httpx.post(f"{server.url}{path}", content=content, headers=headers, timeout=60)
    assert reply.status_code == 413
    assert reply.json()["error"]["code"] == "body_too_large"
