// A typical ACP agent on the official npm SDK: it accepts what the SDK accepts. It declares http and not sse, and answers a
// prompt with the `mcpServers` of its session.

import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.MCP_HOST_NODE_MODULES, "here.js"));
const acp = await import(pathToFileURL(packages.resolve("@agentclientprotocol/sdk")));

const sessions = new Map();

acp
  .agent({ name: "trusting" })
  .onRequest("initialize", () => ({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, mcpCapabilities: { http: true, sse: false } },
  }))
  .onRequest("session/new", ({ params }) => {
    const sessionId = `session-${sessions.size + 1}`;
    sessions.set(sessionId, params.mcpServers);
    return { sessionId };
  })
  .onRequest("session/load", ({ params }) => {
    sessions.set(params.sessionId, params.mcpServers);
    return {};
  })
  .onRequest("session/prompt", async ({ params: { sessionId }, client }) => {
    const content = { type: "text", text: JSON.stringify(sessions.get(sessionId)) };
    await client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk", content } });
    return { stopReason: "end_turn" };
  })
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
