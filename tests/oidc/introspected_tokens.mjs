// Opaque tokens, which the authorization server introspects (RFC 7662).
import assert from 'node:assert/strict';

import { call, initialize } from './mcp.mjs';
import { freePort } from './processes.mjs';
import { check, heading } from './report.mjs';
import { revoke, tokensOf } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, REDIRECT, newKey } from './site.mjs';

/** The time for which a valid response may be cached, and a margin, in milliseconds. */
const REMEMBERED = 65_000;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function introspectedTokens(binary, folder) {
  heading('introspected tokens (opaque)');
  const port = await freePort();
  const opaque = [`http://localhost:${port}/mcp`];
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')], opaque });
  const auth = `issuer = "${authority.issuer}"
scopes = ["records.read"]
[auth.introspection]
url = "${authority.issuer}/token/introspection"
client_id = "fetchwell"
client_secret = "env:FETCHWELL_CLIENT_SECRET"`;
  const fetchwell = new Fetchwell(binary, folder, { name: 'introspected', port, auth });
  await authority.start();
  await fetchwell.start();
  const asked = { at: authority.at, redirect: REDIRECT, resource: fetchwell.mcp };
  const site = { fetchwell, authority, asked };

  await active(site);
  await revoked(site);
  await ended(site);
  await down(site);
  await fetchwell.stop();
  await authority.stop();
}

async function status(fetchwell, token) {
  const answer = await initialize(fetchwell.mcp, token);
  return answer.status;
}

async function active({ fetchwell, asked }) {
  await check('alice and bob sign in and see their own records', async () => {
    for (const [person, own] of [['alice', /^cin_/], ['bob', /^shop\//]]) {
      const token = (await tokensOf(person, asked)).access_token;
      assert.equal(token.split('.').length, 1);
      const { payload } = await call(fetchwell.mcp, token, 'search', { query: 'invoice' });
      assert.ok(payload.results.length > 1 && payload.results.every((hit) => own.test(hit.id)), JSON.stringify(payload));
    }
  });
  await check('a signed token of the same server is accepted, too', async () => {
    const tokens = await tokensOf('alice', { ...asked, resource: `${fetchwell.mcp}/openai` });
    assert.equal(tokens.access_token.split('.').length, 3);
    assert.equal(await status(fetchwell, tokens.access_token), 200);
  });
  await check('carol, who has no sources: 403', async () => {
    assert.equal(await status(fetchwell, (await tokensOf('carol', asked)).access_token), 403);
  });
  await check('a token that the server does not know', async () => {
    const answer = await initialize(fetchwell.mcp, 'b3BhcXVlLXRva2VuLW9mLW5vYm9keQ');
    assert.equal(answer.status, 401);
    assert.match(answer.headers.get('www-authenticate'), /error="invalid_token".*not active/);
  });
  await check('a token for another resource', async () => {
    const tokens = await tokensOf('alice', { ...asked, resource: 'http://localhost:1/mcp' });
    assert.equal(await status(fetchwell, tokens.access_token), 401);
  });
}

async function revoked({ fetchwell, asked }) {
  await check('a token that was revoked before its first use', async () => {
    const { access_token: token } = await tokensOf('alice', asked);
    await revoke(token, asked);
    assert.equal(await status(fetchwell, token), 401);
  });
  if (process.env.FETCHWELL_OIDC_QUICK) return;
  await check('a token that was revoked after its first use: within a minute', async () => {
    const { access_token: token } = await tokensOf('alice', asked);
    assert.equal(await status(fetchwell, token), 200);
    const start = Date.now();
    await revoke(token, asked);
    while ((await status(fetchwell, token)) === 200) {
      assert.ok(Date.now() - start < REMEMBERED, 'it is still good');
      await pause(1000);
    }
    assert.equal(await status(fetchwell, token), 401);
    console.log(`      it was refused after ${Math.round((Date.now() - start) / 1000)} s`);
  });
}

async function ended({ fetchwell, authority, asked }) {
  await authority.stop();
  await authority.start({ lifetime: 8 });
  await check('an expired token is refused at its expiry, cached or not', async () => {
    const { access_token: token } = await tokensOf('alice', asked);
    assert.equal(await status(fetchwell, token), 200);
    // Well before the minute for which the response might be cached.
    for (let tries = 0; tries < 30 && (await status(fetchwell, token)) === 200; tries += 1) await pause(1000);
    assert.equal(await status(fetchwell, token), 401);
  });
  await authority.stop();
  await authority.start({ lifetime: 600 });
}

async function down({ fetchwell, authority, asked }) {
  const { access_token: used } = await tokensOf('alice', asked);
  const { access_token: unused } = await tokensOf('alice', asked);
  await check('the server is down: tokens that were not cached get 503', async () => {
    assert.equal(await status(fetchwell, used), 200);
    await authority.stop();
    const answer = await initialize(fetchwell.mcp, unused);
    assert.equal(answer.status, 503, answer.text);
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
    assert.equal(await status(fetchwell, used), 200);
    assert.equal(await status(fetchwell), 401);
  });
  await authority.start();
  await check('it is up again without its tokens: 401, and a new token is accepted', async () => {
    assert.equal(await status(fetchwell, unused), 401);
    assert.equal(await status(fetchwell, (await tokensOf('alice', asked)).access_token), 200);
  });
  await check('a fetchwell that the server does not know refuses all tokens: 503', async () => {
    await fetchwell.stop();
    await fetchwell.start({ FETCHWELL_CLIENT_SECRET: 'wrong' });
    assert.equal(await status(fetchwell, (await tokensOf('alice', asked)).access_token), 503);
  });
}
