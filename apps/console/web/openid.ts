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

const unavailable = 'Your organization’s sign-in provider can’t be reached. Try again in a moment.';
const rejected = 'The sign-in at the provider did not succeed.';

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
   * Reads what a provider publishes, to see that it is one.
   *
   * @throws IdentityError `provider_unavailable`, `busy`
   */
  async check(client: OpenIdClient): Promise<void> {
    await this.#within(client, () => this.#discover(client));
  }

  /**
   * Prepares a sign-in: the address to go to, and what the answer is checked by.
   *
   * @throws IdentityError `provider_unavailable`, `busy`
   */
  async begin(client: OpenIdClient): Promise<ProviderChallenge & { url: URL }> {
    const config = await this.#within(client, async () => {
      const known = this.#discovered.get(client.providerId);
      if (known !== undefined && known.until > this.#now().getTime()) return known.config;
      const config = await this.#discover(client);
      this.#discovered.set(client.providerId, { config, until: this.#now().getTime() + discoveryMs });
      return config;
    });
    const [state, nonce, verifier] = [oidc.randomState(), oidc.randomNonce(), oidc.randomPKCECodeVerifier()];
    const url = oidc.buildAuthorizationUrl(config, {
      redirect_uri: this.redirectUri(client.organizationId),
      scope: 'openid',
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    // A page leads there, so it must not be a script or a file.
    if (url.protocol !== 'https:' && url.protocol !== new URL(client.issuer).protocol) throw isUnavailable();
    return { url, state, nonce, verifier };
  }

  /**
   * Judges the provider's answer, with what it publishes now, and returns the account that it names.
   *
   * @param current - the address at which the answer arrived.
   * @throws IdentityError `sign_in_rejected`, `provider_unavailable`, `busy`
   */
  async findSubject(client: OpenIdClient, current: URL, challenge: ProviderChallenge): Promise<string> {
    if (current.origin + current.pathname !== this.redirectUri(client.organizationId)) throw isRejected();
    const tokens = await this.#within(client, async () => {
      const config = await this.#discover(client);
      return oidc.authorizationCodeGrant(config, current, {
        expectedState: challenge.state,
        expectedNonce: challenge.nonce,
        pkceCodeVerifier: challenge.verifier,
        idTokenExpected: true,
      });
    });
    const subject = tokens.claims()?.sub;
    if (subject === undefined || subject.length > 255) throw isRejected();
    return subject;
  }

  async #discover({ issuer, clientId, clientSecret }: OpenIdClient): Promise<oidc.Configuration> {
    const url = new URL(issuer);
    const authentication = oidc.ClientSecretBasic(clientSecret);
    // Plain http is for the addresses of WEBHOOK_ALLOW, which the fetch checks.
    const execute = [
      oidc.enableNonRepudiationChecks,
      ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
    ];
    const options = { [oidc.customFetch]: this.#fetch as oidc.CustomFetch, timeout: timeoutSeconds, execute };
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
      throw isProviderAway(error) ? isUnavailable(error) : isRejected(error);
    } finally {
      const left = (this.#waiting.get(organizationId) ?? 1) - 1;
      if (left > 0) this.#waiting.set(organizationId, left);
      else this.#waiting.delete(organizationId);
    }
  }
}

/** Whether an error means that there was no answer, or one that is not a provider's, by its cause and code. */
function isProviderAway(error: unknown): boolean {
  if (error instanceof UnreachableError) return true;
  const { code, cause } = (error ?? {}) as { code?: string; cause?: unknown };
  if (code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' || code === 'OAUTH_RESPONSE_IS_NOT_JSON' || code === 'OAUTH_TIMEOUT')
    return true;
  return cause instanceof Error && isProviderAway(cause);
}

const isUnavailable = (cause?: unknown) =>
  Object.assign(new IdentityError('provider_unavailable', unavailable), { cause });
const isRejected = (cause?: unknown) => Object.assign(new IdentityError('sign_in_rejected', rejected), { cause });
