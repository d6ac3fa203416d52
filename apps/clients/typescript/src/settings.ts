import { servers } from './generated.ts';
import type { Cache, Clock } from './response.ts';

export interface OrgApiOptions {
  /** The API key; without it, the environment variable `ORG_API_KEY`. Its prefix names the region. */
  key?: string | undefined;
  /** Another server than that of the key's region; without it, the variable `ORG_API_BASE_URL`. */
  baseUrl?: string | undefined;
  /** Bound of one attempt in milliseconds, from the request to the last byte (30,000). */
  timeoutMs?: number | undefined;
  /** How often a call that failed is sent again (2). A 429 that says how long to wait is no failure. */
  maxRetries?: number | undefined;
  /** Bound of a call's waits in all, in milliseconds (90,000). A call that must wait longer fails at once. */
  maxWaitMs?: number | undefined;
  /** Where to keep bodies for 304; without it, `data` of each call comes from the server. */
  cache?: Cache | undefined;
  /** Another `fetch`, for example with a proxy. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Another clock, for tests. */
  clock?: Clock | undefined;
}

/**
 * Returns a key without the spaces, quotes and byte order mark that files and shells add.
 *
 * @throws TypeError for what is no key, without quoting it.
 */
export function readKey(given = readVariable('ORG_API_KEY')): string {
  const key = given
    ?.trim()
    .replace(/^(["'])(.*)\1$/, '$2')
    .trim();
  if (!key) throw new TypeError('There is no API key: pass { key } or set ORG_API_KEY.');
  if (!/^aln_(us|ca)_[\x21-\x7e]+$/.test(key))
    throw new TypeError('This is not an API key: keys begin with aln_us_ or aln_ca_.');
  return key;
}

/** @throws TypeError for a URL that would show the key on its way, or that has more than a path. */
export function readBaseUrl(key: string, given = readVariable('ORG_API_BASE_URL')): string {
  const region = key.slice(4, 6) as keyof typeof servers;
  const url = new URL(given || servers[region]);
  const isLocal = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal))
    throw new TypeError(`The base URL must begin with https://, because requests to ${url.host} have the key.`);
  if (url.username || url.password || url.search || url.hash)
    throw new TypeError('The base URL must have a host and a path only.');
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/** Returns undefined also where there is no environment, or no right to read it (Deno). */
function readVariable(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  try {
    return process?.env?.[name];
  } catch {
    return undefined;
  }
}

export const realClock: Clock = {
  now: () => performance.now(),
  wait: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', stop);
        resolve();
      }, ms);
      if (signal?.aborted) stop();
      signal?.addEventListener('abort', stop, { once: true });
    }),
};
