// A client that uses each method of tasks, on the official TypeScript SDK: `node task_client.mjs SCENARIO`.
//
// SCENARIO is a JSON text: {"sdk": 1 | 2, "url", "run", "ask", "hold"}. Each of the last three is [TOOL, ARGUMENTS]: a task
// that ends, one that requests input, and one that is cancelled. SDK 1 has the tasks of 2025-11-25; SDK 2 with ext-tasks
// has those of 2026-07-28. It prints one JSON document with what the SDK returned.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const scenario = JSON.parse(process.argv[2]);
const modules = process.env.MCP_HOST_CONFORMANCE;

// The packages are installed in another folder.
const packages = createRequire(join(modules, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const info = { name: `tasks-${scenario.sdk}`, version: "1.0.0" };
const failure = (error) => ({ code: error.code, message: error.message });

async function sdk1() {
  const [{ Client }, { StreamableHTTPClientTransport }, types] = await Promise.all(
    ["client/index.js", "client/streamableHttp.js", "types.js"].map((it) => load(`@modelcontextprotocol/sdk/${it}`)),
  );
  const client = new Client(info, { capabilities: { elicitation: { form: {} } } });
  const inputs = [];
  const notified = [];
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
    inputs.push(params.message);
    return { action: "accept", content: { interpretation: "technical" } };
  });
  client.setNotificationHandler(types.TaskStatusNotificationSchema, ({ params }) => void notified.push(params));
  await client.connect(new StreamableHTTPClientTransport(new URL(scenario.url)));
  const api = client.experimental.tasks;
  await client.listTools();

  const run = async ([name, args]) => {
    const events = [];
    for await (const event of api.callToolStream({ name, arguments: args }, undefined, { task: { ttl: 60_000 } })) {
      events.push(event.type === "error" ? { type: "error", error: failure(event.error) } : event);
    }
    return events;
  };
  const finished = await run(scenario.run);
  const asked = await run(scenario.ask);
  const id = finished.find((it) => it.type === "taskCreated").task.taskId;
  const again = await api.getTaskResult(id, types.CallToolResultSchema).catch(failure);
  const [name, args] = scenario.hold;
  const params = { name, arguments: args, task: { ttl: 60_000 } };
  const { task } = await client.request({ method: "tools/call", params }, types.CreateTaskResultSchema);
  const held = await api.getTask(task.taskId);
  const cancelled = await api.cancelTask(task.taskId);
  const after = await api.getTask(task.taskId);
  const list = await api.listTasks().catch(failure);
  const unknown = await api.getTask(`0${task.taskId}`).catch(failure);
  const capabilities = client.getServerCapabilities();
  await client.close();
  return { capabilities, finished, asked, again, created: task, held, cancelled, after, list, unknown, inputs, notified };
}

async function sdk2() {
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const url = (path) => pathToFileURL(join(modules, "@modelcontextprotocol/ext-tasks/dist", path));
  const { createTaskSessionFromClient, resultFromTaskOutcome } = await import(url("client/index.js"));
  const { contributeTaskFilterV2, readAcceptedTaskIdsV2 } = await import(url("core/v2/integration.js"));
  const { TaskStatusNotificationV2Schema } = await import(url("core/v2/schemas.js"));
  const capabilities = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
  const client = new Client(info, { capabilities, versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(scenario.url)));
  const protocolVersion = client.getNegotiatedProtocolVersion();

  // The SDK refuses the results of tasks, so ext-tasks sends its requests through this function.
  let nextId = 1;
  const rawDispatch = async ({ method, params }, { signal } = {}) => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": protocolVersion,
      "mcp-method": method,
      "mcp-name": method === "tools/call" ? params.name : params.taskId,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: nextId++, method, params });
    const response = await fetch(scenario.url, { method: "POST", headers, body, signal });
    const text = await response.text();
    const event = text.split("\n").findLast((it) => it.startsWith("data:"));
    const { result, error } = JSON.parse(event === undefined ? text : event.slice("data:".length));
    return error === undefined ? { kind: "result", result } : { kind: "error", error };
  };
  const inputs = [];
  const session = createTaskSessionFromClient(client, {
    endpointId: "gateway",
    rawDispatch,
    v2RequestFraming: { protocolVersion, clientInfo: info, clientCapabilities: capabilities },
    onInputRequest: ({ params }) => {
      inputs.push(params.message);
      return { action: "accept", content: { kind: "red ants" } };
    },
  });
  const run = async ([name, args]) => {
    const execution = await session.callTool(name, args);
    const { outcome, lastTask } = await execution.settle();
    return { kind: execution.kind, status: outcome.status, result: resultFromTaskOutcome(outcome), task: lastTask };
  };
  const finished = await run(scenario.run);
  const asked = await run(scenario.ask);
  const meta = {
    "io.modelcontextprotocol/protocolVersion": protocolVersion,
    "io.modelcontextprotocol/clientInfo": info,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const request = async (method, params) => {
    const { result, error } = await rawDispatch({ method, params: { ...params, _meta: meta } });
    return result ?? error;
  };
  // Reads `subscriptions/listen` until a task has ended.
  const listen = (taskIds) => {
    const acknowledged = Promise.withResolvers();
    const read = async () => {
      const { notifications } = contributeTaskFilterV2({}, taskIds);
      const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": protocolVersion,
        "mcp-method": "subscriptions/listen",
      };
      const params = { notifications, _meta: meta };
      const body = JSON.stringify({ jsonrpc: "2.0", id: nextId++, method: "subscriptions/listen", params });
      const response = await fetch(scenario.url, { method: "POST", headers, body });
      const states = [];
      let text = "";
      for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
        const lines = (text + part).split("\n");
        text = lines.pop();
        for (const line of lines.filter((it) => it.startsWith("data:"))) {
          const message = JSON.parse(line.slice("data:".length));
          if (message.method === "notifications/subscriptions/acknowledged") {
            acknowledged.resolve(readAcceptedTaskIdsV2(message.params));
            continue;
          }
          const { params } = TaskStatusNotificationV2Schema.parse(message);
          states.push([params.taskId, params.status]);
          if (params.status === "cancelled") return states;
        }
      }
      throw new Error(`the stream ended: ${text}`);
    };
    const states = read();
    states.catch(acknowledged.reject);
    return { accepted: acknowledged.promise, states };
  };
  const execution = await session.callTool(...scenario.hold);
  const { taskId } = execution.handle;
  const held = await request("tasks/get", { taskId });
  const listening = listen([taskId, `0${taskId}`]);
  const accepted = await listening.accepted;
  await execution.cancel();
  const listened = { accepted, states: await listening.states };
  const { outcome } = await execution.settle();
  const after = await request("tasks/get", { taskId });
  const list = await request("tasks/list", {});
  const unknown = await request("tasks/get", { taskId: `0${taskId}` });
  const offered = client.getServerCapabilities();
  await session.close();
  await client.close();
  return { protocol: protocolVersion, capabilities: offered, finished, asked, held, cancelled: outcome.status, after, list, unknown, inputs, listened };
}

console.log(JSON.stringify(await (scenario.sdk === 1 ? sdk1() : sdk2())));
process.exit(0);
