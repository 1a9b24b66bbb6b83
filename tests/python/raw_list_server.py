"""A stdio server whose list of tools is the text of a file, as it is: `raw_list_server.py FILE [RESULTS]`.

RESULTS has an object with the JSON text of the result of each tool; without it, a tool returns its name. No SDK writes
the lists and results that some servers send.
"""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    tools = file.read()

results = {}
if len(sys.argv) > 2:
    with open(sys.argv[2], encoding="utf-8") as file:
        results = json.load(file)


def respond(request):
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            server = {"name": "raw", "version": "1"}
            return json.dumps({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        case "tools/list":
            return '{"tools":' + tools + "}"
        case "tools/call":
            name = request["params"]["name"]
            return results.get(name) or json.dumps({"content": [{"type": "text", "text": name}]})
        case "ping":
            return "{}"
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    head = '{"jsonrpc":"2.0","id":' + json.dumps(request["id"])
    result = respond(request)
    if result is None:
        print(head + ',"error":{"code":-32601,"message":"Method not found"}}', flush=True)
    else:
        print(head + ',"result":' + result + "}", flush=True)
