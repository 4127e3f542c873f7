"""The fields of a chat request that we act on or check; the others go on as they came."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from eloquio.chat.field_types import (
    MOST_TOOLS,
    Adapter,
    Content,
    Stops,
    TokenId,
    ToolChoice,
    ToolName,
    WholeNumber,
    few_enough,
    refuse_too_many,
)
from eloquio.chat.unsupported import refuse_what_cannot_be_had
from eloquio.chat.well_formed import refuse_what_json_cannot_carry
from eloquio.errors import InvalidRequest, NotImplementedHere


class _Part(BaseModel):
    # Strict: what would only be right after a conversion goes on unconverted, and is ignored there.
    model_config = ConfigDict(extra="allow", strict=True)


class CalledFunction(_Part):
    name: str
    arguments: str | dict[str, Any] = "{}"


class ToolCall(_Part):
    id: str | None = None
    function: CalledFunction


class Message(_Part):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @model_validator(mode="after")
    def _has_what_its_role_needs(self) -> "Message":
        # An assistant's may be empty: it is a reply that was stopped before its first word.
        if self.content is None and self.role != "assistant":
            raise PydanticCustomError("content", f"A message of the {self.role} needs its content")
        if self.role == "tool" and self.tool_call_id is None:
            raise PydanticCustomError("tool_call_id", "A tool's message needs its tool_call_id")
        return self


class Function(_Part):
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(_Part):
    type: Literal["function"]
    function: Function

    @model_validator(mode="before")
    @classmethod
    def _is_a_function(cls, tool: object) -> object:
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(kind, str) and kind != "function":
            raise NotImplementedHere(
                f"A tool of the type {kind} isn't supported: a local model calls functions only.",
                param="tools",
                next_step="Describe it as a function, with its parameters as a JSON schema.",
            )
        return tool


class JsonSchema(_Part):
    name: str | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(_Part):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _has_its_schema(self) -> "ResponseFormat":
        if self.type == "json_schema" and self.json_schema is None:
            raise PydanticCustomError("json_schema", "The type json_schema needs a json_schema")
        return self


class StreamOptions(TypedDict, total=False):
    __pydantic_config__ = ConfigDict(extra="allow", strict=True)  # type: ignore[misc]

    include_usage: bool | None


class ChatRequest(_Part):
    """OpenAI's chat completion request.

    A sampling field that is left out is left to the model's recommended value, then to the engine.
    """

    model: str | None = None
    """Missing: the model that was loaded last."""
    messages: Annotated[list[Message], Field(min_length=1), few_enough("messages")]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: WholeNumber | None = Field(default=None, ge=1, le=128)
    max_tokens: WholeNumber | None = Field(default=None, ge=1, lt=2**31)
    max_completion_tokens: WholeNumber | None = Field(default=None, ge=1, lt=2**31)
    stop: Stops = None
    seed: WholeNumber | None = Field(default=None, ge=-(2**63), lt=2**63)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: WholeNumber | None = Field(default=None, ge=-1, lt=2**31)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    logit_bias: dict[TokenId, Annotated[float, Field(ge=-100, le=100)]] | None = None
    logprobs: bool | None = None
    top_logprobs: WholeNumber | None = Field(default=None, ge=0, le=20)
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    reasoning_format: Literal["none", "auto", "deepseek", "deepseek-legacy"] | None = None
    """The engine's own field: `none` leaves reasoning in the text."""
    chat_template_kwargs: dict[str, Any] | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: bool | None = None
    enable_thinking: bool | None = None
    enable_tools: bool | None = None
    use_adapter: Adapter = None
    image_base64: str | None = None
    audio_base64: str | None = None
    cancel_id: str | None = Field(default=None, min_length=1, max_length=128)
    """By which `POST /cancel` finds the request."""

    @model_validator(mode="before")
    @classmethod
    def _can_be_passed_on(cls, fields: object) -> object:
        if isinstance(fields, dict):
            refuse_what_json_cannot_carry(fields)
            refuse_what_cannot_be_had(fields)
        return fields

    @model_validator(mode="after")
    def _fits_together(self) -> "ChatRequest":
        if self.stream_options is not None and not self.stream:
            raise _misfit("stream_options", "Only a streamed answer has them.")
        if self.top_logprobs is not None and not self.logprobs:
            raise _misfit("top_logprobs", "They need logprobs to be true.")
        limits = {self.max_tokens, self.max_completion_tokens} - {None}
        if len(limits) > 1:
            raise _misfit("max_tokens", "max_completion_tokens says something else.")
        if self.tool_choice not in (None, "none"):
            self._check_tool_choice()
        if self.logprobs and self.tools and self.tool_choice != "none":
            raise NotImplementedHere(
                "The engine can't tell the probabilities of tokens in an answer that may call "
                "tools.",
                param="logprobs",
                next_step="Ask for no probabilities, or send tool_choice none.",
            )
        calls = sum(len(message.tool_calls or ()) for message in self.messages)
        refuse_too_many(len(self.messages) + calls, "messages")
        return self

    def _check_tool_choice(self) -> None:
        if not self.tools:
            raise _misfit("tool_choice", "It needs tools to choose from.")
        name = self.chosen_tool
        if name is not None and name not in {tool.function.name for tool in self.tools}:
            raise _misfit("tool_choice", "It names a function that isn't among the tools.")
        if self.requires_call and self.reasoning_format == "none":
            raise _misfit("reasoning_format", "With a call that is required it can't be none.")

    @property
    def chosen_tool(self) -> str | None:
        """The function that has to be called, where `tool_choice` names one."""
        if not isinstance(self.tool_choice, dict):
            return None
        name: str = self.tool_choice["function"]["name"]
        return name

    @property
    def requires_call(self) -> bool:
        """Whether the answer has to be a call of a tool."""
        return self.tool_choice == "required" or self.chosen_tool is not None


def _misfit(param: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"The request isn't right. {param}: {reason}", param=param)
