// `credential = "caller"`: each caller signs in to an MCP server, here another fetchwell, on the sources page.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { signIn } from './browser.mjs';
import { call } from './mcp.mjs';
import { freePort } from './processes.mjs';
import { check, heading } from './report.mjs';
import { seenTokens } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, newKey } from './site.mjs';

/** The lifetime of an access token in seconds. */
const LIFETIME = 5;

/** A caller with a static token, and a browser with a session of the caller. */
class Caller {
  #cookies = new Map();

  constructor(name) {
    this.name = name;
    this.token = `fwt_${randomBytes(32).toString('base64url')}`;
    seenTokens.add(this.token);
  }

  table() {
    const sha256 = createHash('sha256').update(this.token).digest('hex');
    return `[[auth.token]]\nname = "${this.name}"\nsha256 = "${sha256}"\nsources = ["wiki"]\n`;
  }

  async visit(server, path, form) {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(path, server.url), {
      method: form ? 'POST' : 'GET',
      body: form && new URLSearchParams(form),
      headers: { cookie, origin: server.url },
      redirect: 'manual',
    });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/s);
      if (value) this.#cookies.set(name, value);
      else this.#cookies.delete(name);
    }
    return response;
  }

  async beginSession(server) {
    const { status } = await this.visit(server, '/records/-/sign-in', { to: '/sources', token: this.token });
    assert.equal(status, 303);
  }

  /** Signs in to the source as a person, or cancels. Returns the response to the reply. */
  async signIn(server, person) {
    const page = await this.visit(server, '/sources/sign-in', { source: 'wiki' });
    const text = await page.text();
    assert.equal(page.status, 200, text);
    const url = page.headers.get('refresh').replace('0;url=', '');
    const back = await signIn(url, person, `${server.url}/sources/signed-in`);
    return this.visit(server, back.pathname + back.search);
  }

  search(server) {
    return call(server.mcp, this.token, 'search', { query: 'invoice' });
  }

  async finds(server, connection) {
    const { isError, payload } = await this.search(server);
    assert.ok(!isError, JSON.stringify(payload));
    assert.ok(payload.results.length > 0 && !payload.unavailable, JSON.stringify(payload));
    for (const { id } of payload.results) assert.ok(decodeURIComponent(id).includes(connection), id);
    const record = await call(server.mcp, this.token, 'fetch', { id: payload.results[0].id });
    assert.ok(!record.isError, JSON.stringify(record.payload));
  }

  async asksForSignIn(server) {
    const { isError, payload } = await this.search(server);
    assert.ok(isError, JSON.stringify(payload));
    assert.equal(payload.code, 'reauthorize');
    assert.ok(payload.hint.includes(`${server.url}/sources`), payload.hint);
  }
}

export async function callerSignIns(binary, folder) {
  heading('sign-ins of callers on the sources page (`credential = "caller"`)');
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')], lifetime: LIFETIME });
  const vendor = new Fetchwell(binary, folder, {
    name: 'vendor',
    port: await freePort(),
    auth: `issuer = "${authority.issuer}"\nscopes = ["records.read"]`,
  });
  const [ann, ben] = ['ann', 'ben'].map((name) => new Caller(name));
  const server = new Fetchwell(binary, folder, {
    name: 'callers',
    port: await freePort(),
    auth: '',
    granted: `${ann.table()}${ben.table()}[[source]]\nname = "wiki"\nmcp = "${vendor.mcp}"\ncredential = "caller"\n`,
  });
  await authority.start();
  await vendor.start();
  await server.start();
  for (const caller of [ann, ben]) await caller.beginSession(server);

  await check('before the sign-in, the error names the page', () => ann.asksForSignIn(server));
  await check('a sign-in that is cancelled says so', async () => {
    const page = await ann.signIn(server, null);
    assert.equal(page.status, 400);
    assert.match(await page.text(), /cancelled or refused/);
    await ann.asksForSignIn(server);
  });
  await check('each caller reads as the person who signed in', async () => {
    for (const [caller, person] of [[ann, 'alice'], [ben, 'bob']]) {
      const { status, headers } = await caller.signIn(server, person);
      assert.deepEqual([status, headers.get('location')], [303, '/sources']);
    }
    await ann.finds(server, 'cin_');
    await ben.finds(server, 'shop');
    assert.match(await (await ann.visit(server, '/sources')).text(), />Signed in</);
  });
  await check('expired tokens are refreshed, each for its caller', async () => {
    await new Promise((resolve) => setTimeout(resolve, (LIFETIME + 1) * 1000));
    await Promise.all([ann.finds(server, 'cin_'), ben.finds(server, 'shop')]);
  });
  await check('sign-ins outlive a restart, and no file has a token as it is', async () => {
    await server.stop();
    await server.start();
    await ann.finds(server, 'cin_');
    const tokens = join(folder, 'callers-state', 'mcp-tokens');
    const files = readdirSync(tokens).filter((name) => name.endsWith('.json'));
    // One of each caller, and one of the registered client.
    const clients = files.filter((name) => name.endsWith('.clients.json'));
    assert.deepEqual([files.length, clients.length], [3, 1], String(files));
    for (const name of files) assert.ok(!readFileSync(join(tokens, name), 'utf8').includes('token'), name);
  });
  await check('a caller who signs out reads nothing, and the other still does', async () => {
    await ann.beginSession(server);
    const { status } = await ann.visit(server, '/sources/sign-out', { source: 'wiki' });
    assert.equal(status, 303);
    await ann.asksForSignIn(server);
    await ben.finds(server, 'shop');
  });
  await server.stop();
  await vendor.stop();
  await authority.stop();
}
