// A server with all that the official suite tests, in both eras, on the official TypeScript SDK: `node everything.mjs`.
//
// It prints its URL and runs until its standard input ends. The scenarios of the suite define the names of the tools, prompts
// and resources, and what each does. A tool requests input with `inputRequired`: the SDK sends real requests to a client with
// a session, and returns the result of type `input_required` to other clients.

import { randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { pathToFileURL } from "node:url";

import { addTasks, taskCapability } from "./suite_tasks.mjs";

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = await load("@modelcontextprotocol/server");
const web = await load("@modelcontextprotocol/node");
const { z } = await load("zod");
const { inputRequired, fromJsonSchema } = sdk;

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mNQaDgAAAIkAWHj6Uk8AAAAAElFTkSuQmCC";
const SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: DOT, mimeType: "image/png" };
const embedded = (uri, mimeType, words) => ({ type: "resource", resource: { uri, mimeType, text: words } });
const says = (...content) => ({ content });
const object = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });

// A client could change the state that it returns: a changed state is refused before a tool sees it.
const states = sdk.createRequestStateCodec({ key: randomBytes(32) });

const form = (message, properties) => inputRequired.elicit({ message, requestedSchema: object(properties) });
const words = { type: "string" };
const name = form("What is your name?", { name: words });
const sampling = (prompt, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: "user", content: text(prompt) }], maxTokens });

/** Requests input until all of it is there, then returns it. The requests have `state`, if it is given. */
function asks(requests, answer, state) {
  return async (given, ctx) => {
    const inputRequests = typeof requests === "function" ? requests(given, ctx) : requests;
    const answers = ctx.mcpReq.inputResponses ?? {};
    if (Object.keys(inputRequests).some((key) => answers[key] === undefined)) {
      return inputRequired({ inputRequests, ...(state && { requestState: await states.mint(state) }) });
    }
    return answer(answers, ctx);
  };
}

