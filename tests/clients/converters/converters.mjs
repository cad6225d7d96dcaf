// The list of tools of a live server, converted by the Vercel AI SDK, and a search with its tool.
//
// Usage: converters.mjs BINARY STORE

import assert from 'node:assert/strict';
import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';
import { asSchema } from 'ai';

const [binary, store] = process.argv.slice(2);
for (const profile of ['standard', 'openai']) {
  const args = ['serve', '--stdio', '--profile', profile, '--log', 'error', '--store', store];
  const transport = new Experimental_StdioMCPTransport({ command: binary, args });
  const client = await createMCPClient({ transport });
  const tools = await client.tools();
  for (const [name, tool] of Object.entries(tools)) {
    const schema = await asSchema(tool.inputSchema).jsonSchema;
    assert.ok(Object.values(schema.properties).every((argument) => argument.description), name);
  }
  const found = await tools.search.execute({ query: 'invoice' }, { toolCallId: '1', messages: [] });
  assert.ok(JSON.parse(found.content[0].text).results.length > 1, JSON.stringify(found));
  console.log(`converters, ${profile}: ${Object.keys(tools).length} tools of the Vercel AI SDK`);
  await client.close();
}
