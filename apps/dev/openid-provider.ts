// cspell:ignore requestable
import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import Provider, { interactionPolicy } from 'oidc-provider';
import { generateSync } from 'otplib';
import { StartupError } from '#runtime/errors.ts';
import { type Html, html, nothing, trusted } from '#runtime/pages/html.ts';
import { linkedAccount, type SampleClient, type SampleProvider } from './sample-provider.ts';
import { portVariable } from './servers/ports.ts';

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
  clients: readonly SampleClient[];
  accounts: readonly string[];
  key: ProviderKey;
  store?: ProviderStore;
}): RequestListener {
  const { issuer, clients, accounts, key, store = new ProviderStore() } = options;
  const policy = interactionPolicy.base();
  policy.add(new interactionPolicy.Prompt({ name: 'select_account', requestable: true }), 0);
  const provider = new Provider(issuer, {
    adapter: (kind: string) => store.of(kind),
    jwks: { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.kid, use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomUUID()] },
    clients: clients.map(({ clientId, clientSecret, redirectUri }) => ({
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
    })),
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
    interactions: { policy, url: (_context: unknown, { uid }: { uid: string }) => `/choose/${uid}` },
    findAccount: (_context: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    async loadExistingGrant({ oidc }: { oidc: { session: { accountId: string }; client: { clientId: string } } }) {
      const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
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
        .interactionFinished(request, response, {
          login: { accountId: account, remember: false },
          select_account: {},
        })
        .catch(() => response.writeHead(400).end('This sign-in has expired. Start again at the console.'));
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(renderChoice(accounts, uid));
  };
}

const style = trusted(`:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:40rem;padding:0 1rem;overflow-wrap:anywhere}
li{margin:.4rem 0}dt{margin-top:.6rem}dd{margin:0}`);

const renderPage = (body: Html, refreshSeconds: number | null = null): string =>
  html`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sample provider</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><style>${style}</style>
    ${refreshSeconds === null ? nothing : html`<meta http-equiv="refresh" content="${refreshSeconds}">`}</head>
    <body><main><h1>Sample provider</h1>${body}</main></body></html>`.toString();

const renderChoice = (accounts: readonly string[], uid: string): string =>
  renderPage(html`<p>For development. Choose an account:</p>
    <ul>${accounts.map((account) => html`<li><a href="/choose/${uid}/${account}">${account}</a></li>`)}</ul>`);

/** An account of `npm start` that no member has yet. */
const otherAccount = 'another-account';

/**
 * Starts the provider of `npm start` on loopback. Its first page says how to sign in, and has the code that the
 * authenticator app of the linked member would show.
 */
export async function startOpenIdProvider({ port, samples }: { port: number; samples: readonly SampleProvider[] }) {
  const issuer = `http://127.0.0.1:${port}`;
  const accounts = [linkedAccount, otherAccount];
  const handle = createOpenIdProvider({ issuer, clients: samples, accounts, key: generateProviderKey() });
  const server = createServer((request, response) => {
    if (request.url !== '/') return handle(request, response);
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(renderGuide(samples));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new StartupError(
      `The sample provider did not start (${error.code}): if port ${port} is taken, set ${portVariable}, the first ` +
        'port of a stack.',
    );
  });
  server.unref();
}

/** How long (s) an authenticator app shows a code. */
const codeSeconds = 30;

/** Renders how to sign in and what to set it up with, until the code of the moment ends. */
const renderGuide = (samples: readonly SampleProvider[]): string =>
  renderPage(
    html`<p>An OpenID provider for development. It asks for no password.</p>
      ${samples.map(
        (sample) => html`<h2>${sample.organizationName}</h2>
          ${sample.memberName === null ? nothing : renderSteps(sample)}
          <p>To set it up again after you have removed it, open Sign-in in the console as an owner, and enter:</p>
          <dl><dt>Issuer URL</dt><dd><code>${sample.issuer}</code></dd>
            <dt>Client ID</dt><dd><code>${sample.clientId}</code></dd>
            <dt>Client secret</dt><dd><code>${sample.clientSecret}</code></dd></dl>`,
      )}
      <p>To link <code>${otherAccount}</code> to another member, open Your account in the console, or choose the
        provider on the page of an invitation.</p>`,
    codeSeconds - (Math.floor(Date.now() / 1000) % codeSeconds),
  );

const renderSteps = ({ signInUrl, shortName, memberName, totpSecret }: SampleProvider): Html => html`<ol>
    <li>Open <a href="${signInUrl}">${signInUrl}</a>. The short name is <code>${shortName}</code>.</li>
    <li>Choose <code>${linkedAccount}</code>, the account of ${memberName ?? ''}.</li>
    <li>Enter the authenticator code <code class="code">${generateSync({ secret: totpSecret })}</code>. There is
      a new one every ${codeSeconds} seconds.</li></ol>`;

export const stopServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
