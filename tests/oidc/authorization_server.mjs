// The authorization server: `oidc-provider` with a sign-in page that takes any name.
//
// Usage: authorization_server.mjs SETTINGS, a JSON object:
//   port, issuer     the port to listen on, and the issuer in tokens
//   keys             the private keys that sign tokens, with the preferred key of each kind first
//   opaque           resources with opaque tokens, for introspection; other resources get JWTs
//   algorithm        the algorithm of the JWTs
//   lifetime         of an access token, in seconds
//   clock            the deviation of its clock, in seconds: tokens of a slow clock have expired on arrival
//   introspector     client_id and client_secret of the client that may introspect
//   pages            the confidential client of record pages, if there is one: client_id, client_secret and redirect
//   redirect         the redirect URI of its two public clients, `reader` and `browser`
//   documentClient   the URL of a client that describes itself (CIMD), with its document
const settings = JSON.parse(process.argv[2]);

if (settings.clock) {
  const now = Date.now.bind(Date);
  Date.now = () => now() + settings.clock * 1000;
}

const { default: Provider } = await import('oidc-provider');

const client = { redirect_uris: [settings.redirect], grant_types: ['authorization_code', 'refresh_token'] };
const document = {
  client_id: settings.documentClient,
  client_name: 'A client that describes itself',
  token_endpoint_auth_method: 'none',
  response_types: ['code'],
  ...client,
};

const pages = ({ redirect, ...secret }) => ({
  ...secret,
  redirect_uris: [redirect],
  grant_types: ['authorization_code'],
  response_types: ['code'],
});

const provider = new Provider(settings.issuer, {
  clients: [
    { client_id: 'reader', token_endpoint_auth_method: 'none', ...client },
    { client_id: 'browser', token_endpoint_auth_method: 'none', ...client },
    ...(settings.pages ? [pages(settings.pages)] : []),
    { ...settings.introspector, redirect_uris: [], grant_types: [], response_types: [] },
  ],
  jwks: { keys: settings.keys },
  cookies: { keys: ['no secret: the server listens on this machine only'] },
  scopes: ['openid', 'offline_access', 'records.read'],
  // The id of a client that describes itself is an https URL; its document is returned here, so that no request leaves
  // this machine.
  fetch: async (url) => {
    if (String(url) !== settings.documentClient) throw new Error(`no request for ${url} is expected`);
    return new Response(JSON.stringify(document), { headers: { 'content-type': 'application/json' } });
  },
  features: {
    devInteractions: { enabled: true },
    introspection: { enabled: true },
    revocation: { enabled: true },
    registration: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => ({
        audience: resource,
        scope: 'records.read',
        accessTokenTTL: settings.lifetime,
        accessTokenFormat: settings.opaque.includes(resource) ? 'opaque' : 'jwt',
        jwt: { sign: { alg: settings.algorithm } },
      }),
    },
  },
  issueRefreshToken: (_context, asking) => asking.grantTypeAllowed('refresh_token'),
});

// The log of grants is counted by tests.
provider.on('grant.success', (context) => console.log(`granted ${context.oidc.params.grant_type}`));
provider.on('server_error', (_context, error) => console.error(error));
provider.listen(settings.port, '127.0.0.1', () => console.log('ready'));
