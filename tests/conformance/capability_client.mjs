// A client with chosen capabilities, on the official TypeScript SDK of either generation:
// `node capability_client.mjs SCENARIO`.
//
// SCENARIO is a JSON text: {"sdk": 1 | 2, "mode"?, "url", "capabilities", "tools"}. It prints one JSON document: the
// version, the server's capabilities, and the JSON text that each tool returns.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const scenario = JSON.parse(process.argv[2]);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const modules = scenario.sdk === 1
  ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/streamableHttp.js"]
  : ["@modelcontextprotocol/client"];
const { Client, StreamableHTTPClientTransport } = Object.assign({}, ...(await Promise.all(modules.map(load))));

const { capabilities, mode } = scenario;
const options = { capabilities, ...(mode && { versionNegotiation: { mode } }) };
const client = new Client({ name: "capabilities", version: "1.0.0" }, options);
const transport = new StreamableHTTPClientTransport(new URL(scenario.url));
await client.connect(transport);
const states = {};
for (const name of scenario.tools) {
  const { content } = await client.callTool({ name, arguments: {} });
  states[name] = JSON.parse(content[0].text);
}
const protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
console.log(JSON.stringify({ protocol, offered: client.getServerCapabilities(), states }));
await client.close();
process.exit(0);
