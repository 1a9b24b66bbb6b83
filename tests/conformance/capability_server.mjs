// A server that shows the capabilities of its client: `node capability_server.mjs 2025-11-25 | 2026-07-28`, over standard
// input and output. The text of its tool `state` is a JSON document with the capabilities that the client declared.

import { createInterface } from "node:readline";

const version = process.argv[2];
const isLegacy = version === "2025-11-25";
const serverInfo = { name: "capabilities", version: "1.0.0" };
const tasks = { cancel: {}, requests: { tools: { call: {} } } };
const capabilities = {
  tools: {},
  logging: {},
  ...(isLegacy && { tasks }),
  extensions: { "example.org/server": { a: 1 }, ...(!isLegacy && { "io.modelcontextprotocol/tasks": {} }) },
};
let declared;

const describe = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
const tools = [{ name: "state", inputSchema: { type: "object" } }];
const methods = {
  initialize: ({ capabilities: own }) => {
    declared = own;
    return isLegacy && { protocolVersion: version, capabilities, serverInfo };
  },
  "server/discover": () =>
    !isLegacy && {
      ...describe,
      supportedVersions: [version],
      capabilities,
      _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
    },
  "tools/list": () => ({ tools, ...(!isLegacy && describe) }),
  "tools/call": ({ _meta }) => {
    const state = isLegacy ? declared : _meta["io.modelcontextprotocol/clientCapabilities"];
    return { content: [{ type: "text", text: JSON.stringify(state) }] };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined || method === undefined) continue;
  const result = methods[method]?.(params ?? {});
  const outcome = result ? { result } : { error: { code: -32601, message: "unknown method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
}
