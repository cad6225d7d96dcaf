// Tokens that are JWTs, checked with the keys of their issuer.
import assert from 'node:assert/strict';

import { call, initialize, post } from './mcp.mjs';
import { freePort } from './processes.mjs';
import { recordPages } from './record_pages.mjs';
import { check, heading } from './report.mjs';
import { metadataOf, refreshed, tokensOf } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, REDIRECT, newKey } from './site.mjs';

const TOOLS = ['search', 'fetch', 'schema', 'query_records', 'aggregate', 'read_record_field'];

/** Checks that a request is refused with this status, and with the challenge of RFC 6750 and RFC 9728. */
async function refused(fetchwell, token, status, error) {
  const answer = await initialize(fetchwell.mcp, token);
  assert.equal(answer.status, status, answer.text);
  const challenge = answer.headers.get('www-authenticate') ?? '';
  assert.match(challenge, /^Bearer /);
  assert.ok(challenge.includes(`resource_metadata="${fetchwell.url}/.well-known/oauth-protected-resource/mcp"`), challenge);
  if (error) assert.ok(challenge.includes(`error="${error}"`), challenge);
  else assert.ok(!challenge.includes('error='), challenge);
  return { ...answer, challenge };
}

/** Checks that a token is refused for this reason. */
async function invalid(fetchwell, token, reason) {
  const { challenge } = await refused(fetchwell, token, 401, 'invalid_token');
  assert.match(challenge, reason);
}

export async function signedTokens(binary, folder) {
  heading('signed tokens (JWT)');
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')] });
  const port = await freePort();
  const fetchwell = new Fetchwell(binary, folder, {
    name: 'signed',
    port,
    auth: `issuer = "${authority.issuer}"\nscopes = ["records.read"]`,
  });
  await authority.start();
  await fetchwell.start();
  const site = { fetchwell, authority, asked: { at: authority.at, redirect: REDIRECT, resource: fetchwell.mcp } };

  await theWayIn(site);
  const alice = await eachTheirOwn(site);
  await recordPages(fetchwell, alice.access_token, alice.found[0].id);
  await badTokens(site, alice);
  await time(site);
  await refresh(site, alice);
  await otherKeys(site, alice);
  await fetchwell.stop();
  await authority.stop();
}

async function theWayIn({ fetchwell, authority }) {
  await check('without a token: 401 that says where the metadata is', async () => {
    const { text } = await refused(fetchwell, undefined, 401);
    assert.ok(text.includes(`${fetchwell.url}/.well-known/oauth-protected-resource/mcp`), text);
  });
  for (const path of ['/v1/schema', '/v1/streams', '/api/v1/messages', '/openapi.json']) {
    await check(`without a token: ${path} needs a token, too`, async () => {
      const response = await fetch(fetchwell.url + path);
      assert.equal(response.status, 401);
    });
  }
  for (const [path, resource] of [['/mcp', '/mcp'], ['/mcp/openai', '/mcp/openai'], ['', '']]) {
    await check(`the metadata of ${path || 'the whole server'} names the authorization server`, async () => {
      const response = await fetch(`${fetchwell.url}/.well-known/oauth-protected-resource${path}`);
      assert.equal(response.status, 200);
      const metadata = await response.json();
      assert.equal(metadata.resource, fetchwell.url + resource);
      assert.deepEqual(metadata.authorization_servers, [authority.issuer]);
      assert.deepEqual(metadata.bearer_methods_supported, ['header']);
      assert.deepEqual(metadata.scopes_supported, ['records.read']);
      const server = await metadataOf(metadata.authorization_servers[0]);
      assert.equal(server.issuer, authority.issuer);
      assert.deepEqual(server.code_challenge_methods_supported, ['S256']);
    });
  }
}

