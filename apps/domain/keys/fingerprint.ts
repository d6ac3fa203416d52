import { createHmac } from 'node:crypto';
import type { Region } from '../contract/regions.ts';

/** A secret that fingerprints are made with, under the version that each key's row remembers. */
export interface Pepper {
  version: number;
  secret: Buffer;
}

/**
 * The secrets of one installation's keys. Newest first in both lists: the first makes, all of them
 * verify. A pepper or tag secret leaves its list when no live key was made with it.
 */
export interface KeySecrets {
  region: Region;
  peppers: readonly [Pepper, ...Pepper[]];
  tagSecrets: readonly [Buffer, ...Buffer[]];
}

/**
 * The stored form of a key: HMAC-SHA-256 of its text, 32 bytes. Without the pepper a stolen table
 * says nothing about any key.
 */
export function fingerprint(key: string, pepper: Pepper): Buffer {
  return createHmac('sha256', pepper.secret).update(key).digest();
}

/** A key's fingerprint under each pepper in use, oldest last; one of them finds its row. */
export function fingerprints(key: string, peppers: readonly Pepper[]): Buffer[] {
  return peppers.map((pepper) => fingerprint(key, pepper));
}
