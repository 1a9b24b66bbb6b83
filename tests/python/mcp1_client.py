"""An MCP client, on the previous generation of the official Python SDK: `mcp1_client.py SCENARIO`.

Scenario and output are those of mcp_client.py; it has one mode, with sessions.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(scenario):
    async with streamable_http_client(scenario["url"]) as (reads, writes, _), ClientSession(reads, writes) as client:
        protocol = (await client.initialize()).protocolVersion
        tools = (await client.list_tools()).tools
        answers = [await client.call_tool(*it) for it in scenario["calls"]]
    return {"protocol": protocol, "tools": [plain(it) for it in tools], "answers": [plain(it) for it in answers]}


print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
