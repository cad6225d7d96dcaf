// The token of a caller, passed on to a record server that knows the same people: here another fetchwell.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

import { call, initialize } from './mcp.mjs';
import { freePort } from './processes.mjs';
import { check, heading } from './report.mjs';
import { seenTokens, tokensOf } from './sign_in.mjs';
import { AuthorizationServer, Fetchwell, REDIRECT, newKey } from './site.mjs';

export async function passedOn(binary, folder) {
  heading("the caller's own token, passed on");
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')] });
  const auth = `issuer = "${authority.issuer}"`;
  const back = new Fetchwell(binary, folder, { name: 'back', port: await freePort(), auth });
  const made = JSON.parse(execFileSync(binary, ['token', 'new', '--name', 'ci', '--json'], { encoding: 'utf8' }));
  seenTokens.add(made.token);
  const front = new Fetchwell(binary, folder, {
    name: 'front',
    port: await freePort(),
    auth: `${auth}\naudience = ["${back.url}"]`,
    granted: `${made.configuration}\n[[source]]\nname = "team"\nurl = "${back.url}"\ncredential = "caller"\n`,
  });
  await authority.start();
  await back.start();
  await front.start();
  const asked = { at: authority.at, redirect: REDIRECT, resource: back.url };

  await check('each caller sees their own records, at the same time', async () => {
    const people = [];
    for (const person of ['alice', 'bob']) people.push((await tokensOf(person, asked)).access_token);
    const found = await Promise.all(
      Array.from({ length: 20 }, (_, at) => call(front.mcp, people[at % 2], 'search', { query: 'invoice' })),
    );
    for (const [at, { isError, payload }] of found.entries()) {
      assert.ok(!isError && payload.results.length > 1, JSON.stringify(payload));
      const own = at % 2 === 0 ? /^cin_/ : /^shop\//;
      assert.ok(payload.results.every((hit) => own.test(hit.id)), JSON.stringify(payload));
    }
    const { payload } = await call(front.mcp, people[0], 'fetch', { id: found[0].payload.results[0].id });
    assert.ok(payload.text);
  });
  await check('a caller that the record server refuses gets an error that says so', async () => {
    const token = (await tokensOf('carol', asked)).access_token;
    const { isError, payload } = await call(front.mcp, token, 'search', { query: 'invoice' });
    assert.ok(isError, JSON.stringify(payload));
    assert.ok(!JSON.stringify(payload).includes(token));
  });
  await check('a static token is not passed on: 403', async () => {
    assert.equal((await initialize(front.mcp, made.token)).status, 403);
  });
  await front.stop();
  await back.stop();
  await authority.stop();
}