/** The response to a request for input, of any kind. */
const told = (answers) => says(text(JSON.stringify(answers)));
const completed = ({ form: { action, content } }) =>
  says(text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`));

/** Requests two inputs, one after the other. */
async function twoRounds(_, { mcpReq }) {
  const [answers, before] = [mcpReq.inputResponses ?? {}, mcpReq.requestState()];
  if (before?.name !== undefined && answers.step2?.action === "accept") {
    return says(text(`${before.name} likes ${answers.step2.content.color}`));
  }
  const round =
    before?.round === 1 && answers.step1?.action === "accept"
      ? [{ step2: form("Step 2: What is your favorite color?", { color: words }) }, { name: answers.step1.content.name }]
      : [{ step1: form("Step 1: What is your name?", { name: words }) }, { round: 1 }];
  return inputRequired({ inputRequests: round[0], requestState: await states.mint(round[1]) });
}

/** Requests only input that the client supports. */
function whatItCan(_, { mcpReq }) {
  const can = mcpReq.envelope?.[sdk.CLIENT_CAPABILITIES_META_KEY] ?? {};
  const all = { sampling: { question: sampling("Say something", 20) }, elicitation: { name }, roots: { roots: inputRequired.listRoots() } };
  return Object.assign({}, ...Object.keys(all).map((it) => (can[it] === undefined ? {} : all[it])));
}

async function logs(_, { mcpReq }) {
  for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
    await mcpReq.log("info", line);
    await after(50);
  }
  return says(text("It has logged three times."));
}

async function progresses(_, { mcpReq }) {
  const progressToken = mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
    }
    await after(50);
  }
  return says(text("It has gone from 0 to 100."));
}

const options = (prefix, titles) => titles.map((title, index) => ({ const: `${prefix}${index + 1}`, title }));
const plain = ["option1", "option2", "option3"];
const enums = {
  untitledSingle: { type: "string", enum: plain },
  titledSingle: { type: "string", oneOf: options("value", ["First Option", "Second Option", "Third Option"]) },
  legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
  untitledMulti: { type: "array", items: { type: "string", enum: plain } },
  titledMulti: { type: "array", items: { anyOf: options("value", ["First Choice", "Second Choice", "Third Choice"]) } },
};
const defaults = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
};

// A schema with keywords that a server or a gateway could lose.
const wordy = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: words, city: words } } },
  properties: {
    name: words,
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: words,
    email: words,
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

/** Each tool with its function, and its input schema if it has one. */
const TOOLS = {
  test_simple_text: [() => says(text("This is a simple text response for testing."))],
  test_image_content: [() => says(image)],
  test_audio_content: [() => says({ type: "audio", data: SILENCE, mimeType: "audio/wav" })],
  test_embedded_resource: [
    () => says(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
  ],
  test_multiple_content_types: [
    () =>
      says(
        text("Multiple content types test:"),
        image,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
      ),
  ],
  test_tool_with_logging: [logs],
  test_logging_tool: [logs],
  test_tool_with_progress: [progresses],
  test_error_handling: [
    () => {
      throw new Error("This tool intentionally returns an error for testing");
    },
  ],
  test_sampling: [
    asks(
      ({ prompt }) => ({ answer: sampling(prompt, 100) }),
      ({ answer }) => says(text(`LLM response: ${answer.content?.text}`)),
    ),
    object({ prompt: words }),
  ],
  test_elicitation: [
    asks(
      ({ message }) => ({ user: form(message, { username: words, email: words }) }),
      ({ user }) => says(text(`User response: ${JSON.stringify(user)}`)),
    ),
    object({ message: words }),
  ],
  test_elicitation_sep1034_defaults: [asks({ form: form("Is all of this so?", defaults) }, completed)],
  test_elicitation_sep1330_enums: [asks({ form: form("Which of them?", enums) }, completed)],
  test_streaming_elicitation: [asks({ name }, told)],
  test_missing_capability: [asks({ answer: sampling("Is anybody there?", 20) }, told)],
  test_input_required_result_elicitation: [
    asks({ user_name: name }, ({ user_name }) => says(text(`Hello, ${user_name.content?.name}!`))),
  ],
  test_input_required_result_sampling: [
    asks({ capital_question: sampling("What is the capital of France?", 100) }, ({ capital_question }) =>
      says(text(capital_question.content.text)),
    ),
  ],
  test_input_required_result_list_roots: [asks({ client_roots: inputRequired.listRoots() }, told)],
  test_input_required_result_request_state: [
    asks(
      { confirm: form("Please confirm", { ok: { type: "boolean" } }) },
      (_, { mcpReq }) => says(text(mcpReq.requestState()?.asked === "confirm" ? "state-ok" : "no state")),
      { asked: "confirm" },
    ),
  ],
  test_input_required_result_tampered_state: [
    asks({ confirm: form("Please confirm", { ok: { type: "boolean" } }) }, told, { asked: "confirm" }),
  ],
  test_input_required_result_multiple_inputs: [
    asks({ user_name: name, greeting: sampling("Generate a greeting", 50), client_roots: inputRequired.listRoots() }, told, {
      asked: "all",
    }),
  ],
  test_input_required_result_multi_round: [twoRounds],
  test_input_required_result_capabilities: [asks(whatItCan, told)],
  test_trigger_tool_change: [() => changed("tool")],
  test_trigger_prompt_change: [() => changed("prompt")],
  test_x_mcp_header: [
    ({ region }) => says(text(`In ${region}.`)),
    object({ region: { ...words, "x-mcp-header": "Region" }, note: words }, ["region"]),
  ],
  json_schema_2020_12_tool: [(given) => told(given), wordy],
};

const message = (content) => ({ role: "user", content });
const prompted = (...contents) => ({ messages: contents.map(message) });

/** Each prompt with its function, and its arguments if it has any. */
const PROMPTS = {
  test_simple_prompt: [() => prompted(text("This is a simple prompt for testing."))],
  test_prompt_with_arguments: [
    ({ arg1, arg2 }) => prompted(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
    z.object({
      arg1: sdk.completable(z.string(), (begun) => ["test", "testing", "paris", "park"].filter((it) => it.startsWith(begun))),
      arg2: z.string(),
    }),
  ],
  test_prompt_with_embedded_resource: [
    ({ resourceUri }) =>
      prompted(
        embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
      ),
    z.object({ resourceUri: z.string() }),
  ],
  test_prompt_with_image: [() => prompted(image, text("Please analyze the image above."))],
  test_input_required_result_prompt: [
    asks({ user_context: form("What context should the prompt use?", { context: words }) }, ({ user_context }) =>
      prompted(text(`In the context of ${user_context.content?.context}.`)),
    ),
  ],
};

// The number of changes of the lists, and the servers of sessions, which notify their clients.
const changes = { tool: 0, prompt: 0 };
const changing = { tool: new Set(), prompt: new Set() };
const version = (kind) => `The ${kind} that changes: version ${changes[kind]}.`;

function changed(kind) {
  changes[kind] += 1;
  for (const it of changing[kind]) it.update({ description: version(kind) });
  if (kind === "tool") modern.notify.toolsChanged();
  else modern.notify.promptsChanged();
  return says(text(version(kind)));
}

/** A server for one session, or for one request of a client without a session. */
function everything({ session = false } = {}) {
  const resources = { subscribe: true, listChanged: true };
  const server = new sdk.McpServer(
    { name: "everything", version: "1.0.0" },
    { capabilities: { logging: {}, resources, ...(!session && taskCapability) }, requestState: { verify: states.verify } },
  );
  if (!session) addTasks(server, { ...sdk, z });
  for (const [tool, [run, schema = object({})]] of Object.entries(TOOLS)) {
    server.registerTool(tool, { description: `${tool} of the suite.`, inputSchema: fromJsonSchema(schema) }, run);
  }
  for (const [prompt, [run, argsSchema]] of Object.entries(PROMPTS)) {
    const call = argsSchema === undefined ? (ctx) => run({}, ctx) : run;
    server.registerPrompt(prompt, { description: `${prompt} of the suite.`, argsSchema }, call);
  }
  const tool = server.registerTool("test_changing", { description: version("tool") }, () => says(text(version("tool"))));
  const prompt = server.registerPrompt("test_changing", { description: version("prompt") }, () => prompted(text(version("prompt"))));
  const resource = (title, uri, mimeType, content) =>
    server.registerResource(title, uri, { description: `The ${title}.`, mimeType }, ({ href }) => ({
      contents: [{ uri: href, mimeType, ...content }],
    }));
  resource("static text", "test://static-text", "text/plain", { text: "This is the content of the static text resource." });
  resource("static image", "test://static-binary", "image/png", { blob: DOT });
  resource("watched resource", "test://watched-resource", "text/plain", { text: "It never changes." });
  const template = new sdk.ResourceTemplate("test://template/{id}/data", { list: undefined });
  const mimeType = "application/json";
  server.registerResource("data", template, { description: "The data of an id.", mimeType }, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }],
  }));
  if (session) {
    const watched = new Set();
    server.server.setRequestHandler("resources/subscribe", ({ params }) => (watched.add(params.uri), {}));
    server.server.setRequestHandler("resources/unsubscribe", ({ params }) => (watched.delete(params.uri), {}));
    changing.tool.add(tool);
    changing.prompt.add(prompt);
    server.server.onclose = () => {
      changing.tool.delete(tool);
      changing.prompt.delete(prompt);
    };
  }
  return server;
}

const modern = sdk.createMcpHandler(() => everything(), { legacy: "reject" });
const sessions = new Map();

/** Handles a request of a client without a session, or one of a session. */
async function answer(request) {
  if (!(await sdk.isLegacyRequest(request))) return modern.fetch(request);
  const id = request.headers.get("mcp-session-id");
  if (id !== null) return sessions.get(id)?.handleRequest(request) ?? new Response(null, { status: 404 });
  const transport = new sdk.WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (it) => void sessions.set(it, transport),
    onsessionclosed: (it) => void sessions.delete(it),
  });
  await everything({ session: true }).connect(transport);
  return transport.handleRequest(request);
}

const [host, origin, handle] = [web.localhostHostValidation(), web.localhostOriginValidation(), web.toNodeHandler({ fetch: answer })];
const listener = createServer((request, response) => {
  if (host(request, response) && origin(request, response)) void handle(request, response);
});
listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
process.stdin.on("end", () => process.exit(0)).resume();
