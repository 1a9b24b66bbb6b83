#!/usr/bin/env node
// Runs the program of the platform package that npm has installed for this machine.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `mcp-host-cli-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "mcp-host.exe" : "mcp-host";

let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(
    `mcp-host: the package ${name} is not installed.\n` +
      "If npm ran with --omit=optional or --no-optional, install again without it.\n" +
      "If there is no package for this machine, build from source: cargo install mcp-host-cli",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit", windowsHide: true });

// A client that starts this script ends it with SIGTERM. A terminal sends its signals to the program itself, too.
process.on("SIGTERM", () => child.kill("SIGTERM"));
for (const signal of ["SIGINT", "SIGQUIT", "SIGHUP"]) {
  process.on(signal, () => {});
}

child.on("error", (error) => {
  console.error(`mcp-host: could not start ${program}: ${error.message}`);
  process.exit(1);
});

child.on("exit", (code, signal) => {
  process.exit(signal === null ? code : 128 + constants.signals[signal]);
});
