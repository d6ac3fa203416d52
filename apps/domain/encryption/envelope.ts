import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/**
 * Stored secrets that must be read again: AES-256-GCM with a key that is outside the database.
 *
 * The sealed form:
 *
 * | bytes | content |
 * | --- | --- |
 * | 1 | the format, 1 |
 * | 2 | the version of the key, big-endian |
 * | 12 | the nonce, random |
 * | n | the encrypted secret, as long as the secret |
 * | 16 | the tag |
 *
 * The tag also covers the first three bytes and the ids of the secret's row, so a row that is
 * copied elsewhere cannot be unsealed there.
 *
 * Rotation: put a new key before the old ones, reseal every row whose {@link sealedVersion} is not
 * the newest (`orgctl secrets reseal`), then remove the old key. Random nonces are safe for 2³²
 * secrets under one key (NIST SP 800-38D, section 8.3).
 */

/** A sealing key, with the version that each sealed secret stores. */
export interface SealingKey {
  /** 0 to 9999. */
  version: number;
  /** 32 bytes. */
  secret: Buffer;
}

/** Newest first: the first seals, all of them unseal. */
export type SealingKeys = readonly [SealingKey, ...SealingKey[]];

/** A sealed text of another format, under a missing key (`version`), or of another row. */
export class UnsealError extends Error {
  override name = 'UnsealError';
  readonly reason: 'malformed' | 'key_missing' | 'not_authentic';
  readonly version: number | null;

  constructor(reason: UnsealError['reason'], version: number | null) {
    super(`a sealed secret does not open: ${reason}${version === null ? '' : ` (key version ${version})`}`);
    this.reason = reason;
    this.version = version;
  }
}

const format = 1;
const headBytes = 3;
const nonceBytes = 12;
const tagBytes = 16;

/** Seals a text for the row `boundTo` under the newest key. `random` replaces the nonce: tests. */
export function seal(
  text: string,
  boundTo: string,
  [newest]: SealingKeys,
  random: (size: number) => Buffer = randomBytes,
): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt8(format);
  head.writeUInt16BE(newest.version, 1);
  const nonce = random(nonceBytes);
  const cipher = createCipheriv('aes-256-gcm', newest.secret, nonce, { authTagLength: tagBytes });
  cipher.setAAD(boundData(head, boundTo));
  return Buffer.concat([head, nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Unseals what {@link seal} sealed for the same row.
 *
 * @throws UnsealError
 */
export function unseal(sealed: Buffer, boundTo: string, keys: SealingKeys): string {
  const version = sealedVersion(sealed);
  const key = keys.find((candidate) => candidate.version === version);
  if (!key) throw new UnsealError('key_missing', version);
  const head = sealed.subarray(0, headBytes);
  const nonce = sealed.subarray(headBytes, headBytes + nonceBytes);
  const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce, { authTagLength: tagBytes });
  decipher.setAAD(boundData(head, boundTo));
  decipher.setAuthTag(sealed.subarray(-tagBytes));
  const opened = decipher.update(sealed.subarray(headBytes + nonceBytes, -tagBytes));
  try {
    return Buffer.concat([opened, decipher.final()]).toString('utf8');
  } catch {
    throw new UnsealError('not_authentic', version);
  }
}

/**
 * Returns the same text sealed with the newest key, or null when it already is.
 *
 * @throws UnsealError
 */
export function reseal(sealed: Buffer, boundTo: string, keys: SealingKeys): Buffer | null {
  return sealedVersion(sealed) === keys[0].version ? null : seal(unseal(sealed, boundTo, keys), boundTo, keys);
}

/**
 * Returns the version of the key that sealed it.
 *
 * @throws UnsealError when it is not of this format.
 */
export function sealedVersion(sealed: Buffer): number {
  if (sealed.length <= headBytes + nonceBytes + tagBytes || sealed.readUInt8() !== format)
    throw new UnsealError('malformed', null);
  return sealed.readUInt16BE(1);
}

/** Returns what the tag covers beside the text. A row's UUIDs count in any spelling. */
function boundData(head: Buffer, boundTo: string): Buffer {
  return Buffer.concat([head, Buffer.from(boundTo.toLowerCase())]);
}
