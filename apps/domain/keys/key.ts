import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { type Region, regionCodes, regions } from '../contract/regions.ts';

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

/**
 * The form of an API key: `aln_<region>_`, 30 random base62 characters (178 bits), 4 of a keyed
 * tag, and 6 of a CRC32 over all before it. The CRC lets a secret scanner distinguish a key from
 * noise offline. The tag lets a pod reject a forged key without I/O: 1 in 14,776,336 forgeries
 * passes, and is then unknown to the database.
 */
const randomLength = 30;
const tagLength = 4;
const crcLength = 6;
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const keyForm = /^aln_(us|ca)_[0-9A-Za-z]{40}$/;

/** Returns a new key value: shown once, never stored. `tagSecret`: the installation's newest. */
export function generateKey(region: Region, tagSecret: Buffer): string {
  const body = regions[region].keyPrefix + randomBase62(randomLength);
  const tagged = body + tag(body, tagSecret);
  return tagged + toBase62(crc32(tagged), crcLength);
}

/**
 * What a bearer token shows without I/O. `not_a_key`: its form, CRC or tag is wrong. `other_region`: it has the
 * prefix of that region's keys; nothing else of it is checked.
 */
export type KeyCheck =
  | { ok: true }
  | { ok: false; reason: 'not_a_key' }
  | { ok: false; reason: 'other_region'; region: Region };

/** Checks prefix, form, CRC and tag of a key of `region`. `tagSecrets`: all that are in use. */
export function checkKey(text: string, region: Region, tagSecrets: readonly Buffer[]): KeyCheck {
  const other = regionCodes.find((code) => code !== region && text.startsWith(regions[code].keyPrefix));
  if (other !== undefined) return { ok: false, reason: 'other_region', region: other };
  if (!keyForm.test(text)) return { ok: false, reason: 'not_a_key' };
  const tagged = text.slice(0, -crcLength);
  if (toBase62(crc32(tagged), crcLength) !== text.slice(-crcLength)) return { ok: false, reason: 'not_a_key' };
  const body = tagged.slice(0, -tagLength);
  const given = Buffer.from(tagged.slice(-tagLength));
  const isValid = tagSecrets.some((secret) => timingSafeEqual(Buffer.from(tag(body, secret)), given));
  return isValid ? { ok: true } : { ok: false, reason: 'not_a_key' };
}

/** Returns what may be shown of a key later: its prefix, and its first and last four characters. */
export function keyHint(key: string): string {
  const prefixLength = key.lastIndexOf('_') + 1;
  return `${key.slice(0, prefixLength + 4)}…${key.slice(-4)}`;
}

/** Returns the stored form of a key: HMAC-SHA-256, 32 bytes. It is useless without the pepper. */
export function fingerprint(key: string, pepper: Pepper): Buffer {
  return createHmac('sha256', pepper.secret).update(key).digest();
}

/** Returns a key's fingerprint under each pepper in use, oldest last; one of them finds its row. */
export function fingerprints(key: string, peppers: readonly Pepper[]): Buffer[] {
  return peppers.map((pepper) => fingerprint(key, pepper));
}

function tag(body: string, secret: Buffer): string {
  return toBase62(createHmac('sha256', secret).update(body).digest().readUIntBE(0, 6) % 62 ** tagLength, tagLength);
}

function toBase62(value: number, length: number): string {
  let digits = '';
  for (let rest = value; digits.length < length; rest = Math.floor(rest / 62))
    digits = alphabet.charAt(rest % 62) + digits;
  return digits;
}

/** Discards bytes of 248 and more, so that each character is equally likely. */
function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += alphabet.charAt(byte % 62);
  }
  return text;
}
