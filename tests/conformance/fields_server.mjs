// A server that uses every optional field of the protocol, on the official TypeScript SDK: `node fields_server.mjs ERA`, over
// standard input and output.
//
// ERA is `both`, or `legacy` for a server of 2025-11-25 only; with `definitions`, the program prints what it serves as one JSON
// document, for the same server on another SDK. A tool requests input with `inputRequired`: the SDK sends real
// requests to a client with a session, and returns the result of type `input_required` to other clients.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { ProtocolError, Server, inputRequired } = await load("@modelcontextprotocol/server");
const { StdioServerTransport, serveStdio } = await load("@modelcontextprotocol/server/stdio");

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mNQaDgAAAIkAWHj6Uk8AAAAAElFTkSuQmCC";
const SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==";

/** Metadata that tells its origin; numbers and texts are in forms that a rewrite would change. */
const meta = (of) => ({ "example.org/of": of, "org.example.nested/x": { list: [1.5, null, "\u2028 \u{1f600} \\ / \""] }, plain: true });
const icons = (of) => [
  { src: `data:image/png;base64,${DOT}`, mimeType: "image/png", sizes: ["48x48", "any"], theme: "dark" },
  { src: `https://example.org/${of}.svg`, mimeType: "image/svg+xml", sizes: ["any"], theme: "light" },
];
const annotations = { audience: ["user", "assistant"], priority: 0.25, lastModified: "2026-01-02T03:04:05Z" };
/** The members that all kinds of definitions have. */
const described = (name) => ({
  name,
  title: `Title of ${name}`,
  description: `Description of ${name}\nin two lines`,
  icons: icons(name),
  _meta: meta(name),
});

const information = { ...described("fields"), version: "1.2.3-rc.1+5", websiteUrl: "https://example.org/fields" };
delete information._meta;

const inputSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  title: "Input",
  properties: { topic: { type: "string", description: "A topic", default: "all", examples: ["a"] }, count: { $ref: "#/$defs/count" } },
  $defs: { count: { type: "integer", minimum: 0, maximum: 10 } },
  additionalProperties: false,
};
const outputSchema = {
  type: "object",
  properties: { list: { type: "array", items: { type: "object", properties: { n: { type: "number" } } } }, note: { type: ["string", "null"] } },
  required: ["list"],
};

const text = (words, more) => ({ type: "text", text: words, ...more });
const resource = {
  ...described("notes"),
  uri: "fields://notes/a.txt",
  mimeType: "text/plain",
  size: 12,
  annotations: { ...annotations, audience: ["user"] },
};
/** A block of each kind, with its optional members. */
const blocks = [
  text("plain"),
  text("annotated", { annotations, _meta: meta("text") }),
  { type: "image", data: DOT, mimeType: "image/png", annotations, _meta: meta("image") },
  { type: "audio", data: SILENCE, mimeType: "audio/wav", annotations, _meta: meta("audio") },
  { type: "resource_link", ...resource, _meta: meta("link") },
  {
    type: "resource",
    resource: { uri: resource.uri, mimeType: "text/plain", text: "embedded\r\n", _meta: meta("embedded") },
    annotations,
    _meta: meta("block"),
  },
  { type: "resource", resource: { uri: "fields://picture", mimeType: "image/png", blob: DOT, _meta: meta("blob") } },
];
const structured = { list: [{ n: 1.0 }, { n: -2e-3 }, {}], note: null, more: { "a/b": [] } };

const form = {
  mode: "form",
  message: "Fill in\nthe form",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", title: "Name", description: "Your name", minLength: 1, maxLength: 30, default: "Ann" },
      mail: { type: "string", format: "email" },
      count: { type: "integer", minimum: 1, maximum: 9, default: 3 },
      ratio: { type: "number", minimum: 0.5 },
      agree: { type: "boolean", title: "Agree", default: false },
      colour: { type: "string", enum: ["red", "green"], default: "green" },
      size: { type: "string", oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
      tags: { type: "array", minItems: 1, maxItems: 2, items: { type: "string", enum: ["x", "y"] }, default: ["x"] },
      days: { type: "array", items: { anyOf: [{ const: "mo", title: "Monday" }, { const: "tu", title: "Tuesday" }] } },
    },
    required: ["name", "agree"],
  },
  _meta: meta("form"),
};
const weather = { ...described("weather"), inputSchema, outputSchema, annotations: { readOnlyHint: true } };
const sampling = {
  messages: [
    { role: "user", content: text("Weather?", { annotations, _meta: meta("message text") }), _meta: meta("message") },
    {
      role: "assistant",
      content: [text("I look it up"), { type: "tool_use", id: "call-1", name: "weather", input: { topic: "Paris" }, _meta: meta("use") }],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", toolUseId: "call-1", content: blocks.slice(0, 5), structuredContent: structured, isError: false, _meta: meta("result") },
      ],
    },
    { role: "assistant", content: { type: "image", data: DOT, mimeType: "image/png" } },
    { role: "user", content: { type: "audio", data: SILENCE, mimeType: "audio/wav" } },
  ],
  modelPreferences: { hints: [{ name: "small" }, {}], costPriority: 0.1, speedPriority: 0.2, intelligencePriority: 1 },
  systemPrompt: "Be brief",
  includeContext: "none",
  temperature: 0.5,
  maxTokens: 100,
  stopSequences: ["END", "\n\n"],
  metadata: { provider: { x: 1 } },
  tools: [weather],
  toolChoice: { mode: "required" },
  _meta: meta("sampling"),
};
const url = { message: "Open the page", url: "https://example.org/pay?x=1&y=%20#z" };

