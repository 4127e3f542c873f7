"""A request for a message, made the chat completion that answers it."""

from collections.abc import Sequence
from typing import Any

from eloquio.chat.messages.conversation import chat_messages, prefill
from eloquio.chat.messages.schema import (
    AdaptiveThinking,
    AnthropicTool,
    AnyTool,
    AutoTool,
    CustomTool,
    DisabledThinking,
    EnabledThinking,
    MessageRequest,
    NamedTool,
    NoTool,
    OutputConfig,
    Prompt,
    ToolChoice,
)
from eloquio.errors import InvalidRequest, NotImplementedHere

_SAMPLING = ("temperature", "top_p", "top_k")
# The fields of the chat completion that have another name here.
NAMES = {
    "chat_template_kwargs": "thinking",
    # At another position: the system's is one of a chat's messages, and so is a tool's result.
    "messages": "messages",
    "parallel_tool_calls": "tool_choice",
    "reasoning_effort": "output_config.effort",
    "response_format": "output_config.format",
}
# Named by Anthropic, had there only, and why.
_NOT_HERE = {
    "container": "Tools don't run in containers of Anthropic's.",
    "context_management": "A conversation isn't edited: the model reads all of it.",
    "diagnostics": "Nothing is told of what a cache did.",
    "inference_geo": "Everything is computed on this machine.",
    "mcp_servers": "MCP servers aren't asked by Eloquio: offer their tools as your own.",
}


def chat_body(request: MessageRequest) -> dict[str, Any]:
    """The body of the chat completion. Raises InvalidRequest or NotImplementedHere by field.

    Stop sequences aren't in it: an engine doesn't say which it met, so they are looked for here.
    """
    body = prompt_body(request)
    body["max_tokens"] = request.max_tokens
    for name in _SAMPLING:
        if (value := getattr(request, name)) is not None:
            body[name] = value
    if isinstance(request.thinking, EnabledThinking):
        if request.thinking.budget_tokens >= request.max_tokens:
            raise InvalidRequest(
                "max_tokens has to be more than the thinking's budget_tokens.", param="max_tokens"
            )
        body["thinking_budget_tokens"] = request.thinking.budget_tokens
    # A message that is ended here has no chunk of usage: each tells what it took so far.
    return body | {"timings_per_token": True}


def prompt_body(request: Prompt) -> dict[str, Any]:
    """The part of the chat completion's body that the model reads."""
    _refuse_what_is_not_here(request)
    body: dict[str, Any] = {"messages": chat_messages(request.system, request.messages)}
    if request.model is not None:
        body["model"] = request.model
    body |= _tools(request)
    if request.output_config is not None:
        body |= _output(request.output_config)
    return body | _beginning(request, prefill(body["messages"]))


# Tools ---------------------------------------------------------------------------------------


def _tools(request: Prompt) -> dict[str, Any]:
    tools, choice = _custom_tools(request), request.tool_choice
    if not tools:
        if choice is None or isinstance(choice, NoTool):
            return {}
        raise InvalidRequest("A choice of tools needs tools.", param="tool_choice")
    if isinstance(choice, NamedTool) and all(tool.name != choice.name for tool in tools):
        raise InvalidRequest(f"There is no tool {choice.name}.", param="tool_choice.name")
    return {
        "tools": [_function(tool) for tool in tools],
        "tool_choice": _chosen(choice),
        "parallel_tool_calls": not getattr(choice, "disable_parallel_tool_use", None),
    }


def _chosen(choice: ToolChoice | None) -> str | dict[str, Any]:
    match choice:
        case NoTool():
            return "none"
        case AnyTool():
            return "required"
        case NamedTool(name=name):
            return {"type": "function", "function": {"name": name}}
        case AutoTool() | None:
            return "auto"


def _custom_tools(request: Prompt) -> Sequence[CustomTool]:
    tools: dict[str, CustomTool] = {}
    for position, tool in enumerate(request.tools or ()):
        path = f"tools.{position}"
        if isinstance(tool, AnthropicTool):
            raise NotImplementedHere(
                f"The tool {tool.type} is Anthropic's own: it isn't run here, nor known to "
                "local models.",
                param=path,
                next_step="Send a tool of your own that does it, with its input_schema.",
            )
        if tool.name in tools:
            raise InvalidRequest(f"There are two tools {tool.name}.", param=f"{path}.name")
        if tool.input_schema.get("type") != "object":
            raise InvalidRequest(
                "A tool's input is an object: its input_schema has the type object.",
                param=f"{path}.input_schema.type",
            )
        tools[tool.name] = tool
    return list(tools.values())


def _function(tool: CustomTool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name, "parameters": tool.input_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


# Thinking and output -------------------------------------------------------------------------


def _beginning(request: Prompt, begins_with: str) -> dict[str, Any]:
    """Whether the answer begins with thinking, or in the middle of what was given as its start."""
    thinks: bool | None = None
    match request.thinking:
        case EnabledThinking() | AdaptiveThinking():
            thinks = True
        case DisabledThinking():
            thinks = False
        case None:
            pass
    if not begins_with:
        return {} if thinks is None else {"chat_template_kwargs": {"enable_thinking": thinks}}
    if thinks:
        raise InvalidRequest(
            "A model can't think before an answer that has begun.",
            param="thinking",
            next_step="Leave thinking out, or the assistant's message at the end.",
        )
    return {
        # In these words the engine says only what follows.
        "continue_final_message": True,
        "add_generation_prompt": False,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def _output(config: OutputConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if config.effort == "max":
        raise NotImplementedHere(
            "Local models know no effort beyond xhigh.",
            param="output_config.effort",
            next_step="Send xhigh, or leave it out.",
        )
    if config.effort is not None:
        fields["reasoning_effort"] = config.effort
    if config.format is not None:
        schema = {"name": "output", "schema": config.format.json_schema, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    return fields


# Refused -------------------------------------------------------------------------------------


def _refuse_what_is_not_here(request: Prompt) -> None:
    for name, why in _NOT_HERE.items():
        value = getattr(request, name, None)
        if value and not (name == "context_management" and _keeps_everything(value)):
            raise NotImplementedHere(why, param=name, next_step=f"Leave {name} out.")
    if request.speed == "fast":
        raise NotImplementedHere(
            "A local model has one speed.", param="speed", next_step="Leave speed out."
        )


def _keeps_everything(context_management: dict[str, Any]) -> bool:
    """Whether it asks to change nothing of the conversation, as some clients always do."""
    edits = context_management.get("edits") or []
    return all(isinstance(edit, dict) and edit.get("keep") == "all" for edit in edits)
