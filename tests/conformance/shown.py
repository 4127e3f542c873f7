"""Conversations that show a small model how to call a tool, in each API's shape.

After them it calls `weather` for Paris.
"""

import json
from typing import Any

TOWNS = {"Rome": "sunny", "Berlin": "rainy"}
ASKS = "What is the weather in Paris?"
DESCRIPTION = "Tells the weather in a town."
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"town": {"type": "string"}},
    "required": ["town"],
    "additionalProperties": False,
}
RESULT = "foggy"

# Chat completions ------------------------------------------------------------------------------

WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "description": DESCRIPTION, "parameters": PARAMETERS},
}
CLOCK: Any = {"type": "function", "function": {"name": "clock", "description": "Tells the time."}}


def chat() -> list[Any]:
    messages: list[Any] = []
    for town, weather in TOWNS.items():
        function = {"name": "weather", "arguments": json.dumps({"town": town})}
        call = {"id": f"call_{town}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"What is the weather in {town}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": weather},
            {"role": "assistant", "content": f"It is {weather}."},
        ]
    return [*messages, {"role": "user", "content": ASKS}]


# Responses -------------------------------------------------------------------------------------

RESPONSES_WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": DESCRIPTION,
    "parameters": PARAMETERS,
    "strict": True,
}


def responses() -> list[Any]:
    items: list[Any] = []
    for town, weather in TOWNS.items():
        call = {"type": "function_call", "call_id": f"call_{town}", "name": "weather"}
        items += [
            {"role": "user", "content": f"What is the weather in {town}?"},
            call | {"arguments": json.dumps({"town": town})},
            {"type": "function_call_output", "call_id": call["call_id"], "output": weather},
            {"role": "assistant", "content": f"It is {weather}."},
        ]
    return [*items, {"role": "user", "content": ASKS}]


# Messages --------------------------------------------------------------------------------------

MESSAGES_WEATHER: Any = {
    "name": "weather",
    "description": DESCRIPTION,
    "input_schema": PARAMETERS,
}


def messages() -> list[Any]:
    said: list[Any] = []
    for town, weather in TOWNS.items():
        call = {"type": "tool_use", "id": f"toolu_{town}", "name": "weather"}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": weather}
        said += [
            {"role": "user", "content": f"What is the weather in {town}?"},
            {"role": "assistant", "content": [call | {"input": {"town": town}}]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": f"It is {weather}."},
        ]
    return [*said, {"role": "user", "content": ASKS}]
