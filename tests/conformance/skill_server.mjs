// A server with skills, on the official TypeScript SDK: `node skill_server.mjs FOLDER`. It speaks both eras over stdio.
//
// FOLDER has a folder for each skill, with its SKILL.md.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { McpServer } = await load("@modelcontextprotocol/server");
const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
const { loadSkills } = await load("@modelcontextprotocol/server/ext/skills/node");

const skills = await loadSkills(process.argv[2]);
serveStdio(() => {
  const server = new McpServer({ name: "skills", version: "1.0.0" }, { capabilities: { resources: {} } });
  skills.attach(server);
  return server;
});
