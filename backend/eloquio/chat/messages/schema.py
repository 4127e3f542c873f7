"""Anthropic's Messages API, as clients send it.

What isn't known is refused, as Anthropic does. Hints that change no answer here, such as
`cache_control`, are taken and have no effect.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)
from pydantic_core import PydanticCustomError

from eloquio.chat.field_types import MOST_TOOLS, WholeNumber, few_enough

_MOST_OF_STOPS = 8192
_Hint = dict[str, Any] | None


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


# Content -------------------------------------------------------------------------------------


class TextBlock(_Shape):
    type: Literal["text"]
    text: str
    cache_control: _Hint = None
    citations: list[Any] | None = None
    """Of a text that Anthropic wrote: they say where it had it from."""


class Base64Source(_Shape):
    type: Literal["base64"]
    media_type: str = Field(pattern=r"^image/[\w.+-]+$")
    data: str = Field(min_length=1)


class UrlSource(_Shape):
    type: Literal["url"]
    url: str = Field(min_length=1)


class FileSource(_Shape):
    """A file kept at Anthropic."""

    type: Literal["file"]
    file_id: str


class ImageBlock(_Shape):
    type: Literal["image"]
    source: Annotated[Base64Source | UrlSource | FileSource, Field(discriminator="type")]
    cache_control: _Hint = None


class ToolUseBlock(_Shape):
    type: Literal["tool_use"]
    id: str = Field(pattern=r"^[a-zA-Z0-9_-]+$")
    name: str = Field(min_length=1)
    input: dict[str, Any]
    cache_control: _Hint = None
    caller: _Hint = None


class ThinkingBlock(_Shape):
    type: Literal["thinking"]
    thinking: str
    signature: str = ""


class RedactedThinkingBlock(_Shape):
    """Thinking that only Anthropic can read."""

    type: Literal["redacted_thinking"]
    data: str


class UnservedBlock(BaseModel):
    """Content that Anthropic knows and nothing here can read."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: Literal[
        "bash_code_execution_tool_result",
        "browser_state",
        "code_execution_tool_result",
        "container_upload",
        "document",
        "mcp_tool_result",
        "mcp_tool_use",
        "search_result",
        "server_tool_use",
        "text_editor_code_execution_tool_result",
        "tool_reference",
        "tool_search_tool_result",
        "web_fetch_tool_result",
        "web_search_tool_result",
    ]


def _as_blocks(content: object) -> object:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


Texts = Annotated[
    list[TextBlock], BeforeValidator(_as_blocks, json_schema_input_type=str | list[TextBlock])
]
ResultBlock = Annotated[TextBlock | ImageBlock | UnservedBlock, Field(discriminator="type")]
ResultBlocks = Annotated[
    list[ResultBlock], BeforeValidator(_as_blocks, json_schema_input_type=str | list[ResultBlock])
]


class ToolResultBlock(_Shape):
    type: Literal["tool_result"]
    tool_use_id: str = Field(min_length=1)
    content: ResultBlocks = []
    is_error: bool | None = None
    cache_control: _Hint = None


Block = Annotated[
    TextBlock
    | ImageBlock
    | ToolUseBlock
    | ToolResultBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | UnservedBlock,
    Field(discriminator="type"),
]
Blocks = Annotated[
    list[Block], BeforeValidator(_as_blocks, json_schema_input_type=str | list[Block])
]


class Message(_Shape):
    role: Literal["user", "assistant", "system"]
    content: Blocks


# Tools ---------------------------------------------------------------------------------------


class CustomTool(_Shape):
    type: Literal["custom"] | None = None
    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None
    cache_control: _Hint = None
    eager_input_streaming: bool | None = None


class AnthropicTool(BaseModel):
    """A tool that Anthropic runs, or has taught its own models."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: str


def _kind_of_tool(tool: object) -> str:
    kind = tool.get("type") if isinstance(tool, Mapping) else getattr(tool, "type", None)
    return "custom" if kind in (None, "custom") else "anthropic"


Tool = Annotated[
    Annotated[CustomTool, Tag("custom")] | Annotated[AnthropicTool, Tag("anthropic")],
    Discriminator(_kind_of_tool),
]


class NoTool(_Shape):
    type: Literal["none"]


class AutoTool(_Shape):
    type: Literal["auto"]
    disable_parallel_tool_use: bool | None = None


class AnyTool(_Shape):
    type: Literal["any"]
    disable_parallel_tool_use: bool | None = None


class NamedTool(_Shape):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


ToolChoice = Annotated[NoTool | AutoTool | AnyTool | NamedTool, Field(discriminator="type")]


# Thinking and output -------------------------------------------------------------------------

Display = Literal["summarized", "omitted"] | None


class EnabledThinking(_Shape):
    type: Literal["enabled"]
    budget_tokens: WholeNumber = Field(ge=1024)
    display: Display = None


class AdaptiveThinking(_Shape):
    type: Literal["adaptive"]
    display: Display = None


class DisabledThinking(_Shape):
    type: Literal["disabled"]


Thinking = Annotated[
    EnabledThinking | AdaptiveThinking | DisabledThinking, Field(discriminator="type")
]


class JsonFormat(_Shape):
    # `schema` is the name of something else in pydantic.
    model_config = ConfigDict(serialize_by_alias=True)

    type: Literal["json_schema"]
    json_schema: dict[str, Any] = Field(alias="schema")


class OutputConfig(_Shape):
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: JsonFormat | None = None


def _short_together(stops: list[str]) -> list[str]:
    if sum(map(len, stops)) > _MOST_OF_STOPS:
        raise PydanticCustomError(
            "stop_sequences", f"Together they may have {_MOST_OF_STOPS} characters"
        )
    return stops


StopSequences = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(max_length=1000),
    AfterValidator(_short_together),
]

# Requests ------------------------------------------------------------------------------------


class Prompt(_Shape):
    """What a model reads: all that a count of tokens needs, and a part of a message's request."""

    model: str | None = None
    """Missing: the model that was loaded last."""
    messages: Annotated[list[Message], Field(min_length=1), few_enough("messages")]
    system: Texts = []
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    cache_control: _Hint = None
    speed: Literal["standard", "fast"] | None = None
    context_management: dict[str, Any] | None = None
    mcp_servers: list[Any] | None = None


class MessageRequest(Prompt):
    """Anthropic's request for a message.

    A sampling field that is left out is left to the model's recommended value, then to the engine.
    """

    max_tokens: WholeNumber = Field(ge=1, lt=2**31)
    stream: bool | None = False
    stop_sequences: StopSequences | None = None
    temperature: float | None = Field(default=None, ge=0, le=1)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: WholeNumber | None = Field(default=None, ge=0, lt=2**31)
    metadata: _Hint = None
    service_tier: Literal["auto", "standard_only"] | None = None
    inference_geo: str | None = None
    container: str | dict[str, Any] | None = None
    diagnostics: dict[str, Any] | None = None
    cancel_id: str | None = Field(default=None, min_length=1, max_length=128)
    """Ours: `POST /v1/cancel` ends the request by it."""


class TokenCount(BaseModel):
    input_tokens: int
