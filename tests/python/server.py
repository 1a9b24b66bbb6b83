"""A real server on the official SDK: `server.py stdio`, or `server.py sse PORT`."""

import sys

from mcp.server import MCPServer

server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two integers"""
    return a + b


@server.tool()
def greet(name: str, *, loud: bool = False) -> list[str]:
    """Greets somebody, in two parts"""
    return ["Hello", name.upper() if loud else name]


if sys.argv[1] == "sse":
    server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("stdio")
