// One authorization server and one fetchwell, each of which can be stopped and started again.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { freePort, start } from './processes.mjs';
import { seenTokens } from './sign_in.mjs';

/** The redirect URI of clients. No program listens there: the code is read from the URL. */
export const REDIRECT = 'http://127.0.0.1:9/callback';

/** The id of a client that describes itself. */
export const DOCUMENT_CLIENT = 'https://client.example/oauth/client.json';

const INTROSPECTOR = { client_id: 'fetchwell', client_secret: randomBytes(24).toString('hex') };
seenTokens.add(INTROSPECTOR.client_secret);

/** A private key to sign with. */
export function newKey(algorithm) {
  const { privateKey } =
    algorithm === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  const kid = randomBytes(6).toString('hex');
  return { ...privateKey.export({ format: 'jwk' }), alg: algorithm, use: 'sig', kid };
}

export class AuthorizationServer {
  #folder;
  #settings;
  #running = null;

  constructor(folder, settings) {
    this.#folder = folder;
    this.#settings = {
      opaque: [],
      algorithm: 'RS256',
      lifetime: 600,
      introspector: INTROSPECTOR,
      redirect: REDIRECT,
      documentClient: DOCUMENT_CLIENT,
      ...settings,
    };
  }

  static async on(folder, settings) {
    const port = await freePort();
    return new AuthorizationServer(folder, { port, issuer: `http://127.0.0.1:${port}`, ...settings });
  }

  /** Returns another server with the same issuer, on another port. */
  async twin(different) {
    return new AuthorizationServer(this.#folder, { ...this.#settings, port: await freePort(), ...different });
  }

  get issuer() {
    return this.#settings.issuer;
  }

  /** The URL of the server. */
  get at() {
    return `http://127.0.0.1:${this.#settings.port}`;
  }

  async start(different = {}) {
    this.#settings = { ...this.#settings, ...different };
    const script = fileURLToPath(new URL('authorization_server.mjs', import.meta.url));
    this.#running = await start(process.execPath, [script, JSON.stringify(this.#settings)], {
      url: `${this.at}/jwks`,
      log: join(this.#folder, 'authorization_server.log'),
    });
  }

  async stop() {
    await this.#running?.stop();
    this.#running = null;
  }
}

/** Alice and Dave have one store, Bob has another. */
const TWO_STORES = `[[auth.subject]]
subject = "alice"
sources = ["mail"]
[[auth.subject]]
subject = "dave"
sources = ["mail"]
[[auth.subject]]
subject = "bob"
sources = ["orders"]

[[source]]
name = "mail"
store = "mail.db"
[[source]]
name = "orders"
store = "orders.db"
`;

export class Fetchwell {
  #running = null;

  /** `name` is used for its folder and log; `auth` has the lines of `[auth]`, `granted` those that grant sources. */
  constructor(binary, folder, { name, port, auth, granted = TWO_STORES }) {
    this.binary = binary;
    this.url = `http://localhost:${port}`;
    this.mcp = `${this.url}/mcp`;
    this.log = join(folder, `${name}.log`);
    this.configuration = join(folder, `${name}.toml`);
    writeFileSync(
      this.configuration,
      `listen = "127.0.0.1:${port}"
public_url = "${this.url}"
state_dir = "${name}-state"

[auth]
${auth}

${granted}`,
    );
  }

  async start(environment = {}) {
    this.#running = await start(this.binary, ['serve', '--config', this.configuration, '--log', 'debug'], {
      url: `${this.url}/health/live`,
      log: this.log,
      environment: { FETCHWELL_CLIENT_SECRET: INTROSPECTOR.client_secret, ...environment },
    });
  }

  /** The text of its configuration. */
  settings() {
    return readFileSync(this.configuration, 'utf8');
  }

  /** Saves another configuration, as editors do. */
  change(text) {
    writeFileSync(`${this.configuration}.new`, text);
    renameSync(`${this.configuration}.new`, this.configuration);
  }

  async stop() {
    await this.#running?.stop();
    this.#running = null;
  }
}
