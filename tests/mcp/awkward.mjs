// An MCP server made with the TypeScript SDK that misbehaves as its settings say. See corpus.py for its records.
//
// Usage: awkward.mjs [--port PORT]   over stdio, or at http://127.0.0.1:PORT/mcp (Streamable HTTP) and /sse (HTTP with SSE of 2024);
//                                    it prints `listening URL`, port 0 is a free one
//
// Tools: search(query), fetch(id), search_by_page(query, page, per_page), search_by_offset(query, offset, limit), delete_note(id).
// Each setting NAME is the environment variable AWKWARD_NAME in upper case, or the query parameter NAME of the URL:
//
//   records=168 limit=50         numbered notes; maximum number of results of `search`
//   hints=readonly               annotations of `search` and `fetch`: none, readonly, destructive
//   calls=FILE                   file to which events are appended as lines of JSON: [tool, arguments], and ["#METHOD", details]
//                                of what else the client sends and how it answers; only by environment variable
//  Sessions
//   start=MS                     `initialize` is answered MS after the start of the process
//   mute                         `initialize` is never answered
//   protocol=REVISION            the revision in the answer to `initialize`
//   sessions=none                no session ids
//   session_calls=N              a session answers N calls, then 404
//   exit=1                       the process ends at once, with an error on stderr
//   exit_after=N                 the process answers N calls, then exits
//   POST /control/forget         forgets all sessions, so that each answers 404
//  Access
//   tokens=alpha:TOKEN,beta:TOKEN  bearer tokens; each has its own data set (alpha, beta); otherwise 401 with `resource_metadata`
//   authority=URL                the authorization server in /.well-known/oauth-protected-resource
//   token_calls=N                each token is valid for N calls, then 401
//   header=NAME:VALUE            a header without which requests are answered 400
//   redirect=URL                 all requests to /mcp are answered 307 with this location
//  Answers
//   answers=json                 JSON instead of an event stream
//   stream=none                  405 for the stream without a call
//   latency=MS                   time before each answer of a call
//   hang=TOOL                    calls of this tool, or of `all`, are never answered
//   status=CODE failures=N       calls are answered with this HTTP status and `Retry-After: 1`; with N only the first N
//   size=BYTES                   the text of each answer has this length
//   invalid=KIND                 calls are answered with: json (cut), html, utf8 (not UTF-8), id (of another request), shape (no result)
//   close=KIND                   the connection is closed: before the answer, or mid (in it); over stdio the process ends
//   flood=N                      N notifications before each answer
//   flood_start=N                N notifications after the start of a session, in the stream without a call
//   ask=KIND                     a request to the client before each answer: elicitation, sampling, roots, ping
//   changes=KIND                 each call sends `list_changed`: grow adds a tool for each call, drop removes `search` after the first
//   tools=N tool_page=1000       N other tools, in pages (a page of a million takes 1.2 GB here)
//   tools_last                   `search` and `fetch` are on the last page
//   tool_pages=KIND              loop: the next cursor is always the same; endless: there is always a next page
//   noise                        prints lines to stdout, at the start and for each call (stdio)
//   stderr=BYTES                 prints to stderr for each call
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

import { awkwardServer, flood, log } from './awkward_tools.mjs';
import { Corpus } from './corpus.mjs';

// Settings of a request: those of its URL before those of the environment.
class Settings {
  constructor(query = new URLSearchParams()) {
    this.query = query;
    this.calls = process.env.AWKWARD_CALLS;
  }

  value(name, fallback) {
    return this.query.get(name) ?? process.env[`AWKWARD_${name.toUpperCase()}`] ?? fallback;
  }

  has(name) {
    return this.value(name) !== undefined;
  }

  number(name, fallback) {
    return Number(this.value(name, fallback));
  }
}

const corpora = new Map();
function corpusOf(account, settings) {
  const records = settings.number('records', 168);
  const key = `${account} ${records}`;
  if (!corpora.has(key)) corpora.set(key, new Corpus(records, account));
  return corpora.get(key);
}

// Logs what the client sends other than calls, and changes the revision in the answer to `initialize`.
async function connect(transport, account, settings) {
  const server = awkwardServer(corpusOf(account, settings), settings);
  await server.connect(transport);
  const receive = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.method === 'initialize') log(settings, '#initialize', message.params);
    if (message.method?.startsWith('notifications/')) log(settings, `#${message.method}`, message.params);
    if (message.method === 'notifications/initialized') floodLater(server, settings);
    return receive(message, extra);
  };
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.result?.protocolVersion) message.result.protocolVersion = settings.value('protocol', message.result.protocolVersion);
    return send(message, options);
  };
  return server;
}

