// MCP over HTTP without a client library, so that every status and header is visible.

/** Sends one request to `/mcp`. Returns the response, with its message parsed from JSON or from the event stream. */
export async function post(url, method, params, token) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      ...(token ? { authorization: `Bearer ${token}` } : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  const json = response.headers.get('content-type')?.startsWith('text/event-stream')
    ? text.split('\n').findLast((line) => line.startsWith('data: {'))?.slice('data: '.length)
    : text;
  let message = null;
  try {
    message = JSON.parse(json);
  } catch {
    // The caller decides whether a missing message is an error.
  }
  return { status: response.status, headers: response.headers, message, text };
}

export const initialize = (url, token) =>
  post(
    url,
    'initialize',
    { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'oidc', version: '1' } },
    token,
  );

/** Calls a tool. Returns its payload, or the error that a model would read. */
export async function call(url, token, name, args) {
  const { status, message, text } = await post(url, 'tools/call', { name, arguments: args }, token);
  if (status !== 200 || !message?.result) throw new Error(`${name} answers ${status}: ${text.slice(0, 500)}`);
  const said = JSON.parse(message.result.content[0].text);
  const payload = message.result.isError === true ? said.error : said;
  return { isError: message.result.isError === true, payload };
}
