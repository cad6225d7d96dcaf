// The client of the TypeScript SDK, over stdio and over HTTP.
// Usage: typescript_client.mjs BINARY STORE URL, with the bearer token of the URL in FETCHWELL_TOKEN if it needs one.
import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { payload, TOOLS } from './expected.mjs';

async function converse(transport, way) {
  const client = new Client({ name: 'fetchwell-clients', version: '1' });
  await client.connect(transport);
  assert.equal(client.getServerVersion().name, 'fetchwell');
  assert.match(client.getInstructions(), /^Search and read/);

  // From here on the client validates every result against the tool's output schema.
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), TOOLS);
  assert.ok(tools.every((tool) => tool.annotations.readOnlyHint));

  const call = (name, args) => client.callTool({ name, arguments: args });
  const found = payload(await call('search', { query: 'invoice' })).results;
  assert.ok(found.length > 1);
  for (const hit of found) {
    const record = payload(await call('fetch', { id: hit.id }));
    assert.equal(record.id, hit.id);
    assert.equal(record.title, hit.title);
    assert.ok(record.text);
  }

  // The error of every tool reaches the model, too.
  for (const name of TOOLS) {
    const refused = await call(name, { id: 7, nonsense: true });
    assert.equal(refused.isError, true);
    const { error } = JSON.parse(refused.content[0].text);
    assert.ok(error.code && error.hint, refused.content[0].text);
  }
  console.log(`typescript ${way}: ${tools.length} tools, ${found.length} records fetched`);
  await client.close();
}

const [binary, store, url] = process.argv.slice(2);
const args = ['serve', '--stdio', '--store', store, '--state-dir', `${store}.typescript`, '--log', 'error'];
await converse(new StdioClientTransport({ command: binary, args }), 'stdio');
const token = process.env.FETCHWELL_TOKEN;
const headers = token ? { Authorization: `Bearer ${token}` } : {};
await converse(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }), 'HTTP');
