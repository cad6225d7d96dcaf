// `fetchwell source login`: fetchwell as the client of an MCP server with sign-in, here another fetchwell.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

import { signIn } from './browser.mjs';
import { call } from './mcp.mjs';
import { freePort, runToEnd, start } from './processes.mjs';
import { check, heading } from './report.mjs';
import { revoke, seenTokens } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, newKey } from './site.mjs';

/** The lifetime of an access token in seconds: long enough for two programs to start within it. */
const LIFETIME = 20;

const REMEDY = 'fetchwell source login wiki';

/** A fetchwell whose only source is an MCP server. */
class Client {
  constructor(binary, folder, { port, mcp }) {
    this.binary = binary;
    this.url = `http://127.0.0.1:${port}`;
    this.log = join(folder, 'wiki.log');
    this.configuration = join(folder, 'wiki.toml');
    this.state = join(folder, 'wiki-state');
    this.tokens = join(this.state, 'mcp-tokens');
    writeFileSync(
      this.configuration,
      `listen = "127.0.0.1:${port}"\nstate_dir = "wiki-state"\n\n[[source]]\nname = "wiki"\nmcp = "${mcp}"\n`,
    );
  }

  arguments = (args) => [...args, '--config', this.configuration];

  run = (...args) => runToEnd(this.binary, this.arguments(args));

  serve = () => start(this.binary, this.arguments(['serve']), { url: `${this.url}/health/live`, log: this.log });

  /** Searches with the server that runs. */
  search = () => call(`${this.url}/mcp`, undefined, 'search', { query: 'invoice' });

  /** Returns the path of the file with the tokens, or of the one with the registered clients. */
  file(isOfClients = false) {
    const names = readdirSync(this.tokens).filter((name) => name.endsWith('.json'));
    const wanted = names.filter((name) => name.endsWith('.clients.json') === isOfClients);
    assert.equal(wanted.length, 1, String(names));
    return join(this.tokens, wanted[0]);
  }

  /** Returns the stored tokens, which no log may have. */
  stored() {
    const stored = JSON.parse(readFileSync(this.file(), 'utf8'));
    for (const token of [stored.access_token, stored.refresh_token]) if (token) seenTokens.add(token);
    return stored;
  }

  /** Makes the stored access token one that the server refuses. */
  spoil() {
    const stored = this.stored();
    const spoiled = { ...stored, access_token: `${stored.access_token.slice(0, -8)}AAAAAAAA` };
    writeFileSync(this.file(), JSON.stringify(spoiled));
    return spoiled;
  }
}

export async function sourceLogin(binary, folder) {
  heading('sign-in at an MCP server (`fetchwell source login`)');
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')], lifetime: LIFETIME });
  const fetchwell = new Fetchwell(binary, folder, {
    name: 'server',
    port: await freePort(),
    auth: `issuer = "${authority.issuer}"\nscopes = ["records.read"]`,
  });
  await authority.start();
  await fetchwell.start();
  const client = new Client(binary, folder, { port: await freePort(), mcp: fetchwell.mcp });
  const refreshes = () => {
    const lines = readFileSync(join(folder, 'authorization_server.log'), 'utf8').split('\n');
    return lines.filter((line) => line === 'granted refresh_token').length;
  };

  await check('before the sign-in, the error says how to sign in', () => asksForSignIn(client));
  await check('a sign-in that is cancelled in the browser ends with an error', () => cancelled(client));
  await check('a person signs in, and the tokens are stored for the user only', () => signsIn(client, fetchwell));
  await check('records are found and fetched', () => reads(client));
  await check('two programs at once refresh an expired token once', () => refreshedOnce(client, refreshes));
  await check('a token that the server refuses is refreshed', () => replaced(client, refreshes));
  await check('after the sign-in was revoked, the error says how to sign in', () => revoked(client, authority));
  const server = await client.serve();
  await check('and a server answers `reauthorize`, until the next sign-in', () => serves(client, fetchwell));
  await server.stop();
  client.spoil();
  await authority.stop();
  await check('an authorization server that is down is no reason for another sign-in', () => unavailable(client));
  // Later checks search all files for tokens.
  client.stored();
  rmSync(client.tokens, { recursive: true });
  await fetchwell.stop();
}

/** Starts the sign-in, and lets a person sign in or cancel. Returns the outcome, and the last page of the browser. */
async function login(client, person) {
  const child = spawn(client.binary, client.arguments(['source', 'login', 'wiki', '--json']), {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 60_000,
  });
  const exit = once(child, 'exit');
  const errors = text(child.stderr);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: first } = await lines.next();
  if (!first) throw new Error(await errors);
  const url = new URL(JSON.parse(first).open);
  const back = await signIn(url, person, url.searchParams.get('redirect_uri'));
  const page = await fetch(back);
  const shown = await page.text();
  const { value: last } = await lines.next();
  const [code] = await exit;
  return { url, page, shown, code, outcome: last && JSON.parse(last), errors: await errors };
}

