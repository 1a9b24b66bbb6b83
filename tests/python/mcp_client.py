"""An MCP client, on the official Python SDK or on FastMCP: `mcp_client.py SCENARIO`.

SCENARIO is a JSON text: {"client": "sdk" | "fastmcp", "mode": "legacy" | "auto", "url", "calls": [[NAME, ARGUMENTS]]}. It
lists the tools, calls each in turn, and prints one JSON document: the protocol version, the tools and the results, as the
package returned them.
"""

import asyncio
import json
import sys


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def sdk(scenario):
    from mcp import Client

    async with Client(scenario["url"], mode=scenario["mode"]) as client:
        tools = (await client.list_tools()).tools
        answers = [await client.call_tool(*it) for it in scenario["calls"]]
        return client.protocol_version, tools, answers


async def fastmcp(scenario):
    from fastmcp import Client

    async with Client(scenario["url"], mode=scenario["mode"]) as client:
        tools = await client.list_tools()
        answers = [await client.call_tool_mcp(*it) for it in scenario["calls"]]
        return client.protocol_version, tools, answers


scenario = json.loads(sys.argv[1])
protocol, tools, answers = asyncio.run({"sdk": sdk, "fastmcp": fastmcp}[scenario["client"]](scenario))
print(json.dumps({"protocol": protocol, "tools": [plain(it) for it in tools], "answers": [plain(it) for it in answers]}))
