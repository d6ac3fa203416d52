import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { regionCodes } from '#domain/contract/regions.ts';
import type { Pepper } from '#domain/keys/key.ts';
import { InvalidValueError } from './connection-url.ts';
import { parseOtlpEndpoint } from './otlp.ts';
import { parsePostgresUrl } from './postgresql.ts';
import { parseRedisUrl } from './redis.ts';
import { parseTemporalAddress } from './temporal-address.ts';

/** Types of settings that several apps share. No message repeats a value, which may be a secret. */

/** Rejects a setting from within its transform. */
export function reject(context: z.RefinementCtx, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

export const region = z
  .enum(regionCodes as ['us', 'ca'], { error: 'must be us or ca' })
  .describe('Region that this installation serves: `us` or `ca`.');

export const port = z.coerce
  .number({ error: 'must be a port number' })
  .int('must be a whole number')
  .min(0, 'must be 0 or more')
  .max(65_535, 'must be 65535 or less');

/** Returns a transform of a setting that parses its text, once. */
const parsedBy =
  <T>(parse: (text: string) => T) =>
  (text: string, context: z.RefinementCtx): T => {
    try {
      return parse(text);
    } catch (error) {
      if (error instanceof InvalidValueError) return reject(context, error.message);
      throw error;
    }
  };

export const databaseUrl = z.string().transform(parsedBy(parsePostgresUrl));

export const redisUrl = z.string().transform(parsedBy(parseRedisUrl));

export const temporalAddress = z
  .string()
  .transform(parsedBy(parseTemporalAddress))
  .describe('`host:port` of Temporal; an IPv6 address is in brackets.');

export const otlpEndpoint = z
  .string()
  .transform(parsedBy(parseOtlpEndpoint))
  .optional()
  .describe('OTLP/HTTP endpoint for traces. The trace of a delivery has the id of its event, without dashes.');

export const httpUrl = z
  .string()
  .regex(/^https?:\/\/[^/]/, 'must be an http:// or https:// URL')
  .transform((url) => url.replace(/\/+$/, ''));

/**
 * Scheme, host and port of the console: https, or http on localhost. Passkeys are bound to its host,
 * which therefore is a name and no address.
 */
export const consoleUrl = z.string().transform((text, context): URL => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && url.hostname === 'localhost');
  const isName = url !== null && !/^[\d.]+$|^\[/.test(url.hostname);
  if (url !== null && isSafe && isName && url.pathname === '/' && url.search === '' && url.username === '') return url;
  return reject(context, 'must be https:// and a host name, without a path (http://localhost:PORT for development)');
});

/** A whole number from `min` to `max`. */
export const wholeNumber = (min: number, max: number) =>
  z.coerce
    .number({ error: 'must be a number' })
    .int('must be a whole number')
    .min(min, `must be ${min} or more`)
    .max(max, `must be ${max} or less`);

/** Addresses and CIDR blocks separated by commas, for example `10.0.0.0/8,::1`; none by default. */
export const addressBlocks = z
  .string()
  .default('')
  .transform((text, context): BlockList => {
    const list = new BlockList();
    for (const entry of text.split(',').map((part) => part.trim())) {
      if (entry === '') continue;
      const [, address = '', prefix] = /^([0-9a-f:.]+)(?:\/(\d{1,3}))?$/i.exec(entry) ?? [];
      const version = isIP(address);
      const widest = version === 4 ? 32 : 128;
      const bits = Number(prefix ?? widest);
      if (version === 0 || bits > widest) {
        return reject(context, 'must be addresses or CIDR blocks separated by commas, for example 10.0.0.0/8,::1');
      }
      list.addSubnet(address, bits, version === 4 ? 'ipv4' : 'ipv6');
    }
    return list;
  });

/** Non-public addresses that webhooks may use. */
export const webhookAllow = addressBlocks.meta({
  description:
    'Addresses or CIDR blocks, separated by commas, that webhooks may reach although they are not ' +
    'public, also by plain http. Organizations choose the path of these requests, and add headers to them.',
  shown: 'none',
});

/** Whole days, written `730d`. */
export const days = z
  .string()
  .regex(/^[1-9]\d{0,4}d$/, 'must be a number of days, for example 730d')
  .transform((text) => Number(text.slice(0, -1)));

export const logLevel = z
  .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'], {
    error: 'must be trace, debug, info, warn, error or silent',
  })
  .default('info')
  .describe('Least severe log lines: trace, debug, info, warn, error or silent.');

const base64Secret = z
  .string()
  .regex(/^[A-Za-z0-9+/]{22,}={0,2}$/, 'must be base64 of at least 16 random bytes')
  .transform((text) => Buffer.from(text, 'base64'));

/** `version:base64` parts separated by commas, newest first, each version once. */
const versionedSecrets = (secret: typeof base64Secret, each: string) =>
  z.string().transform((text, context): [Pepper, ...Pepper[]] => {
    const parts = text.split(',').map((part) => part.trim().split(':'));
    const whole = parts.flatMap(([version = '', encoded = '']): Pepper[] => {
      const parsed = secret.safeParse(encoded);
      return /^\d{1,4}$/.test(version) && parsed.success ? [{ version: Number(version), secret: parsed.data }] : [];
    });
    if (whole.length < parts.length || new Set(whole.map((part) => part.version)).size < whole.length) {
      const message = `must be version:base64 parts, each of ${each}, newest first, each version once, between commas`;
      return reject(context, message);
    }
    return whole as [Pepper, ...Pepper[]];
  });

/** Peppers of key fingerprints, for example `2:…,1:…`. */
export const keyPeppers = versionedSecrets(base64Secret, 'at least 16 random bytes').describe(
  'Peppers of key fingerprints, `version:base64` separated by commas, newest first. The newest creates, all verify.',
);

/** Keys that seal webhook secrets, AES-256 and so of exactly 32 bytes, for example `2:…,1:…`. */
export const webhookSecretKeys = versionedSecrets(
  base64Secret.refine((key) => key.length === 32),
  '32 random bytes',
).describe(
  'Keys that encrypt signing secrets and authenticator apps (32 bytes), `version:base64` separated by commas, ' +
    'newest first. `orgctl secrets reseal` encrypts everything with the newest.',
);

/** base64 secrets separated by commas, newest first. */
export const keyTagSecrets = z
  .string()
  .transform((text, context): [Buffer, ...Buffer[]] => {
    const parsed = text.split(',').map((part) => base64Secret.safeParse(part.trim()));
    return parsed.every((part) => part.success)
      ? (parsed.map((part) => part.data) as [Buffer, ...Buffer[]])
      : reject(context, 'must be base64 of at least 16 random bytes; several are separated by commas, newest first');
  })
  .describe('Secrets of key tags, base64 separated by commas, newest first.');
