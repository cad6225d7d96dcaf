// Record pages with sign-in: the browser is redirected to the authorization server and back to the record.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

import { signIn } from './browser.mjs';
import { call } from './mcp.mjs';
import { freePort } from './processes.mjs';
import { check, heading } from './report.mjs';
import { seenTokens, tokensOf } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, REDIRECT, newKey } from './site.mjs';

/** Keeps the cookies of fetchwell as a browser does. */
class Visitor {
  #cookies = new Map();

  async visit(url) {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { headers: { cookie }, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split('=');
      if (value) this.#cookies.set(name, value);
      else this.#cookies.delete(name);
    }
    return { status: response.status, text: await response.text(), location: response.headers.get('location') };
  }

  /** Opens a page without a session. Returns the URL that the authorization server redirects the browser to. */
  async sentBack(page, person, callback) {
    const asked = await this.visit(page);
    assert.equal(asked.status, 303, asked.text);
    return (await signIn(asked.location, person, callback)).href;
  }
}

export async function signedInPages(binary, folder) {
  heading('record pages, signed in for');
  const port = await freePort();
  const client = { client_id: 'fetchwell-pages', client_secret: randomBytes(24).toString('hex') };
  seenTokens.add(client.client_secret);
  const callback = `http://localhost:${port}/records/-/callback`;
  const authority = await AuthorizationServer.on(folder, {
    keys: [newKey('RS256')],
    pages: { ...client, redirect: callback },
  });
  const auth = `issuer = "${authority.issuer}"
scopes = ["records.read"]
[auth.pages]
client_id = "${client.client_id}"
client_secret = "env:FETCHWELL_PAGES_SECRET"`;
  const fetchwell = new Fetchwell(binary, folder, { name: 'pages', port, auth });
  await authority.start();
  await fetchwell.start({ FETCHWELL_PAGES_SECRET: client.client_secret });
  const asked = { at: authority.at, redirect: REDIRECT, resource: fetchwell.mcp };
  const token = (await tokensOf('alice', asked)).access_token;
  const found = (await call(fetchwell.mcp, token, 'search', { query: 'invoice' })).payload.results[0];
  const { payload: record } = await call(fetchwell.mcp, token, 'fetch', { id: found.id });

  await check('a citation contains no key to its record', () => {
    assert.ok(record.url.startsWith(`${fetchwell.url}/records/`) && !record.url.includes('?'), record.url);
  });
  let used;
  await check('alice opens the citation, signs in, and reads the record', async () => {
    const browser = new Visitor();
    used = await browser.sentBack(record.url, 'alice', callback);
    const back = await browser.visit(used);
    assert.equal(back.status, 303, back.text);
    const page = await browser.visit(new URL(back.location, fetchwell.url));
    assert.equal(page.status, 200, page.text);
    assert.ok(page.text.includes(record.title), page.text);
    assert.equal((await browser.visit(record.url)).status, 200);
    const replayed = await browser.visit(used);
    assert.equal(replayed.status, 400, replayed.text);
  });
  await check('her callback is refused in another browser, and her code in another sign-in', async () => {
    const other = new Visitor();
    assert.equal((await other.visit(used)).status, 400);
    const attempt = new URL((await other.visit(record.url)).location).searchParams;
    const swapped = new URL(used);
    swapped.searchParams.set('state', attempt.get('state'));
    const refused = await other.visit(swapped);
    assert.equal(refused.status, 403, refused.text);
    assert.ok(refused.text.includes('invalid_grant') && !refused.text.includes(record.title), refused.text);
  });
  await check('bob signs in, and does not see her record', async () => {
    const browser = new Visitor();
    const back = await browser.visit(await browser.sentBack(record.url, 'bob', callback));
    const page = await browser.visit(new URL(back.location, fetchwell.url));
    assert.equal(page.status, 404, page.text);
    assert.ok(!page.text.includes(record.title) && page.text.includes('Sign out'), page.text);
  });
  await check('carol, who has no sources, gets a page that says so', async () => {
    const browser = new Visitor();
    const page = await browser.visit(await browser.sentBack(record.url, 'carol', callback));
    assert.equal(page.status, 403, page.text);
    assert.ok(page.text.includes('no records for you'), page.text);
  });
  await check('a cancelled sign-in shows what to do', async () => {
    const browser = new Visitor();
    const page = await browser.visit(await browser.sentBack(record.url, null, callback));
    assert.equal(page.status, 403, page.text);
    assert.ok(page.text.includes('cancelled or refused') && page.text.includes('Sign in again'), page.text);
  });
  await fetchwell.stop();
  await authority.stop();
}