async function asksForSignIn(client) {
  for (const args of [['source', 'inspect', 'wiki'], ['search', 'invoice']]) {
    const { code, stdout, stderr } = await client.run(...args);
    assert.notEqual(code, 0);
    assert.ok(stderr.includes(REMEDY), `${args}: ${stdout}${stderr}`);
  }
}

async function cancelled(client) {
  const { code, shown, outcome, errors } = await login(client, null);
  assert.equal(code, 1, errors);
  assert.match(shown, /Not signed in/);
  assert.equal(outcome, undefined);
  assert.match(errors, /cancelled or refused/);
}

async function signsIn(client, fetchwell) {
  const { url, page, shown, code, outcome, errors } = await login(client, 'alice');
  assert.equal(code, 0, errors);
  assert.deepEqual(outcome, { signed_in: 'wiki' });
  assert.equal(page.status, 200);
  assert.match(shown, /Signed in/);
  assert.equal(url.searchParams.get('resource'), fetchwell.mcp);
  assert.equal(url.searchParams.get('code_challenge_method'), 'S256');
  const redirect = new URL(url.searchParams.get('redirect_uri'));
  assert.equal(redirect.hostname, '127.0.0.1');
  for (const file of [client.file(), client.file(true)]) assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(client.tokens).mode & 0o777, 0o700);
  const { access_token, refresh_token } = client.stored();
  assert.ok(access_token && refresh_token);
}

/** Searches. Returns the ids of the results. */
async function found(client) {
  const { code, stdout, stderr } = await client.run('search', 'invoice', '--json');
  assert.equal(code, 0, stdout + stderr);
  const { results, unavailable } = JSON.parse(stdout);
  assert.ok(results.length > 0 && !unavailable, stdout);
  return results.map((hit) => hit.id);
}

async function reads(client) {
  const [id] = await found(client);
  const { code, stdout, stderr } = await client.run('fetch', id, '--json');
  assert.equal(code, 0, stdout + stderr);
  const record = JSON.parse(stdout);
  assert.equal(record.id, id);
  assert.match(record.text, /invoice/i);
}

/** Checks the number of refreshes, which the log has a little later. */
async function comesToBe(refreshes, expected) {
  for (let tries = 0; tries < 50 && refreshes() < expected; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(refreshes(), expected);
}

async function refreshedOnce(client, refreshes) {
  const before = client.stored();
  assert.equal(before.expires_at - before.received_at, LIFETIME);
  await new Promise((resolve) => setTimeout(resolve, before.expires_at * 1000 - Date.now()));
  const count = refreshes();
  await Promise.all([found(client), found(client)]);
  const after = client.stored();
  assert.notEqual(after.access_token, before.access_token);
  assert.notEqual(after.refresh_token, before.refresh_token);
  await comesToBe(refreshes, count + 1);
}

async function replaced(client, refreshes) {
  const spoiled = client.spoil();
  const count = refreshes();
  await found(client);
  assert.notEqual(client.stored().access_token, spoiled.access_token);
  await comesToBe(refreshes, count + 1);
}

async function revoked(client, authority) {
  const { refresh_token, client_id } = client.spoil();
  await revoke(refresh_token, { at: authority.at, client: client_id });
  for (const attempt of ['first', 'second']) {
    const { code, stdout, stderr } = await client.run('search', 'invoice');
    assert.notEqual(code, 0, stdout);
    assert.ok(stderr.includes(REMEDY), `the ${attempt} search: ${stdout}${stderr}`);
    // A refused refresh token is deleted, so that it is not sent again.
    assert.equal(client.stored().refresh_token, null);
  }
}

async function serves(client, fetchwell) {
  const { isError, payload } = await client.search();
  assert.ok(isError, JSON.stringify(payload));
  assert.equal(payload.code, 'reauthorize');
  assert.ok(payload.hint.includes(REMEDY), payload.hint);
  await signsIn(client, fetchwell);
  await reads(client);
  // A source that has failed is tried again after a pause.
  let answer;
  for (let tries = 0; tries < 50; tries += 1) {
    answer = await client.search();
    if (!answer.isError) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok(!answer.isError && answer.payload.results.length > 0, JSON.stringify(answer.payload));
}

async function unavailable(client) {
  const { code, stdout, stderr } = await client.run('search', 'invoice');
  assert.notEqual(code, 0, stdout);
  assert.ok(stderr.includes('for the token of source') && !stderr.includes(REMEDY), stdout + stderr);
}
