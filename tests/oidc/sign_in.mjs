// Tokens for a public client: authorization code with PKCE, a resource, and refresh.
import { createHash, randomBytes } from 'node:crypto';

import { signIn } from './browser.mjs';

/** Every token that was issued. None may be in a log. */
export const seenTokens = new Set();

/** Returns the metadata of an authorization server (RFC 8414). */
export async function metadataOf(issuer) {
  const response = await fetch(`${issuer}/.well-known/oauth-authorization-server`);
  if (!response.ok) throw new Error(`the metadata of the authorization server is ${response.status}`);
  return response.json();
}

async function post(url, form) {
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text}`);
  const body = text && JSON.parse(text);
  for (const token of [body.access_token, body.refresh_token, body.id_token]) {
    if (token) seenTokens.add(token);
  }
  return body;
}

/** Returns the tokens of a person for a resource. `at` is the URL of the authorization server, if it is not its issuer. */
export async function tokensOf(person, { at, redirect, resource, scope = 'openid records.read', client = 'reader' }) {
  const verifier = randomBytes(32).toString('base64url');
  const question = new URL(`${at}/auth`);
  const state = randomBytes(8).toString('hex');
  question.search = new URLSearchParams({
    client_id: client,
    response_type: 'code',
    redirect_uri: redirect,
    scope,
    resource,
    state,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const back = await signIn(question, person, redirect);
  if (back.searchParams.get('state') !== state || !back.searchParams.get('code')) {
    throw new Error(`no code for ${person}: ${back.searchParams}`);
  }
  return post(`${at}/token`, {
    client_id: client,
    grant_type: 'authorization_code',
    code: back.searchParams.get('code'),
    redirect_uri: redirect,
    code_verifier: verifier,
    resource,
  });
}

export const refreshed = (tokens, { at, resource }) =>
  post(`${at}/token`, {
    client_id: 'reader',
    grant_type: 'refresh_token',
    refresh_token: tokens.refresh_token,
    resource,
  });

export const revoke = (token, { at, client = 'reader' }) =>
  post(`${at}/token/revocation`, { client_id: client, token });
