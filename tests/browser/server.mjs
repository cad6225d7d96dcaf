// A fetchwell server on a port of its own, and calls of a model.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { connectionOf, linesOf } from './records.mjs';

/** Static tokens, which need not be secret. */
export const TOKENS = { ann: `fwt_${'ann'.repeat(14)}a`, bob: `fwt_${'bob'.repeat(14)}b` };

/** Token of the operator, who may read the records of Ann. */
export const OPERATOR = `fwt_${'opr'.repeat(14)}o`;

const PEOPLE = Object.keys(TOKENS);

const SOURCES = PEOPLE.map((who) => `[[source]]\nname = "${who}"\nstore = "${who}.db"\n`).join('');

export const hashOf = (token) => createHash('sha256').update(token).digest('hex');

const letIn = (who) => `[[auth.token]]\nname = "${who}"\nsha256 = "${hashOf(TOKENS[who])}"\nsources = ["${who}"]\n`;

/** The lines of the operator's token. */
export const ADMIN = `[[auth.token]]\nname = "operator"\nsha256 = "${hashOf(OPERATOR)}"\nsources = ["ann"]\nadmin = true\n`;

/** Returns an unused port, because `public_url` contains it before the server starts. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Creates the stores of all people in a folder. */
export function importRecords(binary, folder) {
  for (const who of PEOPLE) {
    const file = join(folder, `${who}.ndjson`);
    writeFileSync(file, `${linesOf(who)}\n`);
    const store = join(folder, `${who}.db`);
    execFileSync(binary, ['import', 'records', file, '--store', store, '--connection', connectionOf(who)]);
  }
}

/** Returns the lines of `[auth]` for people who sign in at an authorization server. */
function signIn(authority) {
  return `[auth]
issuer = "${authority}"
[auth.pages]
client_id = "pages"
[auth.introspection]
url = "${authority}/introspect"
client_id = "fetchwell"
client_secret = "env:FETCHWELL_CLIENT_SECRET"
[[auth.subject]]
subject = "ann"
sources = ["ann"]
`;
}

/** Creates a store with records, each a stream, a key and data. */
export function importStore(binary, folder, name, connection, records) {
  const file = join(folder, `${name}.ndjson`);
  const line = ({ stream, key, data }) => JSON.stringify({ stream, key, data, emitted_at: '2026-11-02T09:15:00Z' });
  writeFileSync(file, `${records.map(line).join('\n')}\n`);
  run(binary, folder, 'import', 'records', file, '--store', join(folder, `${name}.db`), '--connection', connection);
}

/** Runs a command of fetchwell in a folder. */
export function run(binary, folder, ...args) {
  execFileSync(binary, args, { cwd: folder });
}

/** Returns the lines of a source with a store. */
export const sourceOf = (name) => `[[source]]\nname = "${name}"\nstore = "${name}.db"\n`;

/**
 * Starts a server that accepts `people`, or all requests if that is left out; with `authority`, people sign in there. `more` has
 * the lines of further sources.
 */
export async function start(binary, folder, people, authority, more = '') {
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const name = authority ? 'sign-in' : people ? 'hosted' : 'open';
  const file = join(folder, `${name}.toml`);
  const letInOnly = (some) => {
    const auth = (authority ? signIn(authority) : '') + (some ?? []).map(letIn).join('');
    writeFileSync(file, `public_url = "${origin}"\n${auth}${SOURCES}${more}`);
  };
  letInOnly(people);
  const state = join(folder, `${name}-state`);
  mkdirSync(state);
  const args = ['serve', '--config', file, '--listen', `127.0.0.1:${port}`, '--state-dir', state];
  const env = { ...process.env, FETCHWELL_CLIENT_SECRET: 'secret' };
  const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  let log = '';
  child.stderr.on('data', (chunk) => (log += chunk));
  for (let tries = 0; !(await fetch(`${origin}/health/live`).catch(() => null))?.ok; tries += 1) {
    assert.ok(child.exitCode === null && tries < 300, `the server did not start: ${log}`);
    await pause(50);
  }

  /** Returns the payload of a tool. */
  async function call(who, tool, args) {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    if (who) headers.authorization = `Bearer ${TOKENS[who]}`;
    const params = { name: tool, arguments: args };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const answer = await fetch(`${origin}/mcp`, { method: 'POST', headers, body });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return JSON.parse(text).result.structuredContent;
  }

  /** Returns the whole document that a model reads: the texts of all parts. */
  async function document(who, id) {
    const first = await call(who, 'fetch', { id });
    assert.ok(first.metadata, JSON.stringify(first));
    const texts = [first.text];
    for (let next = first.metadata.next; next; ) {
      const part = await call(who, 'fetch', { id: next });
      texts.push(part.text);
      next = part.metadata.next;
    }
    return { ...first, texts };
  }

  const stop = () => child.kill();
  return { origin, port, call, document, letInOnly, stop, log: () => log };
}
