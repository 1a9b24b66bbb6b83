// Several users of a server with token exchange behind a gateway, on the official TypeScript SDK of both generations:
// `node exchange_client.mjs SCENARIO`.
//
// SCENARIO is a JSON text: {"url", "server", "users": [NAME…], "rounds": COUNT}. Each user logs in with three clients: SDK 1,
// SDK 2, and SDK 2 without sessions. In each round all clients call `guarded__whoami` at once. Then each logs in again and
// calls once more. An answer is wrong if it does not have the user, or if the token of the server was not exchanged for the
// client's latest token. At last each client sends its own token to the `server` itself.
//
// It prints one JSON document: the number of right answers, the first wrong ones, and the statuses of the server.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { login } from "./login.mjs";

const scenario = JSON.parse(process.argv[2]);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdks = {
  1: await Promise.all(["client/index.js", "client/streamableHttp.js"].map((it) => load(`@modelcontextprotocol/sdk/${it}`))),
  2: [await load("@modelcontextprotocol/client"), await load("@modelcontextprotocol/client")],
};
const { decodeJwt } = await load("jose");

let right = 0;
const wrong = [];

async function connect(user, { sdk, mode }) {
  const [{ Client }, { StreamableHTTPClientTransport }] = sdks[sdk];
  const authProvider = login(user);
  const make = () => ({
    client: new Client({ name: `${user}-${sdk}`, version: "1.0.0" }, mode && { versionNegotiation: { mode } }),
    transport: new StreamableHTTPClientTransport(new URL(scenario.url), { authProvider }),
  });
  let { client, transport } = make();
  const finish = async () => {
    const redirected = authProvider.kept.redirected.searchParams;
    await transport.finishAuth(sdk === 1 ? redirected.get("code") : redirected);
  };
  try {
    await client.connect(transport);
  } catch {
    await finish();
    ({ client, transport } = make());
    await client.connect(transport);
  }
  const name = `${user}, SDK ${sdk}${mode ? ", modern" : ""}`;
  return { user, name, client, finish, kept: authProvider.kept };
}

async function call({ user, name, client, kept }) {
  const answer = await client.callTool({ name: "guarded__whoami", arguments: {} });
  const { jti } = decodeJwt(kept.tokens.access_token);
  const text = answer.content[0].text;
  const claims = text.startsWith("{") ? JSON.parse(text) : {};
  if (claims.sub === user && claims.exchanged === jti && claims.client_id === "gateway") right += 1;
  else wrong.push(`${name} (${jti}): ${text}`);
}

const clients = [];
for (const user of scenario.users) {
  for (const version of [{ sdk: 1 }, { sdk: 2 }, { sdk: 2, mode: "auto" }]) clients.push(await connect(user, version));
}
for (let round = 0; round < scenario.rounds; round++) await Promise.all(clients.map(call));
for (const it of clients) {
  it.kept.tokens = undefined;
  await it.client.callTool({ name: "guarded__whoami", arguments: {} }).catch(it.finish);
  await call(it);
}
const statuses = [];
for (const { kept } of clients) {
  const headers = {
    authorization: `Bearer ${kept.tokens.access_token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami", arguments: {} } });
  statuses.push((await fetch(scenario.server, { method: "POST", headers, body })).status);
}
console.log(JSON.stringify({ right, wrong: wrong.slice(0, 10), statuses }));
process.exit(0);
