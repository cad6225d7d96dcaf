// Expectations of the server that all clients in JavaScript share.
import assert from 'node:assert/strict';

export const TOOLS = ['search', 'fetch', 'schema', 'query_records', 'aggregate', 'read_record_field'];

/** Returns the payload of a successful call: the same JSON in both channels. */
export function payload(result) {
  assert.ok(!result.isError, JSON.stringify(result));
  assert.equal(result.content.length, 1);
  const value = JSON.parse(result.content[0].text);
  assert.deepEqual(value, result.structuredContent);
  return value;
}
