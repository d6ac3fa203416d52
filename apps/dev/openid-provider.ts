import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { createServer, type RequestListener, type Server } from 'node:http';
import Provider from 'oidc-provider';
import { html } from '#runtime/pages/html.ts';

/** The console, as the sample provider knows it. */
export interface SampleClient {
  clientId: string;
  clientSecret: string;
  redirectUri: string;
}

/** A key of a provider, with which it signs. */
export interface ProviderKey {
  kid: string;
  privateKey: KeyObject;
}

export const generateProviderKey = (): ProviderKey => ({
  kid: randomUUID(),
  privateKey: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
});

type Stored = Record<string, unknown> & { uid?: string };

/** Keeps what a provider has issued in memory: a restart forgets it. */
export class ProviderStore {
  readonly #stored = new Map<string, Stored>();

  /** Returns the store of one kind, as `oidc-provider` asks for it. */
  of(kind: string) {
    const stored = this.#stored;
    return {
      async upsert(id: string, value: Stored): Promise<void> {
        stored.set(`${kind} ${id}`, value);
        if (value.uid !== undefined) stored.set(`${kind} uid ${value.uid}`, value);
      },
      find: async (id: string) => stored.get(`${kind} ${id}`),
      findByUid: async (uid: string) => stored.get(`${kind} uid ${uid}`),
      async consume(id: string): Promise<void> {
        const value = stored.get(`${kind} ${id}`);
        if (value !== undefined) value.consumed = Math.floor(Date.now() / 1000);
      },
      destroy: async (id: string) => void stored.delete(`${kind} ${id}`),
      revokeByGrantId: async () => {},
    };
  }
}

/**
 * Creates the handler of an OpenID provider: `oidc-provider`, with a page that lists its accounts and signs in with a
 * click. For development and tests only: it asks for no password.
 */
export function createOpenIdProvider(options: {
  issuer: string;
  client: SampleClient;
  accounts: readonly string[];
  key: ProviderKey;
  store?: ProviderStore;
}): RequestListener {
  const { issuer, client, accounts, key, store = new ProviderStore() } = options;
  const { clientId, clientSecret, redirectUri } = client;
  const provider = new Provider(issuer, {
    adapter: (kind: string) => store.of(kind),
    jwks: { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.kid, use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomUUID()] },
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/choose/${uid}` },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    async loadExistingGrant({ oidc }: { oidc: { session: { accountId: string } } }) {
      const grant = new provider.Grant({ clientId, accountId: oidc.session.accountId });
      grant.addOIDCScope('openid');
      await grant.save();
      return grant;
    },
  });
  const handle = provider.callback();
  return (request, response) => {
    const [, page = '', uid = '', account] = (request.url ?? '').split('/');
    if (page !== 'choose') return handle(request, response);
    if (account !== undefined && accounts.includes(account))
      return void provider
        .interactionFinished(request, response, { login: { accountId: account, remember: false } })
        .catch(() => response.writeHead(400).end('This sign-in has expired. Start again at the console.'));
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(renderChoice(accounts, uid));
  };
}

const renderChoice = (accounts: readonly string[], uid: string): string =>
  html`<!doctype html><html lang="en"><meta charset="utf-8"><title>Sample provider</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
    <body><main><h1>Sample provider</h1><p>For development. Choose an account:</p>
      <ul>${accounts.map((account) => html`<li><a href="/choose/${uid}/${account}">${account}</a></li>`)}</ul>
    </main></body></html>`.toString();

/** Starts the sample provider on loopback. */
export async function startOpenIdProvider(options: {
  port: number;
  client: SampleClient;
  accounts: readonly string[];
}): Promise<{ issuer: string; stop: () => Promise<void> }> {
  const { port, client, accounts } = options;
  const issuer = `http://127.0.0.1:${port}`;
  const server = createServer(createOpenIdProvider({ issuer, client, accounts, key: generateProviderKey() }));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return { issuer, stop: () => stopServer(server) };
}

export const stopServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
