"""A real server on the official SDK: `server.py stdio`, or `server.py sse|http|json PORT`."""

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


match sys.argv[1]:
    case "stdio":
        server.run("stdio")
    case "sse":
        server.run("sse", host="127.0.0.1", port=int(sys.argv[2]))
    case form:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]), json_response=form == "json")
