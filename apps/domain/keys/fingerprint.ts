import { createHmac } from 'node:crypto';
import type { Region } from '../contract/regions.ts';

/** A secret for fingerprints, with the version that each key's row stores. */
export interface Pepper {
  version: number;
  secret: Buffer;
}

/** An installation's secrets, newest first: the first creates, all verify. */
export interface KeySecrets {
  region: Region;
  peppers: readonly [Pepper, ...Pepper[]];
  tagSecrets: readonly [Buffer, ...Buffer[]];
}

/** Returns the stored form of a key: HMAC-SHA-256, 32 bytes. It is useless without the pepper. */
export function fingerprint(key: string, pepper: Pepper): Buffer {
  return createHmac('sha256', pepper.secret).update(key).digest();
}

/** Returns a key's fingerprint under each pepper in use, oldest last; one of them finds its row. */
export function fingerprints(key: string, peppers: readonly Pepper[]): Buffer[] {
  return peppers.map((pepper) => fingerprint(key, pepper));
}
