"""A server that uses every optional field of the protocol, on the official Python SDK: `fields_server.py DEFINITIONS`.

It serves the definitions of `tests/conformance/fields_server.mjs` over standard input and output, in both eras.
"""

import asyncio
import json
import sys
from pathlib import Path

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

definitions = json.loads(Path(sys.argv[1]).read_text())
information = definitions["information"]

REQUESTS = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResultWithTools),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}


def complete(context, result):
    """The result with the members that the modern era requires."""
    is_modern = context.protocol_version == "2026-07-28"
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **result} if is_modern else result


async def messages(session):
    await session.send_log_message("warning", {"text": "a\u2028b", "list": [1.5]}, "logger")
    await session.send_log_message("debug", "plain text")
    await session.report_progress(0.5)
    await session.report_progress(1, 2.5, 'half "way"')
    return {"content": [{"type": "text", "text": "sent"}]}


async def ask(context, params, name):
    """Requests input: in a message of its own, or in the result."""
    requests = definitions["requests"][name]
    if context.protocol_version != "2026-07-28":
        responses = {}
        for key, request in requests.items():
            kind, result = REQUESTS[request["method"]]
            if request["method"] == "elicitation/create" and request["params"].get("mode") == "url":
                request["params"]["elicitationId"] = "1"
            response = await context.session.send_request(kind.model_validate(request), result)
            responses[key] = response.model_dump(by_alias=True, mode="json", exclude_none=True)
    elif params.input_responses is None:
        return {"resultType": "input_required", "inputRequests": requests, "requestState": "opaque / \u00e9 \"state\""}
    else:
        responses = {
            key: response.model_dump(by_alias=True, mode="json", exclude_none=True)
            for key, response in params.input_responses.items()
        }
    return {"content": [], "structuredContent": responses}


async def call_tool(context, params):
    if params.name == "messages":
        return complete(context, await messages(context.session))
    if params.name == "refused":
        raise MCPError(-32602, "refused", {"reason": "because", "list": [1]})
    result = definitions["results"].get(params.name)
    return complete(context, result if result is not None else await ask(context, params, params.name))


async def get_prompt(context, params):
    to = params.arguments["to"]
    return complete(context, {"description": f"A letter to {to}", "messages": definitions["letter"]})


async def read_resource(context, params):
    contents = definitions["contents"].get(str(params.uri))
    if contents is None:
        raise MCPError(-32602, f"Resource {params.uri} not found", {"uri": str(params.uri)})
    return complete(context, {"contents": contents})


async def complete_argument(context, params):
    given = None if params.context is None else params.context.model_dump(exclude_none=True)
    values = [params.argument.value, json.dumps(given)]
    return complete(context, {"completion": {"values": values, "total": 7, "hasMore": True}})


async def set_level(*_):
    return {}


def listed(member, items):
    async def handle(context, _):
        return complete(context, {member: items})

    return handle


server = Server(
    information["name"],
    version=information["version"],
    title=information["title"],
    description=information["description"],
    instructions="Instructions\nin two lines: \U0001f600",
    website_url=information["websiteUrl"],
    icons=[types.Icon.model_validate(icon) for icon in information["icons"]],
    on_list_tools=listed("tools", definitions["tools"]),
    on_list_prompts=listed("prompts", definitions["prompts"]),
    on_list_resources=listed("resources", [definitions["resource"]]),
    on_list_resource_templates=listed("resourceTemplates", definitions["templates"]),
    on_call_tool=call_tool,
    on_get_prompt=get_prompt,
    on_read_resource=read_resource,
    on_completion=complete_argument,
    on_set_logging_level=set_level,
)


async def main():
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


asyncio.run(main())
