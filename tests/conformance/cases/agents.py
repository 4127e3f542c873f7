"""An agent framework's client: an agent that uses a tool, and one that answers in a structure."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from conformance import shown
from conformance.case import Cases, Need
from conformance.target import CAPITAL, Target

cases = Cases("agents", "agents")

GREEDY = ModelSettings(temperature=0, max_tokens=100)
MakeModel = Callable[[Target], AbstractAsyncContextManager[Model]]


class Capital(BaseModel):
    """A country and its capital."""

    country: Literal["France", "Italy", "Spain"]
    capital: Literal["Paris", "Rome", "Madrid"]


@asynccontextmanager
async def by_chat(target: Target) -> AsyncIterator[Model]:
    async with _openai(target) as client:
        yield OpenAIChatModel(target.model, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def by_responses(target: Target) -> AsyncIterator[Model]:
    async with _openai(target) as client:
        yield OpenAIResponsesModel(target.model, provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def by_messages(target: Target) -> AsyncIterator[Model]:
    async with AsyncAnthropic(base_url=target.base_url, api_key="any", max_retries=0) as client:
        provider = AnthropicProvider(anthropic_client=client)
        yield AnthropicModel(target.model, provider=provider)


def _openai(target: Target) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{target.base_url}/v1", api_key="any", max_retries=0)


WAYS: dict[str, tuple[MakeModel, tuple[Need, ...]]] = {
    "chat": (by_chat, ()),
    "responses": (by_responses, ("responses",)),
    "messages": (by_messages, ("messages",)),
}
# The framework asks only Claude's own models of Anthropic's API for a schema.
WITH_SCHEMA = ("chat", "responses")


def an_agent_answers_in_words(target: Target, model: MakeModel) -> None:
    result = _run(target, model, Agent(model_settings=GREEDY), CAPITAL)
    assert "Paris" in result.output
    assert result.usage.output_tokens > 3


def an_agent_streams_its_words(target: Target, model: MakeModel) -> None:
    async def stream() -> list[str]:
        agent = Agent(model_settings=GREEDY)
        async with model(target) as own, agent.run_stream(CAPITAL, model=own) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    pieces = asyncio.run(stream())
    assert len(pieces) > 2
    assert "Paris" in "".join(pieces)


def an_agent_uses_a_tool_and_tells_what_it_said(target: Target, model: MakeModel) -> None:
    asked: list[str] = []
    agent = Agent(model_settings=GREEDY)

    @agent.tool_plain
    def weather(town: str) -> str:
        """Tells the weather in a town."""
        asked.append(town)
        return shown.RESULT

    result = _run(target, model, agent, shown.ASKS, _two_towns())
    assert asked == ["Paris"]
    assert shown.RESULT in result.output


def an_agent_answers_with_a_structure(target: Target, model: MakeModel) -> None:
    """By a function of the framework's that has to be called."""
    agent = Agent(output_type=Capital, model_settings=GREEDY)
    result = _run(target, model, agent, "What is the capital of France?", _two_countries())
    assert result.output == Capital(country="France", capital="Paris")


def an_agent_answers_by_a_schema(target: Target, model: MakeModel) -> None:
    agent = Agent(output_type=NativeOutput(Capital), model_settings=GREEDY)
    result = _run(target, model, agent, CAPITAL)
    assert result.output == Capital(country="France", capital="Paris")


def _run(
    target: Target,
    model: MakeModel,
    agent: Agent[Any, Any],
    question: str,
    history: Sequence[ModelMessage] = (),
) -> Any:
    async def run() -> Any:
        async with model(target) as own:
            return await agent.run(question, model=own, message_history=history)

    return asyncio.run(run())


def _two_towns() -> list[ModelMessage]:
    """A conversation that shows a small model how to call."""
    messages: list[ModelMessage] = []
    for town, weather in shown.TOWNS.items():
        call = ToolCallPart("weather", {"town": town}, tool_call_id=f"call_{town}")
        result = ToolReturnPart("weather", weather, tool_call_id=call.tool_call_id)
        messages += [
            ModelRequest([UserPromptPart(f"What is the weather in {town}?")]),
            ModelResponse([call]),
            ModelRequest([result]),
            ModelResponse([TextPart(f"It is {weather}.")]),
        ]
    return messages


def _two_countries() -> list[ModelMessage]:
    """One that shows it how to answer."""
    messages: list[ModelMessage] = []
    for country, capital in (("Italy", "Rome"), ("Spain", "Madrid")):
        answer = {"country": country, "capital": capital}
        call = ToolCallPart("final_result", answer, tool_call_id=f"call_{country}")
        result = ToolReturnPart("final_result", "Noted.", tool_call_id=call.tool_call_id)
        messages += [
            ModelRequest([UserPromptPart(f"What is the capital of {country}?")]),
            ModelResponse([call]),
            ModelRequest([result]),
            ModelResponse([TextPart(f"It is {capital}.")]),
        ]
    return messages


def _add(trial: Callable[..., None], ways: Iterable[str], *needs: Need) -> None:
    for way in ways:
        model, needs_of_way = WAYS[way]
        cases.each({way: (model,)}, *needs, *needs_of_way)(trial)


_add(an_agent_answers_in_words, WAYS)
_add(an_agent_streams_its_words, WAYS)
_add(an_agent_uses_a_tool_and_tells_what_it_said, WAYS, "tools")
_add(an_agent_answers_with_a_structure, WAYS, "tools")
_add(an_agent_answers_by_a_schema, WITH_SCHEMA, "schema")
