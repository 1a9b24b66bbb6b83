// The tasks that the official suite tests, for a server on the official TypeScript SDK.
//
// The SDK has no tasks of 2026-07-28, so their methods are handlers here. The scenarios of the suite define the names of the
// tools and what each does.

import { randomUUID } from "node:crypto";

const EXTENSION = "io.modelcontextprotocol/tasks";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** The capability of a server with tasks. */
export const taskCapability = { extensions: { [EXTENSION]: {} } };

const tasks = new Map();
const isRunning = ({ task: { status } }) => status === "working" || status === "input_required";
const text = (words) => ({ type: "text", text: words });
const done = (...content) => ({ resultType: "complete", content });

/** Changes the state of a running task. */
function change(entry, fields) {
  if (!isRunning(entry)) return;
  const { taskId, createdAt, ttlMs, pollIntervalMs } = entry.task;
  entry.task = { taskId, createdAt, ttlMs, pollIntervalMs, lastUpdatedAt: new Date().toISOString(), ...fields };
}

const complete = (entry, result) => change(entry, { status: "completed", result });

/** A new task; `start` begins its work. Returns the result of its call. */
function created(start) {
  const now = new Date().toISOString();
  const task = { taskId: randomUUID(), status: "working", createdAt: now, lastUpdatedAt: now, ttlMs: 600_000, pollIntervalMs: 50 };
  const entry = { task, answers: {} };
  tasks.set(task.taskId, entry);
  start(entry);
  return { resultType: "task", ...task };
}

const ask = (message, property) => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { [property]: { type: property === "confirm" ? "boolean" : "string" } } },
  },
});

/** A task that waits for the answers to some requests. */
const asking = (requests) =>
  created((entry) => {
    entry.requests = requests;
    change(entry, { status: "input_required", inputRequests: requests });
  });

function answered(entry, responses) {
  for (const [key, response] of Object.entries(responses)) {
    if (entry.task.inputRequests?.[key] !== undefined) entry.answers[key] = response;
  }
  const open = Object.entries(entry.requests ?? {}).filter(([key]) => entry.answers[key] === undefined);
  if (open.length > 0) change(entry, { status: "input_required", inputRequests: Object.fromEntries(open) });
  else complete(entry, done(text(JSON.stringify(entry.answers))));
}

/** The tools; each returns its result, or that of a task. A client without tasks waits for the result. */
const TOOLS = {
  greet: ({ name }) => done(text(`Hello, ${name}!`)),
  slow_compute: ({ seconds, label }) =>
    created((entry) => void setTimeout(() => complete(entry, done(text(`computed ${label}`))), seconds * 1000).unref()),
  failing_job: () => created((entry) => void setTimeout(() => complete(entry, { ...done(text("it failed")), isError: true }), 1000)),
  protocol_error_job: () =>
    created((entry) => void setTimeout(() => change(entry, { status: "failed", error: { code: -32603, message: "it broke" } }), 100)),
  confirm_delete: ({ filename }) => asking({ confirm: ask(`Delete ${filename}?`, "confirm") }),
  multi_input: () => asking({ first: ask("First name?", "name"), second: ask("Second name?", "name") }),
};

/** Adds the tools and the methods of tasks to a server. */
export function addTasks(server, { ProtocolError, inputRequired, fromJsonSchema, z }) {
  const schema = { type: "object", properties: { name: { type: "string" }, seconds: { type: "number" }, label: { type: "string" }, filename: { type: "string" } } };
  const declared = (envelope) => envelope?.[CAPABILITIES]?.extensions?.[EXTENSION] !== undefined;
  const missing = () =>
    new ProtocolError(-32021, "Missing required client capability", { requiredCapabilities: { extensions: { [EXTENSION]: {} } } });
  const register = (name, run) =>
    server.registerTool(name, { description: `${name} of the suite.`, inputSchema: fromJsonSchema(schema) }, (given, context) => {
      if (name !== "greet" && !declared(context.mcpReq.envelope)) throw missing();
      return run(given, context);
    });
  for (const [name, run] of Object.entries(TOOLS)) register(name, run);
  register("test_tool_with_task", (_, { mcpReq: { inputResponses } }) => {
    const name = inputResponses?.user_name?.content?.name;
    if (name === undefined) return inputRequired({ inputRequests: { user_name: ask("What is your name?", "name") } });
    return created((entry) => void setTimeout(() => complete(entry, done(text(`Hello, ${name}!`))), 100));
  });

  const params = z.looseObject({ taskId: z.string() });
  const handle = (method, run) =>
    server.server.setRequestHandler(method, { params }, (given, { mcpReq }) => {
      if (!declared(mcpReq.envelope)) throw missing();
      const entry = tasks.get(given.taskId);
      if (entry === undefined) throw new ProtocolError(-32602, "there is no such task");
      return run(entry, mcpReq);
    });
  handle("tasks/get", ({ task }) => ({ resultType: "complete", ...task }));
  handle("tasks/cancel", (entry) => (change(entry, { status: "cancelled" }), {}));
  handle("tasks/update", (entry, { inputResponses }) => (answered(entry, inputResponses ?? {}), {}));
}
