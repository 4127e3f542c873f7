"""The HTTP shapes of what is heard: OpenAI's forms and replies."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Request, UploadFile
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.datastructures import FormData

from eloquio.errors import InvalidRequest, NotImplementedHere

ResponseFormat = Literal["json", "text", "srt", "verbose_json", "vtt"]
Granularity = Literal["segment", "word"]

_LIST = "[]"
_LISTS = ("timestamp_granularities", "include")
_STREAMED: tuple[ResponseFormat, ...] = ("json", "text")
# The form holds a file and a few short fields; what is longer is no such field.
_MOST_FIELD_BYTES = 100_000
_MOST_FIELDS = 100

Form = TypeVar("Form", bound="TranslationForm")


def _unless_empty(value: object) -> object:
    """A page's form sends a field that nobody filled in as an empty text."""
    return None if value == "" else value


Text = Annotated[str | None, BeforeValidator(_unless_empty)]


class TranslationForm(BaseModel):
    """OpenAI's form for a translation into English. A field that nobody here knows is refused."""

    model_config = ConfigDict(extra="forbid")

    file: UploadFile
    """In any container: wav, mp3, flac, ogg, webm, m4a, mp4 and more."""
    model: Text = None
    """Missing: the one for transcription that was loaded last."""
    prompt: Text = None
    """What came before, or names as they are to be spelled."""
    response_format: ResponseFormat = "json"
    temperature: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None, BeforeValidator(_unless_empty)
    ] = None
    """0, or missing: the likeliest words, and warmer only where those make no sense."""
    cancel_id: Annotated[str | None, Field(min_length=1, max_length=128)] = None
    """By which `POST /cancel` finds the request."""


class TranscriptionForm(TranslationForm):
    """OpenAI's form for what is said in a sound, in its own language."""

    language: Text = None
    """Its code, as `en`; missing: it is found by the model."""
    timestamp_granularities: list[Granularity] = Field(
        default_factory=list, alias=f"timestamp_granularities{_LIST}"
    )
    """Only with `verbose_json`; missing: those of segments."""
    stream: bool = False
    include: list[str] = Field(default_factory=list, alias=f"include{_LIST}")
    """Nothing of what OpenAI has there can be had."""
    chunking_strategy: Text = None
    """`auto`, which is how every sound is heard."""


async def form_of(request: Request, form: type[Form]) -> Form:
    """The form in a request's body, with its file on disk where it is large.

    Whoever gets it closes the file. Raises a RequestValidationError, or another error that names
    the field which is wrong.
    """
    sent = await request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=_MOST_FIELD_BYTES)
    try:
        made = form.model_validate(_fields(sent), by_alias=True, by_name=False)
        if made.file.size == 0:
            raise InvalidRequest("The file is empty.", param="file")
        if isinstance(made, TranscriptionForm):
            _refuse_impossible(made)
    except ValidationError as error:
        await sent.close()
        raise _named(error) from None
    except Exception:
        await sent.close()
        raise
    return made


def _fields(sent: FormData) -> dict[str, Any]:
    """By their names; a list's may come with its brackets or without them."""
    fields: dict[str, Any] = {}
    for name, value in sent.multi_items():
        plain = name.removesuffix(_LIST)
        if plain in _LISTS:
            fields.setdefault(plain + _LIST, []).append(value)
        else:
            fields[name] = value
    return fields


def _refuse_impossible(form: TranscriptionForm) -> None:
    if form.stream and form.response_format not in _STREAMED:
        raise InvalidRequest(
            f"A stream has no form of {form.response_format}.",
            param="response_format",
            next_step="Ask for json, or leave stream out.",
        )
    if form.timestamp_granularities and form.response_format != "verbose_json":
        raise InvalidRequest(
            f"There is no place for timestamps in {form.response_format}.",
            param="timestamp_granularities",
            next_step="Ask for the response_format verbose_json.",
        )
    if form.include:
        raise NotImplementedHere(f"{form.include[0]} can't be had here.", param="include")
    if form.chunking_strategy not in (None, "auto"):
        raise NotImplementedHere(
            "A sound is cut in no other way than auto.", param="chunking_strategy"
        )


def _named(error: ValidationError) -> Exception:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"]).replace(_LIST, "")
    if first["type"] == "missing" or (
        name == "file" and not isinstance(first["input"], UploadFile)
    ):
        return InvalidRequest(
            "The request brings no file.",
            param=name,
            next_step="Send it as a form (multipart/form-data) with the field file.",
        )
    return RequestValidationError([{**first, "loc": ("body", name)}])


def described(form: type[TranslationForm]) -> Mapping[str, Any]:
    """In the API's description: a body that is this form."""
    schema = form.model_json_schema(by_alias=True)
    content = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


class Segment(BaseModel):
    """What was said without a longer pause; times are in seconds."""

    id: int
    seek: int
    """Where the model began to listen, in hundredths of a second."""
    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


class Word(BaseModel):
    word: str
    start: float
    end: float


class Transcript(BaseModel):
    """What an engine found in a sound."""

    text: str
    language: str | None
    """Its English name in small letters, as OpenAI has it."""
    duration: float
    """Of the sound, in seconds."""
    segments: list[Segment]
    words: list[Word] | None = None


class DurationUsage(BaseModel):
    type: Literal["duration"] = "duration"
    seconds: int


class TranscriptionReply(BaseModel):
    """That of `json`; `text`, `srt` and `vtt` are texts."""

    text: str
    usage: DurationUsage


class VerboseReply(TranscriptionReply):
    """That of `verbose_json`."""

    task: Literal["transcribe", "translate"]
    language: str | None
    duration: float
    segments: list[Segment] | None = None
    words: list[Word] | None = None
