// A server that requires access tokens, on the official TypeScript SDK: `node guarded_server.mjs ISSUER`.
//
// It prints its URL and runs until its standard input ends. Its tool `whoami` returns the claims of the token of the call,
// after a short wait, so that calls of several users run at once. `GET /seen` returns the claims of all tokens that it was
// sent, also of those that it refused.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = (name) => load(`@modelcontextprotocol/sdk/${name}`);
const { McpServer } = await sdk("server/mcp.js");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");
const { requireBearerAuth } = await sdk("server/auth/middleware/bearerAuth.js");
const { InvalidTokenError } = await sdk("server/auth/errors.js");
const { createRemoteJWKSet, decodeJwt, jwtVerify } = await load("jose");
const { default: express } = await load("express");

const WAIT_MS = 20;

const issuer = process.argv[2];
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const seen = [];

function make() {
  const server = new McpServer({ name: "guarded", version: "1.0.0" });
  server.registerTool("whoami", { description: "Returns the claims of the caller's token." }, async ({ authInfo }) => {
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    return { content: [{ type: "text", text: JSON.stringify(authInfo.extra) }] };
  });
  return server;
}

const app = express();
const listener = createServer(app);
await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${listener.address().port}`;
const resource = `${origin}/mcp`;

async function verifyAccessToken(token) {
  try {
    const { payload } = await jwtVerify(token, keys, { issuer, audience: resource });
    const scopes = (payload.scope ?? "").split(" ");
    return { token, clientId: payload.client_id, scopes, expiresAt: payload.exp, extra: payload };
  } catch (error) {
    throw new InvalidTokenError(error.message);
  }
}

app.get("/.well-known/oauth-protected-resource/mcp", (_, response) => {
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ["read"] });
});
app.get("/seen", (_, response) => response.json(seen));
app.use("/mcp", (request, _, next) => {
  const token = /^Bearer (.*)$/.exec(request.headers.authorization ?? "")?.[1];
  if (token !== undefined) seen.push(decodeJwt(token));
  next();
});
const resourceMetadataUrl = `${origin}/.well-known/oauth-protected-resource/mcp`;
app.use("/mcp", requireBearerAuth({ verifier: { verifyAccessToken }, resourceMetadataUrl }));
app.all("/mcp", async (request, response) => {
  const [server, transport] = [make(), new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })];
  response.on("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
});
console.log(resource);
process.stdin.on("end", () => process.exit(0)).resume();
