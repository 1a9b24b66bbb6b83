// A server whose app is offered to clients with the extension for apps only, on the official TypeScript SDKs:
// `node app_server.mjs HTML_FILE ERA`.
//
// ERA is `legacy`, or `both`. The server speaks over stdio. Its app is the HTML of the file. The text of the tools is a
// JSON document with the settings of the extension that the client declared.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [file, era] = process.argv.slice(2);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { Server } = await load("@modelcontextprotocol/server");
const { StdioServerTransport, serveStdio } = await load("@modelcontextprotocol/server/stdio");
const { RESOURCE_MIME_TYPE, getUiCapability } = await load("@modelcontextprotocol/ext-apps/server");

const resourceUri = "ui://report/app.html";
const inputSchema = { type: "object" };
const appTools = [
  { name: "report", title: "Report", inputSchema, _meta: { ui: { resourceUri }, "example.org/x": [1] } },
  { name: "refresh", inputSchema, _meta: { ui: { resourceUri, visibility: ["app"] } } },
];
const ui = {
  csp: { connectDomains: ["https://api.example.org"], resourceDomains: [], frameDomains: ["https://*.example.org"] },
  permissions: { camera: {}, clipboardWrite: {} },
  domain: "report.example.org",
  prefersBorder: false,
};

const create = () => {
  const server = new Server({ name: "app", version: "1.0.0" }, { capabilities: { tools: {}, resources: {} } });
  // A request of 2026-07-28 has the capabilities of its client; a connection of 2025-11-25 has those of its handshake.
  const capability = ({ mcpReq }) => {
    const declared = mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"];
    return getUiCapability(declared ?? server.getClientCapabilities());
  };
  server.setRequestHandler("tools/list", (_, context) => {
    const hasApps = capability(context)?.mimeTypes?.includes(RESOURCE_MIME_TYPE);
    return { tools: hasApps ? appTools : [{ name: "report", inputSchema }] };
  });
  server.setRequestHandler("tools/call", ({ params }, context) => {
    const text = JSON.stringify({ tool: params.name, capability: capability(context) ?? null });
    return { content: [{ type: "text", text }] };
  });
  server.setRequestHandler("resources/list", () => ({
    resources: [{ uri: resourceUri, name: "app", mimeType: RESOURCE_MIME_TYPE, _meta: { ui } }],
  }));
  server.setRequestHandler("resources/read", () => ({
    contents: [{ uri: resourceUri, mimeType: RESOURCE_MIME_TYPE, text: readFileSync(file, "utf8"), _meta: { ui } }],
  }));
  return server;
};

if (era === "legacy") {
  await create().connect(new StdioServerTransport());
} else {
  serveStdio(create);
}
