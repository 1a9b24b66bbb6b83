"""An ACP client, on the official Python SDK: `acp_client.py SCENARIO AGENT [ARGUMENT…]`.

Scenario and output are those of tests/node/acp_client.mjs. The SDK speaks version 1 only, and its client has no MCP server.
Its models drop members and entries that they do not know. A request that they would change is sent over the same connection
without them; `sent` in the output names the way.
"""

import asyncio
import json
import os
import sys

from pydantic import BaseModel, ValidationError

from acp import RequestError, schema, spawn_agent_process
from acp.connection import StreamDirection, StreamEvent
from acp.utils import serialize_params

LONGEST_STEP = 60
GRACE = 10

MODELS = {
    "initialize": (schema.InitializeRequest, "initialize"),
    "session/new": (schema.NewSessionRequest, "new_session"),
    "session/load": (schema.LoadSessionRequest, "load_session"),
    "session/resume": (schema.ResumeSessionRequest, "resume_session"),
    "session/fork": (schema.ForkSessionRequest, "fork_session"),
    "session/prompt": (schema.PromptRequest, "prompt"),
    "session/close": (schema.CloseSessionRequest, "close_session"),
}


class Client:
    """The editor's side: it only receives updates."""

    def __init__(self):
        self.updated = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updated.set()


def typed(method, params):
    """The arguments for the function of the SDK; None if its models would change the request."""
    model, function = MODELS.get(method, (None, None))
    if model is None:
        return None
    try:
        request = model.model_validate(params)
    except ValidationError:
        return None
    if serialize_params(request) != params:
        return None
    return function, {key: getattr(request, key) for key in request.model_fields_set}


class Conversation:
    def __init__(self, client, connection, wire):
        self.client, self.connection, self.wire = client, connection, wire
        self.sessions, self.sent = [], None

    async def ask(self, method, params):
        known = typed(method, params)
        self.sent = "typed" if known else "raw"
        if known is None:
            return await self.connection._conn.send_request(method, params)
        function, arguments = known
        return await getattr(self.connection, function)(**arguments)

    async def cancel(self, when, by, params):
        if when == "update":
            await self.client.updated.wait()
        else:
            while not os.path.exists(when):
                await asyncio.sleep(0.005)
        if by == "session":
            await self.connection.cancel(session_id=params["sessionId"])
            return
        asked = [it["message"]["id"] for it in self.wire if it["from"] == "client" and "id" in it["message"]]
        # The SDK has no function for it.
        await self.connection._conn.send_notification("$/cancel_request", {"requestId": asked[-1]})

    async def gone(self, file):
        """Returns when the process has ended whose id is in the file."""
        with open(file) as text:
            pid = int(text.read())
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.005)
        return {"result": pid}

    async def step(self, method, params=None, cancel=None):
        params = dict(params or {})
        if method == "$gone":
            return await self.gone(**params)
        if method.startswith("session/") and method != "session/new" and self.sessions:
            params.setdefault("sessionId", self.sessions[-1])
        if isinstance(params.get("sessionId"), int):
            params["sessionId"] = self.sessions[params["sessionId"]]
        self.client.updated.clear()
        asking = asyncio.ensure_future(self.ask(method, params))
        if cancel is not None:
            await self.cancel(cancel["when"], cancel["by"], params)
        result = await asking
        if isinstance(result, BaseModel):
            result = result.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if method in ("session/new", "session/fork"):
            self.sessions.append(result["sessionId"])
        return {"result": result}

    async def run(self, step):
        """The outcome of a step, also of a failed one."""
        try:
            brought = await asyncio.wait_for(self.step(**step), LONGEST_STEP)
        except RequestError as error:
            brought = {"error": error.to_error_obj()}
        except Exception as error:
            brought = {"fault": f"{type(error).__name__}: {error}"}
        return {"method": step["method"], "sent": self.sent, **brought}


async def main(scenario, command, *arguments):
    client, wire = Client(), []

    def keep(event: StreamEvent):
        sender = "client" if event.direction is StreamDirection.OUTGOING else "agent"
        wire.append({"from": sender, "message": event.message})

    opening = {
        "protocolVersion": scenario["version"],
        "clientInfo": {"name": "acp-client", "version": "0.0.0"},
    }
    agent = spawn_agent_process(
        client,
        command,
        *arguments,
        env=os.environ,
        transport_kwargs={"stderr": None, "shutdown_timeout": GRACE},
        observers=[keep],
        use_unstable_protocol=True,
    )
    async with agent as (connection, process):
        conversation = Conversation(client, connection, wire)
        steps = [await conversation.run({"method": "initialize", "params": opening})]
        for step in scenario["steps"]:
            steps.append(await conversation.run(step))
    code = process.returncode
    ended = {"code": code if code >= 0 else None, "signal": None if code >= 0 else -code}
    print(json.dumps({"steps": steps, "wire": wire, "exit": ended}))


asyncio.run(main(json.loads(sys.argv[1]), *sys.argv[2:]))
