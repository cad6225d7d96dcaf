// The OAuth client of the TypeScript SDK, which gets only the URL: it discovers the authorization server, registers
// there, and gets a token after a person has signed in.
import assert from 'node:assert/strict';

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { signIn } from './browser.mjs';
import { freePort } from './processes.mjs';
import { check, heading } from './report.mjs';
import { seenTokens } from './sign_in.mjs';
import { AuthorizationServer, DOCUMENT_CLIENT, Fetchwell, REDIRECT, newKey } from './site.mjs';

/** The state of a client between sessions. */
class Keeper {
  kept = {};

  constructor(clientMetadataUrl) {
    this.clientMetadataUrl = clientMetadataUrl;
  }

  get redirectUrl() {
    return REDIRECT;
  }

  get clientMetadata() {
    return {
      client_name: 'The SDK',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }

  clientInformation = () => this.kept.client;
  saveClientInformation = (client) => {
    this.kept.client = client;
  };
  tokens = () => this.kept.tokens;
  saveTokens = (tokens) => {
    seenTokens.add(tokens.access_token);
    this.kept.tokens = tokens;
  };
  redirectToAuthorization = (url) => {
    this.kept.url = url;
  };
  saveCodeVerifier = (verifier) => {
    this.kept.verifier = verifier;
  };
  codeVerifier = () => this.kept.verifier;
}

export async function sdkClient(binary, folder) {
  heading("the TypeScript SDK's OAuth client");
  const authority = await AuthorizationServer.on(folder, { keys: [newKey('RS256')] });
  const fetchwell = new Fetchwell(binary, folder, {
    name: 'sdk',
    port: await freePort(),
    auth: `issuer = "${authority.issuer}"\nscopes = ["records.read"]`,
  });
  await authority.start();
  await fetchwell.start();
  const dynamic = new Keeper();
  await check('from the bare URL to records, registering itself (DCR)', () => fromBareUrl(fetchwell, dynamic, 'alice'));
  await check('an expired token is refreshed silently', () => refreshes(fetchwell, dynamic));
  const described = new Keeper(DOCUMENT_CLIENT);
  await check('from the bare URL to records, describing itself (CIMD)', async () => {
    await fromBareUrl(fetchwell, described, 'alice');
    assert.equal(described.kept.client.client_id, DOCUMENT_CLIENT);
  });
  await check('the same at /mcp/openai', () => fromBareUrl(fetchwell, new Keeper(), 'alice', '/openai'));
  await fetchwell.stop();
  await authority.stop();
}

const transportTo = (url, keeper) => new StreamableHTTPClientTransport(new URL(url), { authProvider: keeper });

async function fromBareUrl(fetchwell, keeper, person, path = '') {
  const url = fetchwell.mcp + path;
  const refused = transportTo(url, keeper);
  await assert.rejects(new Client({ name: 'oidc', version: '1' }).connect(refused), UnauthorizedError);
  assert.equal(keeper.kept.url.searchParams.get('resource'), url);
  assert.equal(keeper.kept.url.searchParams.get('code_challenge_method'), 'S256');
  const back = await signIn(keeper.kept.url, person, REDIRECT);
  assert.ok(back.searchParams.get('code'), String(back));
  await refused.finishAuth(back.searchParams.get('code'));
  await reads(url, keeper);
}

async function reads(url, keeper) {
  const client = new Client({ name: 'oidc', version: '1' });
  await client.connect(transportTo(url, keeper));
  const { tools } = await client.listTools();
  assert.ok(tools.some((tool) => tool.name === 'search'));
  const found = await client.callTool({ name: 'search', arguments: { query: 'invoice' } });
  const [hit] = found.structuredContent.results;
  const record = await client.callTool({ name: 'fetch', arguments: { id: hit.id } });
  assert.ok(record.structuredContent.text);
  await client.close();
}

async function refreshes(fetchwell, keeper) {
  const { access_token: token, ...others } = keeper.kept.tokens;
  keeper.kept.tokens = { ...others, access_token: `${token.slice(0, -4)}AAAA` };
  await reads(fetchwell.mcp, keeper);
  assert.notEqual(keeper.kept.tokens.access_token, token);
}
