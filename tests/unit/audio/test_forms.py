"""The forms in which a sound comes: what is read of them, and what is refused by its name."""

import asyncio

import httpx2
import pytest
from fastapi import Request
from fastapi.exceptions import RequestValidationError

from eloquio.audio.schema import TranscriptionForm, TranslationForm, form_of
from eloquio.errors import EloquioError, InvalidRequest, NotImplementedHere

FILE = {"file": ("said.wav", b"some sound", "audio/wav")}


async def read(kind=TranscriptionForm, files=FILE, **fields):
    sent = httpx2.Request("POST", "http://localhost/", data=fields, files=files)
    body = sent.read()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(name.lower(), value) for name, value in sent.headers.raw],
    }

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    form = await form_of(Request(scope, receive), kind)
    try:
        return form, await form.file.read()
    finally:
        await form.file.close()


def refusal(**fields):
    """The error, and the field that it names."""
    with pytest.raises((EloquioError, RequestValidationError)) as refused:
        asyncio.run(read(**fields))
    error = refused.value
    if isinstance(error, RequestValidationError):
        return error, error.errors()[0]["loc"][1]
    return error, error.param


def test_a_form_with_a_file_alone_asks_for_json_of_the_model_loaded_last():
    form, sound = asyncio.run(read())
    assert (form.model, form.response_format, form.stream) == (None, "json", False)
    assert sound == b"some sound"


def test_every_field_of_openais_arrives():
    form, _ = asyncio.run(
        read(
            **{
                "model": "whisper",
                "language": "de",
                "prompt": "Grüße",
                "response_format": "verbose_json",
                "temperature": "0.4",
                "timestamp_granularities[]": ["word", "segment"],
                "stream": "false",
                "chunking_strategy": "auto",
                "cancel_id": "mine",
            }
        )
    )
    assert form.timestamp_granularities == ["word", "segment"]
    assert (form.language, form.prompt, form.temperature) == ("de", "Grüße", 0.4)
    assert (form.model, form.cancel_id) == ("whisper", "mine")


def test_a_list_may_come_without_its_brackets():
    form, _ = asyncio.run(read(response_format="verbose_json", timestamp_granularities="word"))
    assert form.timestamp_granularities == ["word"]


def test_a_field_that_nobody_filled_in_is_missing():
    form, _ = asyncio.run(read(language="", prompt="", temperature="", model=""))
    assert (form.language, form.prompt, form.temperature, form.model) == (None, None, None, None)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"response_format": "docx"}, "response_format"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": "1.5"}, "temperature"),
        ({"temperature": "nan"}, "temperature"),
        ({"stream": "perhaps"}, "stream"),
        ({"speed": "2"}, "speed"),
        ({"cancel_id": "x" * 129}, "cancel_id"),
        (
            {"response_format": "verbose_json", "timestamp_granularities[]": "line"},
            "timestamp_granularities.0",
        ),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities"),
        ({"stream": "true", "response_format": "srt"}, "response_format"),
        ({"kind": TranslationForm, "language": "de"}, "language"),
        ({"kind": TranslationForm, "stream": "true"}, "stream"),
    ],
)
def test_what_is_wrong_is_refused_by_its_name(fields, name):
    assert refusal(**fields)[1] == name


@pytest.mark.parametrize("fields", [{"include[]": "logprobs"}, {"chunking_strategy": "mine"}])
def test_what_openai_has_and_nobody_has_here_is_told_apart_from_a_mistake(fields):
    error, name = refusal(**fields)
    assert isinstance(error, NotImplementedHere)
    assert name == next(iter(fields)).removesuffix("[]")


@pytest.mark.parametrize("fields", [{"files": {}}, {"files": {}, "file": "a text"}])
def test_a_form_without_a_file_is_told_how_one_is_sent(fields):
    error, name = refusal(**fields)
    assert isinstance(error, InvalidRequest)
    assert name == "file"
    assert "multipart/form-data" in error.next_step


def test_an_empty_file_is_refused_before_any_model_is_asked():
    error, name = refusal(files={"file": ("said.wav", b"", "audio/wav")})
    assert (type(error), name) == (InvalidRequest, "file")


def test_a_large_file_waits_on_disk():
    large = bytes(3_000_000)
    form, sound = asyncio.run(read(files={"file": ("said.wav", large, "audio/wav")}))
    assert form.file.file._rolled
    assert sound == large
