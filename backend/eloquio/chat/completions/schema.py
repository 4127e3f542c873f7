"""The fields of OpenAI's older completions that we act on or check; others go on as they came."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from eloquio.chat.field_types import Stops, TokenId, WholeNumber
from eloquio.chat.schema import StreamOptions
from eloquio.chat.well_formed import refuse_what_json_cannot_carry
from eloquio.errors import InvalidRequest, NotImplementedHere

_Prompt = str | list[str] | list[int] | list[list[int]]


def _prompt(value: object) -> object:
    prompts = [value] if _is_prompt(value) else value
    if not isinstance(prompts, list) or not prompts or not all(map(_is_prompt, prompts)):
        raise PydanticCustomError(
            "prompt", "Input should be a text, a list of texts, tokens, or lists of tokens"
        )
    return value


def _is_prompt(value: object) -> bool:
    return isinstance(value, str) or _is_tokens(value)


def _is_tokens(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(token, int) and token is not True and 0 <= token < 2**31 for token in value
    )


class CompletionRequest(BaseModel):
    """A sampling field that is left out is left to the model's recommended value."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str | None = None
    """Missing: the model that was loaded last."""
    prompt: Annotated[Any, PlainValidator(_prompt, json_schema_input_type=_Prompt)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: WholeNumber | None = Field(default=None, ge=1, le=128)
    best_of: WholeNumber | None = Field(default=None, ge=1)
    max_tokens: WholeNumber | None = Field(default=None, ge=1, lt=2**31)
    """Missing: until the model ends, or the context is full."""
    echo: bool | None = None
    suffix: str | None = None
    logprobs: WholeNumber | None = Field(default=None, ge=0, le=20)
    stop: Stops = None
    seed: WholeNumber | None = Field(default=None, ge=-(2**63), lt=2**63)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: dict[TokenId, Annotated[float, Field(ge=-100, le=100)]] | None = None
    cancel_id: str | None = Field(default=None, min_length=1, max_length=128)
    """By which `POST /cancel` finds the request."""

    @model_validator(mode="before")
    @classmethod
    def _can_be_passed_on(cls, fields: object) -> object:
        if isinstance(fields, dict):
            refuse_what_json_cannot_carry(fields)
        return fields

    @model_validator(mode="after")
    def _can_be_had(self) -> "CompletionRequest":
        if self.stream_options is not None and not self.stream:
            raise InvalidRequest(
                "The request isn't right. stream_options: Only a streamed answer has them.",
                param="stream_options",
            )
        if self.suffix:
            raise _unsupported(
                "suffix", "A text is continued at its end, not filled in before one."
            )
        if self.best_of not in (None, self.n or 1):
            raise _unsupported(
                "best_of", "All completions are answered, and none is chosen for you."
            )
        if self.echo and self.logprobs is not None:
            raise _unsupported(
                "echo",
                "With logprobs it asks for those of the prompt, which the engine doesn't tell.",
            )
        if self.echo and not all(isinstance(prompt, str) for prompt in self.prompts()):
            raise _unsupported("echo", "A prompt of tokens isn't said again as a text.")
        return self

    def prompts(self) -> list[Any]:
        """Each a text, or a list of tokens."""
        return [self.prompt] if _is_prompt(self.prompt) else list(self.prompt)


def _unsupported(field: str, why: str) -> NotImplementedHere:
    return NotImplementedHere(
        f"{field} isn't supported. {why}", param=field, next_step=f"Leave {field} out."
    )
