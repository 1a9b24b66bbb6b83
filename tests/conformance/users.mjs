// Several users at one gateway, on the official TypeScript SDK of both generations: `node users.mjs SCENARIO`.
//
// SCENARIO is a JSON text: {"url", "users": [NAME…], "requests": COUNT}. Each user logs in with three clients: SDK 1, SDK 2,
// and SDK 2 without sessions. All clients together send so many requests, interleaved, of every method. Each client has a
// mark of its own: it is in its root, its answers and its arguments. A message with the mark of another client is a leak,
// and so is a request, a notification or a result that the client did not cause. It prints one JSON document: the number of
// requests of each method, of requests and notifications of servers, the leaks, and the failures.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { login } from "./login.mjs";

const WORKERS = 4;
const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

const scenario = JSON.parse(process.argv[2]);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdks = {
  1: await Promise.all(["client/index.js", "client/streamableHttp.js", "types.js"].map((it) => load(`@modelcontextprotocol/sdk/${it}`))),
  2: [await load("@modelcontextprotocol/client"), await load("@modelcontextprotocol/client"), {}],
};

const [sent, received, leaks, failures] = [{}, {}, [], []];
const count = (into, name) => void (into[name] = (into[name] ?? 0) + 1);
const total = () => Object.values(sent).reduce((sum, it) => sum + it, 0);

/** A client of a user; `number` is unique. */
async function connect(user, number, { sdk, mode }) {
  const [{ Client }, { StreamableHTTPClientTransport }, schemas] = sdks[sdk];
  const mark = `mark-${number}-${user}`;
  const it = { user, number, mark, sdk, uri: `demo://resource/dynamic/text/${1000 + number}`, modern: mode !== undefined };
  // A message below its own level was meant for another client.
  it.level = number % 2 === 0 ? "info" : "notice";
  it.logged = 0;
  const authProvider = login(user);
  it.token = () => authProvider.kept.tokens.access_token;
  const make = () => {
    const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {} } };
    const options = { capabilities, ...(mode && { versionNegotiation: { mode } }) };
    const client = new Client({ name: mark, version: "1.0.0" }, options);
    const on = (method, schema, answer) =>
      client.setRequestHandler(sdk === 1 ? schemas[schema] : method, ({ params }) => {
        count(received, method);
        return answer(params);
      });
    on("roots/list", "ListRootsRequestSchema", () => ({ roots: [{ uri: `file:///${mark}`, name: mark }] }));
    on("sampling/createMessage", "CreateMessageRequestSchema", ({ messages }) => {
      if (!JSON.stringify(messages).includes(mark)) leaks.push(`${mark} got the question ${JSON.stringify(messages)}`);
      return { role: "assistant", model: mark, content: { type: "text", text: mark } };
    });
    on("elicitation/create", "ElicitRequestSchema", ({ requestedSchema }) => ({
      action: "accept",
      content: Object.fromEntries(requestedSchema.required.map((name) => [name, mark])),
    }));
    client.onerror = (error) => {
      if (/unknown|progress/i.test(error.message)) leaks.push(`${mark}: ${error.message}`);
    };
    const transport = new StreamableHTTPClientTransport(new URL(scenario.url), { authProvider, fetch: counted });
    transport.onmessage = (message) => inspect(it, message);
    return { client, transport };
  };
  let { client, transport } = make();
  try {
    await client.connect(transport);
  } catch (error) {
    const redirected = authProvider.kept.redirected?.searchParams;
    if (redirected === undefined) throw error;
    await transport.finishAuth(sdk === 1 ? redirected.get("code") : redirected);
    ({ client, transport } = make());
    await client.connect(transport);
  }
  Object.assign(it, { client, transport });
  return it;
}

/** Counts the requests of a POST. */
function counted(url, init) {
  const body = init?.method === "POST" && typeof init.body === "string" && init.body[0] === "{" ? JSON.parse(init.body) : {};
  if (body.id !== undefined && body.method !== undefined) count(sent, body.method);
  return fetch(url, init);
}

const clients = [];

/** Reports what another client has caused. */
function inspect(it, message) {
  const text = JSON.stringify(message);
  for (const other of clients) {
    if (other !== it && (text.includes(other.mark) || text.includes(other.uri))) leaks.push(`${it.mark} got ${text}`);
  }
  if (message.method === undefined || message.id !== undefined) return;
  count(received, message.method);
  const { params } = message;
  if (message.method === "notifications/message") {
    if (params.logger === "demo") it.logged -= 1;
    if (it.logged < 0) leaks.push(`${it.mark} got a log message of another client`);
    if (LEVELS.indexOf(params.level) < LEVELS.indexOf(it.level)) leaks.push(`${it.mark} got a log message at ${params.level}`);
  }
  if (message.method === "notifications/progress" && params.total !== 2 + it.number) leaks.push(`${it.mark} got ${text}`);
  if (message.method === "notifications/resources/updated" && !params.uri.startsWith(it.uri)) leaks.push(`${it.mark} got ${text}`);
}

/** Calls a tool and returns its text. */
async function call(it, name, given, onprogress) {
  const params = { name, arguments: given, ...(it.modern && { _meta: { [LOG_LEVEL]: it.level } }) };
  const options = { onprogress };
  const result = await (it.sdk === 1 ? it.client.callTool(params, undefined, options) : it.client.callTool(params, options));
  const text = result.content.map(({ text }) => text ?? "").join("\n");
  if (result.isError) throw new Error(`${name}: ${text}`);
  return text;
}

