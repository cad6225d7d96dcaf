// An authorization server on another site than fetchwell's, with a page where a person agrees or declines.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

/** Starts a server that signs in one person, with the subject `subject`. */
export async function startAuthority(subject) {
  const codes = new Map();
  const tokens = new Map();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, origin);
    let body = '';
    for await (const chunk of request) body += chunk;
    const form = new URLSearchParams(body);
    const json = (status, value) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    const back = (asked, answer) => {
      const to = new URL(asked.get('redirect_uri'));
      to.search = new URLSearchParams({ ...answer, state: asked.get('state'), iss: origin });
      response.writeHead(302, { location: to.href });
      response.end();
    };
    switch (url.pathname) {
      case '/.well-known/oauth-authorization-server':
        return json(200, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          code_challenge_methods_supported: ['S256'],
          authorization_response_iss_parameter_supported: true,
        });
      case '/authorize': {
        response.writeHead(200, { 'content-type': 'text/html', 'referrer-policy': 'no-referrer' });
        const ways = ['agree', 'decline'].map((way) => `<p><a href="/${way}${url.search}">${way}</a></p>`.replaceAll('&', '&amp;'));
        return response.end(`<!doctype html><title>Authority</title><link rel="icon" href="data:,">${ways.join('')}`);
      }
      case '/agree': {
        const code = randomBytes(16).toString('hex');
        codes.set(code, url.searchParams);
        return back(url.searchParams, { code });
      }
      case '/decline':
        return back(url.searchParams, { error: 'access_denied' });
      case '/token': {
        const asked = codes.get(form.get('code'));
        codes.delete(form.get('code'));
        const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
        const isSame = (name) => asked?.get(name) === form.get(name);
        if (challenge !== asked?.get('code_challenge') || !['redirect_uri', 'resource', 'client_id'].every(isSame)) {
          return json(400, { error: 'invalid_grant' });
        }
        const token = randomBytes(16).toString('hex');
        tokens.set(token, form.get('resource'));
        return json(200, { access_token: token, token_type: 'Bearer' });
      }
      case '/introspect': {
        const aud = tokens.get(form.get('token'));
        return json(200, aud ? { active: true, sub: subject, client_id: 'pages', aud } : { active: false });
      }
      default:
        return json(404, {});
    }
  });
  // `localhost` and 127.0.0.1 are two sites: cookies are sent with a top-level navigation only.
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { origin, stop: () => server.close() };
}
