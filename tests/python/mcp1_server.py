"""A typical server of mcp 1.x: on standard input and output, or as a WebSocket server at a port."""

import sys

import uvicorn
from mcp.server.fastmcp import FastMCP
from mcp.server.websocket import websocket_server

server = FastMCP("mcp1")


@server.tool()
def echo(message: str) -> str:
    """Says it again"""
    return f"Echo: {message}"


@server.tool()
def repeat(message: str, times: int) -> list[str]:
    """Says it again and again"""
    return [message] * times


@server.tool()
def fail() -> str:
    """Fails"""
    raise RuntimeError("as it was asked to")


async def application(scope, receive, send):
    async with websocket_server(scope, receive, send) as (read, write):
        mcp = server._mcp_server
        await mcp.run(read, write, mcp.create_initialization_options())


if sys.argv[1] == "stdio":
    server.run()
else:
    uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), lifespan="off", log_level="warning")
