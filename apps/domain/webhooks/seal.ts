import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/**
 * Signing secrets at rest: AES-256-GCM under a key that lives outside the database. Source: design, section 6.
 *
 * The sealed form, as `webhook_secret.sealed` holds it:
 *
 * | bytes | what |
 * | --- | --- |
 * | 1 | the format, 1 |
 * | 2 | the version of the key, big-endian |
 * | 12 | the nonce, random |
 * | n | the encrypted secret, as long as the secret |
 * | 16 | the tag |
 *
 * The tag also covers the first three bytes and the two ids, so a row copied to another webhook or organization does not open there.
 *
 * Rotation: put a new key in front of the old ones, reseal every row for which {@link resealSecret} gives new bytes, then drop the old key.
 * Random nonces are safe for 2³² secrets under one key (NIST SP 800-38D, section 8.3); nobody comes near.
 */

/** A key that seals, under the version that each sealed secret remembers. */
export interface SealingKey {
  /** 0 to 9999. */
  version: number;
  /** 32 bytes. */
  secret: Buffer;
}

/** Newest first: the first seals, all of them open. */
export type SealingKeys = readonly [SealingKey, ...SealingKey[]];

/** Whose secret it is: the ids of its row, UUIDs. */
export interface SecretOwner {
  organizationId: string;
  webhookId: string;
}

/** A sealed secret that does not open. The message says why and what to do, and holds no secret. */
export class SecretNotOpened extends Error {
  override name = 'SecretNotOpened';
  readonly reason: 'malformed' | 'key_missing' | 'not_authentic';

  constructor(reason: SecretNotOpened['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

const format = 1;
const headBytes = 3;
const nonceBytes = 12;
const tagBytes = 16;

/** Seals a secret for its row under the newest key. `random` replaces the source of the nonce in tests. */
export function sealSecret(
  secret: string,
  owner: SecretOwner,
  [newest]: SealingKeys,
  random: (size: number) => Buffer = randomBytes,
): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt8(format);
  head.writeUInt16BE(newest.version, 1);
  const nonce = random(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', newest.secret, nonce, { authTagLength: tagBytes });
  cipher.setAAD(boundData(head, owner));
  return Buffer.concat([head, nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Opens a sealed secret of its row.
 *
 * @throws SecretNotOpened when it is not of this format, its key's version is not among `keys`, or it is not what was sealed for this row.
 */
export function openSecret(sealed: Buffer, owner: SecretOwner, keys: SealingKeys): string {
  const version = readVersion(sealed);
  const key = keys.find((candidate) => candidate.version === version);
  if (!key) {
    throw new SecretNotOpened(
      'key_missing',
      `A webhook's secret is sealed with key version ${version}, which is not configured: add that version to WEBHOOK_SECRET_KEYS.`,
    );
  }
  const head = sealed.subarray(0, headBytes);
  const nonce = sealed.subarray(headBytes, headBytes + nonceBytes);
  const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce, { authTagLength: tagBytes });
  decipher.setAAD(boundData(head, owner));
  decipher.setAuthTag(sealed.subarray(-tagBytes));
  const opened = decipher.update(sealed.subarray(headBytes + nonceBytes, -tagBytes));
  try {
    return Buffer.concat([opened, decipher.final()]).toString('utf8');
  } catch {
    throw new SecretNotOpened(
      'not_authentic',
      `A webhook's secret does not open with key version ${version}: that key in WEBHOOK_SECRET_KEYS is another one than sealed it, or the stored bytes were changed or moved from another webhook; restore them or rotate the webhook's secret.`,
    );
  }
}

/** The same secret sealed with the newest key; null when it already is. Throws as {@link openSecret} does. */
export function resealSecret(sealed: Buffer, owner: SecretOwner, keys: SealingKeys): Buffer | null {
  if (readVersion(sealed) === keys[0].version) return null;
  return sealSecret(openSecret(sealed, owner, keys), owner, keys);
}

function readVersion(sealed: Buffer): number {
  if (sealed.length <= headBytes + nonceBytes + tagBytes || sealed.readUInt8() !== format) {
    throw new SecretNotOpened(
      'malformed',
      "A webhook's stored secret is not in a form that this release reads: restore the row, or rotate the webhook's secret.",
    );
  }
  return sealed.readUInt16BE(1);
}

/** What the tag covers beside the secret. PostgreSQL writes UUIDs in lower case; whoever spells one otherwise means the same row. */
function boundData(head: Buffer, { organizationId, webhookId }: SecretOwner): Buffer {
  return Buffer.concat([head, Buffer.from(`${organizationId}/${webhookId}`.toLowerCase())]);
}