async function floodLater(server, settings) {
  // Over HTTP, the client opens the stream after this notification.
  if (settings.has('flood_start')) await sleep(500);
  await flood(settings.number('flood_start', 0), (notification) => server.notification(notification)).catch(() => {});
}

// Yields the chunks of an answer that the SDK would not send, or returns undefined.
function rawAnswer(settings, id) {
  const open = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"`;
  const close = '"}]}}';
  const size = settings.number('size', 0);
  if (size) {
    return (function* chunks() {
      yield open;
      for (let sent = 0; sent < size; sent += 65_536) yield 'x'.repeat(Math.min(65_536, size - sent));
      yield close;
    })();
  }
  if (settings.has('close')) return settings.value('close') === 'mid' ? [open, 'x'.repeat(2_000)] : [];
  return {
    json: [open],
    html: ['<html><body><h1>502 Bad Gateway</h1></body></html>'],
    utf8: [open, Buffer.from([0xff, 0xfe, 0x80]), close],
    id: [`{"jsonrpc":"2.0","id":999999,"result":{"content":[{"type":"text","text":"of another request`, close],
    shape: [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":7}`],
  }[settings.value('invalid')];
}

async function write(stream, chunk) {
  if (stream.write(chunk)) return;
  // The client may close the connection before the end.
  const ended = new AbortController();
  const until = (name) => once(stream, name, { signal: ended.signal }).catch(() => {});
  await Promise.race([until('drain'), until('close')]);
  ended.abort();
}

async function sendRaw(response, chunks, settings) {
  const isJson = settings.value('answers') === 'json';
  if (settings.value('close') === 'before') return response.destroy();
  const type = isJson ? 'application/json' : 'text/event-stream';
  response.writeHead(200, { 'content-type': settings.value('invalid') === 'html' ? 'text/html' : type });
  const isEvent = !isJson && settings.value('invalid') !== 'html';
  if (isEvent) await write(response, 'event: message\ndata: ');
  for (const chunk of chunks) {
    if (response.destroyed) return undefined;
    await write(response, chunk);
  }
  if (settings.has('close')) {
    // What was written goes out first.
    await sleep(50);
    return response.destroy();
  }
  return response.end(isEvent ? '\n\n' : undefined);
}

const fail = (response, status, message, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32001, message }, id: null }));
};

const sessions = new Map();
const uses = { tokens: new Map(), failures: 0 };

// Returns the account of a request, undefined without tokens, or null if the request was refused.
function accountOf(request, response, settings, body) {
  const tokens = settings.value('tokens');
  if (!tokens) return undefined;
  const given = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const pair = tokens.split(',').map((entry) => entry.split(':')).find(([, token]) => token === given);
  const calls = (uses.tokens.get(given) ?? 0) + (body?.method === 'tools/call' ? 1 : 0);
  if (pair) uses.tokens.set(given, calls);
  if (pair && calls <= settings.number('token_calls', Infinity)) return pair[0];
  const metadata = `http://${request.headers.host}/.well-known/oauth-protected-resource/mcp`;
  const error = given ? ', error="invalid_token"' : '';
  fail(response, 401, 'Unauthorized', { 'www-authenticate': `Bearer resource_metadata="${metadata}"${error}` });
  return null;
}

// Returns whether a request was refused for another reason than its token.
function isRefused(request, response, settings, body) {
  const [name, value] = settings.value('header', '').split(':');
  if (name && request.headers[name.toLowerCase()] !== value) {
    fail(response, 400, `The header ${name} is missing.`);
    return true;
  }
  if (request.method === 'GET' && settings.value('stream') === 'none') {
    fail(response, 405, 'Method not allowed', { allow: 'POST, DELETE' });
    return true;
  }
  if (body?.method === 'tools/call' && settings.has('status')) {
    uses.failures += 1;
    if (uses.failures <= settings.number('failures', Infinity)) {
      fail(response, settings.number('status', 500), 'This server is out of order.', { 'retry-after': '1' });
      return true;
    }
  }
  return false;
}

