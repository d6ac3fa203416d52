import { WebhookError } from './errors.ts';
import {
  headerNameMaxCharacters,
  headersMaxCharacters,
  headersPerWebhook,
  headerValueMaxCharacters,
} from './limits.ts';
import { type CustomHeader, type SealingKeys, sealHeaders, unsealHeaders } from './seal.ts';
import type { Webhook } from './webhook.entity.ts';

/**
 * Custom headers: what an organization adds to every request to its webhook, such as the key of a gateway in front of
 * the receiver. Their values are sealed, and nothing shows them again.
 */

/** A header to set, or to remove when `value` is null. Others stay as they are. */
export interface HeaderChange {
  name: string;
  value: string | null;
}

/** What a change did, by names: for the audit log, which never has a value. */
export interface ChangedHeaders {
  from: string[];
  to: string[];
  /** Those with a new value. */
  set: string[];
}

/** A token of RFC 9110. */
const nameForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Visible ASCII, with spaces and tabs inside. */
const valueForm = /^[!-~](?:[\t -~]*[!-~])?$/;

/**
 * Names that the service writes, that frame a message, that belong to one connection, or by which proxies say where a
 * request came from. In lower case; `are_header_names` of the schema has the same ones.
 */
const reservedNames: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'expect',
  'forwarded',
  'host',
  'http2-settings',
  'keep-alive',
  'service-signature',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'via',
]);
const reservedPrefixes = ['content-', 'proxy-', 'webhook-', 'x-forwarded-'];

/** Returns the name as it is compared. */
const fold = (name: string): string => name.toLowerCase();

/**
 * Checks the name of a custom header.
 *
 * @throws WebhookError `header_name_invalid` or `header_reserved`
 */
function assertHeaderName(name: string): void {
  // Not quoted: what is no name may be a value in the wrong field.
  if (!nameForm.test(name) || name.length > headerNameMaxCharacters)
    throw new WebhookError(
      'header_name_invalid',
      `Enter a header name of at most ${headerNameMaxCharacters} letters, digits and hyphens, for example X-Api-Key.`,
    );
  const folded = fold(name);
  if (reservedNames.has(folded) || reservedPrefixes.some((prefix) => folded.startsWith(prefix)))
    throw new WebhookError(
      'header_reserved',
      `You can’t set ${name}, because the service sets it or it belongs to the connection. Choose another header.`,
    );
}

/** @throws WebhookError `header_value_invalid`, with the header's name and without the value. */
function assertHeaderValue(name: string, value: string): void {
  if (valueForm.test(value) && value.length <= headerValueMaxCharacters) return;
  throw new WebhookError(
    'header_value_invalid',
    `Enter a value for ${name} of 1 to ${headerValueMaxCharacters.toLocaleString('en')} visible ASCII characters. ` +
      'Spaces and tabs are allowed inside it.',
  );
}

/**
 * Sets and removes custom headers of a webhook, whose row the caller has locked. Names are compared without case.
 *
 * @throws WebhookError when a name or value is rejected, a header is named twice, one to remove is missing, or there
 * would be too many.
 * @throws SecretNotUnsealedError when headers that stay cannot be unsealed. Without such, none is unsealed.
 */
export function changeHeaders(
  webhook: Webhook,
  changes: readonly HeaderChange[],
  sealingKeys: SealingKeys,
): ChangedHeaders {
  const { organizationId, id: webhookId, headerNames: from, headersSealed } = webhook;
  for (const { name, value } of changes) {
    assertHeaderName(name);
    if (value !== null) assertHeaderValue(name, value);
  }
  const changed = new Set(changes.map(({ name }) => fold(name)));
  if (changed.size < changes.length)
    throw new WebhookError('header_named_twice', 'Name each header once. Upper and lower case make no difference.');
  const present = new Set(from.map(fold));
  const missing = changes.find(({ name, value }) => value === null && !present.has(fold(name)));
  if (missing !== undefined)
    throw new WebhookError('no_such_header', `This webhook has no custom header ${missing.name}.`);

  const owner = { organizationId, webhookId };
  const isKept = (name: string) => !changed.has(fold(name));
  const stored =
    headersSealed !== null && from.some(isKept) ? unsealHeaders(Buffer.from(headersSealed), owner, sealingKeys) : [];
  const set = changes.flatMap(({ name, value }) => (value === null ? [] : [{ name, value }]));
  const headers = [...stored.filter(({ name }) => isKept(name)), ...set].toSorted((a, b) =>
    fold(a.name) < fold(b.name) ? -1 : 1,
  );
  assertSize(headers);
  const to = headers.map(({ name }) => name);
  webhook.setHeaders(to, headers.length === 0 ? null : sealHeaders(headers, owner, sealingKeys));
  return { from, to, set: set.map(({ name }) => name) };
}

/** @throws WebhookError `too_many_headers` or `headers_too_long` */
function assertSize(headers: readonly CustomHeader[]): void {
  if (headers.length > headersPerWebhook)
    throw new WebhookError(
      'too_many_headers',
      `A webhook has at most ${headersPerWebhook} custom headers. Remove one first.`,
    );
  const characters = headers.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
  if (characters > headersMaxCharacters)
    throw new WebhookError(
      'headers_too_long',
      `The custom headers of a webhook have at most ${headersMaxCharacters.toLocaleString('en')} characters in all. ` +
        'Shorten a value, or remove a header.',
    );
}

/**
 * Checks that no value goes to another server than the one that it was entered for: nothing shows a value, so a new
 * URL must not either.
 *
 * @throws WebhookError `headers_would_move` when the URL has another origin, and `changes` leave a header as it is.
 */
export function assertHeadersStay(
  { url: from, headerNames }: Pick<Webhook, 'url' | 'headerNames'>,
  to: string,
  changes: readonly HeaderChange[],
): void {
  const changed = new Set(changes.map(({ name }) => fold(name)));
  const kept = headerNames.filter((name) => !changed.has(fold(name)));
  const origin = URL.parse(from)?.origin;
  if (kept.length === 0 || (origin !== undefined && origin === URL.parse(to)?.origin)) return;
  throw new WebhookError(
    'headers_would_move',
    `The new URL is on another server, which must not get the values of ${kept.join(', ')}. Remove the custom ` +
      'headers with this change, and add them again afterwards.',
  );
}
