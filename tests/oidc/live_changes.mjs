// Authorization that changes while the server runs: a person's sources, and static tokens.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

import { call, initialize } from './mcp.mjs';
import { freePort } from './processes.mjs';
import { check, heading } from './report.mjs';
import { seenTokens, tokensOf } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, REDIRECT, newKey } from './site.mjs';

export async function liveChanges(binary, folder) {
  heading('changes while it runs');
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')] });
  const fetchwell = new Fetchwell(binary, folder, {
    name: 'live',
    port: await freePort(),
    auth: `issuer = "${authority.issuer}"`,
  });
  await authority.start();
  await fetchwell.start();
  const asked = { at: authority.at, redirect: REDIRECT, resource: fetchwell.mcp };
  const { access_token: alice } = await tokensOf('alice', asked);
  await otherSources(fetchwell, alice);
  await ownTokens(fetchwell, binary);
  await figures(fetchwell, binary, alice);
  await fetchwell.stop();
  await authority.stop();
}

/** Waits until a request has this status: the server does not report when it has read a changed file. */
async function comesToBe(fetchwell, token, status) {
  let answer;
  for (let tries = 0; tries < 50; tries += 1) {
    answer = await initialize(fetchwell.mcp, token);
    if (answer.status === status) return answer;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`it is ${answer.status} and not ${status}: ${answer.text}`);
}

const found = async (fetchwell, token) =>
  (await call(fetchwell.mcp, token, 'search', { query: 'invoice' })).payload.results.map((hit) => hit.id);

async function otherSources(fetchwell, token) {
  await check("alice's sources are replaced: she sees the new ones only", async () => {
    assert.ok((await found(fetchwell, token)).every((id) => id.startsWith('cin_')));
    const whole = fetchwell.settings();
    const hers = 'subject = "alice"\nsources = ["mail"]';
    assert.ok(whole.includes(hers));
    fetchwell.change(whole.replace(`[[auth.subject]]\n${hers}\n`, ''));
    await comesToBe(fetchwell, token, 403);
    fetchwell.change(whole.replace(hers, 'subject = "alice"\nsources = ["orders"]'));
    await comesToBe(fetchwell, token, 200);
    assert.ok((await found(fetchwell, token)).every((id) => id.startsWith('shop/')));
    fetchwell.change(whole);
  });
}

async function ownTokens(fetchwell, binary) {
  const made = JSON.parse(execFileSync(binary, ['token', 'new', '--name', 'ci', '--json'], { encoding: 'utf8' }));
  seenTokens.add(made.token);
  const whole = fetchwell.settings();
  await check('a token of `fetchwell token new` is accepted for its sources once the file has its lines', async () => {
    await comesToBe(fetchwell, made.token, 401);
    fetchwell.change(`${whole}\n${made.configuration}sources = ["orders"]\n`);
    await comesToBe(fetchwell, made.token, 200);
    assert.ok((await found(fetchwell, made.token)).every((id) => id.startsWith('shop/')));
  });
  await check('and is refused after they were removed', async () => {
    fetchwell.change(whole);
    await comesToBe(fetchwell, made.token, 401);
  });
}

async function figures(fetchwell, binary, alice) {
  const made = JSON.parse(execFileSync(binary, ['token', 'new', '--name', 'watch', '--json'], { encoding: 'utf8' }));
  seenTokens.add(made.token);
  fetchwell.change(`${fetchwell.settings()}\n${made.configuration}sources = []\nmetrics = true\n`);
  const asked = async (path, token, forwarded = { 'x-forwarded-for': '203.0.113.9' }) => {
    const headers = { ...forwarded, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    return (await fetch(fetchwell.url + path, { headers })).status;
  };
  await check('/health and /metrics are for tokens with metrics = true', async () => {
    for (let tries = 0; tries < 50 && (await asked('/metrics', made.token)) !== 200; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    for (const path of ['/health', '/metrics']) {
      assert.equal(await asked(path, made.token), 200);
      assert.equal(await asked(path, alice), 401); // a token that cannot have access to metrics is not introspected
      assert.equal(await asked(path), 401);
      assert.equal(await asked(path, undefined, {}), 401); // a loopback address does not authenticate
    }
    for (const path of ['/health/live', '/health/ready']) assert.equal(await asked(path), 200);
  });
  await check('such a token without sources reads no records', async () => {
    assert.equal((await initialize(fetchwell.mcp, made.token)).status, 403);
  });
}
