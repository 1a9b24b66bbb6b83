// An ACP client, on the official npm SDK: `node acp_client.mjs SCENARIO AGENT [ARGUMENT…]`.
//
// SCENARIO is a JSON text: {"version": 1 | 2, "serves"?: ID, "steps": [{"method", "params", "cancel"?: {"when", "by"}}]}. The
// client starts the agent, sends `initialize`, then one request per step, also after failures. It prints one JSON document:
// the outcome of each step as the SDK returned it, every message of the connection, and how the agent ended. The SDK checks
// the params of a request by TypeScript only, so every entry is sent as it is written.
//
// - A step without `sessionId` uses the last session; a number is the index of a session in the order of creation.
// - `serves`: the client has an MCP server, on the official MCP SDK, for entries of type `acp` with that id.
// - `cancel.when` is a file to wait for, or `update`, the first update; `cancel.by` is `request` or `session`.
// - The step `$gone` sends nothing: it waits until the process has ended whose id is in the file `params.file`.
// - The step `$status` sends nothing: it waits for an update with the status `params.status` of the MCP server `params.name`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const LONGEST_STEP = 60_000;
const GRACE = 10_000;

const [scenarioText, command, ...commandArguments] = process.argv.slice(2);
const scenario = JSON.parse(scenarioText);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_NODE_MODULES, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const entry = { 1: "@agentclientprotocol/sdk", 2: "@agentclientprotocol/sdk/experimental/v2" }[scenario.version];
// The unstable interface is a separate export.
const acp = await load(scenario.serves === undefined ? entry : `${entry}/unstable`);

const child = spawn(command, commandArguments, { stdio: ["pipe", "pipe", "inherit"] });
const exited = once(child, "exit");
child.stdin.on("error", () => {}); // An agent that has gone is told of by the steps.

const wire = [];
const heard = new EventTarget();

/** Forwards each message and records it. */
function tap(from) {
  return new TransformStream({
    transform(message, controller) {
      wire.push({ from, message: structuredClone(message) });
      controller.enqueue(message);
    },
  });
}

const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const outgoing = tap("client");
outgoing.readable.pipeTo(stream.writable).catch(() => {});
const app = acp.client({ name: "acp-client" });
const provider = scenario.serves === undefined ? undefined : new acp.McpOverAcpProvider();
if (provider !== undefined) app.onRequest(acp.methods.client.mcp.message, provider.handleRequest);
const connection = app
  .onNotification("session/update", ({ params }) => heard.dispatchEvent(new CustomEvent("update", { detail: params.update })))
  .connect({ writable: outgoing.writable, readable: stream.readable.pipeThrough(tap("agent")) });

/** The client's own MCP server: a tool that echoes, and a tool that waits until it is cancelled. */
async function serve(serverId) {
  const { fromMcpServer } = await load("@agentclientprotocol/sdk/experimental/mcp-server");
  // The copy that the ACP SDK imports, not the one for `require`: each accepts only its own servers.
  const mcp = join(process.env.MCP_HOST_NODE_MODULES, "@modelcontextprotocol/server/dist/index.mjs");
  const { McpServer } = await import(pathToFileURL(mcp));
  const z = await load("zod/v4");
  const tools = fromMcpServer(() => {
    const server = new McpServer({ name: "editor", version: "1.0.0" });
    server.registerTool("echo", { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => ({
      content: [{ type: "text", text }],
    }));
    server.registerTool("fail", {}, async () => {
      throw new Error("as asked");
    });
    return server;
  });
  provider.registerServer(connection.agent, { name: "editor", serverId, handler: tools.handler });
}

if (provider !== undefined) await serve(scenario.serves);

/** Resolves with the next update that fulfils the condition. */
function update(wanted) {
  return new Promise((resolve) => {
    heard.addEventListener("update", function look({ detail }) {
      if (!wanted(detail)) return;
      heard.removeEventListener("update", look);
      resolve(detail);
    });
  });
}

/** Resolves with the end of the next turn. */
function turn() {
  let begun = false;
  return update((it) => {
    if (it.sessionUpdate !== "state_update") return false;
    begun ||= it.state === "running";
    return begun && it.state === "idle";
  });
}

/** Resolves when the process has ended whose id is in the file. */
async function gone({ file }) {
  const pid = Number(readFileSync(file, "utf8"));
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return { result: pid };
    }
    await after(5);
  }
}

/** Resolves with the update that reports this status of an MCP server. */
async function reported({ name, status }) {
  const isIt = (server) => server.name === name && server.status === status;
  for (;;) {
    const updates = wire.map(({ message }) => message.params?.update);
    const found = updates.find((it) => it?._meta?.mcpServers?.some(isIt));
    if (found !== undefined) return { result: found };
    await after(5);
  }
}

async function cancelled({ when, by }, params, controller) {
  if (when === "update") {
    // Of this turn: the update that a new session is idle may arrive late.
    await update((it) => it.state !== "idle");
  } else {
    while (!existsSync(when)) await after(5);
  }
  if (by === "session") {
    await connection.agent.notify("session/cancel", { sessionId: params.sessionId });
  } else {
    controller.abort();
  }
}

const sessions = [];

async function step({ method, params = {}, cancel }) {
  if (method === "$gone") return gone(params);
  if (method === "$status") return reported(params);
  const needsSession = method.startsWith("session/") && method !== "session/new" && sessions.length > 0;
  const whole = needsSession ? { sessionId: sessions.at(-1), ...params } : { ...params };
  if (typeof whole.sessionId === "number") whole.sessionId = sessions[whole.sessionId];
  const controller = new AbortController();
  const idle =
    scenario.version === 2 && method === "session/prompt"
      ? turn()
      : undefined;
  const request = connection.agent.request(method, whole, { cancellationSignal: controller.signal });
  if (cancel !== undefined) await cancelled(cancel, whole, controller);
  const result = await request;
  if (method === "session/new" || method === "session/fork") sessions.push(result.sessionId);
  return { result: result ?? null, ended: await idle };
}

/** The outcome of a step, also of a failed one. */
async function run(it) {
  const tooLong = after(LONGEST_STEP, undefined, { ref: false }).then(() => {
    throw new Error(`no answer to ${it.method} within ${LONGEST_STEP} ms`);
  });
  const brought = await Promise.race([step(it), tooLong]).catch((error) => {
    if (!(error instanceof acp.RequestError)) return { fault: String(error) };
    return { error: { code: error.code, message: error.message, data: error.data } };
  });
  return { method: it.method, sent: "typed", ...brought };
}

const who = { name: "acp-client", version: "0.0.0" };
const opening = scenario.version === 2 ? { info: who, capabilities: {} } : { clientInfo: who, clientCapabilities: {} };
const steps = [];
for (const it of [{ method: "initialize", params: { protocolVersion: scenario.version, ...opening } }, ...scenario.steps]) {
  steps.push(await run(it));
}

child.stdin.end();
const killed = after(GRACE, undefined, { ref: false }).then(() => child.kill("SIGKILL"));
const [code, signal] = await Promise.race([exited, killed.then(() => exited)]);
process.stdout.write(`${JSON.stringify({ steps, wire, exit: { code, signal } })}\n`, () => process.exit());
