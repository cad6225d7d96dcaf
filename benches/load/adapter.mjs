// A plain MCP adapter of a record server, made with the official TypeScript SDK in the way its examples show: a server and a stateless
// transport for each request, and one request to the record server for each `fetch`. `run` measures fetchwell beside it.
//
//     node adapter.mjs PORT RECORD_SERVER_URL
//
// Needs the packages of tests/clients (`tests/clients/install`).

import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const [port, records] = process.argv.slice(2);
const text = z.string().optional();
const readOnly = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true };

const lists = { connection_id: text, stream: text, filter: z.record(z.string(), z.any()).optional(), cursor: text, limit: z.number().optional() };
const tools = {
  search: { query: z.string(), ...lists },
  fetch: { id: z.string(), connection_id: text },
  schema: { stream: text, connection_id: text, detail: z.enum(["compact", "full"]).optional() },
  query_records: { ...lists, fields: z.array(z.string()).optional(), sort: text, count: text },
  aggregate: { ...lists, metric: z.enum(["count", "sum", "min", "max"]), field: text, group_by: text },
  read_record_field: { id: z.string(), field: z.string(), offset: z.number().optional() },
};

async function fetchRecord({ id }) {
  const [connection, stream, key] = id.split(/[/:]/);
  const path = [stream, "records", key].map(encodeURIComponent).join("/");
  const answer = await fetch(`${records}/v1/streams/${path}?connection_id=${encodeURIComponent(connection)}`);
  const { data } = await answer.json();
  const record = { id, title: data.subject, text: JSON.stringify(data, null, 2), url: answer.url, metadata: { stream, connection } };
  return { content: [{ type: "text", text: JSON.stringify(record) }], structuredContent: record };
}

function mcpServer() {
  const server = new McpServer({ name: "adapter", version: "1.0.0" });
  for (const [name, inputSchema] of Object.entries(tools)) {
    const settings = { title: name, description: `Calls ${name} of the record server.`, inputSchema, annotations: readOnly };
    server.registerTool(name, settings, name === "fetch" ? fetchRecord : async () => ({ content: [] }));
  }
  return server;
}

createServer(async (request, response) => {
  const server = mcpServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on("close", () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response);
}).listen(Number(port), "127.0.0.1");
