import * as oidc from 'openid-client';
import { IdentityError } from '#domain/identity/errors.ts';
import { busyRetrySeconds } from '#domain/identity/limits.ts';
import type { OpenIdClient } from '#domain/identity/sso-provider.ts';
import type { ProviderChallenge } from '#domain/identity/sso-sign-in.ts';
import { type CheckedFetch, UnreachableError } from '#runtime/egress/fetch.ts';
import { BoundedMap } from '#runtime/flow/bounded-map.ts';

/** How long (s) a provider may take for each request. */
const timeoutSeconds = 5;
/** How many sign-ins of one provider may wait for it at once in this process. */
const mostAtOnce = 4;
/** How long (ms) the begin of a sign-in uses what a provider has published. Its answer is judged by the present. */
const discoveryMs = 60_000;
const providersInMemory = 1_000;

const nothingAnswers =
  'No OpenID provider answers at this issuer URL, or at an address that it names. Check the URL. The console reaches ' +
  'public addresses at port 443.';
const noIssuer =
  'The provider at this address does not publish this issuer, or lacks what a sign-in needs. Enter the issuer URL as ' +
  'your provider shows it.';
const unavailable = 'Your organization’s sign-in provider can’t be reached. Try again in a moment.';
const rejected = 'The sign-in at the provider did not succeed.';
const denied = 'The provider denied the sign-in. Its administrator can say whether your account may use this console.';
const mistyped = 'The provider rejects this client ID or client secret. Copy both from your provider again.';
const clientRejected =
  'The provider rejected the console’s client ID or client secret. An owner can correct them on the organization’s ' +
  'Sign-in page.';

type Discovered = { config: oidc.Configuration; until: number };

/**
 * Talks to OpenID providers with `openid-client`, which checks issuer, audience, times, state, nonce, PKCE and, with
 * its non-repudiation checks, the signature of the ID token. It asks for the scope `openid` alone, so a provider sends
 * no address and no name.
 */
export class OpenIdProviders {
  readonly #fetch: CheckedFetch;
  readonly #callbackUrl: string;
  readonly #now: () => Date;
  readonly #discovered = new BoundedMap<string, Discovered>(providersInMemory);
  readonly #waiting = new Map<string, number>();

  constructor({ fetch, callbackUrl, now }: { fetch: CheckedFetch; callbackUrl: string; now: () => Date }) {
    this.#fetch = fetch;
    this.#callbackUrl = callbackUrl;
    this.#now = now;
  }

  /**
   * Returns the address that an organization's provider sends people back to, which its administrator registers. Each
   * organization has its own: an answer of one provider is then never taken for a sign-in that began at another, which
   * would get its code.
   */
  redirectUri(organizationId: string): string {
    return `${this.#callbackUrl}/${organizationId}`;
  }

