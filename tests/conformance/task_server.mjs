// A server of 2026-07-28 with tasks, on the official TypeScript SDK: `node task_server.mjs`.
//
// It prints its URL and runs until its standard input ends. The SDK has no tasks of this version, so their methods are
// handlers here; ext-tasks has the schemas. `report` ends by itself, after an answer if `ask` is set; `hold` runs until it
// is cancelled.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = await load("@modelcontextprotocol/server");
const web = await load("@modelcontextprotocol/node");
const { z } = await load("zod");
const folder = join(process.env.MCP_HOST_CONFORMANCE, "@modelcontextprotocol/ext-tasks/dist");
const { GetTaskResultV2Schema, CreateTaskResultV2Schema } = await import(pathToFileURL(join(folder, "core/v2/schemas.js")));

const EXTENSION = "io.modelcontextprotocol/tasks";
const WORK_MS = 50;

const tasks = new Map();
const params = z.looseObject({ taskId: z.string() });

function change(task, fields) {
  for (const key of ["inputRequests", "result", "statusMessage"]) delete task[key];
  Object.assign(task, fields, { lastUpdatedAt: new Date().toISOString() });
}

function create() {
  const now = new Date().toISOString();
  const task = { taskId: randomUUID(), status: "working", createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 20 };
  tasks.set(task.taskId, task);
  return task;
}

function complete(task, text) {
  const link = { type: "resource_link", uri: "test://report", name: "report" };
  const result = { resultType: "complete", content: [{ type: "text", text }, link], _meta: { ui: { resourceUri: "ui://report" } } };
  if (task.status === "working") change(task, { status: "completed", result });
}

function report(topic, ask) {
  const task = create();
  const question = {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: `Which ${topic}?`,
      requestedSchema: { type: "object", properties: { kind: { type: "string" } }, required: ["kind"] },
    },
  };
  const step = () => (ask ? change(task, { status: "input_required", inputRequests: { kind: question } }) : complete(task, `about ${topic}`));
  setTimeout(step, WORK_MS);
  return task;
}

/** The task of a request. */
function find({ taskId }) {
  const task = tasks.get(taskId);
  if (task === undefined) throw new sdk.ProtocolError(-32602, "there is no such task");
  return task;
}

function make() {
  const capabilities = { tools: {}, resources: {}, extensions: { [EXTENSION]: {} } };
  const server = new sdk.McpServer({ name: "tasks", version: "1.0.0" }, { capabilities });
  const started = (task) => CreateTaskResultV2Schema.parse({ resultType: "task", ...task });
  const reports = z.object({ topic: z.string(), ask: z.boolean().optional() });
  server.registerTool("report", { description: "Writes a report.", inputSchema: reports }, ({ topic, ask }) => started(report(topic, ask)));
  server.registerTool("hold", { description: "Runs until it is cancelled." }, () => started(create()));
  const resource = (uri) => server.registerResource(uri, uri, {}, () => ({ contents: [{ uri, text: "the report" }] }));
  ["test://report", "ui://report"].forEach(resource);
  const { server: low } = server;
  low.setRequestHandler("tasks/get", { params }, (it) => GetTaskResultV2Schema.parse({ resultType: "complete", ...find(it) }));
  low.setRequestHandler("tasks/cancel", { params }, (it) => {
    const task = find(it);
    if (task.status === "working" || task.status === "input_required") change(task, { status: "cancelled" });
    return {};
  });
  low.setRequestHandler("tasks/update", { params }, (it, { mcpReq }) => {
    const task = find(it);
    const { kind } = mcpReq.inputResponses.kind.content;
    change(task, { status: "working" });
    setTimeout(() => complete(task, `about ${kind}`), WORK_MS);
    return {};
  });
  return server;
}

const handle = web.toNodeHandler({ fetch: sdk.createMcpHandler(make, { legacy: "reject" }).fetch });
const listener = createServer((request, response) => void handle(request, response));
listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
process.stdin.on("end", () => process.exit(0)).resume();
