// A server of 2025-11-25 with tasks, on the official TypeScript SDK: `node task_server_2025.mjs [stdio]`.
//
// Over HTTP it prints its URL and runs until its standard input ends. It has no sessions, so each client that knows the id
// of a task can use it. `report` ends by itself; `ask` is no task and asks the client's model.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = (name) => load(`@modelcontextprotocol/sdk/${name}`);
const { McpServer } = await sdk("server/mcp.js");
const { StdioServerTransport } = await sdk("server/stdio.js");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");
const { InMemoryTaskStore } = await sdk("experimental/tasks/stores/in-memory.js");
const { z } = await load("zod");

const WORK_MS = 50;

const store = new InMemoryTaskStore();

function make() {
  const capabilities = { tasks: { cancel: {}, requests: { tools: { call: {} } } } };
  const server = new McpServer({ name: "tasks", version: "1.0.0" }, { capabilities, taskStore: store });
  const tool = { description: "Writes a report.", inputSchema: { topic: z.string() } };
  server.experimental.tasks.registerToolTask("report", tool, {
    async createTask({ topic }, { taskStore, taskRequestedTtl }) {
      const task = await taskStore.createTask({ ttl: taskRequestedTtl ?? 600_000, pollInterval: 20 });
      const result = { content: [{ type: "text", text: `about ${topic}` }] };
      setTimeout(() => void store.storeTaskResult(task.taskId, "completed", result), WORK_MS);
      return { task };
    },
    getTask: (_, { taskId }) => store.getTask(taskId),
    getTaskResult: (_, { taskId }) => store.getTaskResult(taskId),
  });
  server.registerTool("ask", { description: "Asks the model of the client." }, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Which ants?" } }];
    const { content } = await server.server.createMessage({ messages, maxTokens: 10 });
    return { content: [content] };
  });
  return server;
}

async function handle(request, response) {
  const [server, transport] = [make(), new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })];
  response.on("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

if (process.argv[2] === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const listener = createServer((request, response) => void handle(request, response));
  listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
  process.stdin.on("end", () => process.exit(0)).resume();
}
