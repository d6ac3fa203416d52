import { type SealingKey, type SealingKeys, seal, UnsealError, unseal } from '../encryption/envelope.ts';

/** Signing secrets at rest, bound to organization and webhook. Form: `encryption/envelope.ts`. */

export type { SealingKey, SealingKeys };

/** The row of a secret: its ids, UUIDs. */
interface SecretOwner {
  organizationId: string;
  webhookId: string;
}

/** A sealed secret that cannot be unsealed; the message says why and what to do, without it. */
export class SecretNotUnsealedError extends Error {
  override name = 'SecretNotUnsealedError';
  readonly reason: UnsealError['reason'];
  readonly version: UnsealError['version'];

  constructor({ reason, version }: UnsealError) {
    super(sentences[reason](version));
    this.reason = reason;
    this.version = version;
  }
}

const sentences: Record<UnsealError['reason'], (version: number | null) => string> = {
  malformed: () =>
    "A webhook's stored secret is not in a form that this release reads: restore the row, or " +
    "rotate the webhook's secret.",
  key_missing: (version) =>
    `A webhook's secret is sealed with key version ${version}, which is not configured: add that version to ` +
    'WEBHOOK_SECRET_KEYS.',
  not_authentic: (version) =>
    `A webhook's secret does not open with key version ${version}: that key in WEBHOOK_SECRET_KEYS is another ` +
    'one than sealed it, or the stored bytes were changed or moved from another webhook; restore them or ' +
    `rotate the webhook's secret.`,
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
  try {
    return unseal(sealed, secretRow(owner), keys);
  } catch (error) {
    throw error instanceof UnsealError ? new SecretNotUnsealedError(error) : error;
  }
}

/** Names the row of a secret for its seal. */
export const secretRow = ({ organizationId, webhookId }: SecretOwner) => `${organizationId}/${webhookId}`;
