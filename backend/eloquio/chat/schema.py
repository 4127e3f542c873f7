"""The fields of a chat request that we act on; everything else goes to the engine as it came."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Message(BaseModel):
    model_config = ConfigDict(extra="allow")

    role: Annotated[str, Field(min_length=1)]
    content: str | list[dict[str, Any]] | None = None


class ChatRequest(BaseModel):
    """OpenAI's chat completion request.

    A sampling field that is left out is left to the model's recommended value, then to the engine.
    """

    model_config = ConfigDict(extra="allow")

    model: str | None = None
    """Missing: the model that was loaded last."""
    messages: list[Message] = Field(min_length=1)
    stream: bool | None = False
    repetition_penalty: float | None = Field(default=None, gt=0)
    enable_thinking: bool | None = None
    enable_tools: bool | None = None
    use_adapter: bool | str | None = None
    image_base64: str | None = None
    audio_base64: str | None = None
