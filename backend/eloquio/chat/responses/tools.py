"""A response's tools, made those of a chat completion."""

from collections.abc import Mapping, Sequence
from typing import Any

from eloquio.chat.responses.items import parsed
from eloquio.chat.responses.schema import (
    AllowedTools,
    FunctionChoice,
    FunctionTool,
    Item,
    ModelInput,
    WordChoice,
)
from eloquio.errors import InvalidRequest, NotImplementedHere


def function_tools(request: ModelInput) -> list[FunctionTool]:
    """The tools, all of them functions; a tool of OpenAI's own raises NotImplementedHere."""
    return [
        _function(tool, f"tools.{position}") for position, tool in enumerate(request.tools or ())
    ]


def _function(tool: Item, param: str) -> FunctionTool:
    kind = tool.get("type")
    if isinstance(kind, str) and kind != "function":
        raise NotImplementedHere(
            f"A tool of the type {kind} isn't supported: it runs at OpenAI. Local models call "
            "your own functions.",
            param=f"{param}.type",
            next_step="Leave it out, or send a function of your own that does it.",
        )
    return parsed(FunctionTool, tool, param)


def tool_fields(request: ModelInput) -> dict[str, Any]:
    """What a chat completion is told of tools; nothing where there are none."""
    choice = {"type": "auto"} if request.tool_choice is None else request.tool_choice
    wanted, tools = _chosen(choice, function_tools(request))
    if not tools:
        return {}
    fields: dict[str, Any] = {"tools": [_chat_tool(tool) for tool in tools], "tool_choice": wanted}
    if request.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = request.parallel_tool_calls
    return fields


def _chosen(
    choice: Mapping[str, Any], tools: Sequence[FunctionTool]
) -> tuple[str | Item, Sequence[FunctionTool]]:
    """The choice as a chat has it, and the tools that are left by it."""
    match choice.get("type"):
        case "auto" | "none" | "required":
            wanted = parsed(WordChoice, choice, "tool_choice").type
            if wanted == "required":
                _require_tools(tools, "tool_choice")
            return wanted, tools
        case "function":
            name = parsed(FunctionChoice, choice, "tool_choice").name
            _require_named([name], tools, "tool_choice.name")
            return {"type": "function", "function": {"name": name}}, tools
        case "allowed_tools":
            allowed = parsed(AllowedTools, choice, "tool_choice")
            names = [tool.name for tool in allowed.tools]
            _require_named(names, tools, "tool_choice.tools")
            return allowed.mode, [tool for tool in tools if tool.name in names]
        case str() as other:
            raise NotImplementedHere(
                f"A tool of the type {other} can't be chosen: the models call functions only.",
                param="tool_choice.type",
                next_step="Choose auto, none, required or a function.",
            )
    raise InvalidRequest("The choice of a tool has no type.", param="tool_choice")


def _require_named(names: Sequence[str], tools: Sequence[FunctionTool], param: str) -> None:
    _require_tools(tools, param)
    there = {tool.name for tool in tools}
    for name in names:
        if name not in there:
            raise InvalidRequest(f"There is no function {name} among the tools.", param=param)


def _require_tools(tools: Sequence[FunctionTool], param: str) -> None:
    if not tools:
        raise InvalidRequest("A call is asked for, but there are no tools.", param=param)


def _chat_tool(tool: FunctionTool) -> Item:
    function = tool.model_dump(exclude={"type"}, exclude_none=True)
    function.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": function}
