#!/usr/bin/env node
// Starts the binary of the package for this platform, which npm installs as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const os = require("node:os");
const path = require("node:path");

const platform = `${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "fetchwell.exe" : "fetchwell";

function fail(message) {
  process.stderr.write(`error: ${message}\n`);
  process.exit(1);
}

let binary;
try {
  binary = path.join(path.dirname(require.resolve(`@fetchwell/${platform}/package.json`)), "bin", program);
} catch {
  fail(
    `the package @fetchwell/${platform} is not installed. Install fetchwell without --omit=optional; if there is no package ` +
      "for your platform, run `cargo install fetchwell`",
  );
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends its signals to the child, too. Others reach this process only.
const forwarded = ["SIGINT", "SIGTERM", "SIGHUP"];
for (const signal of forwarded) {
  process.on(signal, () => {
    if (signal !== "SIGINT") child.kill(signal);
  });
}
child.on("error", (error) => fail(`${binary} cannot be started (${error.message})`));
child.on("exit", (code, signal) => {
  process.exit(signal === null ? code : 128 + os.constants.signals[signal]);
});