  /**
   * Reads what a provider publishes, to see that it is one, and sends it a code that it never gave. It rejects the
   * code, and the client before it if that is not its own (RFC 6749, 5.2). Whatever else it answers proves nothing.
   *
   * @throws IdentityError `issuer_invalid`, `client_rejected`, `provider_unavailable`, `busy`
   */
  async check(client: OpenIdClient): Promise<void> {
    await this.#within(client, async () => {
      const config = await this.#discover(client);
      oidc.buildAuthorizationUrl(config, {});
      const { token_endpoint, jwks_uri } = config.serverMetadata();
      if (token_endpoint === undefined || jwks_uri === undefined) throw isRejected();
      const redirect_uri = this.redirectUri(client.organizationId);
      const parameters = { code: oidc.randomState(), redirect_uri, code_verifier: oidc.randomPKCECodeVerifier() };
      await oidc.genericGrantRequest(config, 'authorization_code', parameters).catch((error: unknown) => {
        if (findProblem(error) === 'client_rejected') throw error;
      });
    }).catch((error: unknown) => {
      if (!(error instanceof IdentityError)) throw error;
      const { reason } = error;
      if (reason === 'sign_in_rejected') throw reject('issuer_invalid', noIssuer, error);
      if (reason === 'client_rejected') throw reject(reason, mistyped, error);
      throw reason === 'provider_unavailable' ? reject(reason, nothingAnswers, error) : error;
    });
  }

  /**
   * Prepares a sign-in: the address to go to, and what the answer is checked by.
   *
   * @param asksForAccount - lets the person choose an account, also when the provider remembers one. A provider that
   * says that it can't let them choose asks for a sign-in instead, which every provider can.
   * @throws IdentityError `sign_in_rejected`, `provider_unavailable`, `busy`
   */
  async begin(client: OpenIdClient, asksForAccount: boolean): Promise<ProviderChallenge & { url: URL }> {
    const [state, nonce, verifier] = [oidc.randomState(), oidc.randomNonce(), oidc.randomPKCECodeVerifier()];
    const code_challenge = await oidc.calculatePKCECodeChallenge(verifier);
    const url = await this.#within(client, async () => {
      const config = await this.#remember(client);
      return oidc.buildAuthorizationUrl(config, {
        redirect_uri: this.redirectUri(client.organizationId),
        scope: 'openid',
        state,
        nonce,
        code_challenge,
        code_challenge_method: 'S256',
        ...(asksForAccount ? { prompt: findAccountPrompt(config) } : {}),
      });
    });
    // A page leads there, so it must not be a script or a file.
    if (url.protocol !== 'https:' && url.protocol !== new URL(client.issuer).protocol) throw isUnavailable();
    return { url, state, nonce, verifier };
  }

  /**
   * Judges the provider's answer, with what it publishes now, and returns the account that it names.
   *
   * @param current - the address at which the answer arrived.
   * @param consume - uses up the begun sign-in. Called once, when the provider is connected, before the answer's code
   * is sent to it; not for an answer that does not get that far.
   * @throws IdentityError `sign_in_rejected`, `client_rejected`, `provider_unavailable`, `busy`
   */
  async findSubject(
    client: OpenIdClient,
    current: URL,
    challenge: ProviderChallenge,
    consume: () => Promise<void>,
  ): Promise<string> {
    if (current.origin + current.pathname !== this.redirectUri(client.organizationId)) throw isRejected();
    const tokens = await this.#within(client, async () => {
      const config = await this.#discover(client, consume);
      return oidc.authorizationCodeGrant(config, current, {
        expectedState: challenge.state,
        expectedNonce: challenge.nonce,
        pkceCodeVerifier: challenge.verifier,
        idTokenExpected: true,
      });
    });
    const claims = tokens.claims();
    // A token for another program too could have come from there: no other one is trusted (OpenID Connect Core,
    // 3.1.3.7). The library accepts it when `azp` names the console.
    if (claims === undefined || [claims.aud].flat().length !== 1 || claims.sub.length > 255) throw isRejected();
    return claims.sub;
  }

  /** Returns what a provider has published within the last minute. */
  async #remember(client: OpenIdClient): Promise<oidc.Configuration> {
    const known = this.#discovered.get(client.providerId);
    if (known !== undefined && known.until > this.#now().getTime()) return known.config;
    const config = await this.#discover(client);
    this.#discovered.set(client.providerId, { config, until: this.#now().getTime() + discoveryMs });
    return config;
  }

  /** Reads what a provider publishes. `beforeToken` runs before a code is sent to it. */
  async #discover(
    { issuer, clientId, clientSecret }: OpenIdClient,
    beforeToken: () => Promise<void> = async () => {},
  ): Promise<oidc.Configuration> {
    const url = new URL(issuer);
    const authentication = oidc.ClientSecretBasic(clientSecret);
    // Plain http is for the addresses of WEBHOOK_ALLOW, which the fetch checks.
    const execute = [
      oidc.enableNonRepudiationChecks,
      ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
    ];
    const fetch: CheckedFetch = (target, options) =>
      this.#fetch(target, options.method === 'POST' ? { ...options, beforeSend: beforeToken } : options);
    const options = { [oidc.customFetch]: fetch as oidc.CustomFetch, timeout: timeoutSeconds, execute };
    return oidc.discovery(url, clientId, clientSecret, authentication, options);
  }

  /** Runs what waits for a provider, unless too many sign-ins wait for it already. */
  async #within<T>({ organizationId }: OpenIdClient, work: () => Promise<T>): Promise<T> {
    const waiting = this.#waiting.get(organizationId) ?? 0;
    if (waiting >= mostAtOnce) {
      const retryAt = new Date(this.#now().getTime() + busyRetrySeconds * 1000);
      throw new IdentityError(
        'busy',
        'Too many people are signing in right now. Wait a few seconds, and try again.',
        retryAt,
      );
    }
    this.#waiting.set(organizationId, waiting + 1);
    try {
      return await work();
    } catch (error) {
      const problem = findProblem(error);
      // The library wraps what its fetch rejects with.
      if (problem === null) throw error instanceof oidc.ClientError && error.code === undefined ? error.cause : error;
      throw { sign_in_rejected: isRejected, client_rejected: isClientRejected, provider_unavailable: isUnavailable }[
        problem
      ](error);
    } finally {
      const left = (this.#waiting.get(organizationId) ?? 1) - 1;
      if (left > 0) this.#waiting.set(organizationId, left);
      else this.#waiting.delete(organizationId);
    }
  }
}

