import { createSign } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import {
  createOpenIdProvider,
  generateProviderKey,
  ProviderStore,
  stopServer,
} from '../../apps/dev/openid-provider.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { hiddenFields } from './http-visitor.ts';
import { allowSockets } from './socket-guard.ts';

/** The claims of an ID token. */
export type Claims = Record<string, unknown>;
/** The console at the provider. */
export const providerClient = { clientId: 'console', clientSecret: 'a-secret-of-the-console' };
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** How the provider answers now; a test changes it. */
interface Behavior {
  /** Who signs in next. */
  account: string;
  /** Changes the claims of the ID token, which is signed with the provider's key again. */
  lie: ((claims: Claims) => Claims) | null;
  /** Leaves the old signature below changed claims. */
  isForged: boolean;
  /** Replaces the signature of the ID token. */
  signature: string | null;
  /** Answers instead of the provider; the path of a request in. */
  answer: ((path: string, response: ServerResponse) => boolean) | null;
}

/** A real OpenID provider (`oidc-provider`) which can lie. */
export async function startLyingProvider(callback: string) {
  const port = await getFreePort();
  const issuer = `http://127.0.0.1:${port}`;
  const accounts = ['account-1', 'account-2', 'account-3'];
  const behavior: Behavior = { account: 'account-1', lie: null, isForged: false, signature: null, answer: null };
  const requests: string[] = [];
  const store = new ProviderStore();
  let key = generateProviderKey();
  let { clientSecret } = providerClient;
  const create = () => {
    const clients = [providerClient.clientId, 'another'].map((clientId) => ({
      clientId,
      clientSecret,
      redirectUri: callback,
    }));
    return createOpenIdProvider({ issuer, clients, accounts, key, store });
  };
  let handle = create();

  function changeToken(body: string): string {
    const tokens = JSON.parse(body) as { id_token?: string };
    const { lie, isForged } = behavior;
    if (tokens.id_token === undefined) return body;
    const [head = '', payload = '', old = ''] = tokens.id_token.split('.');
    const claims = lie === null ? payload : encode(lie(JSON.parse(Buffer.from(payload, 'base64url').toString())));
    const sign = () => createSign('RSA-SHA256').update(`${head}.${claims}`).sign(key.privateKey, 'base64url');
    const signature = behavior.signature ?? (lie === null || isForged ? old : sign());
    return JSON.stringify({ ...tokens, id_token: `${head}.${claims}.${signature}` });
  }

  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    requests.push(`${request.method} ${path}`);
    if (behavior.answer?.(path, response)) return;
    if (path === '/token') {
      const end = response.end.bind(response);
      response.end = ((body: unknown) => {
        const changed = changeToken(String(body));
        response.setHeader('content-length', Buffer.byteLength(changed));
        return end(changed);
      }) as typeof response.end;
    }
    handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  allowSockets('test', issuer);
  allowSockets('OpenID provider', issuer);
  onTestFinished(() => stopServer(server));

  /**
   * Follows the provider's redirects as a browser, and returns the address that leads back to the console. The provider
   * remembers who signed in with the cookies of `jar`.
   */
  async function browse(url: string | URL, jar = new Map<string, string>()): Promise<URL> {
    let at = new URL(url);
    for (let step = 0; step < 10; step += 1) {
      const location = await open(at, jar);
      at = location === null ? new URL(`${at.pathname}/${behavior.account}`, at) : new URL(location, at);
      if (at.href.startsWith(callback)) return at;
    }
    throw new Error('the provider leads nowhere');
  }

  return {
    issuer,
    behavior,
    requests,
    browse,
    /** Replaces the client's secret, as an administrator of the provider. */
    rotateSecret(secret: string) {
      clientSecret = secret;
      handle = create();
    },
    /** Replaces the provider's key. */
    rotateKey() {
      key = generateProviderKey();
      handle = create();
    },
  };
}

/** Opens a page of the provider with its cookies. Returns where it redirects to; null: it lists the accounts. */
async function open(at: URL, jar: Map<string, string>, form?: URLSearchParams): Promise<string | null> {
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
  const sent = form === undefined ? {} : { method: 'POST', body: form };
  const response = await fetch(at, { redirect: 'manual', headers: { cookie }, ...sent });
  for (const line of response.headers.getSetCookie()) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    jar.set(name, value);
  }
  const text = await response.text();
  const location = response.headers.get('location');
  if (location !== null || at.pathname.startsWith('/choose/')) return location;
  // It first signs out the account that it remembers, by a form that a script sends.
  const [, action] = /<form method="post" action="([^"]*)"/.exec(text) ?? [];
  if (action === undefined) throw new Error(`${at.pathname}: ${response.status}`);
  return open(new URL(action), jar, new URLSearchParams(hiddenFields(text, action)));
}
