// A host of apps, on the official TypeScript SDKs: `node app_client.mjs URL MODE CAPABILITIES`.
//
// MODE is the client's mode of version negotiation, CAPABILITIES a JSON text. For each tool with an app, the host reads the
// app and runs it: an app, connected over a pair of transports in memory instead of a frame, calls the tool and reads its
// own resource. The host prints one JSON document.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [url, mode, capabilities] = process.argv.slice(2);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { Client, InMemoryTransport, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { App } = await load("@modelcontextprotocol/ext-apps");
const { AppBridge, getToolUiResourceUri, isToolVisibilityAppOnly } = await load(
  "@modelcontextprotocol/ext-apps/app-bridge",
);

const information = { name: "apps", version: "1.0.0" };
const options = { capabilities: JSON.parse(capabilities), versionNegotiation: { mode } };
const client = new Client(information, options);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

/** What an app sees: the input and the result of the model's call, then its own call and its own resource. */
const runApp = async ({ name }, uri) => {
  const bridge = new AppBridge(client, information, { serverTools: {}, serverResources: {} });
  const app = new App({ name: "app", version: "1.0.0" }, {}, { autoResize: false });
  const [hostEnd, appEnd] = InMemoryTransport.createLinkedPair();
  const ready = new Promise((resolve) => (bridge.oninitialized = resolve));
  const seen = new Promise((resolve) => (app.ontoolresult = resolve));
  await bridge.connect(hostEnd);
  await app.connect(appEnd);
  await ready;
  const parameters = { name, arguments: {} };
  await bridge.sendToolInput({ arguments: parameters.arguments });
  await bridge.sendToolResult(await client.callTool(parameters));
  const { content } = await seen;
  const called = await app.callServerTool(parameters);
  // An app knows its server's own name of the tool.
  const ownName = name.split("__").at(-1);
  const own = await app.callServerTool({ ...parameters, name: ownName }).catch((error) => ({ error: error.message }));
  const { contents } = await app.readServerResource({ uri });
  const listed = await app.listServerResources();
  await app.close();
  return { content, called: called.content, own, contents, listed: listed.resources.map((it) => it.uri) };
};

const { tools } = await client.listTools();
const apps = {};
for (const tool of tools) {
  const uri = getToolUiResourceUri(tool);
  if (uri === undefined) continue;
  const { contents } = await client.readResource({ uri });
  apps[tool.name] = { uri, isAppOnly: isToolVisibilityAppOnly(tool), contents, app: await runApp(tool, uri) };
}
const declared = {};
for (const { name } of tools.filter((it) => it.name.endsWith("__report"))) {
  declared[name] = JSON.parse((await client.callTool({ name, arguments: {} })).content[0].text).capability;
}
// A tool that is for apps only.
const call = { name: "right__refresh", arguments: {} };
const appOnly = await client.callTool(call).catch((error) => ({ error: error.message }));
const resources = (await client.listResources()).resources;
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ version, tools, resources, apps, declared, appOnly }));
