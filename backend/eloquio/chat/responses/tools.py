"""A response's tools, made those of a chat completion."""

from collections.abc import Mapping, Sequence
from typing import Any

from eloquio.chat.responses.items import parsed
from eloquio.chat.responses.schema import FunctionTool, Item, ModelInput
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
            f"The tool {kind} can't be had here.",
            param=f"{param}.type",
            next_step="Leave it out, or send a function of your own that does it.",
        )
    return parsed(FunctionTool, tool, param)


def tool_fields(request: ModelInput) -> dict[str, Any]:
    """What a chat completion is told of tools; nothing where there are none."""
    choice = request.tool_choice or {"type": "auto"}
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
    match choice:
        case {"type": "auto" | "none" as wanted}:
            return wanted, tools
        case {"type": "required"}:
            _require_tools(tools, "tool_choice")
            return "required", tools
        case {"type": "function", "name": str(name)}:
            _require_named([name], tools, "tool_choice.name")
            return {"type": "function", "function": {"name": name}}, tools
        case {
            "type": "allowed_tools",
            "mode": "auto" | "required" as wanted,
            "tools": list(allowed),
        }:
            names = [_allowed_name(tool) for tool in allowed]
            _require_named(names, tools, "tool_choice.tools")
            return wanted, [tool for tool in tools if tool.name in names]
        case {"type": str(other)} if other not in ("function", "allowed_tools"):
            raise NotImplementedHere(
                f"The tool {other} can't be chosen: it can't be had here.",
                param="tool_choice.type",
                next_step="Choose auto, none, required or a function.",
            )
    raise InvalidRequest("The choice of a tool isn't right.", param="tool_choice")


def _allowed_name(tool: object) -> str:
    match tool:
        case {"type": "function", "name": str(name)}:
            return name
    raise InvalidRequest("An allowed tool is a function's name.", param="tool_choice.tools")


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
