"""Transcriptions, through a real server to a real worker with a Whisper of random weights."""

import math
import struct
import threading
import wave
from io import BytesIO

import httpx2 as httpx
import openai
import pytest
from openai import OpenAI

from fixtures import worker_folders
from fixtures.running import place, serving, until
from fixtures.tiny_embedding import write_tiny_embedding_model

RATE = 16_000
# The worker imports torch and a model's classes, on a machine that does other things as well.
PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    shelf = home / "shelf"
    for file in worker_folders.tiny_whisper().iterdir():
        place(file, shelf / "ear" / file.name)
    write_tiny_embedding_model(shelf / "embedder.gguf")
    with serving(home, "--model-dir", str(shelf), "--no-load-on-start") as running:
        load(running, "ear")
        yield running


@pytest.fixture
def client(server):
    with OpenAI(
        base_url=f"{server.url}/v1", api_key="any", max_retries=0, timeout=PATIENCE_SECONDS
    ) as client:
        yield client


def load(server, model):
    body = {"model_path": model, "keep_others": True}
    reply = httpx.post(f"{server.url}/v1/load", json=body, timeout=PATIENCE_SECONDS)
    assert reply.status_code == 200, reply.text


def tone(seconds: float) -> bytes:
    """A wav file with a hum."""
    file = BytesIO()
    once = [int(9000 * math.sin(2 * math.pi * 220 * n / RATE)) for n in range(RATE)]
    second = struct.pack(f"<{RATE}h", *once)
    with wave.open(file, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(RATE)
        target.writeframes(second * math.ceil(seconds))
    return file.getvalue()


def send(server, path="transcriptions", file=b"", **form):
    return httpx.post(
        f"{server.url}/v1/audio/{path}",
        files={"file": ("said.wav", file)},
        data=form,
        timeout=PATIENCE_SECONDS,
    )


def error_of(reply, status=400):
    assert reply.status_code == status, reply.text
    return reply.json()["error"]


def test_a_sound_is_written_down_in_every_form(client):
    told = client.audio.transcriptions.create(
        file=tone(2), model="ear", response_format="verbose_json", language="fr"
    )
    assert told.duration == 2
    assert told.language == "french"
    for form in ("text", "srt", "vtt"):
        text = client.audio.transcriptions.create(file=tone(2), model="ear", response_format=form)
        assert isinstance(text, str)
        assert text.startswith("WEBVTT") is (form == "vtt")


def test_a_request_without_a_model_means_the_one_for_transcription(server):
    assert send(server, file=tone(1)).json().keys() >= {"text"}
    assert send(server, "translations", file=tone(1)).status_code == 200


def test_a_stream_ends_with_all_of_its_text(client):
    stream = client.audio.transcriptions.create(file=tone(2), model="ear", stream=True)
    *deltas, done = list(stream)
    assert {event.type for event in deltas} <= {"transcript.text.delta"}
    assert done.type == "transcript.text.done"
    assert "".join(event.delta for event in deltas).strip() == done.text


def test_what_is_no_sound_is_refused_with_what_it_is(server):
    assert "a web page" in error_of(send(server, file=b"<html>Not here</html>"))["message"]


def test_a_language_that_the_model_has_not_is_refused_by_its_name(server):
    assert "ja" in error_of(send(server, file=tone(1), language="ja"))["message"]


def test_a_model_that_does_not_hear_is_refused_before_it_is_asked(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(file=tone(1), model="embedder")
    assert refused.value.code == "model_cannot_transcribe"


def test_a_model_that_hears_is_not_asked_to_chat(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="ear", messages=[{"role": "user", "content": "Hello"}])
    assert refused.value.code == "model_cannot_chat"


def is_answering(server):
    rows = httpx.get(f"{server.url}/v1/requests").json()["data"]
    return any(row["status"] == "running" and row["timeline"]["queue_ms"] for row in rows)


def test_a_transcription_is_cancelled_by_its_id(server):
    replies = []
    listening = threading.Thread(
        target=lambda: replies.append(send(server, file=tone(900), cancel_id="mine"))
    )
    listening.start()
    until(lambda: is_answering(server), PATIENCE_SECONDS)
    told = httpx.post(f"{server.url}/v1/cancel", json={"cancel_id": "mine"}, timeout=60).json()
    listening.join(PATIENCE_SECONDS)
    assert told["status"] == "cancelled"
    assert error_of(replies[0], 499)["code"] == "request_cancelled"
    assert send(server, file=tone(1)).status_code == 200
