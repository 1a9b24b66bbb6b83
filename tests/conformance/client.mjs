// A real MCP client, on the official TypeScript SDK of either generation: `node client.mjs SCENARIO`.
//
// SCENARIO is a JSON text: {"sdk": 1 | 2, "mode"?, "url" | "command": [PROGRAM, ARGUMENT…], "calls": [[NAME, ARGUMENTS]],
// "then"?: {"old", "new", "arguments"}, "crowd"?: {"clients", "own"}, "load"?: {"clients", "each", "ms": [LEAST, MOST]},
// "user"?, "token"?}.
//
// It lists the tools, calls each of `calls` in turn, and prints one JSON document: the protocol version, the tools and the
// results as the SDK returned them.
//
// - `token`: sent with each request.
// - `user`: it logs in through the SDK as that user. This program is also the browser.
// - `then`: it continues. It prints `ready`, lists again after each change of the list until `new` is listed, and then calls
//   `old` and `new`.
// - `crowd`: as many clients. Each calls the first of `calls`, `own` of them also the second, and every other one starts the
//   third. It prints `ready` and waits until it is killed.
// - `load`: as many clients. It prints `ready` when all are connected. Each calls the first of `calls`, a tool that sleeps,
//   `each` times for a random time. It prints the number of calls, and the results of calls that ended too early.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { browse, login } from "./login.mjs";

const LONGEST_WAIT = 60_000;
const AT_ONCE = 20;

const scenario = JSON.parse(process.argv[2]);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }] = await Promise.all(
  scenario.sdk === 1
    ? ["client/index.js", "client/streamableHttp.js", "client/stdio.js"].map((it) => load(`@modelcontextprotocol/sdk/${it}`))
    : ["client", "client", "client/stdio"].map((it) => load(`@modelcontextprotocol/${it}`)),
);

/** A signal that is kept until it is waited for. */
function hearing() {
  let next = Promise.withResolvers();
  const heard = async () => {
    await next.promise;
    next = Promise.withResolvers();
  };
  return { hear: () => next.resolve(), heard };
}

/** Connects a client. Returns it, the negotiated version, and a function that waits for a change of the list. */
async function connect(follows) {
  const { hear, heard } = hearing();
  const listens = Promise.withResolvers();
  const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: hear } };
  let protocol;
  const authProvider = scenario.user === undefined ? undefined : login(scenario.user);
  const make = () => {
    const client = new Client(
      { name: `typescript-${scenario.sdk}`, version: "1.0.0" },
      {
        ...(scenario.mode && { versionNegotiation: { mode: scenario.mode } }),
        ...(follows && { listChanged }),
      },
    );
    const transport = scenario.url === undefined ? started() : overHttp();
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
      protocol = version;
      set?.(version);
    };
    return { client, transport };
  };
  const started = () => {
    const [command, ...args] = scenario.command;
    const stderr = scenario.user === undefined ? "inherit" : "pipe";
    const transport = new StdioClientTransport({ command, args, env: process.env, stderr });
    // A program that logs in by itself prints the page for the browser.
    transport.stderr?.on("data", async (text) => {
      const page = /https?:\/\/\S+\/auth\?\S+/.exec(text.toString());
      if (page === null) return;
      const redirected = await browse(new URL(page[0]), scenario.user);
      // Its listener may not be ready yet.
      for (let tries = 0; tries < 50; tries++) {
        try {
          return await fetch(redirected);
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    });
    return transport;
  };
  const overHttp = () =>
    new StreamableHTTPClientTransport(new URL(scenario.url), {
      authProvider,
      ...(scenario.token && { requestInit: { headers: { authorization: `Bearer ${scenario.token}` } } }),
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        // The notifications of a server arrive on this stream, which the SDK opens in the background.
        if (init?.method === "GET") listens.resolve();
        return response;
      },
    });
  let { client, transport } = make();
  /** Completes a login that was started, if any. */
  const finish = async () => {
    const redirected = authProvider?.kept.redirected?.searchParams;
    if (redirected === undefined) return false;
    authProvider.kept.redirected = undefined;
    await transport.finishAuth(scenario.sdk === 1 ? redirected.get("code") : redirected);
    return true;
  };
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(await finish())) throw error;
    ({ client, transport } = make());
    await client.connect(transport);
  }
  protocol = client.getNegotiatedProtocolVersion?.() ?? protocol;
  if (follows && scenario.url !== undefined && client.autoOpenedSubscription === undefined) await listens.promise;
  return { client, protocol, heard, finish };
}

const ask = async (client, [name, given], finish) => {
  const call = () => client.callTool({ name, arguments: given });
  try {
    // A call that needs another scope begins a login.
    return await call().catch(async (error) => ((await finish?.()) ? call() : Promise.reject(error)));
  } catch (error) {
    return { error: error.message };
  }
};

if (scenario.crowd !== undefined) {
  const { clients, own } = scenario.crowd;
  const join = async (number) => {
    const { client } = await connect(true);
    const [shared, leased, long] = scenario.calls;
    const answers = [await ask(client, shared), ...(number < own ? [await ask(client, leased)] : [])];
    for (const answer of answers) if (answer.content === undefined) throw new Error(JSON.stringify(answer));
    if (number % 2 === 1) void ask(client, long);
  };
  for (let first = 0; first < clients; first += AT_ONCE) {
    const last = Math.min(first + AT_ONCE, clients);
    await Promise.all(Array.from({ length: last - first }, (_, index) => join(first + index)));
  }
  console.log("ready");
  await new Promise(() => setInterval(() => {}, 60_000));
}

if (scenario.load !== undefined) {
  const { clients, each, ms: [least, most] } = scenario.load;
  const [[name]] = scenario.calls;
  const connected = await Promise.all(Array.from({ length: clients }, () => connect(false)));
  console.log("ready");
  const failures = [];
  const work = async ({ client }) => {
    for (let turn = 0; turn < each; turn++) {
      const ms = least + Math.floor(Math.random() * (most - least + 1));
      const answer = await ask(client, [name, { ms }]);
      if (answer.content?.[0].text !== `slept ${ms} ms in 1 step`) failures.push(answer);
    }
  };
  await Promise.all(connected.map(work));
  console.log(JSON.stringify({ calls: clients * each, failures }));
  process.exit(0);
}

const { client, protocol, heard, finish } = await connect(scenario.then !== undefined);
const { tools } = await client.listTools();
const answers = [];
for (const call of scenario.calls) answers.push(await ask(client, call, finish));
const said = { protocol, tools, answers };
if (scenario.then !== undefined) {
  const { old, new: fresh, arguments: given } = scenario.then;
  console.log("ready");
  setTimeout(() => process.exit(1), LONGEST_WAIT).unref();
  let after;
  do {
    await heard();
    after = await client.listTools();
  } while (!after.tools.some((it) => it.name === fresh));
  said.after = { tools: after.tools, old: await ask(client, [old, given]), new: await ask(client, [fresh, given]) };
}
console.log(JSON.stringify(said));
await client.close();
process.exit(0);
