// A client that lists and reads skills, on the official TypeScript SDK: `node skill_client.mjs URL MODE`.
//
// MODE is the SDK's mode of version negotiation. The SDK checks the size, the hash and the frontmatter of each file. It
// prints one JSON document with the skills and the text of each file.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [url, mode] = process.argv.slice(2);

// The packages are installed in another folder.
const packages = createRequire(join(process.env.MCP_HOST_CONFORMANCE, "here.js"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { SkillsClient } = await load("@modelcontextprotocol/client/ext/skills");

const client = new Client({ name: "skills", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const skills = new SkillsClient(client);
const listed = await skills.list();
const read = {};
for (const skill of listed.skills) {
  const { skill: again } = await skills.get(skill.uri);
  for (const { uri } of again.resources) {
    const { text, verified } = await skills.read(again, uri);
    read[uri] = verified ? text : "not verified";
  }
}
const folder = listed.skills[0].uri.replace(/\/SKILL\.md$/, "");
const entries = skills.directoryRead ? (await skills.readDirectory(folder)).resources : [];
const unknown = await skills.get("skill://unknown/SKILL.md").catch(({ code, message }) => ({ code, message }));
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify({ version, skills: listed.skills, read, entries: entries.map((it) => it.uri), unknown }));
