// Starts a bundle as Claude Desktop does, by the command of its manifest with the user's settings, and calls it with
// the TypeScript SDK.
// Usage: bundle.mjs FOLDER KEY VALUE, with the folder of the unpacked bundle, and the name and value of a setting.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { getMcpConfigForManifest } from '@anthropic-ai/mcpb';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [folder, key, value] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(`${folder}/manifest.json`, 'utf8'));
assert.deepEqual(manifest.compatibility.platforms, [process.platform]);
const options = { manifest, extensionPath: folder, systemDirs: {}, pathSeparator: '/' };
assert.equal(await getMcpConfigForManifest({ ...options, userConfig: {} }), undefined, 'nothing is started before it is configured');
const { command, args, env } = await getMcpConfigForManifest({ ...options, userConfig: { [key]: value } });

const client = new Client({ name: 'bundle', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command, args, env: { ...env, HOME: process.env.HOME }, stderr: 'inherit' }));
assert.equal(client.getServerVersion().version, manifest.version);
const { tools } = await client.listTools();
assert.deepEqual(tools.map(({ name, description }) => ({ name, description })), manifest.tools);
const found = await client.callTool({ name: 'search', arguments: { query: 'invoice' } });
assert.ok(found.structuredContent.results.length > 0);
await client.close();
console.log(`bundle with ${key}: ${tools.length} tools, ${found.structuredContent.results.length} results`);