/** A call whose result contains `text`. */
async function expect(it, text, name, given) {
  const result = await call(it, name, given);
  assert(result.includes(text), `${name} of ${it.mark}: ${result}`);
}

/** What a client does; `own` is a text of this operation only. */
const OPERATIONS = [
  (it, own) => expect(it, own, "demo__echo", { text: own }),
  (it, own) => expect(it, own, "everything__echo", { message: own }),
  (it, own) => expect(it, it.mark, "demo__ask", { question: `${own}?`, of: "model" }),
  (it, own) => expect(it, it.mark, "demo__ask", { question: `${own}?`, of: "user" }),
  (it, own) => expect(it, it.mark, "everything__trigger-sampling-request", { prompt: own }),
  (it) => expect(it, it.mark, "everything__trigger-elicitation-request", {}),
  (it) => expect(it, `file:///${it.mark}`, "everything__get-roots-list", {}),
  (it) => progress(it, "demo__sleep", { ms: 20, steps: 2 + it.number }),
  (it) => progress(it, "everything__trigger-long-running-operation", { duration: 0.02, steps: 2 + it.number }),
  async (it) => {
    it.logged += LEVELS.length;
    const [sent] = /\d+/.exec(await call(it, "demo__log", {}));
    it.logged -= LEVELS.length - Number(sent);
  },
  async (it) => {
    const { tools } = await it.client.listTools();
    for (const name of ["demo__echo", "everything__get-roots-list"]) assert(tools.some((tool) => tool.name === name), name);
  },
  async (it) => assert.notEqual((await it.client.listResources()).resources.length, 0),
  async (it) => assert.notEqual((await it.client.listResourceTemplates()).resourceTemplates.length, 0),
  async (it) => assert.notEqual((await it.client.listPrompts()).prompts.length, 0),
  async (it, own) => {
    const result = await it.client.getPrompt({ name: "demo__summarise", arguments: { text: own } });
    assert(result.messages[0].content.text.includes(own));
  },
  async (it, own) => {
    const result = await it.client.getPrompt({ name: "everything__args-prompt", arguments: { city: own } });
    assert(result.messages[0].content.text.includes(own));
  },
  async (it) => assert.equal((await it.client.readResource({ uri: it.uri })).contents[0].uri, it.uri),
  async (it) => {
    const uri = `demo://numbers/${1 + it.number}`;
    assert.equal((await it.client.readResource({ uri })).contents[0].text.trim().split("\n").length, 1 + it.number);
  },
  async (it) => {
    const ref = { type: "ref/prompt", name: "everything__completable-prompt" };
    const { completion } = await it.client.complete({ ref, argument: { name: "department", value: "E" } });
    assert.deepEqual(completion.values, ["Engineering"]);
  },
  (it) => (it.modern ? listen(it) : subscribe(it)),
  (it) => it.modern || it.client.ping(),
  (it) => it.modern || it.client.setLoggingLevel(it.level),
  (it) => it.modern || it.client.sendRootsListChanged(),
  (it) => trespass(it),
];

/** Each client has its own number of steps. */
async function progress(it, name, given) {
  let last = 0;
  await call(it, name, given, ({ progress }) => (last = progress));
  assert.notEqual(last, 0, `${name} of ${it.mark}: no progress`);
}

async function subscribe(it) {
  await it.client.subscribeResource({ uri: it.uri });
  await call(it, "everything__toggle-subscriber-updates", {});
  await it.client.unsubscribeResource({ uri: it.uri });
}

async function listen(it) {
  const subscription = await it.client.listen({ resourceSubscriptions: [it.uri] });
  await call(it, "everything__toggle-subscriber-updates", {});
  await subscription.close();
}

/** Uses the session of another user, which does not exist for this one. */
async function trespass(it) {
  const other = clients.find(({ user, modern }) => user !== it.user && !modern);
  const headers = {
    authorization: `Bearer ${it.token()}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-session-id": other.transport.sessionId,
    "mcp-protocol-version": "2025-11-25",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  for (const init of [{ method: "POST", body }, { method: "GET" }, { method: "DELETE" }]) {
    const response = await fetch(scenario.url, { ...init, headers });
    await response.body?.cancel();
    count(received, `${response.status} for the session of another user`);
    if (response.status !== 404) leaks.push(`${it.mark} has got ${response.status} for ${init.method} of the session of ${other.mark}`);
  }
}

const kinds = [{ sdk: 1 }, { sdk: 2 }, { sdk: 2, mode: "auto" }];
for (const user of scenario.users) {
  for (const kind of kinds) clients.push(await connect(user, clients.length, kind));
}
for (const it of clients) if (!it.modern) await it.client.setLoggingLevel(it.level);

let next = 0;
const work = async (it) => {
  while (total() < scenario.requests) {
    const turn = next++;
    const operation = OPERATIONS[turn % OPERATIONS.length];
    try {
      await operation(it, `${it.mark} in turn ${turn}`);
    } catch (error) {
      failures.push(`${it.mark} in ${operation}: ${error.message}`);
      // A failure must not make it run for ever.
      if (failures.length > scenario.requests) return;
    }
  }
};
await Promise.all(clients.flatMap((it) => Array.from({ length: WORKERS }, () => work(it))));
// A late message may be a leak, too.
await new Promise((resolve) => setTimeout(resolve, 1000));
console.log(JSON.stringify({ total: total(), sent, received, leaks: leaks.slice(0, 20), failures: failures.slice(0, 20), counts: [leaks.length, failures.length] }));
process.exit(0);