async function eachTheirOwn(site) {
  const { fetchwell, asked } = site;
  const { mcp } = fetchwell;
  const alice = await tokensOf('alice', asked);
  const [bob, carol, dave] = [
    (await tokensOf('bob', asked)).access_token,
    (await tokensOf('carol', asked)).access_token,
    (await tokensOf('dave', asked)).access_token,
  ];
  const token = alice.access_token;
  let found;
  await check('alice signs in: initialize, tools, search, fetch', async () => {
    assert.equal(token.split('.').length, 3);
    assert.equal((await initialize(mcp, token)).message.result.serverInfo.name, 'fetchwell');
    const { message } = await post(mcp, 'tools/list', {}, token);
    assert.deepEqual(message.result.tools.map((tool) => tool.name), TOOLS);
    found = (await call(mcp, token, 'search', { query: 'invoice' })).payload.results;
    assert.ok(found.length > 1);
    const { isError, payload } = await call(mcp, token, 'fetch', { id: found[0].id });
    assert.ok(!isError && payload.text);
  });
  await check('alice at /mcp/openai and /v1', async () => {
    const { payload } = await call(`${mcp}/openai`, token, 'search', { query: 'invoice' });
    assert.ok(payload.results.length > 1);
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${fetchwell.url}/v1/schema`, { headers });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    assert.ok(text.includes('cin_home') && !text.includes('shop'), text);
  });
  await check('bob sees his own records, and none of hers', async () => {
    const { payload } = await call(mcp, bob, 'search', { query: 'invoice' });
    assert.ok(payload.results.length > 1);
    assert.ok(payload.results.every((hit) => hit.id.startsWith('shop/orders:')));
    const schema = JSON.stringify((await call(mcp, bob, 'schema', {})).payload);
    assert.ok(schema.includes('shop') && !/cin_|mail/.test(schema), schema);
  });
  await check('handles of one person are refused for the other', async () => {
    for (const [who, id, foreign] of [[bob, found[0].id, /cin_work|Work|Home/], [token, 'shop/orders:7', /"shop"|Shop/]]) {
      const { isError, payload } = await call(mcp, who, 'fetch', { id });
      assert.ok(isError, JSON.stringify(payload));
      assert.equal(payload.code, 'connection_not_found');
      assert.ok(!foreign.test(JSON.stringify(payload.available_connections)), JSON.stringify(payload));
    }
  });
  await check('her cursor is refused for bob, for dave, who sees the same records, and for another client of hers', async () => {
    const { payload } = await call(mcp, token, 'search', { query: 'invoice', limit: 1 });
    const { access_token: elsewhere } = await tokensOf('alice', { ...asked, client: 'browser' });
    for (const who of [bob, dave, elsewhere]) {
      const stolen = await call(mcp, who, 'search', { cursor: payload.next_cursor });
      assert.ok(stolen.isError, JSON.stringify(stolen.payload));
      assert.equal(stolen.payload.code, 'invalid_cursor');
    }
    const next = await call(mcp, token, 'search', { cursor: payload.next_cursor });
    assert.equal(next.payload.results[0].id, found[1].id);
  });
  await check('carol, who has no sources: 403', async () => {
    const answer = await initialize(mcp, carol);
    assert.equal(answer.status, 403, answer.text);
    assert.match(answer.text, /no_sources|no sources/);
  });
  return { ...alice, found };
}

async function badTokens({ fetchwell, asked }, alice) {
  const token = alice.access_token;
  await check('a token for another resource', async () => {
    const other = await tokensOf('alice', { ...asked, resource: 'http://localhost:1/mcp' });
    await invalid(fetchwell, other.access_token, /audience/);
  });
  await check('an identity token is no access token', async () => {
    await invalid(fetchwell, alice.id_token, /./);
  });
  await check('a token without the scope: 403 that names it', async () => {
    const narrow = await tokensOf('alice', { ...asked, scope: 'openid' });
    const { challenge } = await refused(fetchwell, narrow.access_token, 403, 'insufficient_scope');
    assert.ok(challenge.includes('scope="records.read"'), challenge);
  });
  await check('a changed token', async () => {
    const [header, payload, signature] = token.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url'));
    const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'bob' })).toString('base64url');
    await invalid(fetchwell, `${header}.${changed}.${signature}`, /signature/);
  });
  await check('a token without a signature (alg none)', async () => {
    const header = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    await invalid(fetchwell, `${header}.${token.split('.')[1]}.`, /./);
  });
  await check('an opaque token, without an introspection endpoint', async () => {
    await invalid(fetchwell, 'b3BhcXVlLXRva2VuLW9mLW5vYm9keQ', /unknown/);
  });
  await check('a token in the query of the URL is ignored', async () => {
    const answer = await initialize(`${fetchwell.mcp}?access_token=${token}`);
    assert.equal(answer.status, 401);
  });
}

async function time({ fetchwell, authority, asked }) {
  for (const [title, clock, reason] of [
    ['a token that has expired', -120, /expired/],
    ['a token that is not valid yet', 120, /not valid yet/],
  ]) {
    await check(title, async () => {
      const twin = await authority.twin({ clock, lifetime: 10 });
      await twin.start();
      const tokens = await tokensOf('alice', { ...asked, at: twin.at });
      await invalid(fetchwell, tokens.access_token, reason);
      await twin.stop();
    });
  }
  await check('a token that expired half a minute ago: clocks may differ by a minute', async () => {
    const twin = await authority.twin({ clock: -40, lifetime: 10 });
    await twin.start();
    const tokens = await tokensOf('alice', { ...asked, at: twin.at });
    assert.equal((await initialize(fetchwell.mcp, tokens.access_token)).status, 200);
    await twin.stop();
  });
}

async function refresh({ fetchwell, asked }, alice) {
  const { mcp } = fetchwell;
  await check('a refreshed token works with the cursor of the earlier token', async () => {
    const { payload } = await call(mcp, alice.access_token, 'search', { query: 'invoice', limit: 1 });
    const tokens = await refreshed(alice, asked);
    assert.notEqual(tokens.access_token, alice.access_token);
    const next = await call(mcp, tokens.access_token, 'search', { cursor: payload.next_cursor });
    assert.ok(!next.isError, JSON.stringify(next.payload));
    assert.equal(next.payload.results[0].id, alice.found[1].id);
  });
}

async function otherKeys({ fetchwell, authority, asked }, alice) {
  await authority.stop();
  await check('the authorization server is down: tokens of known keys are still accepted', async () => {
    assert.equal((await initialize(fetchwell.mcp, alice.access_token)).status, 200);
  });
  await check('and a fetchwell without its keys refuses all tokens: 503', async () => {
    await fetchwell.stop();
    await fetchwell.start();
    const answer = await initialize(fetchwell.mcp, alice.access_token);
    assert.equal(answer.status, 503, answer.text);
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
    assert.equal((await initialize(fetchwell.mcp)).status, 401);
  });

  await authority.start();
  await check('tokens are accepted after it is back', async () => {
    // The server is called again five seconds after a failure.
    let answer;
    for (let tries = 0; tries < 20 && answer?.status !== 200; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      answer = await initialize(fetchwell.mcp, alice.access_token);
    }
    assert.equal(answer.status, 200, answer.text);
  });

  const [rsa, ecdsa] = [newKey('RS256'), newKey('ES256')];
  await authority.stop();
  await authority.start({ keys: [rsa, ecdsa], algorithm: 'ES256' });
  await check('new keys of another kind are fetched when a token names one', async () => {
    const tokens = await tokensOf('alice', asked);
    const header = JSON.parse(Buffer.from(tokens.access_token.split('.')[0], 'base64url'));
    assert.equal(header.kid, ecdsa.kid);
    assert.equal(header.alg, 'ES256');
    assert.equal((await initialize(fetchwell.mcp, tokens.access_token)).status, 200);
  });
  await check('a token of a removed key', async () => {
    await invalid(fetchwell, alice.access_token, /key/);
  });
  await check('a forged key with the id of a valid one', async () => {
    const forger = await authority.twin({ keys: [{ ...newKey('RS256'), kid: rsa.kid }], algorithm: 'RS256' });
    await forger.start();
    const forged = await tokensOf('alice', { ...asked, at: forger.at });
    await invalid(fetchwell, forged.access_token, /signature/);
    await forger.stop();
  });
}
