"""OpenAI's request for a response: every field of it, those that aren't supported too."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from eloquio.chat.field_types import MOST_TOOLS, ToolName, WholeNumber, few_enough

Item = dict[str, Any]

_CHOICES = ("none", "auto", "required")


class Strict(BaseModel):
    """Takes no field that it doesn't know, and no text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _items(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


def _choice(value: object) -> object:
    if not isinstance(value, str):
        return value
    if value not in _CHOICES:
        raise ValueError(f"It is one of {', '.join(_CHOICES)}, or an object")
    return {"type": value}


Input = Annotated[
    list[Item],
    Field(min_length=1),
    few_enough("input"),
    BeforeValidator(_items, json_schema_input_type=str | list[Item]),
]
"""Its items; a text is one message of the user's."""


class WordChoice(Strict):
    type: Literal["none", "auto", "required"]


class FunctionChoice(Strict):
    type: Literal["function"]
    name: str


class AllowedTools(Strict):
    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: list[FunctionChoice]


ToolChoice = Annotated[
    dict[str, Any],
    BeforeValidator(
        _choice, json_schema_input_type=Literal["none", "auto", "required"] | dict[str, Any]
    ),
]
"""Always an object: a word is its `type`. `tools.py` looks into it."""


class TextFormat(Strict):
    type: Literal["text", "json_object", "json_schema"]
    name: str | None = Field(default=None, min_length=1, max_length=64)
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None
    description: str | None = None


class TextOptions(Strict):
    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Reasoning(Strict):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    """The older name of `summary`."""
    context: Literal["auto", "current_turn", "all_turns"] | None = None
    mode: str | None = None


class StreamOptions(Strict):
    include_obfuscation: bool | None = None


class CacheOptions(Strict):
    """Hints to a cache that has its own ways here."""

    mode: Literal["implicit", "explicit"] | None = None
    ttl: str | None = None


class FunctionTool(Strict):
    type: Literal["function"]
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ModelInput(Strict):
    """What a model reads before it answers."""

    model: str | None = None
    """Missing: the model that was loaded last."""
    input: Input | None = None
    instructions: str | None = None
    tools: Annotated[list[Item], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning: Reasoning | None = None
    text: TextOptions | None = None
    truncation: Literal["auto", "disabled"] | None = None
    previous_response_id: JsonValue = None
    conversation: JsonValue = None


class InputTokensRequest(ModelInput):
    personality: JsonValue = None


class ResponseRequest(ModelInput):
    """A sampling field that is left out is left to the model's recommended value."""

    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_output_tokens: WholeNumber | None = Field(default=None, ge=1, lt=2**31)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: WholeNumber | None = Field(default=None, ge=0)
    min_p: float | None = Field(default=None, ge=0, le=1)
    repetition_penalty: float | None = Field(default=None, gt=0)
    top_logprobs: WholeNumber | None = Field(default=None, ge=0, le=20)
    include: (
        list[
            Literal[
                "message.output_text.logprobs",
                "reasoning.encrypted_content",
                "message.input_image.image_url",
                "file_search_call.results",
                "web_search_call.results",
                "web_search_call.action.sources",
                "computer_call_output.output.image_url",
                "code_interpreter_call.outputs",
            ]
        ]
        | None
    ) = None
    """Only the first adds something: reasoning is told in plain words, and the tools of the others
    aren't supported."""
    metadata: (
        Annotated[
            dict[
                Annotated[str, Field(max_length=64)],
                Annotated[str, Field(max_length=512)],
            ],
            Field(max_length=16),
        ]
        | None
    ) = None

    enable_thinking: bool | None = None
    cancel_id: str | None = Field(default=None, min_length=1, max_length=128)
    """`POST /cancel` ends the response by it."""

    # What changes nothing by its nature: who asks, hints, and limits of what isn't supported.
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "in-memory", "24h"] | None = None
    prompt_cache_options: CacheOptions | None = None
    service_tier: Literal["auto", "default", "flex", "priority", "scale"] | None = None
    max_tool_calls: WholeNumber | None = Field(default=None, ge=1)
    store: bool | None = None
    """Nothing is stored, whatever is said here, and the response says so."""

    # What isn't supported; see `request.py`.
    background: bool | None = None
    background_options: JsonValue = None
    prompt: JsonValue = None
    context_management: JsonValue = None
    moderation: JsonValue = None
    access_programs: JsonValue = None
    image: JsonValue = None
