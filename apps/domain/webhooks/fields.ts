import { type EventType, eventTypes as knownEventTypes } from '../contract/events.ts';
import type { Transaction } from '../db/database.ts';
import type { AllowList } from './address/addresses.ts';
import { checkUrl } from './address/url.ts';
import { urlProblems } from './address/url-problems.ts';
import { WebhookError } from './errors.ts';
import { descriptionMaxCharacters, postsPerSecondAtMost } from './limits.ts';
import { isSecret } from './secret.ts';
import { Webhook } from './webhook.entity.ts';

/**
 * Checks a webhook's URL by its text; host names are resolved at each attempt, not here.
 *
 * @throws WebhookError with what is wrong and what its owner can do; its cause is the `UrlProblem`.
 */
export function assertUrl(url: string, allow: AllowList): void {
  const target = checkUrl(url, allow);
  if (!target.ok) throw new WebhookError('url_invalid', urlProblems[target.cause], { cause: target.cause });
}

/**
 * Checks that no other webhook of the organization has the URL, unless the caller allows it. The
 * caller holds the organization's lock. `except`: the webhook that changes.
 *
 * @throws WebhookError `url_in_use`
 */
export async function assertUrlIsFree(
  tx: Transaction,
  requested: { organizationId: string; url: string; allowSameUrl?: boolean; except?: string },
): Promise<void> {
  const { organizationId, url, allowSameUrl = false, except = null } = requested;
  if (allowSameUrl) return;
  const living = await tx.find(Webhook, { organizationId, state: { $ne: 'deleted' } }, { fields: ['id', 'url'] });
  if (!living.some((one) => one.id !== except && normalizeUrl(one.url) === normalizeUrl(url))) return;
  throw new WebhookError(
    'url_in_use',
    'Another webhook of the organization has this URL. Its receiver would get each event twice, signed with ' +
      'two secrets. Add the event types to that webhook, or confirm that you want two.',
  );
}

/** Returns a URL as it is requested: the host in lower case, no default port, no dots in the path. */
const normalizeUrl = (url: string): string => URL.parse(url)?.href ?? url;

/**
 * Returns event types as they are stored: each once, in the order of the contract.
 *
 * @throws WebhookError when there is none, or one that does not exist.
 */
export function readEventTypes(requested: readonly string[]): EventType[] {
  const unknown = requested.filter((type) => !(knownEventTypes as string[]).includes(type));
  const known = `Use ${knownEventTypes.join(', ')}.`;
  if (unknown.length > 0)
    throw new WebhookError('unknown_event_type', `The event type ${unknown.join(', ')} does not exist. ${known}`);
  if (requested.length === 0) throw new WebhookError('no_event_types', `Choose at least one event type. ${known}`);
  return knownEventTypes.filter((type) => requested.includes(type));
}

/**
 * Checks the length of a description.
 *
 * @throws WebhookError when it is longer than 500 characters.
 */
export function assertDescription(description: string): void {
  if (description.length <= descriptionMaxCharacters) return;
  throw new WebhookError(
    'description_too_long',
    `Enter at most ${descriptionMaxCharacters} characters. This description has ${description.length}.`,
  );
}

/**
 * Checks the form of a signing secret that the caller brings.
 *
 * @throws WebhookError without the secret.
 */
export function assertSecret(secret: string): void {
  if (isSecret(secret)) return;
  throw new WebhookError('secret_malformed', 'Enter a signing secret: whsec_ and the base64 of 24 random bytes.');
}

/**
 * Checks a bound of posts a second; null is none.
 *
 * @throws WebhookError `posts_per_second_out_of_range`
 */
export function assertPostsPerSecond(value: number | null): void {
  if (value === null || (Number.isInteger(value) && value >= 1 && value <= postsPerSecondAtMost)) return;
  throw new WebhookError(
    'posts_per_second_out_of_range',
    `Enter a whole number of requests per second from 1 to ${postsPerSecondAtMost}, or none.`,
  );
}

/** Returns the host of a URL for the audit log: paths and queries often contain a token. */
export function findHost(url: string): string | null {
  return URL.parse(url)?.host ?? null;
}
