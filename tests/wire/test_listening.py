"""Transcriptions, through a real server to a real worker with a Whisper that knows digits."""

import threading
import wave
from io import BytesIO
from pathlib import Path

import httpx2 as httpx
import openai
import pytest
from openai import OpenAI

from fixtures.running import place, serving, until
from fixtures.tiny_embedding import write_tiny_embedding_model

DIGITS = Path(__file__).parents[1] / "fixtures" / "digits_whisper"
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# Without the one that the model mishears.
LINES = sorted({file.stem for file in (DIGITS / "spoken").glob("*.flac")} - {"5550123"})
# The worker imports torch and a model's classes, on a machine that does other things as well.
PATIENCE_SECONDS = 300


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    shelf = home / "shelf"
    for file in (DIGITS / "model").iterdir():
        place(file, shelf / "digits" / file.name)
    write_tiny_embedding_model(shelf / "embedder.gguf")
    with serving(home, "--model-dir", str(shelf), "--no-load-on-start") as running:
        load(running, "digits")
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


def words(line):
    return " ".join(NAMES[int(digit)] for digit in line)


def spoken(line):
    return DIGITS / "spoken" / f"{line}.flac"


def again_and_again(line, minutes):
    """The line spoken for so long, with pauses."""
    with wave.open(str(DIGITS / "spoken" / f"{line}.wav")) as once:
        parameters, said = once.getparams(), once.readframes(once.getnframes())
    second = 2 * parameters.framerate
    said += bytes(second)
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams(parameters)
        sound.writeframes(said * (60 * minutes * second // len(said)))
    return file.getvalue()


def send(server, route="transcriptions", file=b"", **fields):
    return httpx.post(
        f"{server.url}/v1/audio/{route}",
        files={"file": ("said.flac", file)},
        data=fields,
        timeout=PATIENCE_SECONDS,
    )


def error_of(reply, status=400):
    assert reply.status_code == status, reply.text
    return reply.json()["error"]


@pytest.mark.parametrize("line", LINES)
def test_digits_that_were_in_no_lesson_are_heard_right(client, line):
    heard = client.audio.transcriptions.create(file=spoken(line), model="digits")
    assert heard.text == words(line)


def test_a_request_without_a_model_means_the_one_for_transcription_loaded_last(server):
    load(server, "embedder")
    heard = send(server, file=spoken("42").read_bytes())
    assert heard.json() == {"text": words("42"), "usage": {"type": "duration", "seconds": 1}}


def test_verbose_json_tells_the_times_of_segments_and_words(client):
    heard = client.audio.transcriptions.create(
        file=spoken("271828"),
        model="digits",
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert (heard.language, heard.text) == ("english", words("271828"))
    assert [each.word for each in heard.words] == words("271828").split()
    assert 0 < heard.segments[-1].end <= heard.duration < 10


def test_captions_come_as_texts(client):
    srt = client.audio.transcriptions.create(
        file=spoken("42"), model="digits", response_format="srt"
    )
    assert srt.startswith("1\n00:00:0")
    assert words("42") in srt
    vtt = client.audio.transcriptions.create(
        file=spoken("42"), model="digits", response_format="vtt"
    )
    assert vtt.startswith("WEBVTT\n\n00:00:0")


def test_a_stream_tells_the_text_and_then_all_of_it(client):
    stream = client.audio.transcriptions.create(file=spoken("42"), model="digits", stream=True)
    *deltas, done = list(stream)
    assert {each.type for each in deltas} == {"transcript.text.delta"}
    assert "".join(each.delta for each in deltas).strip() == done.text == words("42")
    assert done.type == "transcript.text.done"


def test_a_translation_is_english(server):
    heard = send(server, "translations", spoken("42").read_bytes(), model="digits")
    assert heard.json()["text"] == words("42")


def test_what_is_no_sound_is_refused_with_what_it_is(server):
    error = error_of(send(server, file=b"<html>Not here</html>"))
    assert "a web page" in error["message"]


def test_a_language_that_the_model_has_not_is_refused_by_its_name(server):
    error = error_of(send(server, file=spoken("42").read_bytes(), language="ja"))
    assert "ja" in error["message"]


def test_a_model_that_does_not_hear_is_refused_before_it_is_asked(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(file=spoken("42"), model="embedder")
    assert refused.value.code == "model_cannot_transcribe"


def test_a_model_that_hears_is_not_asked_to_chat(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(
            model="digits", messages=[{"role": "user", "content": "Hello"}]
        )
    assert refused.value.code == "model_cannot_chat"


def is_answering(server):
    rows = httpx.get(f"{server.url}/v1/requests").json()["data"]
    return any(row["status"] == "running" and row["timeline"]["queue_ms"] for row in rows)


def test_a_transcription_is_cancelled_by_its_id(server):
    replies = []
    listening = threading.Thread(
        target=lambda: replies.append(
            send(server, file=again_and_again("42", 15), cancel_id="mine")
        )
    )
    listening.start()
    until(lambda: is_answering(server), PATIENCE_SECONDS)
    told = httpx.post(f"{server.url}/v1/cancel", json={"cancel_id": "mine"}, timeout=60).json()
    listening.join(PATIENCE_SECONDS)
    assert told["status"] == "cancelled"
    assert error_of(replies[0], 499)["code"] == "request_cancelled"
    assert send(server, file=spoken("42").read_bytes()).json()["text"] == words("42")


def test_who_leaves_a_stream_ends_the_listening(server):
    with httpx.stream(
        "POST",
        f"{server.url}/v1/audio/transcriptions",
        files={"file": ("long.wav", again_and_again("42", 15))},
        data={"stream": "true"},
        timeout=PATIENCE_SECONDS,
    ) as stream:
        assert "transcript.text.delta" in next(filter(None, stream.iter_lines()))
    assert send(server, file=spoken("42").read_bytes()).json()["text"] == words("42")
    rows = httpx.get(f"{server.url}/v1/requests").json()["data"]
    assert "client_left" in [row["status"] for row in rows]