// Opens a session for `initialize`.
async function open(account, settings) {
  const hasId = settings.value('sessions') !== 'none';
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: hasId ? randomUUID : undefined,
    enableJsonResponse: settings.value('answers') === 'json',
    onsessioninitialized: (id) => sessions.set(id, { transport, account, calls: 0 }),
    onsessionclosed: (id) => {
      log(settings, '#session deleted');
      sessions.delete(id);
    },
  });
  await connect(transport, account, settings);
  return transport;
}

async function handle(request, response, settings, body) {
  if (settings.has('redirect')) return response.writeHead(307, { location: settings.value('redirect') }).end();
  const account = accountOf(request, response, settings, body);
  if (account === null || isRefused(request, response, settings, body)) return undefined;
  if (body?.method === 'initialize') {
    if (settings.has('mute')) return undefined;
    await sleep(Math.max(0, settings.number('start', 0) - process.uptime() * 1000));
  }
  const id = request.headers['mcp-session-id'];
  const session = sessions.get(id);
  if (body?.method === 'tools/call' && session) session.calls += 1;
  const isSpent = session && session.calls > settings.number('session_calls', Infinity);
  if (isSpent) sessions.delete(id);
  if (id && (!session || isSpent || session.account !== account)) return fail(response, 404, 'Session not found');
  if (!id && body?.method !== 'initialize' && settings.value('sessions') !== 'none') {
    return fail(response, 400, 'Bad Request: Mcp-Session-Id header is required');
  }
  const raw = body?.method === 'tools/call' && rawAnswer(settings, body.id);
  if (raw) {
    log(settings, body.params.name, body.params.arguments);
    return sendRaw(response, raw, settings);
  }
  const transport = session?.transport ?? (await open(account, settings));
  return transport.handleRequest(request, response, body);
}

// The transport of revision 2024-11-05.
async function handleSse(request, response, url, settings, body) {
  if (request.method === 'POST') {
    const transport = sessions.get(url.searchParams.get('sessionId'))?.transport;
    return transport ? transport.handlePostMessage(request, response, body) : fail(response, 404, 'Session not found');
  }
  const transport = new SSEServerTransport('/messages', response);
  sessions.set(transport.sessionId, { transport, calls: 0 });
  response.on('close', () => sessions.delete(transport.sessionId));
  return connect(transport, undefined, settings);
}

async function route(request, response) {
  const url = new URL(request.url, `http://${request.headers.host}`);
  const settings = new Settings(url.searchParams);
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
  if (url.pathname === '/control/forget') {
    sessions.clear();
    return response.writeHead(204).end();
  }
  if (url.pathname.startsWith('/.well-known/oauth-protected-resource') && settings.has('tokens')) {
    const servers = settings.has('authority') ? [settings.value('authority')] : [];
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end(JSON.stringify({ resource: `${url.origin}/mcp`, authorization_servers: servers }));
  }
  if (url.pathname === '/mcp') return handle(request, response, settings, body);
  if (['/sse', '/messages'].includes(url.pathname)) return handleSse(request, response, url, settings, body);
  return fail(response, 404, 'Not found');
}

async function overHttp(port) {
  const server = createServer((request, response) => {
    route(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  console.log(`listening http://127.0.0.1:${server.address().port}/mcp`);
}

async function overStdio() {
  const settings = new Settings();
  if (settings.has('noise')) console.log('Starting the awkward server ...\n{"level":"info","message":"ready"}');
  await sleep(settings.number('start', 0));
  const transport = new StdioServerTransport();
  await connect(transport, undefined, settings);
  const receive = transport.onmessage;
  transport.onmessage = async (message, extra) => {
    if (message.method === 'initialize' && settings.has('mute')) return;
    const raw = message.method === 'tools/call' && rawAnswer(settings, message.id);
    if (!raw) {
      receive(message, extra);
      return;
    }
    log(settings, message.params.name, message.params.arguments);
    for (const chunk of raw) await write(process.stdout, chunk);
    if (settings.has('close')) process.exit(3);
    await write(process.stdout, '\n');
  };
  // Without a transport that listens, a closed input ends the process.
  process.stdin.on('end', () => process.exit(0));
}

if (process.env.AWKWARD_EXIT) {
  console.error('Error: the configuration file ~/.awkward.json is missing');
  process.exit(1);
}
const flag = process.argv.indexOf('--port');
await (flag < 0 ? overStdio() : overHttp(Number(process.argv[flag + 1])));
