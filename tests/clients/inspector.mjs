// The MCP Inspector's command line, over stdio and over HTTP, in both ways of starting a session; each run is a session.
// Usage: inspector.mjs INSPECTOR BINARY STORE URL, with the bearer token of the URL in FETCHWELL_TOKEN where it wants one.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

import { payload, TOOLS } from './expected.mjs';

/** One run of the inspector: what it printed, as JSON. */
function inspect(server, method, ...options) {
  // What follows a server's own arguments would be taken for one of them.
  const run = spawnSync(process.execPath, [inspector, '--cli', '-q', ...server.options, ...server.target, '--method', method, ...options], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  assert.ok(run.stdout, `${method} ${options.join(' ')} over ${server.way}: exit ${run.status}\n${run.stderr}`);
  return JSON.parse(run.stdout);
}

function converse(server) {
  // Each of these starts with `initialize` or `server/discover`, or fails.
  const { tools } = inspect(server, 'tools/list');
  assert.deepEqual(tools.map((tool) => tool.name), TOOLS);

  const call = (name, ...pairs) => inspect(server, 'tools/call', '--tool-name', name, ...pairs.flatMap((pair) => ['--tool-arg', pair]));
  const [hit] = payload(call('search', 'query=invoice')).results;
  const record = payload(call('fetch', `id=${hit.id}`));
  assert.equal(record.id, hit.id);
  assert.equal(record.title, hit.title);

  const refused = call('fetch', 'id=cin_home/messages:nobody');
  assert.equal(refused.isError, true);
  const { error } = JSON.parse(refused.content[0].text);
  assert.ok(error.code === 'not_found' && error.hint, refused.content[0].text);
  console.log(`inspector ${server.way}, ${server.era}: ${tools.length} tools, ${hit.id} fetched`);
}

const [inspector, binary, store, url] = process.argv.slice(2);
const token = process.env.FETCHWELL_TOKEN;
for (const era of ['legacy', 'modern']) {
  const options = ['--protocol-era', era];
  const stdio = [binary, 'serve', '--stdio', '--store', store, '--state-dir', `${store}.inspector`, '--log', 'error'];
  converse({ way: 'stdio', era, options, target: stdio });
  const header = token ? ['--header', `Authorization: Bearer ${token}`] : [];
  converse({ way: 'HTTP', era, options: [...options, ...header, '--transport', 'http', '--server-url', url], target: [] });
}