/** The requests of each tool that needs input. */
const requests = {
  "ask-form": { form: inputRequired.elicit(form) },
  "ask-url": { url: inputRequired.elicitUrl(url) },
  "ask-model": { model: inputRequired.createMessage(sampling) },
  "ask-roots": { roots: inputRequired.listRoots() },
};

const tool = (name, more) => ({ ...described(name), inputSchema, ...more });
const tools = [
  tool("content", {
    annotations: { title: "Shown title", readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    execution: { taskSupport: "forbidden" },
  }),
  tool("structured", { outputSchema }),
  tool("wrong"),
  tool("refused"),
  tool("messages"),
  ...Object.keys(requests).map((name) => tool(name)),
];
const prompts = [
  {
    ...described("letter"),
    arguments: [
      { name: "to", title: "Recipient", description: "Who gets it", required: true },
      { name: "tone", required: false },
    ],
  },
];
const templates = [{ ...described("pages"), uriTemplate: "fields://pages/{number}", mimeType: "text/html", annotations }];

const results = {
  content: () => ({ content: blocks, _meta: meta("call") }),
  structured: () => ({ content: [text(JSON.stringify(structured))], structuredContent: structured, _meta: meta("call") }),
  wrong: () => ({ content: [text("It failed", { _meta: meta("error") })], isError: true, _meta: meta("call") }),
  refused: () => {
    throw new ProtocolError(-32602, "refused", { reason: "because", list: [1] });
  },
};

/** Sends log messages and progress, with all their members. */
async function messages({ mcpReq: { _meta, log, notify } }) {
  const progressToken = _meta?.progressToken;
  await log("warning", { text: "a\u2028b", list: [1.5] }, "logger");
  await log("debug", "plain text");
  const send = (params) => notify({ method: "notifications/progress", params: { progressToken, ...params } });
  await send({ progress: 0.5 });
  await send({ progress: 1, total: 2.5, message: "half \"way\"" });
  return { content: [text("sent")] };
}

async function call({ params: { name } }, context) {
  if (name === "messages") return messages(context);
  if (results[name]) return results[name]();
  const inputRequests = requests[name];
  const { inputResponses } = context.mcpReq;
  if (inputResponses === undefined) return inputRequired({ inputRequests, requestState: "opaque / \u00e9 \"state\"" });
  return { content: [], structuredContent: inputResponses };
}

const contents = {
  [resource.uri]: [
    { uri: resource.uri, mimeType: "text/plain", text: "a\r\nb\u2028", _meta: meta("contents") },
    { uri: `${resource.uri}#2`, mimeType: "image/png", blob: DOT, _meta: meta("blob") },
  ],
  "fields://pages/7": [{ uri: "fields://pages/7", mimeType: "text/html", text: "<p>7</p>" }],
};

function make() {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
    experimental: { "example.org/trial": { on: true } },
    extensions: { "example.org/extension": { version: "1", list: [1, null] } },
  };
  const server = new Server(information, { capabilities, instructions: "Instructions\nin two lines: \u{1f600}" });
  const handle = (method, handler) => server.setRequestHandler(method, handler);
  handle("tools/list", () => ({ tools, _meta: meta("tools") }));
  handle("prompts/list", () => ({ prompts, _meta: meta("prompts") }));
  handle("resources/list", () => ({ resources: [resource], _meta: meta("resources") }));
  handle("resources/templates/list", () => ({ resourceTemplates: templates, _meta: meta("templates") }));
  handle("tools/call", call);
  handle("prompts/get", ({ params }) => ({
    description: `A letter to ${params.arguments?.to}`,
    messages: letter(),
    _meta: meta("prompt"),
  }));
  handle("resources/read", ({ params: { uri } }) => {
    if (contents[uri] === undefined) throw new ProtocolError(-32602, `Resource ${uri} not found`, { uri });
    return { contents: contents[uri], _meta: meta("read") };
  });
  handle("completion/complete", ({ params }) => ({
    completion: { values: [params.argument.value, JSON.stringify(params.context ?? null)], total: 7, hasMore: true },
    _meta: meta("completion"),
  }));
  return server;
}

const letter = () => blocks.map((content, at) => ({ role: at % 2 ? "assistant" : "user", content }));
const definitions = () => ({
  ...{ information, tools, prompts, resource, templates, contents, requests, letter: letter() },
  results: { content: results.content(), structured: results.structured(), wrong: results.wrong() },
});

if (process.argv[2] === "definitions") console.log(JSON.stringify(definitions()));
else if (process.argv[2] === "legacy") await make().connect(new StdioServerTransport());
else serveStdio(make);