/** Returns the value of `prompt` (OpenID Connect Core, 3.1.2.1) with which a provider asks for an account. */
function findAccountPrompt(config: oidc.Configuration): string {
  const supported = config.serverMetadata().prompt_values_supported;
  return Array.isArray(supported) && !supported.includes('select_account') ? 'login' : 'select_account';
}

/** Codes of `openid-client` for no answer, or for one that is not a provider's. */
const unavailableCodes: ReadonlySet<unknown> = new Set([
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_TIMEOUT',
]);

/** Codes of RFC 6749 for a client that the provider does not know, or whose secret is wrong. */
const clientCodes: ReadonlySet<string> = new Set(['invalid_client', 'unauthorized_client']);

/**
 * Returns what an error says about the provider, by its class and code; null for an error of the console itself, such
 * as one of the database, which must not look like the provider's.
 */
function findProblem(error: unknown): 'provider_unavailable' | 'sign_in_rejected' | 'client_rejected' | null {
  if (error instanceof UnreachableError) return 'provider_unavailable';
  if (error instanceof IdentityError) return 'sign_in_rejected';
  // A key that is none.
  if (error instanceof DOMException) return 'sign_in_rejected';
  if (!(error instanceof Error)) return null;
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  if (unavailableCodes.has(code)) return 'provider_unavailable';
  // Of the token request, which alone identifies the console: 401 there means that it was not accepted.
  if (error instanceof oidc.WWWAuthenticateChallengeError) return 'client_rejected';
  if (error instanceof oidc.ResponseBodyError && clientCodes.has(error.error)) return 'client_rejected';
  const within = cause === undefined ? null : findProblem(cause);
  if (within !== null) return within;
  // The signature of a token that is not base64url.
  if (code === 'ERR_INVALID_ARG_VALUE' && cause instanceof SyntaxError) return 'sign_in_rejected';
  return typeof code === 'string' && code.startsWith('OAUTH_') ? 'sign_in_rejected' : null;
}

const reject = (reason: IdentityError['reason'], message: string, cause?: unknown) =>
  Object.assign(new IdentityError(reason, message), { cause });
const isUnavailable = (cause?: unknown) => reject('provider_unavailable', unavailable, cause);
const isRejected = (cause?: unknown) => {
  const isDenied = cause instanceof oidc.AuthorizationResponseError && cause.error === 'access_denied';
  return reject('sign_in_rejected', isDenied ? denied : rejected, cause);
};
const isClientRejected = (cause?: unknown) => reject('client_rejected', clientRejected, cause);
