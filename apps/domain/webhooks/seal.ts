import { type SealingKey, type SealingKeys, seal, UnsealError, unseal } from '../encryption/envelope.ts';

/** Signing secrets and custom headers at rest, bound to organization and webhook. Form: `encryption/envelope.ts`. */

export type { SealingKey, SealingKeys };

/** What a webhook has sealed, and what to do when it does not open. */
const remedies = {
  secret: "rotate the webhook's secret",
  headers: "set the webhook's custom headers again",
};

/** The webhook of a secret or of custom headers: its ids, UUIDs. */
interface SecretOwner {
  organizationId: string;
  webhookId: string;
}

/** A secret, or custom headers, that cannot be unsealed; the message says why and what to do, without them. */
export class SecretNotUnsealedError extends Error {
  override name = 'SecretNotUnsealedError';
  readonly reason: UnsealError['reason'];
  readonly version: UnsealError['version'];

  constructor({ reason, version }: UnsealError, what: keyof typeof remedies) {
    super(sentences[reason](version, remedies[what]));
    this.reason = reason;
    this.version = version;
  }
}

const sentences: Record<UnsealError['reason'], (version: number | null, remedy: string) => string> = {
  malformed: (_version, remedy) =>
    `A webhook's stored secret is not in a form that this release reads: restore the row, or ${remedy}.`,
  key_missing: (version) =>
    `A webhook's secret is sealed with key version ${version}, which is not configured: add that version to ` +
    'WEBHOOK_SECRET_KEYS.',
  not_authentic: (version, remedy) =>
    `A webhook's secret does not open with key version ${version}: that key in WEBHOOK_SECRET_KEYS is another ` +
    `one than sealed it, or the stored bytes were changed or moved from another webhook; restore them or ${remedy}.`,
};

/** Seals a secret for its row. `random` replaces the source of the nonce in tests. */
export function sealSecret(
  secret: string,
  owner: SecretOwner,
  keys: SealingKeys,
  random?: (size: number) => Buffer,
): Buffer {
  return seal(secret, secretRow(owner), keys, random);
}

/**
 * Unseals the secret of a row.
 *
 * @throws SecretNotUnsealedError when it is not of this format, its key's version is not among
 * `keys`, or it was not sealed for this row.
 */
export function unsealSecret(sealed: Buffer, owner: SecretOwner, keys: SealingKeys): string {
  return unsealRow('secret', sealed, secretRow(owner), keys);
}

/** A header that an organization adds to every request to its webhook. */
export interface CustomHeader {
  name: string;
  value: string;
}

/** Seals the custom headers of a webhook: names and values together, so that neither can be moved. */
export const sealHeaders = (headers: readonly CustomHeader[], owner: SecretOwner, keys: SealingKeys): Buffer =>
  seal(JSON.stringify(headers.map(({ name, value }) => [name, value])), headersRow(owner), keys);

/**
 * Unseals the custom headers of a webhook.
 *
 * @throws SecretNotUnsealedError as `unsealSecret` does.
 */
export function unsealHeaders(sealed: Buffer, owner: SecretOwner, keys: SealingKeys): CustomHeader[] {
  const headers = JSON.parse(unsealRow('headers', sealed, headersRow(owner), keys)) as [string, string][];
  return headers.map(([name, value]) => ({ name, value }));
}

function unsealRow(what: keyof typeof remedies, sealed: Buffer, row: string, keys: SealingKeys): string {
  try {
    return unseal(sealed, row, keys);
  } catch (error) {
    throw error instanceof UnsealError ? new SecretNotUnsealedError(error, what) : error;
  }
}

/** Names the row of a secret for its seal. */
export const secretRow = ({ organizationId, webhookId }: SecretOwner) => `${organizationId}/${webhookId}`;

/** Names the custom headers of a webhook for their seal. */
export const headersRow = (owner: SecretOwner) => `${secretRow(owner)}/headers`;
