// The command line of the MCP Inspector, over stdio and over HTTP, with both kinds of session start. Each run is a
// session.
// Usage: inspector.mjs INSPECTOR BINARY STORE URL, with the bearer token of the URL in FETCHWELL_TOKEN if it needs one.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

import { payload, TOOLS } from './expected.mjs';

/** Runs the inspector and returns its output as JSON. */
function inspect(server, method, ...options) {
  // The inspector would read options after the server's own arguments as arguments of the server.
  const run = spawnSync(process.execPath, [inspector, '--cli', '-q', ...server.options, ...server.target, '--method', method, ...options], {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  assert.ok(run.stdout, `${method} ${options.join(' ')} over ${server.way}: exit ${run.status}\n${run.stderr}`);
  return JSON.parse(run.stdout);
}

function converse(server) {
  // Each run starts with `initialize` or `server/discover`.
  const { tools } = inspect(server, 'tools/list');
  assert.deepEqual(tools.map((tool) => tool.name), TOOLS);

  const call = (name, ...pairs) => inspect(server, 'tools/call', '--tool-name', name, ...pairs.flatMap((pair) => ['--tool-arg', pair]));
  const [hit] = payload(call('search', 'query=invoice')).results;
  const record = payload(call('fetch', `id=${hit.id}`));
  assert.equal(record.id, hit.id);
  assert.equal(record.title, hit.title);

  const refused = call('fetch', 'id=cin_home/messages:missing');
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
